//! Checkpoint dips: runs of seconds with far less work than the seconds around them.
//!
//! A second is in a dip if its operations are below 0.7 of the median of the two periods around it. A server
//! that stops for its checkpoints shows dips. Where the server counts its checkpoints
//! ([`Figures::checkpoints`]), a dip belongs to one that was under way during it or in the second before.
//!
//! The period is that of these checkpoints. Without them it is the highest peak of the autocorrelation of the
//! seconds, without their trend. Without a peak, the median is of two minutes.
//!
//! The last second of a run that ended by itself is shorter than the others, and is left out.

use super::Figures;
use crate::why::checkpoints::Checkpoint;
use pando_measuring::number::median;

/// A second with a smaller share of the median is in a dip.
const SHARE: f64 = 0.7;
/// Seconds on either side that the median is taken of, where no period is known.
const AROUND: usize = 60;
/// Shorter periods are no checkpoints.
const PERIOD_MIN: usize = 3;
/// A period is believed that fits so often into the run.
const PERIODS_MIN: usize = 3;
/// A peak of the autocorrelation below this is chance, as is one within three deviations of what white noise
/// has.
const PEAK_MIN: f64 = 0.3;
/// The first peak that has this share of the highest is the period; the others are its multiples.
const PEAK_SHARE: f64 = 0.8;
/// Seconds of an interval, as the original tools have them.
const INTERVAL: usize = 10;

/// So many checkpoints have a period.
const CHECKPOINTS_MIN: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Dip {
    /// Its first second.
    pub from_s: usize,
    /// How many seconds it lasts.
    pub seconds: usize,
    /// The least operations in one of its seconds, by the median around it.
    pub depth: f64,
}

/// The shape of a timeline.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Steadiness {
    pub dips: Vec<Dip>,
    /// The deviation of its seconds by their mean.
    pub variation: f64,
    /// Seconds in which nothing was done.
    pub idle_seconds: usize,
    /// After how many seconds what happens happens again, if it does.
    pub period_s: Option<usize>,
    /// The server's checkpoints, if it says when it writes them.
    pub checkpoints: Option<Checkpoints>,
    /// The deviation of intervals of ten seconds by their mean, and the rates below which one and five of a
    /// hundred of them are.
    pub intervals: Option<IntervalSpread>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Checkpoints {
    /// How many were under way in it.
    pub count: usize,
    /// How long they took on average, in seconds.
    pub mean_s: f64,
    /// The median time from the end of one to the end of the next, if there are enough.
    pub every_s: Option<f64>,
    /// Dips that are beside one.
    pub dips: usize,
    /// The mean rate of seconds with one by that of the others; nothing unless there are both.
    pub rate_ratio: Option<f64>,
}

/// How much intervals differ.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct IntervalSpread {
    /// Their deviation by their mean.
    pub variation: f64,
    /// Operations a second: one of a hundred intervals has less.
    pub p1: f64,
    pub p5: f64,
}

impl Steadiness {
    pub fn mean_depth(&self) -> Option<f64> {
        (!self.dips.is_empty())
            .then(|| self.dips.iter().map(|dip| dip.depth).sum::<f64>() / self.dips.len() as f64)
    }

    /// The server's checkpoints and their relation to the dips, in words; nothing if it does not count them.
    pub fn line(&self) -> Option<String> {
        let Checkpoints { count, mean_s, every_s, dips, rate_ratio } = self.checkpoints?;
        if count == 0 {
            return Some("none under way, says the server".to_owned());
        }
        let every = every_s.map_or_else(String::new, |seconds| format!(", one every {seconds:.1} s"));
        let rate = rate_ratio.map_or_else(String::new, |ratio| {
            format!("; seconds with one have {:.0} % of the rate of those without", ratio * 100.0)
        });
        Some(format!(
            "{count} under way, says the server, {mean_s:.2} s long on average{every}; beside one are {dips} of {} dips{rate}",
            self.dips.len()
        ))
    }

