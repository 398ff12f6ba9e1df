//! The columns of iibench-mongodb: `tot_inserts elap_secs cum_ips int_ips cum_qry_avg int_qry_avg cum_qpm
//! int_qpm exceptions` first and in this order; query averages are milliseconds, `qpm` queries per minute.
//! Percentiles of the batches and queries of the interval, costs, the size of the data and seconds with a
//! checkpoint come after. Intervals are of time, not of inserts, so that a stall shows.

use crate::report::Figures;
use crate::report::csv::CsvFile;
use crate::report::intervals::{Interval, by_interval};

/// How many queries, and how long they took together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Queries {
    count: u64,
    sum_ms: f64,
}

impl Queries {
    /// Those of some seconds of the window.
    fn within(figures: &Figures, seconds: std::ops::Range<usize>) -> Queries {
        let mut queries = Queries::default();
        // The first kind is the batches.
        for kind in figures.kinds.iter().skip(1) {
            let end = seconds.end.min(kind.timeline.len());
            for (count, mean_us) in kind.timeline.get(seconds.start.min(end)..end).unwrap_or_default() {
                queries.count += count;
                queries.sum_ms += *count as f64 * mean_us / 1e3;
            }
        }
        queries
    }

    fn mean_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ms / self.count as f64 }
    }
}

pub fn files(figures: &Figures) -> Vec<CsvFile> {
    const OWN: &str =
        "tot_inserts\telap_secs\tcum_ips\tint_ips\tcum_qry_avg\tint_qry_avg\tcum_qpm\tint_qpm\texceptions";
    let mut from_s = 0;
    let text = by_interval(figures, OWN, |interval| {
        let cells = own_cells(figures, interval, from_s);
        from_s = interval.elapsed_s;
        cells
    });
    vec![CsvFile { suffix: "ips.tsv", text }]
}

fn own_cells(figures: &Figures, interval: &Interval, from_s: u32) -> String {
    let so_far = Queries::within(figures, 0..interval.elapsed_s as usize);
    let here = Queries::within(figures, from_s as usize..interval.elapsed_s as usize);
    let per_minute = |count: u64, seconds: u32| count as f64 * 60.0 / f64::from(seconds.max(1));
    format!(
        "{}\t{}\t{:.2}\t{:.2}\t{:.2}\t{:.2}\t{:.2}\t{:.2}\t{}",
        interval.operations_so_far,
        interval.elapsed_s,
        interval.rate_so_far,
        interval.rate,
        so_far.mean_ms(),
        here.mean_ms(),
        per_minute(so_far.count, interval.elapsed_s),
        per_minute(here.count, interval.elapsed_s - from_s),
        figures.failed
    )
}
