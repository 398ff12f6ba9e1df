//! Files in columns: those of the original tools, so that a program for theirs reads ours, and for every run
//! its seconds and its intervals.

use super::Figures;
use super::file::write_whole;
use super::intervals::{Interval, by_interval, dash};
use crate::error::BenchError;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvFile {
    /// The end of its name, such as `tps.tsv`.
    pub suffix: &'static str,
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

/// The columns of a load, as sysbench-mongodb has them; the latency, which it names and never writes, is a
/// batch's mean in ms.
pub fn of_load(figures: &Figures) -> CsvFile {
    let text = by_interval(figures, "tot_inserts\telap_secs\tcum_ips\tint_ips\tint_lat", |interval| {
        let Interval { operations_so_far, elapsed_s, rate_so_far, rate, mean_us, .. } = interval;
        format!("{operations_so_far}\t{elapsed_s}\t{rate_so_far:.2}\t{rate:.2}\t{:.3}", mean_us / 1e3)
    });
    CsvFile { suffix: "load.tsv", text }
}

/// The files of every run: a line for each interval, and one for each second.
pub fn of_run(figures: &Figures) -> [CsvFile; 2] {
    [
        CsvFile { suffix: "intervals.tsv", text: over_time(figures) },
        CsvFile { suffix: "seconds.tsv", text: by_second(figures) },
    ]
}

fn over_time(figures: &Figures) -> String {
    by_interval(figures, "elap_secs\ttot_ops\tcum_ops/s\tint_ops/s\tint_lat", |interval| {
        let Interval { operations_so_far, elapsed_s, rate_so_far, rate, mean_us, .. } = interval;
        format!("{elapsed_s}\t{operations_so_far}\t{rate_so_far:.2}\t{rate:.2}\t{:.3}", mean_us / 1e3)
    })
}

fn by_second(figures: &Figures) -> String {
    let mut text = "elap_secs\tops\tunits\tlat_ms\tmax_ms\tr\tw\trKB\twKB\tcs\tcpu_us\trss_mb\tckpt\tbehind_mb\tbackground_kb\n".to_owned();
    let count = |count: Option<u64>| dash(count.map(|count| count.to_string()));
    let kilobytes = |bytes: Option<u64>| dash(bytes.map(|bytes| format!("{:.1}", bytes as f64 / 1024.0)));
    let megabytes = |bytes: Option<u64>| dash(bytes.map(|bytes| format!("{:.1}", bytes as f64 / 1e6)));
    for (place, second) in figures.timeline.iter().enumerate() {
        let cells = [
            (place + 1).to_string(),
            second.operations.to_string(),
            second.units.to_string(),
            format!("{:.3}", second.mean_us / 1e3),
            format!("{:.3}", second.max_us / 1e3),
            count(second.disk_reads),
            count(second.disk_writes),
            kilobytes(second.read_bytes),
            kilobytes(second.written_bytes),
            count(second.server_switches),
            dash(second.server_cpu_us.map(|us| format!("{us:.0}"))),
            megabytes(second.server_resident_bytes),
            count(second.checkpoint.map(u64::from)),
            megabytes(second.behind_bytes),
            kilobytes(second.background_bytes),
        ];
        text += &(cells.join("\t") + "\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::{measured, tally};
    use super::*;

    #[test]
    fn every_line_is_as_long_as_its_heading() {
        let figures = Figures::new(&measured(tally(3), None), &[]);
        for file in of_run(&figures).into_iter().chain([of_load(&figures)]) {
            let widths: Vec<usize> = file.text.lines().map(|line| line.split('\t').count()).collect();
            assert!(widths.len() > 1 && widths.iter().all(|width| *width == widths[0]), "{}", file.text);
        }
        assert!(by_second(&figures).lines().nth(1).is_some_and(|line| line.starts_with("1\t3\t3\t0.100\t")));
    }
}