    /// The mean length of the dips in seconds.
    pub fn mean_length_s(&self) -> Option<f64> {
        let seconds: usize = self.dips.iter().map(|dip| dip.seconds).sum();
        (!self.dips.is_empty()).then(|| seconds as f64 / self.dips.len() as f64)
    }
}

pub fn steadiness(figures: &Figures) -> Steadiness {
    let operations: Vec<f64> =
        figures.whole_seconds().iter().map(|second| second.operations as f64).collect();
    of_seconds(&operations, figures.checkpoints.as_deref())
}

fn of_seconds(operations: &[f64], checkpoints: Option<&[Checkpoint]>) -> Steadiness {
    let every_s = checkpoints.and_then(period_of_checkpoints);
    let period_s = every_s.map(|seconds| (seconds.round() as usize).max(1)).or_else(|| period(operations));
    let around_s = period_s.unwrap_or(AROUND);
    let mut dips: Vec<Dip> = Vec::new();
    for (place, count) in operations.iter().enumerate() {
        let around = &operations[place.saturating_sub(around_s)..operations.len().min(place + around_s + 1)];
        let median = median(around.to_vec()).unwrap_or(0.0);
        // Where most seconds have nothing, each of these is a dip all the same.
        if *count > 0.0 && *count >= SHARE * median {
            continue;
        }
        let depth = if median > 0.0 { count / median } else { 0.0 };
        match dips.last_mut() {
            Some(dip) if dip.from_s + dip.seconds == place => {
                dip.seconds += 1;
                dip.depth = dip.depth.min(depth);
            }
            _ => dips.push(Dip { from_s: place, seconds: 1, depth }),
        }
    }
    let idle_seconds = operations.iter().filter(|count| **count == 0.0).count();
    let intervals = interval_spread(operations);
    let checkpoints = checkpoints.map(|checkpoints| Checkpoints {
        count: checkpoints.len(),
        mean_s: mean(checkpoints.iter().map(Checkpoint::seconds)).unwrap_or(0.0),
        every_s,
        dips: dips
            .iter()
            .filter(|dip| checkpoints.iter().any(|checkpoint| dip.is_beside(checkpoint)))
            .count(),
        rate_ratio: rate_ratio(operations, checkpoints),
    });
    Steadiness { dips, variation: variation(operations), idle_seconds, period_s, checkpoints, intervals }
}

impl Dip {
    /// Whether a checkpoint was under way in it, or ended in the second before: what it filled, queues and
    /// caches, is felt a while.
    fn is_beside(&self, checkpoint: &Checkpoint) -> bool {
        (self.from_s.saturating_sub(1)..self.from_s + self.seconds).any(|second| checkpoint.is_in(second))
    }
}

fn period_of_checkpoints(checkpoints: &[Checkpoint]) -> Option<f64> {
    let between = checkpoints.windows(2).map(|pair| pair[1].to_s - pair[0].to_s).collect();
    median(between).filter(|_| checkpoints.len() >= CHECKPOINTS_MIN)
}

fn rate_ratio(operations: &[f64], checkpoints: &[Checkpoint]) -> Option<f64> {
    let is_in = |second: usize| checkpoints.iter().any(|checkpoint| checkpoint.is_in(second));
    let of = |wanted: bool| {
        mean(operations.iter().enumerate().filter(|(at, _)| is_in(*at) == wanted).map(|(_, count)| *count))
    };
    let without = of(false).filter(|mean| *mean > 0.0)?;
    Some(of(true)? / without)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The period of a series, if it has one.
fn period(values: &[f64]) -> Option<usize> {
    let without_trend = detrended(values);
    let power: f64 = without_trend.iter().map(|value| value * value).sum();
    let longest = values.len() / PERIODS_MIN;
    if power <= 0.0 || longest <= PERIOD_MIN {
        return None;
    }
    let correlation = |lag: usize| {
        let products = without_trend.iter().zip(&without_trend[lag..]).map(|(a, b)| a * b);
        // As if the series went on: a long lag has fewer products.
        products.sum::<f64>() / power * values.len() as f64 / (values.len() - lag) as f64
    };
    let all: Vec<f64> = (0..=longest + 1).map(correlation).collect();
    let is_peak = |lag: usize| all[lag] >= all[lag - 1] && all[lag] >= all[lag + 1];
    let peaks: Vec<usize> = (PERIOD_MIN..=longest).filter(|lag| is_peak(*lag)).collect();
    let highest = peaks.iter().map(|lag| all[*lag]).fold(0.0, f64::max);
    if highest < PEAK_MIN.max(3.0 / (values.len() as f64).sqrt()) {
        return None;
    }
    peaks.into_iter().find(|lag| all[*lag] >= PEAK_SHARE * highest)
}

fn detrended(values: &[f64]) -> Vec<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    let middle = (count - 1.0) / 2.0;
    let (mut up, mut across) = (0.0, 0.0);
    for (place, value) in values.iter().enumerate() {
        up += (place as f64 - middle) * (value - mean);
        across += (place as f64 - middle).powi(2);
    }
    let slope = if across > 0.0 { up / across } else { 0.0 };
    let line = |place: usize| mean + slope * (place as f64 - middle);
    values.iter().enumerate().map(|(place, value)| value - line(place)).collect()
}

