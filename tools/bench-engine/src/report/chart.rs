//! The chart: inserts per second as the data grows, a line for each peer. One SVG file that needs nothing from outside, and
//! follows light and dark.

use std::fmt::Write as _;

use crate::figures::{Results, Second};
use crate::peer::PeerKind;
use crate::setup::Phase;
use crate::workloads::inserts::multiple_of;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 96.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;
/// Points of a line at most.
const POINTS_MAX: usize = 150;

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#444}.g{stroke:#bbb;stroke-width:.5}.l{fill:none;stroke-width:2}\
    .betree{stroke:#0b62c4}.rocksdb{stroke:#c2571a}.lmdb{stroke:#2c8a3c}.redb{stroke:#b3263f}.fjall{stroke:#7a4fc0}\
    @media(prefers-color-scheme:dark){text{fill:#ccc}.g{stroke:#555}.betree{stroke:#6db3ff}.rocksdb{stroke:#ffa06b}\
    .lmdb{stroke:#74d186}.redb{stroke:#ff8398}.fjall{stroke:#b99aff}}";

struct Line {
    peer: PeerKind,
    points: Vec<(f64, f64)>,
}

/// The chart; nothing if nobody inserted anything in a cap.
pub fn render(results: &Results) -> Option<String> {
    let cache = results.setup.cache_bytes;
    let capped = results.outcomes.iter().filter(|outcome| outcome.phase == Phase::Capped);
    let lines: Vec<Line> = capped
        .map(|outcome| Line { peer: outcome.peer, points: points(&outcome.timeline, cache) })
        .filter(|line| line.points.len() > 1)
        .collect();
    let all = || lines.iter().flat_map(|line| &line.points);
    let x_to = all().map(|(x, _)| *x).fold(0.0, f64::max);
    let y_to = round_up(all().map(|(_, y)| *y).fold(0.0, f64::max));
    if x_to <= 0.0 || y_to <= 0.0 {
        return None;
    }
    let x = |value: f64| LEFT + value / x_to * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / y_to * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>Inserts per second as \
         the data grows</title><style>{STYLE}</style>\n<text x=\"{LEFT}\" y=\"16\">documents inserted per second, each with \
         3 index entries</text>\n"
    );
    for step in 0..=4 {
        let value = y_to * f64::from(step) / 4.0;
        let _ = writeln!(
            svg,
            "<line class=\"g\" x1=\"{LEFT}\" x2=\"{0:.0}\" y1=\"{1:.1}\" y2=\"{1:.1}\"/><text x=\"{2:.0}\" y=\"{3:.1}\" \
             text-anchor=\"end\">{value:.0}</text>",
            WIDTH - RIGHT,
            y(value),
            LEFT - 6.0,
            y(value) + 4.0
        );
    }
    let step = (x_to / 10.0).ceil().max(1.0);
    let mut tick = step;
    while tick <= x_to + 0.01 {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{tick:.0}</text>",
            x(tick),
            HEIGHT - BOTTOM + 16.0
        );
        tick += step;
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">bytes of documents, in multiples of the cache</text>",
        WIDTH - RIGHT,
        HEIGHT - 6.0
    );
    draw(&mut svg, &lines, x, y);
    svg.push_str("</svg>\n");
    Some(svg)
}

/// The lines, and the legend at the right, in the order of their ends.
fn draw(svg: &mut String, lines: &[Line], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) {
    for (place, line) in lines.iter().enumerate() {
        let name = line.peer.name();
        let _ = write!(svg, "<polyline class=\"l {name}\" points=\"");
        for (at, rate) in &line.points {
            let _ = write!(svg, "{:.1},{:.1} ", x(*at), y(*rate));
        }
        let legend = TOP + 10.0 + 20.0 * place as f64;
        let _ = writeln!(
            svg,
            "\"/><line class=\"l {name}\" x1=\"{0:.0}\" x2=\"{1:.0}\" y1=\"{2:.0}\" y2=\"{2:.0}\"/><text x=\"{3:.0}\" \
             y=\"{4:.0}\">{5}</text>",
            WIDTH - RIGHT + 10.0,
            WIDTH - RIGHT + 26.0,
            legend,
            WIDTH - RIGHT + 32.0,
            legend + 4.0,
            line.peer.title(),
        );
    }
}

/// Multiples of the cache, and the rate up to there.
fn points(timeline: &[Second], cache_bytes: u64) -> Vec<(f64, f64)> {
    let stride = timeline.len().div_ceil(POINTS_MAX).max(1);
    let kept: Vec<&Second> = timeline.iter().step_by(stride).collect();
    kept.windows(2)
        .map(|pair| {
            let rate = (pair[1].documents - pair[0].documents) as f64 / (pair[1].at - pair[0].at).max(1e-3);
            (multiple_of(cache_bytes, pair[1].documents), rate)
        })
        .collect()
}

/// The next number with one digit that counts, or 1.5, or 2.5.
fn round_up(value: f64) -> f64 {
    let unit = 10_f64.powf(value.max(1e-9).log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.iter().map(|step| step * unit).find(|step| *step >= value).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::report::measures::tests::results;

    #[test]
    fn a_peer_that_inserted_has_a_line_and_a_name() {
        let mut all = results("x", 1.0, 1.0);
        assert_eq!(render(&all), None);
        all.outcomes[0].timeline = (1..=5)
            .map(|n| Second {
                at: f64::from(n),
                documents: u64::from(n as u32) * 1_000,
                longest_ms: 1.0,
                counters: BTreeMap::new(),
            })
            .collect();
        let svg = render(&all).expect("there is a line");
        assert!(svg.contains("polyline class=\"l betree\"") && svg.contains(">betree<"), "{svg}");
        assert!(!svg.contains("polyline class=\"l rocksdb\""), "who inserted nothing has no line");
    }
}
