//! Range scans: so many rows from a uniformly drawn one on, one client, each scan a reader of its own.
//!
//! Rows of the documents are checked by number, every 16th in full; those of an index by their order, and
//! every 64th by the document that it belongs to.

use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::data::{DOCUMENTS, INDEXES, Tree, number_at_end, primary_key};
use crate::error::BenchError;
use crate::figures::Figures;
use crate::random::Random;

/// The tree whose scans are measured beside the documents: by price, customer.
pub const INDEX: Tree = INDEXES[0];
/// Scans that there are at least, however long they take.
const SCANS_MIN: u64 = 3;
/// Index rows of which one is looked at closely.
const CLOSE_LOOK: u64 = 64;

pub fn run(bench: &Bench, tree: Tree, rows: usize, time: Duration) -> Result<Figures, BenchError> {
    let mut random = Random::new(bench.seed ^ rows as u64 ^ u64::from(tree.place()) << 40);
    let before = bench.sample()?;
    let began = Instant::now();
    let (mut scans, mut seen) = (0, 0);
    while began.elapsed() < time || scans < SCANS_MIN {
        seen += match tree {
            DOCUMENTS => scan_documents(bench, &mut random, rows)?,
            _ => scan_index(bench, &mut random, tree, rows)?,
        };
        scans += 1;
    }
    let usage = bench.sample()?.since(&before);
    Ok(Figures::from([
        ("rows", seen as f64 / usage.seconds),
        ("us", usage.seconds * 1e6 / scans as f64),
        ("cpu_us_a_row", usage.cpu_seconds * 1e6 / seen as f64),
        ("reads", usage.reads / scans as f64),
        ("read_kb", usage.read_bytes / 1024.0 / scans as f64),
        ("read_share", usage.share),
    ]))
}

fn scan_documents(bench: &Bench, random: &mut Random, rows: usize) -> Result<u64, BenchError> {
    let rows = rows.min(bench.documents as usize);
    let from = random.below(bench.documents - rows as u64 + 1);
    let (mut next, mut right) = (from, true);
    let found = bench.peer.reader()?.scan(DOCUMENTS, &primary_key(from), rows, &mut |key, value| {
        right &= key == primary_key(next) && bench.purchases.check(next, 0..=0, value);
        next += 1;
    })?;
    if found != rows || !right {
        return Err(bench.wrong(
            format!("a scan of {rows} documents from {from}"),
            format!("{found} rows, right: {right}"),
        ));
    }
    Ok(found as u64)
}

fn scan_index(bench: &Bench, random: &mut Random, tree: Tree, rows: usize) -> Result<u64, BenchError> {
    let mut from = Vec::new();
    bench.purchases.write_index_key(tree, random.below(bench.documents), &mut from);
    let mut last: Vec<u8> = Vec::new();
    let mut expected = Vec::new();
    let (mut seen, mut right) = (0, true);
    let found = bench.peer.reader()?.scan(tree, &from, rows, &mut |key, value| {
        right &= value.is_empty() && if seen == 0 { key == from } else { last.as_slice() < key };
        last.clear();
        last.extend_from_slice(key);
        if seen % CLOSE_LOOK == 0 {
            expected.clear();
            if let Some(number) = number_at_end(key) {
                bench.purchases.write_index_key(tree, number, &mut expected);
            }
            right &= expected == key;
        }
        seen += 1;
    })?;
    // A scan may meet the end of the tree: that there are as many entries as documents is counted elsewhere.
    if found == 0 || !right {
        return Err(bench.wrong(
            format!("a scan of {rows} entries of index {}", tree.place()),
            format!("{found} rows, right: {right}"),
        ));
    }
    Ok(found as u64)
}

/// Counts a whole tree, in order; it must have so many entries.
pub fn count_all(bench: &Bench, tree: Tree, expected: u64) -> Result<(), BenchError> {
    let mut last: Vec<u8> = Vec::new();
    let mut ordered = true;
    let found = bench.peer.reader()?.scan(tree, b"", usize::MAX, &mut |key, _| {
        ordered &= last.as_slice() < key;
        last.clear();
        last.extend_from_slice(key);
    })?;
    if found as u64 != expected || !ordered {
        return Err(bench.wrong(
            format!("a scan of the whole tree {}", tree.place()),
            format!("{found} rows for {expected}, in order: {ordered}"),
        ));
    }
    Ok(())
}
