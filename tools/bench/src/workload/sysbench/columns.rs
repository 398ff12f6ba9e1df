//! The columns of sysbench-mongodb: `elap_secs cum_tps int_tps cum_ips int_ips` first and in this order;
//! `*_ips` is always 0, as in the original, whose insert counter never moves in this phase. Then the latency
//! as the original's newest version has it, and what none has: percentiles of the transaction and of each
//! kind of statement, costs, the size of the data, seconds with a checkpoint.

use crate::report::Figures;
use crate::report::csv::CsvFile;
use crate::report::intervals::{Interval, cells, heading, intervals};
use std::fmt::Write as _;

/// Transactions over time, and the kinds of statements.
pub fn files(figures: &Figures) -> Vec<CsvFile> {
    vec![
        CsvFile { suffix: "tps.tsv", text: over_time(figures) },
        CsvFile { suffix: "statements.tsv", text: by_kind(figures) },
    ]
}

fn over_time(figures: &Figures) -> String {
    let mut text = format!("elap_secs\tcum_tps\tint_tps\tcum_ips\tint_ips\tint_lat\t{}", heading(figures));
    for interval in intervals(figures) {
        let Interval { elapsed_s, rate_so_far, rate, mean_us, .. } = interval;
        let latency = mean_us / 1e3;
        // Writing to a string does not fail.
        let _ = write!(text, "{elapsed_s}\t{rate_so_far:.2}\t{rate:.2}\t0.00\t0.00\t{latency:.3}\t");
        text += &cells(&interval);
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
