//! A run by intervals of some seconds, as the original tools report it: rates, percentiles, costs, the size
//! of the data, and seconds with a checkpoint. [`by_interval`] adds the columns that no
//! original has; every file by intervals ends with them.

use super::Figures;
use super::figures::TimelineSecond;
use crate::client::IntervalTally;
use pando_measuring::histogram::CoarseLatencies;
use std::fmt::Write as _;

/// The figures of an interval that do not follow from its seconds.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct IntervalFigures {
    pub units: Percentiles,
    /// By kind of statement, in the order of the run's kinds.
    pub kinds: Vec<Percentiles>,
    /// The size of the data folder on the device at its end, in bytes.
    pub folder_bytes: Option<u64>,
}

/// Latencies in microseconds, to two digits, but for the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Percentiles {
    /// How many there were.
    pub count: u64,
    pub p50: f64,
    /// 95 of a hundred took at most so long.
    pub p95: f64,
    /// 99 of a hundred took at most so long.
    pub p99: f64,
    /// 999 of a thousand took at most so long.
    pub p999: f64,
    pub max: f64,
}

impl Percentiles {
    fn of(latencies: &CoarseLatencies) -> Percentiles {
        Percentiles {
            count: latencies.count(),
            p50: latencies.quantile_us(0.5),
            p95: latencies.quantile_us(0.95),
            p99: latencies.quantile_us(0.99),
            p999: latencies.quantile_us(0.999),
            max: latencies.max_us(),
        }
    }
}

impl IntervalFigures {
    pub fn of(
        tallies: &[IntervalTally],
        kinds: usize,
        folder_bytes: &[u64],
        count: usize,
    ) -> Vec<IntervalFigures> {
        let interval = |place: usize| {
            // An interval in which nothing was done has no tally, or one of fewer kinds.
            let tally = tallies.get(place).cloned().unwrap_or_default();
            let kind = |kind| tally.kinds.get(kind).map(Percentiles::of).unwrap_or_default();
            IntervalFigures {
                units: Percentiles::of(&tally.units),
                kinds: (0..kinds).map(kind).collect(),
                folder_bytes: folder_bytes.get(place).copied(),
            }
        };
        (0..count).map(interval).collect()
    }
}

/// A part of a timeline, and all before it. What could not be counted is left out.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Seconds from the beginning of the window to the end of this interval.
    pub elapsed_s: u32,
    pub operations: u64,
    /// Operations up to its end.
    pub operations_so_far: u64,
    /// Operations per second in it.
    pub rate: f64,
    /// Operations per second up to its end.
    pub rate_so_far: f64,
    pub mean_us: f64,
    /// Kilobytes read from the disk in it.
    pub read_kb: Option<f64>,
    /// Kilobytes written to the disk in it.
    pub written_kb: Option<f64>,
    pub disk_reads: Option<f64>,
    pub disk_writes: Option<f64>,
    pub switches: Option<f64>,
    /// CPU time of the server in it, in microseconds.
    pub cpu_us: Option<f64>,
    /// Seconds of it in which the server wrote a checkpoint.
    pub checkpoint_s: Option<u32>,
    /// Bytes at its end that the server had put off.
    pub behind_bytes: Option<u64>,
    pub own: IntervalFigures,
}

impl Interval {
    /// A cost of it by its operations; nothing where nothing was done.
    pub fn each(&self, cost: Option<f64>) -> Option<f64> {
        cost.filter(|_| self.operations > 0).map(|cost| cost / self.operations as f64)
    }
}

/// A run by its intervals; the last one may be shorter, and its last second, too, of a run that ended by
/// itself.
pub fn intervals(figures: &Figures) -> Vec<Interval> {
    let mut intervals = of_timeline(&figures.timeline, figures.seconds, figures.interval_s);
    for (interval, own) in intervals.iter_mut().zip(&figures.intervals) {
        interval.own = own.clone();
    }
    intervals
}

