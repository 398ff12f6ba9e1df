//! The columns of sysbench-mongodb: `elap_secs cum_tps int_tps cum_ips int_ips` first and in this order; `*_ips` is always 0,
//! as in the original, whose insert counter never moves in this phase. What the original does not have comes after.

use crate::report::Figures;
use crate::report::csv::{CsvFile, intervals};
use std::fmt::Write as _;

/// Transactions over time, and the kinds of statements.
pub fn files(figures: &Figures, interval_s: u32) -> Vec<CsvFile> {
    vec![
        CsvFile { suffix: "tps.tsv", text: over_time(figures, interval_s) },
        CsvFile { suffix: "statements.tsv", text: by_kind(figures) },
    ]
}

fn over_time(figures: &Figures, interval_s: u32) -> String {
    let mut text = "elap_secs\tcum_tps\tint_tps\tcum_ips\tint_ips\tint_lat\tint_max_lat\tint_rkb\tint_wkb\t\
                    rKB/op\twKB/op\tr/op\tw/op\tcs/op\tcpu_us/op\n"
        .to_owned();
    for interval in intervals(figures, interval_s) {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}\t{:.2}\t{:.2}\t0.00\t0.00\t{:.3}\t{:.3}\t{:.0}\t{:.0}\t{:.3}\t{:.3}\t{:.3}\t{:.3}\t{:.2}\t{:.1}",
            interval.elapsed_s,
            interval.rate_so_far,
            interval.rate,
            interval.mean_us / 1e3,
            interval.max_us / 1e3,
            interval.read_kb,
            interval.written_kb,
            interval.each(interval.read_kb),
            interval.each(interval.written_kb),
            interval.each(interval.disk_reads),
            interval.each(interval.disk_writes),
            interval.each(interval.switches),
            interval.each(interval.cpu_us)
        );
    }
    text
}

fn by_kind(figures: &Figures) -> String {
    let mut text =
        "statement\tcount\tmissed\tfailed\tmean_us\tp50_us\tp95_us\tp99_us\tp999_us\tmax_us\n".to_owned();
    let mut line =
        |name: &str, done: u64, missed: u64, failed: u64, latency: &crate::report::LatencyFigures| {
            let _ = writeln!(
                text,
                "{name}\t{done}\t{missed}\t{failed}\t{:.1}\t{:.1}\t{:.1}\t{:.1}\t{:.1}\t{:.1}",
                latency.mean, latency.p50, latency.p95, latency.p99, latency.p999, latency.max
            );
        };
    line("transaction", figures.units, figures.missed, figures.failed, &figures.latency_us);
    for kind in &figures.kinds {
        line(&kind.name, kind.done, kind.missed, kind.failed, &kind.latency_us);
    }
    text
}
