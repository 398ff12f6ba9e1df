//! The chart: inserts per second as the data grows, a line for each peer. It follows light and dark.

use pando_measuring::chart::{Axis, Chart, Line, Look};

use crate::figures::{Outcome, Results, Second};
use crate::peer::PeerKind;
use crate::setup::Phase;
use crate::workloads::inserts::multiple_of;

/// Points of a line at most.
const POINTS_MAX: usize = 150;
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#444}.grid{stroke:#bbb;stroke-width:.5}.l{fill:none;stroke-width:2}\
    .betree{stroke:#0b62c4}.btree{stroke:#5b8f9b}.rocksdb{stroke:#c2571a}.lmdb{stroke:#2c8a3c}.redb{stroke:#b3263f}\
    .fjall{stroke:#7a4fc0}.wiredtiger{stroke:#8a7a1f}\
    @media(prefers-color-scheme:dark){text{fill:#ccc}.grid{stroke:#555}.betree{stroke:#6db3ff}\
    .btree{stroke:#9fd0dc}.rocksdb{stroke:#ffa06b}.lmdb{stroke:#74d186}.redb{stroke:#ff8398}.fjall{stroke:#b99aff}\
    .wiredtiger{stroke:#d9c65a}}";

fn class_of(peer: PeerKind) -> &'static str {
    match peer {
        PeerKind::Betree => "l betree",
        PeerKind::Btree => "l btree",
        PeerKind::Rocksdb | PeerKind::RocksdbEngine => "l rocksdb",
        PeerKind::Lmdb | PeerKind::LmdbEngine => "l lmdb",
        PeerKind::Wiredtiger | PeerKind::WiredtigerEngine => "l wiredtiger",
        PeerKind::Redb => "l redb",
        PeerKind::Fjall => "l fjall",
    }
}

/// The chart; nothing if no peer inserted under a cap.
pub fn render(results: &Results) -> Option<String> {
    let line = |outcome: &Outcome| Line {
        name: outcome.peer.title().to_owned(),
        look: Look::Class(class_of(outcome.peer)),
        points: points(&outcome.timeline, results.setup.cache_bytes),
    };
    let capped = results.outcomes.iter().filter(|outcome| outcome.phase == Phase::Capped);
    let chart = Chart {
        title: "documents inserted per second, each with 3 index entries, as the data grows".to_owned(),
        x_name: "bytes of documents, in multiples of the cache",
        x_axis: Axis::Linear,
        lines: capped.map(line).filter(|line| line.points.len() > 1).collect(),
        marks: Vec::new(),
        y_least: 0.0,
    };
    chart.render_file(STYLE)
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
