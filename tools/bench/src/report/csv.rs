//! Files in the columns of the original tools, so that whatever read theirs reads ours.

use super::Figures;
use super::figures::TimelineSecond;
use super::file::write_whole;
use crate::error::BenchError;
use std::path::{Path, PathBuf};

/// A file of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvFile {
    /// What its name ends with, such as `tps.tsv`.
    pub suffix: &'static str,
    /// Its text.
    pub text: String,
}

impl CsvFile {
    /// Writes it beside the JSON file of the run.
    pub fn write(&self, json: &Path) -> Result<PathBuf, BenchError> {
        let path = json.with_extension(self.suffix);
        write_whole(&path, &self.text)?;
        Ok(path)
    }
}

/// A part of a timeline, and all before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Seconds from the beginning of the window to the end of this interval.
    pub elapsed_s: u32,
    /// Operations in it.
    pub operations: u64,
    /// Operations up to its end.
    pub operations_so_far: u64,
    /// Operations per second in it.
    pub rate: f64,
    /// Operations per second up to its end.
    pub rate_so_far: f64,
    /// The mean latency of its units.
    pub mean_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Kilobytes read from the disk in it.
    pub read_kb: f64,
    /// Kilobytes written to the disk in it.
    pub written_kb: f64,
    /// Read requests of the disk in it.
    pub disk_reads: f64,
    /// Write requests of the disk in it.
    pub disk_writes: f64,
    /// Context switches of the server in it.
    pub switches: f64,
    /// CPU time of the server in it, in microseconds.
    pub cpu_us: f64,
}

impl Interval {
    /// A cost of it by its operations; 0 where nothing was done.
    pub fn each(&self, cost: f64) -> f64 {
        if self.operations == 0 { 0.0 } else { cost / self.operations as f64 }
    }
}

/// A run by intervals of so many seconds; the last one may be shorter, and its last second, too, of a run that ended by itself.
pub fn intervals(figures: &Figures, interval_s: u32) -> Vec<Interval> {
    of_timeline(&figures.timeline, figures.seconds, interval_s)
}

fn of_timeline(timeline: &[TimelineSecond], seconds: f64, interval_s: u32) -> Vec<Interval> {
    let (mut elapsed_s, mut so_far) = (0_u32, 0_u64);
    let mut intervals = Vec::new();
    for part in timeline.chunks(interval_s.max(1) as usize) {
        let width = u32::try_from(part.len()).unwrap_or(u32::MAX);
        let operations: u64 = part.iter().map(|second| second.operations).sum();
        let units: u64 = part.iter().map(|second| second.units).sum();
        let latencies: f64 = part.iter().map(|second| second.mean_us * second.units as f64).sum();
        let kilobytes = |bytes: fn(&TimelineSecond) -> Option<u64>| {
            part.iter().filter_map(bytes).sum::<u64>() as f64 / 1024.0
        };
        let began_s = f64::from(elapsed_s);
        let count =
            |count: fn(&TimelineSecond) -> Option<u64>| part.iter().filter_map(count).sum::<u64>() as f64;
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
            max_us: part.iter().map(|second| second.max_us).fold(0.0, f64::max),
            read_kb: kilobytes(|second| second.read_bytes),
            written_kb: kilobytes(|second| second.written_bytes),
            disk_reads: count(|second| second.disk_reads),
            disk_writes: count(|second| second.disk_writes),
            switches: count(|second| second.server_switches),
            cpu_us: part.iter().filter_map(|second| second.server_cpu_us).sum(),
        });
    }
    intervals
}

/// The columns of a load, as sysbench-mongodb has them; the latency, which it names and never writes, is a batch's mean in ms.
pub fn of_load(figures: &Figures, interval_s: u32) -> CsvFile {
    let mut text = "tot_inserts\telap_secs\tcum_ips\tint_ips\tint_lat\n".to_owned();
    for interval in intervals(figures, interval_s) {
        let Interval { operations_so_far, elapsed_s, rate_so_far, rate, mean_us, .. } = interval;
        let latency = mean_us / 1e3;
        text += &format!("{operations_so_far}\t{elapsed_s}\t{rate_so_far:.2}\t{rate:.2}\t{latency:.3}\n");
    }
    CsvFile { suffix: "load.tsv", text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_put_together_and_added_up() {
        let second = |operations, mean_us| TimelineSecond {
            operations,
            units: operations,
            mean_us,
            max_us: mean_us * 2.0,
            read_bytes: Some(1024),
            ..TimelineSecond::default()
        };
        let timeline = [second(10, 1.0), second(30, 5.0), second(4, 3.0)];
        let intervals = of_timeline(&timeline, 2.5, 2);
        assert_eq!(intervals.len(), 2);
        assert_eq!((intervals[0].rate, intervals[0].mean_us, intervals[0].max_us), (20.0, 4.0, 10.0));
        assert_eq!((intervals[1].elapsed_s, intervals[1].operations_so_far), (3, 44));
        assert_eq!(
            (intervals[1].rate, intervals[0].read_kb),
            (8.0, 2.0),
            "the last second was half a second long"
        );
        assert_eq!(intervals[1].rate_so_far, 44.0 / 2.5);
    }
}
