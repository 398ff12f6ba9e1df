//! The columns of iibench-mongodb: `tot_inserts elap_secs cum_ips int_ips cum_qry_avg int_qry_avg cum_qpm
//! int_qpm exceptions` first and in this order; query averages are milliseconds, `qpm` queries per minute
//! since the first of them. Exceptions are counted for the whole run, and stand in its last line. Percentiles
//! of the batches and queries of the interval, costs, the size of the data and seconds with a checkpoint come
//! after. Intervals are of time, not of inserts, so that a stall shows.

use crate::report::Figures;
use crate::report::csv::CsvFile;
use crate::report::figures::KindFigures;
use crate::report::intervals::{Interval, by_interval, dash};

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

    /// The second of the window with the first query that ended.
    fn first_second(figures: &Figures) -> Option<u32> {
        let first = |kind: &KindFigures| kind.timeline.iter().position(|(count, _)| *count > 0);
        let first = figures.kinds.iter().skip(1).filter_map(first).min()?;
        u32::try_from(first).ok()
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
    let first_s = Queries::first_second(figures).unwrap_or(0);
    // Before the first query is due there is no rate of queries.
    let per_minute = |count: u64, from_s: u32| {
        let seconds = interval.elapsed_s.saturating_sub(from_s.max(first_s));
        count as f64 * 60.0 / f64::from(seconds.max(1))
    };
    let is_last = interval.elapsed_s as usize >= figures.timeline.len();
    format!(
        "{}\t{}\t{:.2}\t{:.2}\t{:.2}\t{:.2}\t{:.2}\t{:.2}\t{}",
        interval.operations_so_far,
        interval.elapsed_s,
        interval.rate_so_far,
        interval.rate,
        so_far.mean_ms(),
        here.mean_ms(),
        per_minute(so_far.count, 0),
        per_minute(here.count, from_s),
        dash(is_last.then(|| figures.failed.to_string()))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Kind, Misses, Statement, Tally, UnitEnd, Verdict};
    use crate::report::figures::tests::measured;
    use std::time::{Duration, Instant};

    #[test]
    fn queries_are_counted_from_the_first_one_and_exceptions_stand_in_the_last_line() {
        let latency = Duration::from_millis(2);
        let mut tally = Tally::new(2, Misses::AreExpected).by_intervals_of(10);
        let unit =
            |second| UnitEnd { second, latency, service: latency, verdict: Verdict::Done, operations: 100 };
        (0..30).for_each(|second| tally.unit(unit(second)));
        // A query a second in the last fifteen seconds.
        for second in 15..30 {
            let query = Statement { kind: Kind::new(1), latency, verdict: Verdict::Done };
            tally.statement(&query, second, Instant::now());
        }
        tally.fail("refused".to_owned());
        let mut run = measured(tally, None);
        run.seconds = 30.0;
        let figures = Figures::new(&run, &["insert".to_owned(), "query".to_owned()]);
        let text = files(&figures).remove(0).text;
        let names: Vec<&str> = text.lines().next().expect("a heading").split('\t').collect();
        let column = |name: &str| -> Vec<&str> {
            let place = names.iter().position(|found| *found == name).expect(name);
            text.lines().skip(1).map(|line| line.split('\t').nth(place).expect("a cell")).collect()
        };
        assert_eq!(column("cum_qpm"), ["0.00", "60.00", "60.00"]);
        assert_eq!(column("int_qpm"), ["0.00", "60.00", "60.00"]);
        assert_eq!(column("exceptions"), ["-", "-", "1"]);
    }
}
