//! Checkpoint dips: runs of seconds in which far less is done than around them.
//!
//! A second is in a dip if its operations are below 0.7 of the median of the seconds around it. Dips are what a server that
//! stops for its checkpoints shows; their period tells whose they are.

use super::figures::TimelineSecond;

/// A second with a smaller share of the median is in a dip.
const SHARE: f64 = 0.7;
/// Seconds on either side that the median is taken of.
const AROUND: usize = 60;

/// A dip.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Dip {
    /// Its first second.
    pub from_s: usize,
    /// How many seconds it lasts.
    pub seconds: usize,
    /// The least operations in one of its seconds, by the median around it.
    pub depth: f64,
}

/// What a timeline looks like.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Steadiness {
    /// Its dips.
    pub dips: Vec<Dip>,
    /// The deviation of its seconds by their mean.
    pub variation: f64,
    /// Seconds in which nothing was done.
    pub idle_seconds: usize,
}

/// Looks at a timeline.
pub fn steadiness(timeline: &[TimelineSecond]) -> Steadiness {
    let operations: Vec<f64> = timeline.iter().map(|second| second.operations as f64).collect();
    let mut dips: Vec<Dip> = Vec::new();
    for (place, count) in operations.iter().enumerate() {
        let around = &operations[place.saturating_sub(AROUND)..operations.len().min(place + AROUND + 1)];
        let median = median(around);
        if *count >= SHARE * median {
            continue;
        }
        let depth = count / median;
        match dips.last_mut() {
            Some(dip) if dip.from_s + dip.seconds == place => {
                dip.seconds += 1;
                dip.depth = dip.depth.min(depth);
            }
            _ => dips.push(Dip { from_s: place, seconds: 1, depth }),
        }
    }
    let idle_seconds = operations.iter().filter(|count| **count == 0.0).count();
    Steadiness { dips, variation: variation(&operations), idle_seconds }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

fn variation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    if mean == 0.0 {
        return 0.0;
    }
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    square.sqrt() / mean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(operations: impl Iterator<Item = u64>) -> Vec<TimelineSecond> {
        operations.map(|operations| TimelineSecond { operations, ..TimelineSecond::default() }).collect()
    }

    #[test]
    fn a_steady_run_has_no_dips() {
        let found = steadiness(&timeline((0..100).map(|second| 1000 + second % 7)));
        assert_eq!((found.dips.len(), found.idle_seconds), (0, 0));
        assert!(found.variation < 0.01);
    }

    #[test]
    fn each_stop_is_one_dip_with_its_depth_and_length() {
        let found = steadiness(&timeline((0..180).map(|second| match second % 60 {
            30 => 200,
            31 => 0,
            32 => 500,
            _ => 1000,
        })));
        let dips: Vec<(usize, usize, f64)> =
            found.dips.iter().map(|dip| (dip.from_s, dip.seconds, dip.depth)).collect();
        assert_eq!(dips, [(30, 3, 0.0), (90, 3, 0.0), (150, 3, 0.0)]);
        assert_eq!(found.idle_seconds, 3);
    }

    #[test]
    fn nothing_is_no_dip() {
        assert_eq!(steadiness(&[]).dips, []);
    }
}
