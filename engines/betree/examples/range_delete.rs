//! The cost of deleting half of a tree: by one range delete, and key by key as in an engine without range
//! deletes.
//!
//! `cargo run --release -p pando-betree --example range_delete -- FOLDER [ENTRIES] [CACHE_MB]`
//!
//! Both stores are filled alike, in order: keys of 16 bytes, values of 240, of which half are random. Then
//! the middle half is deleted. Key by key, a transaction scans and deletes 10,000 keys. Device figures are
//! the engine's counters, first up to the commit, then up to the point where the delete is applied and
//! checkpointed.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pando_betree::{Betree, Options};
use pando_environment::{Environment, Random, SeededRandom};
use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, Direction, Durability, Engine, KeyRange, ScanEnd, StorageError,
    TreeId, TreeOptions,
};

const BATCH: usize = 10_000;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    OneMessage,
    KeyByKey,
}

fn main() -> Result<(), StorageError> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the first argument is a folder"));
    let number = |text: Option<String>, usual| text.map_or(usual, |text| text.parse().expect("a number"));
    let entries: u64 = number(arguments.next(), 2_000_000);
    let cache: u64 = number(arguments.next(), 64);
    for (name, way) in [("one message", Way::OneMessage), ("key by key", Way::KeyByKey)] {
        let folder = folder.join(name.replace(' ', "-"));
        fill(&folder, cache << 20, entries)?;
        println!("{name}:");
        delete_half(&folder, cache << 20, entries, way)?;
    }
    if cfg!(debug_assertions) {
        println!("this is not a release build: its times say nothing");
    }
    Ok(())
}

fn open(folder: &Path, cache_bytes: u64) -> Result<Arc<Betree>, StorageError> {
    let mut options = Options::default();
    options.cache_bytes = cache_bytes;
    Betree::open(&Environment::real(), folder, options)
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn fill(folder: &Path, cache_bytes: u64, entries: u64) -> Result<(), StorageError> {
    let engine = open(folder, cache_bytes)?;
    let tree = engine.create_tree("tree", &TreeOptions::default())?;
    let random = SeededRandom::new(1);
    let mut value = [7; 240];
    for first in (0..entries).step_by(1_000) {
        let mut writer = engine.begin(Begin::WRITE)?;
        for number in first..(first + 1_000).min(entries) {
            random.fill(&mut value[..120]);
            writer.put(tree, &key(number), &value)?;
        }
        writer.commit(Durability::None)?;
    }
    engine.close()
}

fn delete_half(folder: &Path, cache_bytes: u64, entries: u64, way: Way) -> Result<(), StorageError> {
    let engine = open(folder, cache_bytes)?;
    let tree = engine.list_trees()?[0].id;
    let bound = |number: u64| key(number).to_vec();
    let range = KeyRange {
        lower: Bound::Included(bound(entries / 4)),
        upper: Bound::Excluded(bound(entries / 4 * 3)),
    };
    let before = Figures::of(&engine, tree)?;
    let began = Instant::now();
    match way {
        Way::OneMessage => {
            let mut writer = engine.begin(Begin::WRITE)?;
            writer.delete_range(tree, &range, BlockingMode::MayBlock)?;
            writer.commit(Durability::Logged)?;
        }
        Way::KeyByKey => delete_keys(&engine, tree, &range)?,
    }
    let committed = began.elapsed();
    Figures::of(&engine, tree)?.print("committed", &before, committed);
    while engine.statistics().get("range_deletes.pending").unwrap_or(0) > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    engine.checkpoint()?;
    engine.checkpoint()?;
    Figures::of(&engine, tree)?.print("worked in", &before, began.elapsed());
    let count = count(&engine, tree)?;
    assert_eq!(count, entries - (entries / 4 * 3 - entries / 4), "what is beside the range is there");
    engine.close()
}

fn delete_keys(engine: &Betree, tree: TreeId, range: &KeyRange) -> Result<(), StorageError> {
    let (mut rest, mut batch) = (range.clone(), Batch::new());
    loop {
        let mut writer = engine.begin(Begin::WRITE)?;
        let (mut deleted, mut end) = (0, ScanEnd::More);
        while deleted < BATCH && end == ScanEnd::More {
            let limits = BatchLimits::LARGEST;
            end = writer.scan(tree, &rest, Direction::Forward, limits, BlockingMode::MayBlock, &mut batch)?;
            for (key, _) in batch.iter() {
                writer.delete(tree, key)?;
            }
            deleted += batch.len();
            if let Some((last, _)) = batch.last() {
                rest.advance_past(last, Direction::Forward);
            }
        }
        writer.commit(Durability::Logged)?;
        if end == ScanEnd::Done {
            return Ok(());
        }
    }
}

fn count(engine: &Betree, tree: TreeId) -> Result<u64, StorageError> {
    let reader = engine.begin(Begin::READ)?;
    let (mut rest, mut batch, mut count) = (KeyRange::all(), Batch::new(), 0);
    loop {
        let (limits, blocking) = (BatchLimits::LARGEST, BlockingMode::MayBlock);
        let end = reader.scan(tree, &rest, Direction::Forward, limits, blocking, &mut batch)?;
        count += batch.len() as u64;
        match (end, batch.last()) {
            (ScanEnd::More, Some((last, _))) => rest.advance_past(last, Direction::Forward),
            _ => return Ok(count),
        }
    }
}

/// The engine's counters of device traffic.
struct Figures {
    written: u64,
    logged: u64,
    reads: u64,
    read_bytes: u64,
    on_disk: u64,
}

impl Figures {
    fn of(engine: &Betree, tree: TreeId) -> Result<Figures, StorageError> {
        let statistics = engine.statistics();
        let get = |name: &str| statistics.get(name).unwrap_or_else(|| panic!("there is no figure {name}"));
        let causes = ["leaves", "large_values", "runs", "nodes", "catalog", "space_map"];
        let sum = |what: &str| causes.iter().map(|cause| get(&format!("{cause}.{what}"))).sum();
        Ok(Figures {
            written: sum("bytes_written"),
            logged: get("commits.bytes"),
            reads: sum("read_calls"),
            read_bytes: sum("bytes_read"),
            on_disk: engine.bytes_on_disk(Some(tree))?,
        })
    }

    fn print(&self, when: &str, before: &Figures, time: Duration) {
        println!(
            "  {when} after {:.2} s: {:.2} MB of writes committed, {:.1} MB written to the data file, {} reads of {:.1} MB, {:.1} MB in use of {:.1}",
            time.as_secs_f64(),
            megabytes(self.logged - before.logged),
            megabytes(self.written - before.written),
            self.reads - before.reads,
            megabytes(self.read_bytes - before.read_bytes),
            megabytes(self.on_disk),
            megabytes(before.on_disk)
        );
    }
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
