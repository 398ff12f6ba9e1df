//! The columns of sysbench-mongodb: `elap_secs cum_tps int_tps cum_ips int_ips` first and in this order;
//! `*_ips` is always 0, as in the original, whose insert counter never moves in this phase. Then the latency
//! as the original's newest version has it, and what none has: percentiles of the transaction and of each
//! kind of statement, costs, the size of the data, seconds with a checkpoint.

use crate::report::csv::CsvFile;
use crate::report::intervals::{Interval, by_interval};
use crate::report::{Figures, LatencyFigures};
use std::fmt::Write as _;

pub fn files(figures: &Figures) -> Vec<CsvFile> {
    vec![
        CsvFile { suffix: "tps.tsv", text: over_time(figures) },
        CsvFile { suffix: "statements.tsv", text: by_kind(figures) },
    ]
}

fn over_time(figures: &Figures) -> String {
    by_interval(figures, "elap_secs\tcum_tps\tint_tps\tcum_ips\tint_ips\tint_lat", |interval| {
        let Interval { elapsed_s, rate_so_far, rate, mean_us, .. } = interval;
        format!("{elapsed_s}\t{rate_so_far:.2}\t{rate:.2}\t0.00\t0.00\t{:.3}", mean_us / 1e3)
    })
}

fn by_kind(figures: &Figures) -> String {
    let mut text =
        "statement\tcount\tmissed\tfailed\tmean_us\tp50_us\tp95_us\tp99_us\tp999_us\tmax_us\n".to_owned();
    let mut line = |name: &str, counts: [u64; 3], latency: &LatencyFigures| {
        let [done, missed, failed] = counts;
        let LatencyFigures { mean, p50, p95, p99, p999, max, .. } = latency;
        // Writing to a string does not fail.
        let _ = write!(text, "{name}\t{done}\t{missed}\t{failed}\t{mean:.1}\t{p50:.1}\t{p95:.1}\t{p99:.1}\t");
        let _ = writeln!(text, "{p999:.1}\t{max:.1}");
    };
    line("transaction", [figures.units, figures.missed, figures.failed], &figures.latency_us);
    for kind in &figures.kinds {
        // A miss is a statement of the transaction as any other.
        line(&kind.name, [kind.done + kind.missed, kind.missed, kind.failed], &kind.latency_us);
    }
    text
}