fn interval_spread(operations: &[f64]) -> Option<IntervalSpread> {
    let rate = |interval: &[f64]| interval.iter().sum::<f64>() / INTERVAL as f64;
    let mut rates: Vec<f64> = operations.chunks_exact(INTERVAL).map(rate).collect();
    if rates.len() < 2 {
        return None;
    }
    let variation = variation(&rates);
    rates.sort_by(f64::total_cmp);
    let at = |share: f64| rates[(share * rates.len() as f64) as usize];
    Some(IntervalSpread { variation, p1: at(0.01), p5: at(0.05) })
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
    use super::super::figures::TimelineSecond;
    use super::super::figures::tests::{measured, tally};
    use super::*;

    fn found(operations: impl Iterator<Item = u64>) -> Steadiness {
        of_seconds(&operations.map(|count| count as f64).collect::<Vec<_>>(), None)
    }

    #[test]
    fn a_steady_run_has_no_dips() {
        let found = found((0..100).map(|second| 1000 + second % 7));
        assert_eq!((found.dips.len(), found.idle_seconds), (0, 0));
        assert!(found.variation < 0.01);
    }

    #[test]
    fn each_stop_is_one_dip_with_its_depth_and_length() {
        let found = found((0..180).map(|second| match second % 60 {
            30 => 200,
            31 => 0,
            32 => 500,
            _ => 1000,
        }));
        let dips: Vec<(usize, usize, f64)> =
            found.dips.iter().map(|dip| (dip.from_s, dip.seconds, dip.depth)).collect();
        assert_eq!(dips, [(30, 3, 0.0), (90, 3, 0.0), (150, 3, 0.0)]);
        assert_eq!(found.idle_seconds, 3);
        assert_eq!(
            (found.period_s, found.mean_depth(), found.mean_length_s()),
            (Some(60), Some(0.0), Some(3.0))
        );
    }

    #[test]
    fn the_period_is_that_of_the_dips_whatever_the_trend_and_the_noise() {
        // A rate that falls by half, noise of 5 %, and a dip every 17 seconds.
        let mut noise =
            pando_measuring::random::Random::for_client(pando_measuring::random::Generator::Xoshiro, 7, 0);
        let series = (0..200_u64).map(|second| {
            let trend = 10_000.0 * (1.0 - second as f64 / 400.0);
            let dip = if second % 17 < 2 { 0.3 } else { 1.0 };
            (trend * dip * (0.95 + 0.1 * noise.unit())) as u64
        });
        assert_eq!(found(series).period_s, Some(17));
    }

    #[test]
    fn noise_and_a_single_stop_have_no_period() {
        let mut noise =
            pando_measuring::random::Random::for_client(pando_measuring::random::Generator::Xoshiro, 7, 0);
        assert_eq!(found((0..200).map(|_| 1000 + u64::from(noise.below(200)))).period_s, None);
        assert_eq!(found((0..100).map(|second| if second == 50 { 0 } else { 1000 })).period_s, None);
        assert_eq!(found([1, 2].into_iter()).period_s, None);
    }

    #[test]
    fn a_server_that_stands_still_most_of_the_time_has_dips() {
        let found = found((0..40).map(|second| if second < 10 { 1000 } else { 0 }));
        assert_eq!((found.dips.len(), found.idle_seconds), (1, 30));
    }

    #[test]
    fn intervals_have_their_spread() {
        let found = found((0..40).map(|second| if second < 10 { 500 } else { 1000 }));
        let spread = found.intervals.expect("four intervals");
        assert_eq!((spread.p1, spread.p5), (500.0, 500.0));
        assert!((spread.variation - 0.247).abs() < 0.001, "{}", spread.variation);
    }

    #[test]
    fn the_shorter_last_second_of_a_run_is_no_dip() {
        let second = |operations| TimelineSecond { operations, ..TimelineSecond::default() };
        let timeline = (0..20).map(|_| second(1000)).chain([second(100)]).collect();
        let figures = Figures { seconds: 20.1, timeline, ..figures() };
        assert!(steadiness(&figures).dips.is_empty());
    }

    fn figures() -> Figures {
        Figures::new(&measured(tally(1), None), &[])
    }

    #[test]
    fn no_samples_are_no_dip() {
        assert_eq!(of_seconds(&[], None).dips, []);
        assert_eq!(of_seconds(&[], Some(&[])).line().as_deref(), Some("none under way, says the server"));
        assert_eq!(of_seconds(&[1.0], None).line(), None);
    }

    /// A server that does a third while it writes a checkpoint: from 20 s on every 30 s, 4 s long; one stop
    /// is somebody else's.
    fn with_checkpoints() -> (Vec<f64>, Vec<Checkpoint>) {
        let operations = (0..180).map(|second| match (second % 30, second) {
            (20..24, _) => 300.0,
            (_, 130) => 0.0,
            _ => 1000.0,
        });
        let checkpoint =
            |from: u32| Checkpoint { from_s: f64::from(from) + 0.2, to_s: f64::from(from) + 3.9 };
        (operations.collect(), (0..6).map(|number| checkpoint(number * 30 + 20)).collect())
    }

    #[test]
    fn dips_are_set_beside_the_servers_own_checkpoints() {
        let (operations, checkpoints) = with_checkpoints();
        let found = of_seconds(&operations, Some(&checkpoints));
        assert_eq!((found.dips.len(), found.period_s), (7, Some(30)));
        let of_server = found.checkpoints.expect("it says so");
        assert_eq!((of_server.count, of_server.dips, of_server.every_s), (6, 6, Some(30.0)));
        assert!(
            (of_server.mean_s - 3.7).abs() < 1e-9 && of_server.rate_ratio.is_some_and(|ratio| ratio < 0.35)
        );
        let line = found.line().expect("it says so");
        assert!(line.contains("6 of 7 dips") && line.contains("one every 30.0 s"), "{line}");
        // Without the server's word the series itself has the period, and nobody says whose it is.
        let alone = of_seconds(&operations, None);
        assert_eq!((alone.dips.len(), alone.period_s, alone.checkpoints), (7, Some(30), None));
    }

    #[test]
    fn the_median_is_of_the_two_periods_around_whoever_tells_the_period() {
        // Half the rate for 20 s. With a period of 5 s known, the median follows it, and only its edges are
        // dips.
        let operations: Vec<f64> =
            (0..200).map(|second| if (80..100).contains(&second) { 500.0 } else { 1000.0 }).collect();
        let checkpoints: Vec<Checkpoint> = (1..40)
            .map(|number| Checkpoint { from_s: f64::from(number * 5), to_s: f64::from(number * 5) + 0.1 })
            .collect();
        let in_dips = |found: &Steadiness| found.dips.iter().map(|dip| dip.seconds).sum::<usize>();
        assert!(in_dips(&of_seconds(&operations, Some(&checkpoints))) <= 10);
        assert_eq!(
            in_dips(&of_seconds(&operations, None)),
            20,
            "two minutes around are far more than the slow ones"
        );
    }
}
