//! The cost of random inserts into a tree much larger than its buffers: bytes written for each entry, and
//! reads for each get.
//!
//! `cargo run --release -p pando-betree --example random_inserts -- FOLDER [WHAT] [ENTRIES] [CACHE_MB]
//! [BUFFER_PERCENT]`
//!
//! WHAT is `index` (keys of 30 bytes, of which 9 are random, without values) or `documents` (300 bytes under
//! random keys of 12). After the load come gets of present keys, gets of absent keys, and short scans. With
//! BUFFER_PERCENT 0 flushes go straight into leaves, as in a B-tree. The folder must not exist yet; it is
//! kept.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pando_betree::{Betree, Options};
use pando_environment::{Environment, Random, SeededRandom};
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, Engine, KeyRange, StorageError, TreeId, TreeOptions,
};

const BATCH: u64 = 1_000;
const GETS: u64 = 50_000;
const SCANS: u64 = 5_000;

/// The content of the inserted entries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Index,
    Documents,
}

/// Random, but told by its number: the finisher of splitmix64, which is a permutation.
fn scattered(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn key(what: What, number: u64) -> Vec<u8> {
    let mut key = vec![0x2B];
    key.extend_from_slice(&scattered(number).to_be_bytes());
    match what {
        What::Documents => key.extend_from_slice(b"key"),
        What::Index => {
            key.extend_from_slice(b"\x2B\x00\x00customer");
            key.push(0x64);
            key.extend_from_slice(&number.to_be_bytes());
            key.push(0x04);
        }
    }
    key
}

fn main() -> Result<(), StorageError> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the first argument is a folder"));
    let what = match arguments.next().as_deref() {
        None | Some("index") => What::Index,
        Some("documents") => What::Documents,
        Some(other) => panic!("{other} is neither index nor documents"),
    };
    let mut number = |usual| arguments.next().map_or(usual, |text| text.parse().expect("a number"));
    let (entries, cache, percent): (u64, u64, u64) = (number(4_000_000), number(32), number(8));
    let tree = [("bufferPercent".to_owned(), percent.to_string())];
    let mut options = Options::default().with_entries(&tree).expect("the options are possible");
    options.cache_bytes = cache << 20;
    let engine = Betree::open(&Environment::real(), &folder, options)?;
    let tree = engine.create_tree("tree", &TreeOptions::default())?;
    load(&engine, tree, what, entries)?;
    let before = Figures::of(&engine);
    engine.checkpoint()?;
    let disk = engine.bytes_on_disk(None)?;
    println!(
        "checkpoint: {:.1} MB written; on disk {:.1} MB",
        before.written_since(&engine) / 1e6,
        disk as f64 / 1e6
    );
    read(&engine, "get", |round| {
        let reader = engine.begin(Begin::READ)?;
        let found = reader.get(tree, &key(what, scattered(round) % entries), BlockingMode::MayBlock)?;
        assert!(found.is_some(), "what was inserted is found");
        Ok(())
    })?;
    read(&engine, "get of what is not there", |round| {
        let reader = engine.begin(Begin::READ)?;
        let found = reader.get(tree, &key(what, entries + round), BlockingMode::MayBlock)?;
        assert!(found.is_none(), "what was not inserted is not found");
        Ok(())
    })?;
    read_scans(&engine, tree, what)?;
    for (name, value) in engine.statistics().iter() {
        println!("  {name} {value}");
    }
    engine.close()
}

/// The engine's counters of device traffic.
struct Figures {
    written: u64,
    read: u64,
    reads: u64,
}

impl Figures {
    fn of(engine: &Betree) -> Figures {
        let statistics = engine.statistics();
        let figure =
            |wanted| statistics.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, value)| value);
        Figures {
            written: figure("data.write_bytes"),
            read: figure("data.read_bytes"),
            reads: figure("data.reads"),
        }
    }

    fn written_since(&self, engine: &Betree) -> f64 {
        (Figures::of(engine).written - self.written) as f64
    }
}

/// Inserts in ten parts, and says of each what it cost: the tree grows.
fn load(engine: &Betree, tree: TreeId, what: What, entries: u64) -> Result<(), StorageError> {
    let random = SeededRandom::new(1);
    let mut document = vec![b'-'; if what == What::Documents { 300 } else { 0 }];
    for part in 0..10 {
        let (began, before) = (Instant::now(), Figures::of(engine));
        let (from, to) = (entries * part / 10, entries * (part + 1) / 10);
        let mut slowest = Duration::ZERO;
        for first in (from..to).step_by(BATCH as usize) {
            let batch = Instant::now();
            let mut writer = engine.begin(Begin::WRITE)?;
            for number in first..to.min(first + BATCH) {
                if what == What::Documents {
                    random.fill(&mut document[40..140]);
                }
                writer.put_blind(tree, &key(what, number), &document)?;
            }
            writer.commit(Durability::Logged)?;
            slowest = slowest.max(batch.elapsed());
        }
        let (after, count) = (Figures::of(engine), (to - from) as f64);
        println!(
            "to {to}: {:.0} entries/s, {:.0} B written and {:.0} B read an entry (log not counted), {:.4} reads, slowest batch \
             {:.1} ms",
            count / began.elapsed().as_secs_f64(),
            (after.written - before.written) as f64 / count,
            (after.read - before.read) as f64 / count,
            (after.reads - before.reads) as f64 / count,
            slowest.as_secs_f64() * 1e3,
        );
    }
    Ok(())
}

fn read(
    engine: &Betree,
    name: &str,
    mut get: impl FnMut(u64) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let (began, before) = (Instant::now(), Figures::of(engine));
    (0..GETS).try_for_each(&mut get)?;
    let reads = (Figures::of(engine).reads - before.reads) as f64 / GETS as f64;
    println!("{name}: {:.2} µs, {reads:.3} reads each", began.elapsed().as_secs_f64() * 1e6 / GETS as f64);
    Ok(())
}

/// Scans of ten entries.
fn read_scans(engine: &Betree, tree: TreeId, what: What) -> Result<(), StorageError> {
    let (began, before) = (Instant::now(), Figures::of(engine));
    for round in 0..SCANS {
        let reader = engine.begin(Begin::READ)?;
        let range = KeyRange { lower: std::ops::Bound::Included(key(what, round << 32)), ..KeyRange::all() };
        let mut cursor = Cursor::new(tree, range, Direction::Forward);
        for _ in 0..10 {
            cursor.next(&*reader, BlockingMode::MayBlock)?;
        }
    }
    let reads = (Figures::of(engine).reads - before.reads) as f64 / SCANS as f64;
    let each = began.elapsed().as_secs_f64() * 1e6 / SCANS as f64;
    println!("scan of ten entries: {each:.2} µs, {reads:.3} reads each");
    Ok(())
}