fn of_timeline(timeline: &[TimelineSecond], seconds: f64, interval_s: u32) -> Vec<Interval> {
    let (mut elapsed_s, mut so_far) = (0_u32, 0_u64);
    let mut intervals = Vec::new();
    for part in timeline.chunks(interval_s.max(1) as usize) {
        let width = u32::try_from(part.len()).unwrap_or(u32::MAX);
        let operations: u64 = part.iter().map(|second| second.operations).sum();
        let units: u64 = part.iter().map(|second| second.units).sum();
        let latencies: f64 = part.iter().map(|second| second.mean_us * second.units as f64).sum();
        let sum = |of: fn(&TimelineSecond) -> Option<u64>| {
            sum(part.iter().map(|second| of(second).map(|n| n as f64)))
        };
        let began_s = f64::from(elapsed_s);
        elapsed_s += width;
        so_far += operations;
        // Rates are by the true width.
        let ended_s = f64::from(elapsed_s).min(seconds).max(began_s + 1e-3);
        intervals.push(Interval {
            elapsed_s,
            operations,
            operations_so_far: so_far,
            rate: operations as f64 / (ended_s - began_s),
            rate_so_far: so_far as f64 / ended_s,
            mean_us: if units == 0 { 0.0 } else { latencies / units as f64 },
            read_kb: sum(|second| second.read_bytes).map(|bytes| bytes / 1024.0),
            written_kb: sum(|second| second.written_bytes).map(|bytes| bytes / 1024.0),
            disk_reads: sum(|second| second.disk_reads),
            disk_writes: sum(|second| second.disk_writes),
            switches: sum(|second| second.server_switches),
            cpu_us: self::sum(part.iter().map(|second| second.server_cpu_us)),
            checkpoint_s: sum(|second| second.checkpoint.map(u64::from)).map(|seconds| seconds as u32),
            behind_bytes: part.iter().rev().find_map(|second| second.behind_bytes),
            own: IntervalFigures::default(),
        });
    }
    intervals
}

