//! LinkBench's own output: its lines at the end of a phase, and `csvstats`; `csvstream` is
//! [`super::stream`]'s.
//!
//! Percentiles come as buckets, as the original prints them: tenths of a millisecond below 1 ms, whole ones
//! below 100 ms, hundreds below 1 s, seconds below 10 s, and one from there on. Unlike there, only what was
//! done is counted, failed requests not.

use crate::report::Figures;
use crate::report::csv::CsvFile;
use crate::report::figures::KindFigures;
use std::fmt::Write as _;

/// The bucket of a latency: from and to, in milliseconds.
pub fn bucket(ms: f64) -> (f64, f64) {
    let width = match ms {
        ms if ms < 1.0 => 0.1,
        ms if ms < 100.0 => 1.0,
        ms if ms < 1000.0 => 100.0,
        ms if ms < 10_000.0 => 1000.0,
        _ => return (10_000.0, 100_000.0),
    };
    let place = (ms / width + 1e-9).floor();
    (place * width, (place + 1.0) * width)
}

/// The original counts a request that finds nothing as any other.
fn requests(kind: &KindFigures) -> u64 {
    kind.done + kind.missed
}

pub fn lines(figures: &Figures) -> Vec<String> {
    let mut lines = Vec::new();
    for kind in figures.kinds.iter().filter(|kind| requests(kind) > 0) {
        let latency = &kind.latency_us;
        let percentiles = [
            ("p25", latency.p25),
            ("p50", latency.p50),
            ("p75", latency.p75),
            ("p95", latency.p95),
            ("p99", latency.p99),
        ];
        let mut line = format!("{} count = {} ", kind.name, requests(kind));
        for (name, us) in percentiles {
            let (from, to) = bucket(us / 1e3);
            let _ = write!(line, " {name} = [{},{}]ms ", short(from), short(to));
        }
        let _ = write!(line, " max = {:.3}ms  mean = {:.3}ms", latency.max / 1e3, latency.mean / 1e3);
        lines.push(line);
    }
    lines.push(format!(
        "REQUEST PHASE COMPLETED. {} requests done in {:.0} seconds. Requests/second = {:.0}",
        figures.operations, figures.seconds, figures.rate
    ));
    lines
}

/// `csvstats`: a line per operation that was done, in milliseconds.
pub fn stats(figures: &Figures) -> String {
    let mut text =
        "op,count,p25_low,p25_high,p50_low,p50_high,p75_low,p75_high,p95_low,p95_high,p99_low,p99_high,max,mean\n".to_owned();
    for kind in figures.kinds.iter().filter(|kind| requests(kind) > 0) {
        let latency = &kind.latency_us;
        let _ = write!(text, "{},{}", kind.name, requests(kind));
        for us in [latency.p25, latency.p50, latency.p75, latency.p95, latency.p99] {
            let (from, to) = bucket(us / 1e3);
            let _ = write!(text, ",{from:.2},{to:.2}");
        }
        let _ = writeln!(text, ",{:.2},{:.2}", latency.max / 1e3, latency.mean / 1e3);
    }
    text
}

/// The files beside the JSON file.
pub fn files(figures: &Figures, stream: String) -> Vec<CsvFile> {
    vec![
        CsvFile { suffix: "csvstats.csv", text: stats(figures) },
        CsvFile { suffix: "csvstream.csv", text: stream },
    ]
}

/// Without zeros that say nothing.
fn short(ms: f64) -> String {
    let text = format!("{ms:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_the_originals() {
        let cases = [
            (0.04, (0.0, 0.1)),
            (0.95, (0.9, 1.0)),
            (1.0, (1.0, 2.0)),
            (15.7, (15.0, 16.0)),
            (250.0, (200.0, 300.0)),
            (2064.476, (2000.0, 3000.0)),
            (12_345.0, (10_000.0, 100_000.0)),
        ];
        for (ms, (from, to)) in cases {
            let found = bucket(ms);
            assert!((found.0 - from).abs() < 1e-9 && (found.1 - to).abs() < 1e-9, "{ms}: {found:?}");
        }
        assert_eq!([short(15.0), short(0.1)], ["15", "0.1"]);
    }
}
