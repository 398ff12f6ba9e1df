//! Random inserts: documents in ascending order of their primary key, each with three index entries anywhere,
//! one client, batches of one transaction.
//!
//! 1. Insert batch by batch, until all documents are in, or the time is over.
//! 2. Note second by second how many are in, and the longest batch.
//! 3. The figures are of the *second half* of the documents (of the last quarter of the time where that is
//!    not reached): there the store is at least at half its final size.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::batch::{Batch, Into};
use crate::bench::Bench;
use crate::counters::{Sample, Usage};
use crate::data::DOCUMENT_BYTES;
use crate::error::BenchError;
use crate::figures::{Figures, Second};
use pando_measuring::number::median;

/// How long inserts go on.
#[derive(Clone, Copy, Debug)]
pub struct InsertPlan {
    pub batch: u64,
    /// Goes on at least so long, with more documents than asked for.
    pub at_least: Duration,
    /// Goes on at most so long, with fewer.
    pub at_most: Duration,
    /// Whether each second has what the library counts of itself.
    pub counters: bool,
}

pub struct Inserted {
    pub documents: u64,
    pub figures: Figures,
    /// The seconds.
    pub timeline: Vec<Second>,
}

/// The counters at the end of a second.
struct Mark {
    second: Second,
    sample: Sample,
}

/// Inserts documents from number 0.
pub fn run(bench: &Bench, plan: InsertPlan) -> Result<Inserted, BenchError> {
    let before = bench.sample()?;
    let marks = bench.while_syncing(|| insert(bench, plan))?;
    let last = marks.last().expect("there is at least the mark of the end");
    let documents = last.second.documents;
    let mut figures = Figures::default();
    figures.set("documents", documents as f64);
    figures.set("cold_seconds", last.second.at);
    figures.set("raw_multiple", documents as f64 / bench.documents as f64);
    let total = last.sample.since(&before);
    figures.set("all.rate", documents as f64 / total.seconds);
    figures.set("all.cpu_us", total.cpu_seconds * 1e6 / documents as f64);
    second_half(bench, &marks, &mut figures);
    let timeline = marks.into_iter().map(|mark| mark.second).collect();
    Ok(Inserted { documents, figures, timeline })
}

fn insert(bench: &Bench, plan: InsertPlan) -> Result<Vec<Mark>, BenchError> {
    let mut marks = Vec::new();
    let mut batch = Batch::default();
    let (began, mut documents, mut longest_ms) = (Instant::now(), 0, 0.0_f64);
    loop {
        let batch_began = Instant::now();
        batch.clear();
        let until = if plan.at_least > began.elapsed() {
            documents + plan.batch
        } else {
            bench.documents.min(documents + plan.batch)
        };
        (documents..until).for_each(|n| batch.push_purchase(&bench.purchases, n, Into::AllTrees));
        bench.peer.write(&batch)?;
        documents = until;
        longest_ms = longest_ms.max(batch_began.elapsed().as_secs_f64() * 1e3);
        let elapsed = began.elapsed();
        let ended = documents >= bench.documents && elapsed >= plan.at_least || elapsed >= plan.at_most;
        if ended || elapsed.as_secs_f64() >= marks.len() as f64 + 1.0 {
            let counters = if plan.counters { bench.peer.counters() } else { BTreeMap::new() };
            let second = Second { at: elapsed.as_secs_f64(), documents, longest_ms, counters };
            marks.push(Mark { second, sample: bench.sample()? });
            longest_ms = 0.0;
        }
        if ended {
            return Ok(marks);
        }
    }
}

/// The figures of the second half.
fn second_half(bench: &Bench, marks: &[Mark], figures: &mut Figures) {
    let last = &marks[marks.len() - 1];
    let is_after_half = |mark: &&Mark| mark.second.documents >= bench.documents / 2;
    let is_late = |mark: &&Mark| mark.second.at >= last.second.at * 0.75;
    let reached = last.second.documents >= bench.documents;
    let from = marks.iter().position(|mark| if reached { is_after_half(&mark) } else { is_late(&mark) });
    let window = &marks[from.unwrap_or(0)..];
    let (first, rest) = (&window[0], &window[1..]);
    if rest.is_empty() {
        return;
    }
    let count = (last.second.documents - first.second.documents) as f64;
    let usage = last.sample.since(&first.sample);
    figures.set("late.rate", count / usage.seconds);
    costs(&usage, count, "late", figures);
    figures.set("late.longest_ms", rest.iter().map(|mark| mark.second.longest_ms).fold(0.0, f64::max));
    let rates: Vec<f64> = window
        .windows(2)
        .filter(|pair| pair[1].second.at - pair[0].second.at > 0.9)
        .map(|pair| {
            let count = (pair[1].second.documents - pair[0].second.documents) as f64;
            count / (pair[1].second.at - pair[0].second.at)
        })
        .collect();
    if let Some(median) = median(rates.clone()) {
        let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        figures.set("late.min_of_median", lowest / median);
        figures.set("late.seconds", rates.len() as f64);
    }
}

/// The costs of each of so many documents, under a prefix.
pub fn costs(usage: &Usage, count: f64, prefix: &str, figures: &mut Figures) {
    figures.set(format!("{prefix}.written_kb"), usage.written_bytes / 1024.0 / count);
    figures.set(format!("{prefix}.read_kb"), usage.read_bytes / 1024.0 / count);
    figures.set(format!("{prefix}.reads"), usage.reads / count);
    figures.set(format!("{prefix}.read_share"), usage.share);
    figures.set(format!("{prefix}.cpu_us"), usage.cpu_seconds * 1e6 / count);
}

/// Loads the documents from one number on without index entries: what is read later is then there in every
/// store.
pub fn complete(bench: &Bench, from: u64, batch_documents: u64) -> Result<(), BenchError> {
    let mut batch = Batch::default();
    bench.while_syncing(|| {
        for first in (from..bench.documents).step_by(batch_documents as usize) {
            batch.clear();
            let until = bench.documents.min(first + batch_documents);
            (first..until).for_each(|n| batch.push_purchase(&bench.purchases, n, Into::DocumentsOnly));
            bench.peer.write(&batch)?;
        }
        Ok(())
    })
}

/// Bytes of the documents of a store, in multiples of a cache.
pub fn multiple_of(cache_bytes: u64, documents: u64) -> f64 {
    (documents * DOCUMENT_BYTES) as f64 / cache_bytes as f64
}
