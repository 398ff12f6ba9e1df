//! A small measurement of the engine alone: loads documents with one secondary index, then reads them back.
//!
//! `cargo run --release -p pando-betree --example load_and_get -- FOLDER [DOCUMENTS] [CACHE_MB]
//! [LOG_BUDGET_MB]`
//!
//! A folder that has the documents already, of a killed process for example, is only read. So the example
//! measures replay too.
//!
//! Documents have 217 bytes, of which a third is random. Keys ascend; the index is on a random number.
//! Commits have 1000 documents and are `Logged`. The output has entries per second, time per cached get,
//! bytes on disk, and statistics of the engine.

use std::path::PathBuf;
use std::time::Instant;

use pando_betree::{Betree, Options};
use pando_environment::{Environment, Random, SeededRandom};
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, Engine, KeyRange, StorageError, TreeId, TreeOptions,
};

const BATCH: u64 = 1000;

/// Time that this thread has run, in nanoseconds. It is the right measure on a machine that does other
/// things, too.
fn thread_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}

fn main() -> Result<(), StorageError> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the first argument is a folder"));
    let number = |text: Option<String>, usual| text.map_or(usual, |text| text.parse().expect("a number"));
    let documents = number(arguments.next(), 1_000_000);
    let cache = number(arguments.next(), 1024);
    let mut options = Options::default();
    options.cache_bytes = cache << 20;
    options.log_budget_bytes = number(arguments.next(), 1024) << 20;
    let began = Instant::now();
    let engine = Betree::open(&Environment::real(), &folder, options.clone())?;
    println!("open: {:.3} s", began.elapsed().as_secs_f64());
    let listed = engine.list_trees()?;
    let (primary, index) = match &listed[..] {
        [primary, index] => (primary.id, index.id),
        _ => {
            let primary = engine.create_tree("documents", &TreeOptions::default())?;
            let index = engine.create_tree("index", &TreeOptions::default())?;
            load(&engine, primary, index, documents)?;
            (primary, index)
        }
    };
    let began = Instant::now();
    engine.checkpoint()?;
    println!("checkpoint: {:.2} s", began.elapsed().as_secs_f64());
    println!("on disk: {:.1} MB", engine.bytes_on_disk(None)? as f64 / 1e6);
    for round in 0..3 {
        get(&engine, primary, documents, round)?;
    }
    scan(&engine, primary)?;
    scan(&engine, index)?;
    for (name, value) in engine.statistics().iter() {
        println!("  {name} {value}");
    }
    let began = Instant::now();
    engine.close()?;
    drop(engine);
    let closed = began.elapsed();
    let began = Instant::now();
    let engine = Betree::open(&Environment::real(), &folder, options)?;
    println!("close: {:.3} s, open: {:.3} s", closed.as_secs_f64(), began.elapsed().as_secs_f64());
    engine.close()
}

fn key(number: u64) -> [u8; 9] {
    let mut key = [0x2B; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

fn load(engine: &Betree, primary: TreeId, index: TreeId, documents: u64) -> Result<(), StorageError> {
    let random = SeededRandom::new(1);
    let mut document = vec![b'-'; 217];
    let (began, began_nanos) = (Instant::now(), thread_nanos());
    let mut slowest = 0.0_f64;
    for first in (0..documents).step_by(BATCH as usize) {
        let batch = Instant::now();
        let mut writer = engine.begin(Begin::WRITE)?;
        for number in first..documents.min(first + BATCH) {
            let digits = random.next_u64().to_string();
            document[40..40 + digits.len()].copy_from_slice(digits.as_bytes());
            random.fill(&mut document[100..150]);
            writer.put(primary, &key(number), &document)?;
            let mut entry = [0; 18];
            entry[..9].copy_from_slice(&key(random.next_u64() % documents));
            entry[9..].copy_from_slice(&key(number));
            writer.put_blind(index, &entry, &[])?;
        }
        writer.commit(Durability::Logged)?;
        slowest = slowest.max(batch.elapsed().as_secs_f64());
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "load: {documents} documents and entries in {seconds:.2} s, {:.0} entries/s, {} ns each of this thread, slowest \
         batch {:.1} ms",
        2.0 * documents as f64 / seconds,
        (thread_nanos() - began_nanos) / (2 * documents),
        slowest * 1e3
    );
    Ok(())
}

fn get(engine: &Betree, primary: TreeId, documents: u64, round: u64) -> Result<(), StorageError> {
    let random = SeededRandom::new(round);
    let count = 500_000;
    let began = thread_nanos();
    let mut found = 0;
    for _ in 0..count {
        let reader = engine.begin(Begin::READ)?;
        found += u64::from(
            reader.get(primary, &key(random.next_u64() % documents), BlockingMode::MayBlock)?.is_some(),
        );
    }
    assert_eq!(found, count);
    let each = (thread_nanos() - began) / count;
    let reader = engine.begin(Begin::READ)?;
    let began = thread_nanos();
    for _ in 0..count {
        reader.get(primary, &key(random.next_u64() % documents), BlockingMode::MayBlock)?;
    }
    let within = (thread_nanos() - began) / count;
    println!("get: {each} ns with begin and end, {within} ns within one transaction");
    Ok(())
}

fn scan(engine: &Betree, tree: TreeId) -> Result<(), StorageError> {
    let reader = engine.begin(Begin::READ)?;
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let (began, mut entries) = (thread_nanos(), 0_u64);
    while cursor.next(&*reader, BlockingMode::MayBlock)?.is_some() {
        entries += 1;
    }
    println!("scan: {entries} entries, {} ns each", (thread_nanos() - began) / entries.max(1));
    Ok(())
}
