//! Many small trees: 100 keys each. First they are made and written; then, in another process, opened, read,
//! and written to once each, with a checkpoint after it.

use std::time::Instant;

use pando_measuring::counters::{CounterError, Memory, ProcessId};

use crate::batch::Batch;
use crate::bench::Bench;
use crate::data::Tree;
use crate::error::BenchError;
use crate::figures::Figures;

/// Keys of a tree.
const KEYS: u64 = 100;
/// Trees that one transaction writes to.
const TREES_A_BATCH: u32 = 100;
const VALUE: &[u8] = b"a small value of 24 byte";

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Writes to the trees of a new store; `opened` is when it began to be opened.
pub fn make(bench: &Bench, trees: u32, opened: Instant) -> Result<Figures, BenchError> {
    let mut figures = Figures::default();
    figures.set("create_s", opened.elapsed().as_secs_f64());
    let began = Instant::now();
    let mut batch = Batch::default();
    bench.while_syncing(|| {
        for first in (0..trees).step_by(TREES_A_BATCH as usize) {
            batch.clear();
            for place in first..trees.min(first + TREES_A_BATCH) {
                (0..KEYS).for_each(|n| batch.push(Tree::new(place), &key(n), |out| out.extend(VALUE)));
            }
            bench.peer.write(&batch)?;
        }
        Ok(())
    })?;
    figures.set("write_s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    bench.peer.drain()?;
    figures.set("drain_s", began.elapsed().as_secs_f64());
    figures.set("made_mb", memory()?.resident_bytes as f64 / 1e6);
    Ok(figures)
}

/// Reads the trees of a store that was opened from `opened` on, and writes to each.
pub fn again(bench: &Bench, trees: u32, opened: Instant) -> Result<Figures, BenchError> {
    let mut figures = Figures::default();
    figures.set("open_s", opened.elapsed().as_secs_f64());
    figures.set("opened_mb", memory()?.resident_bytes as f64 / 1e6);
    let began = Instant::now();
    let reader = bench.peer.reader()?;
    for place in 0..trees {
        let mut right = false;
        let found = reader.get(Tree::new(place), &key(KEYS / 2), &mut |value| right = value == VALUE)?;
        if !found || !right {
            return Err(bench.wrong(format!("the middle key of tree {place}"), "not its value"));
        }
    }
    drop(reader);
    figures.set("read_s", began.elapsed().as_secs_f64());
    let mut batch = Batch::default();
    for first in (0..trees).step_by(TREES_A_BATCH as usize) {
        batch.clear();
        for place in first..trees.min(first + TREES_A_BATCH) {
            batch.push(Tree::new(place), &key(KEYS), |out| out.extend(VALUE));
        }
        bench.peer.write(&batch)?;
    }
    let began = Instant::now();
    bench.peer.drain()?;
    figures.set("checkpoint_s", began.elapsed().as_secs_f64());
    figures.set("used_mb", memory()?.peak_bytes as f64 / 1e6);
    let place = trees - 1;
    let found = bench.peer.reader()?.scan(Tree::new(place), b"", usize::MAX, &mut |_, _| ())?;
    if found as u64 != KEYS + 1 {
        return Err(bench.wrong(format!("a scan of tree {place}"), format!("{found} keys for {}", KEYS + 1)));
    }
    Ok(figures)
}

fn memory() -> Result<Memory, CounterError> {
    Memory::of(ProcessId::own())
}
