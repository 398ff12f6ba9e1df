//! Charts of runs over time, and of the latencies of their units.

use super::runs::Run;
use super::{pairs, under};
use crate::report::dips::{Steadiness, steadiness};
use crate::report::file::RunFile;
use pando_measuring::chart::{Axis, Chart, Line, Mark, MarkKind, escape};
use pando_measuring::number::number;
use std::fmt::Write as _;

/// Operations per second over time: all runs over each other, then each with its dips and checkpoints, all on
/// one scale.
pub fn throughput(runs: &[Run<'_>]) -> String {
    let timed: Vec<&Run<'_>> = runs.iter().filter(|run| run.file.figures.whole_seconds().len() > 1).collect();
    let y_least = timed
        .iter()
        .flat_map(|run| run.file.figures.whole_seconds())
        .map(|second| second.operations as f64)
        .fold(0.0, f64::max);
    let mut html = overlaid(&timed);
    for Run { file, name, look } in timed {
        let found = steadiness(&file.figures);
        let Steadiness { dips, variation, idle_seconds, .. } = &found;
        let chart = Chart {
            title: format!("{} per second over time, {}", file.operations, name),
            x_name: "seconds",
            x_axis: Axis::Linear,
            lines: vec![Line { look: *look, ..Line::new(file.operations.clone(), rates_of(file)) }],
            marks: marks(&found, file),
            y_least,
        };
        let _ = write!(
            html,
            "<div><h4>{} per second: {}</h4>{}<p>{}{}, variation {variation:.2}{}, \
             {idle_seconds} seconds without work{}</p></div>",
            escape(&file.operations),
            escape(name),
            chart.render(),
            match dips.len() {
                1 => "1 dip below 0.7 of the median around it".to_owned(),
                count => format!("{count} dips below 0.7 of the median around them"),
            },
            dips_in_words(&found),
            intervals_in_words(&found),
            found.line().map_or_else(String::new, |line| format!(". Checkpoints: {line}"))
        );
    }
    under("Over time", pairs(html))
}

/// The rates of all runs in one chart; nothing if there is one run.
fn overlaid(runs: &[&Run<'_>]) -> String {
    if runs.len() < 2 {
        return String::new();
    }
    let chart = Chart {
        title: "rates of all runs over time".to_owned(),
        x_name: "seconds",
        x_axis: Axis::Linear,
        lines: runs.iter().map(|run| run.line(rates_of(run.file))).collect(),
        marks: Vec::new(),
        y_least: 0.0,
    };
    format!("<div><h4>{} per second, all runs</h4>{}</div>", escape(&runs[0].file.operations), chart.render())
}

/// The end of each whole second, and the operations of the second.
fn rates_of(file: &RunFile) -> Vec<(f64, f64)> {
    let ends = (1_u32..).map(f64::from);
    ends.zip(file.figures.whole_seconds().iter().map(|second| second.operations as f64)).collect()
}

/// Dips and checkpoints, where the points of their seconds are.
fn marks(found: &Steadiness, file: &RunFile) -> Vec<Mark> {
    let dips = found.dips.iter().map(|dip| Mark {
        kind: MarkKind::Dip,
        from: dip.from_s as f64 + 0.5,
        to: (dip.from_s + dip.seconds) as f64 + 0.5,
    });
    let checkpoints = file.figures.checkpoints.iter().flatten().map(|checkpoint| Mark {
        kind: MarkKind::Checkpoint,
        // A second's point is at its end.
        from: checkpoint.from_s.max(0.0) + 0.5,
        to: checkpoint.to_s.min(file.figures.seconds) + 0.5,
    });
    dips.chain(checkpoints).collect()
}

fn dips_in_words(found: &Steadiness) -> String {
    let mut text = String::new();
    if let (Some(depth), Some(length)) = (found.mean_depth(), found.mean_length_s()) {
        let _ = write!(text, " ({:.0} % of that and {length:.1} s long on average)", depth * 100.0);
    }
    if let Some(period) = found.period_s {
        let _ = write!(text, ", again every {period} s");
    }
    text
}

fn intervals_in_words(found: &Steadiness) -> String {
    found.intervals.map_or_else(String::new, |spread| {
        format!(
            ", of intervals of 10 s {:.2} (a hundredth of them below {}, a twentieth below {})",
            spread.variation,
            number(spread.p1),
            number(spread.p5)
        )
    })
}

/// Share of units that took longer, over latency: the curves of all runs in one chart.
pub fn latencies(runs: &[Run<'_>]) -> String {
    let line = |run: &Run<'_>| {
        let buckets = &run.file.figures.histogram_us;
        let all: u64 = buckets.iter().map(|bucket| bucket.1).sum();
        let mut so_far = 0;
        let points = buckets
            .iter()
            .map(|(us, count)| {
                so_far += count;
                (us / 1e3, so_far as f64 * 100.0 / all.max(1) as f64)
            })
            .collect();
        run.line(points)
    };
    let lines: Vec<Line> = runs.iter().map(line).collect();
    let title = "percent of units that took at most so long".to_owned();
    let heading = format!("Latency: {title}");
    let chart = Chart {
        title,
        x_name: "milliseconds",
        x_axis: Axis::Logarithmic,
        lines,
        marks: Vec::new(),
        y_least: 0.0,
    };
    under(&heading, chart.render())
}
