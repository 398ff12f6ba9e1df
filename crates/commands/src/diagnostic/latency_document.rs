//! Latencies by class as documents: `opLatencies` of `serverStatus`, `latencyStats` of `$collStats`.

use pando_catalog::{LatencyClass, LatencyFigures};
use pando_document::DocumentWriter;

use super::statistics_document::whole_number;

/// Whether the times are shown by bucket, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Histograms {
    Shown,
    Hidden,
}

/// Writes the classes, and that of transactions, whose commits are commands.
pub(crate) fn write_latencies(
    figures: impl Fn(LatencyClass) -> LatencyFigures,
    histograms: Histograms,
    out: &mut DocumentWriter<'_>,
) {
    write_class("reads", &figures(LatencyClass::Reads), histograms, out);
    write_class("writes", &figures(LatencyClass::Writes), histograms, out);
    write_class("commands", &figures(LatencyClass::Commands), histograms, out);
    write_class("transactions", &LatencyFigures::default(), histograms, out);
}

fn write_class(name: &str, figures: &LatencyFigures, histograms: Histograms, out: &mut DocumentWriter<'_>) {
    let mut class = out.document(name);
    if histograms == Histograms::Shown {
        let mut buckets = class.array("histogram");
        for (micros, count) in figures.buckets() {
            let mut bucket = buckets.document();
            bucket.append_i64("micros", whole_number(micros));
            bucket.append_i64("count", whole_number(count));
            bucket.finish();
        }
        buckets.finish();
    }
    class.append_i64("latency", whole_number(figures.micros));
    class.append_i64("ops", whole_number(figures.operations));
    class.finish();
}
