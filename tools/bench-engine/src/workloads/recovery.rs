//! Recovery: documents with index entries are inserted until the log is so long, and the process ends as if
//! it had been killed; another one opens the store, and finds every acknowledged document.

use std::time::Instant;

use crate::batch::{Batch, Into};
use crate::bench::Bench;
use crate::data::{DOCUMENTS, INDEXES};
use crate::error::BenchError;
use crate::figures::Figures;
use crate::workloads::scans;

/// Bytes that replay would have to read, among the engine's counters.
const LIVE_BYTES: &str = "log.live_bytes";
/// Batches between two looks at the log's length.
const BATCHES_A_LOOK: u64 = 10;

/// Inserts until the log has so many bytes.
pub fn fill_log(bench: &Bench, batch_documents: u64, log_bytes: u64) -> Result<Figures, BenchError> {
    let mut batch = Batch::default();
    let mut documents = 0;
    let live_bytes = || bench.peer.counters().get(LIVE_BYTES).copied().unwrap_or(u64::MAX);
    while live_bytes() < log_bytes {
        for _ in 0..BATCHES_A_LOOK {
            batch.clear();
            let until = documents + batch_documents;
            (documents..until).for_each(|n| batch.push_purchase(&bench.purchases, n, Into::AllTrees));
            bench.peer.write(&batch)?;
            documents = until;
        }
    }
    Ok(Figures::from([("log_mb", live_bytes() as f64 / 1e6), ("documents", documents as f64)]))
}

/// Looks at what a store that was opened from `opened` on has recovered: `bench.documents`.
pub fn check(bench: &Bench, opened: Instant, log_mb: f64) -> Result<Figures, BenchError> {
    let seconds = opened.elapsed().as_secs_f64();
    let mut figures = Figures::default();
    figures.set("open_s", seconds);
    figures.set("s_a_gb", seconds / (log_mb / 1e3));
    for tree in [DOCUMENTS].into_iter().chain(INDEXES) {
        scans::count_all(bench, tree, bench.documents)?;
    }
    Ok(figures)
}