/// Of what was counted; nothing if nothing was.
fn sum(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

/// A line for each interval: columns of the file's own, named by `own_heading`, and the common ones.
pub fn by_interval(figures: &Figures, own_heading: &str, mut own: impl FnMut(&Interval) -> String) -> String {
    let mut text = format!("{own_heading}\t{}", heading(figures));
    for interval in intervals(figures) {
        text += &(own(&interval) + "\t" + &cells(&interval));
    }
    text
}

/// The names of the columns that end each line: percentiles of units in ms, of each kind with its number,
/// then costs by operation, gigabytes of the data folder, seconds with a checkpoint, and megabytes that the
/// server is behind.
fn heading(figures: &Figures) -> String {
    let mut text = "int_p50\tint_p95\tint_p99\tint_p999\tint_max".to_owned();
    for kind in &figures.kinds {
        let name = column_name(&kind.name);
        // Writing to a string does not fail.
        let _ = write!(text, "\t{name}_n\t{name}_p50\t{name}_p95\t{name}_p99\t{name}_p999\t{name}_max");
    }
    text + "\trKB/op\twKB/op\tr/op\tw/op\tcs/op\tcpu_us/op\tdbGB\tckpt\tbehind_mb\n"
}

/// The cells under [`heading`]; a dash is what could not be counted, or is of nothing.
fn cells(interval: &Interval) -> String {
    let mut cells: Vec<String> = milliseconds(&interval.own.units).to_vec();
    for kind in &interval.own.kinds {
        cells.push(kind.count.to_string());
        cells.extend(milliseconds(kind));
    }
    let each =
        |cost: Option<f64>, digits: usize| dash(interval.each(cost).map(|cost| format!("{cost:.digits$}")));
    cells.extend([
        each(interval.read_kb, 3),
        each(interval.written_kb, 3),
        each(interval.disk_reads, 3),
        each(interval.disk_writes, 3),
        each(interval.switches, 2),
        each(interval.cpu_us, 1),
        dash(interval.own.folder_bytes.map(|bytes| format!("{:.4}", bytes as f64 / 1e9))),
        dash(interval.checkpoint_s.map(|seconds| seconds.to_string())),
        dash(interval.behind_bytes.map(|bytes| format!("{:.1}", bytes as f64 / 1e6))),
    ]);
    cells.join("\t") + "\n"
}

/// A value, or a dash for an unknown one.
pub fn dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

fn milliseconds(latencies: &Percentiles) -> [String; 5] {
    let Percentiles { count, p50, p95, p99, p999, max } = *latencies;
    [p50, p95, p99, p999, max].map(|us| dash((count > 0).then(|| format!("{:.3}", us / 1e3))))
}

/// A kind's name without what a column's name has not.
fn column_name(kind: &str) -> String {
    let words = kind.split(|character: char| !character.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::{measured, tally};
    use super::*;
    use crate::client::{Kind, Misses, Statement, Tally, UnitEnd, Verdict};
    use std::time::{Duration, Instant};

    #[test]
    fn seconds_are_put_together_and_added_up() {
        let second = |operations, mean_us, checkpoint| TimelineSecond {
            operations,
            units: operations,
            mean_us,
            read_bytes: Some(1024),
            checkpoint: Some(checkpoint),
            ..TimelineSecond::default()
        };
        let timeline = [second(10, 1.0, true), second(30, 5.0, true), second(4, 3.0, false)];
        let intervals = of_timeline(&timeline, 2.5, 2);
        assert_eq!(intervals.len(), 2);
        assert_eq!((intervals[0].rate, intervals[0].mean_us), (20.0, 4.0));
        assert_eq!((intervals[1].elapsed_s, intervals[1].operations_so_far), (3, 44));
        assert_eq!(
            (intervals[1].rate, intervals[0].read_kb),
            (8.0, Some(2.0)),
            "the last second was half a second long"
        );
        assert_eq!(intervals[1].rate_so_far, 44.0 / 2.5);
        assert_eq!((intervals[0].checkpoint_s, intervals[1].checkpoint_s), (Some(2), Some(0)));
        assert_eq!((intervals[0].written_kb, intervals[0].behind_bytes), (None, None), "nobody counted");
    }

    #[test]
    fn each_line_has_a_cell_for_each_column() {
        let us = Duration::from_micros;
        let mut tally = Tally::new(2, Misses::AreFaults).by_intervals_of(1);
        let unit = |second, latency| UnitEnd {
            second,
            latency,
            service: latency,
            verdict: Verdict::Done,
            operations: 1,
        };
        tally.unit(unit(0, us(4000)));
        tally.statement(
            &Statement { kind: Kind::new(1), latency: us(1500), verdict: Verdict::Done },
            0,
            Instant::now(),
        );
        tally.seconds.resize(2, crate::client::Second::default());
        let mut run = measured(tally, None);
        run.plan.interval_s = 1;
        let figures = Figures::new(&run, &["A kind".to_owned(), "by x, y".to_owned()]);
        let names: Vec<String> = heading(&figures).trim_end().split('\t').map(str::to_owned).collect();
        let lines: Vec<String> = intervals(&figures).iter().map(cells).collect();
        let at = |line: usize, name: &str| {
            let place = names.iter().position(|found| found == name).expect(name);
            lines[line].trim_end().split('\t').nth(place).expect("a cell").to_owned()
        };
        assert!(lines.iter().all(|line| line.split('\t').count() == names.len()), "{names:?}\n{lines:?}");
        assert_eq!((at(0, "int_max"), at(1, "int_max")), ("4.000".into(), "-".into()));
        assert!(at(0, "int_p50").starts_with("4.0"), "to two digits: {}", at(0, "int_p50"));
        assert_eq!((at(0, "by_x_y_n"), at(0, "by_x_y_max")), ("1".into(), "1.500".into()));
        assert_eq!((at(0, "a_kind_n"), at(0, "a_kind_p99")), ("0".into(), "-".into()));
        assert_eq!((at(0, "dbGB"), at(1, "dbGB")), ("0.0050".into(), "-".into()));
        assert_eq!((at(0, "ckpt"), at(0, "rKB/op")), ("-".into(), "-".into()));
    }

    #[test]
    fn without_kinds_there_are_none_in_the_heading() {
        let figures = Figures::new(&measured(tally(1), None), &[]);
        assert!(heading(&figures).starts_with("int_p50\tint_p95\tint_p99\tint_p999\tint_max\trKB/op"));
    }
}
