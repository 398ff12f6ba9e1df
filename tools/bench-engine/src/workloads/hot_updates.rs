//! Updates of a hot set: one document in a hundred, spread over all, is written anew again and again, drawn
//! uniformly. One client, small transactions. No index entry changes.

use std::time::{Duration, Instant};

use crate::batch::Batch;
use crate::bench::Bench;
use crate::data::{DOCUMENTS, primary_key};
use crate::error::BenchError;
use crate::figures::Figures;
use crate::random::Random;

/// Documents of which one is hot.
const STRIDE: u64 = 100;
/// Bytes of key and document: what an update has to say.
const UPDATE_BYTES: f64 = 321.0;

/// Updates for a time, drains, and looks at every hot document.
pub fn run(bench: &Bench, batch_updates: u64, time: Duration) -> Result<Figures, BenchError> {
    let hot = (bench.documents / STRIDE).max(1);
    let mut versions = vec![0_u32; hot as usize];
    let before = bench.sample()?;
    let updates = bench.while_syncing(|| update(bench, &mut versions, batch_updates, time))? as f64;
    let usage = bench.sample()?.since(&before);
    bench.peer.drain()?;
    let drained = bench.sample()?.since(&before);
    check(bench, &versions)?;
    Ok(Figures::from([
        ("rate", updates / usage.seconds),
        ("cpu_us", usage.cpu_seconds * 1e6 / updates),
        ("written_bytes", usage.written_bytes / updates),
        ("written_bytes_drained", drained.written_bytes / updates),
        ("amplification", drained.written_bytes / updates / UPDATE_BYTES),
        ("reads", usage.reads / updates),
    ]))
}

fn update(
    bench: &Bench,
    versions: &mut [u32],
    batch_updates: u64,
    time: Duration,
) -> Result<u64, BenchError> {
    let mut random = Random::new(bench.seed ^ 0x686F_7400);
    let mut batch = Batch::default();
    let (began, mut updates) = (Instant::now(), 0);
    while began.elapsed() < time {
        batch.clear();
        for _ in 0..batch_updates {
            let hot = random.below(versions.len() as u64);
            let version = &mut versions[hot as usize];
            *version += 1;
            let (number, version) = (hot * STRIDE, *version);
            batch.push(DOCUMENTS, &primary_key(number), |out| {
                bench.purchases.write_document(number, version, out);
            });
        }
        bench.peer.write(&batch)?;
        updates += batch_updates;
    }
    Ok(updates)
}

fn check(bench: &Bench, versions: &[u32]) -> Result<(), BenchError> {
    let reader = bench.peer.reader()?;
    for (hot, version) in versions.iter().enumerate() {
        let number = hot as u64 * STRIDE;
        let mut right = false;
        let mut see = |value: &[u8]| right = bench.purchases.check(number, *version..=*version, value);
        if !reader.get(DOCUMENTS, &primary_key(number), &mut see)? || !right {
            return Err(bench.wrong(format!("document {number} after {version} updates"), "another version"));
        }
    }
    Ok(())
}
