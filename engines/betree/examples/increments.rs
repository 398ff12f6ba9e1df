//! The cost of random increments of very many counters, blind or by a get and a put.
//!
//! `cargo run --release -p pando-betree --example increments -- FOLDER [HOW] [INCREMENTS] [COUNTERS]
//! [CACHE_MB] [THREADS]`
//!
//! HOW is `blind` (merges) or `update` (get, put with an intent; a conflict is retried). First the counters
//! are loaded, of eight bytes under keys of 24. A transaction increments ten. A checkpoint at the end is part
//! of the measurement. The sum of all counters must be the initial sum plus the increments. The folder must
//! not exist yet; it is kept.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use pando_betree::{Betree, Options};
use pando_environment::{Environment, SeededRandom};
use pando_storage::{
    Begin, BlockingMode, Claim, Cursor, Direction, Durability, Engine, KeyRange, LoadDurability, Merge,
    SortedEntries, StorageError, Transaction, TreeId, TreeOptions,
};

/// Increments of a transaction.
const BATCH: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Blind,
    Update,
}

fn key(number: u64) -> Vec<u8> {
    [&number.to_be_bytes()[..], b" is the counter "].concat()
}

/// Where a counter begins: the finisher of splitmix64, so that pages do not compress better than counters do.
fn beginning(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 27)) >> 40
}

/// The counters as they are loaded.
struct Counters {
    next: u64,
    count: u64,
    entry: (Vec<u8>, [u8; 8]),
}

impl SortedEntries for Counters {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        if self.next == self.count {
            return Ok(None);
        }
        self.entry = (key(self.next), beginning(self.next).to_le_bytes());
        self.next += 1;
        Ok(Some((&self.entry.0, &self.entry.1)))
    }
}

fn main() -> Result<(), StorageError> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the first argument is a folder"));
    let how = match arguments.next().as_deref() {
        None | Some("blind") => How::Blind,
        Some("update") => How::Update,
        Some(other) => panic!("{other} is neither blind nor update"),
    };
    let mut number = |usual| arguments.next().map_or(usual, |text| text.parse().expect("a number"));
    let (wanted, count, cache, threads): (u64, u64, u64, u64) =
        (number(1_000_000), number(10_000_000), number(8), number(4));
    let mut options = Options::default();
    options.cache_bytes = cache << 20;
    let engine = Betree::open(&Environment::real(), &folder, options)?;
    let tree = engine.create_tree("counters", &TreeOptions::default())?;
    engine.load(
        tree,
        &mut Counters { next: 0, count, entry: Default::default() },
        LoadDurability::Durable,
    )?;
    println!(
        "{count} counters, {:.1} MB on disk, {cache} MB cache",
        engine.bytes_on_disk(None)? as f64 / 1e6
    );
    let (before, began) = (Figures::of(&engine), Instant::now());
    let (done, conflicts) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (engine, done, conflicts) = (&engine, &done, &conflicts);
            scope.spawn(move || {
                let random = SeededRandom::new(thread);
                while done.load(Ordering::Relaxed) < wanted {
                    let numbers: Vec<u64> = (0..BATCH).map(|_| random.below(count)).collect();
                    while let Err(error) = increment(engine, tree, how, &numbers) {
                        assert!(error.is_conflict(), "{error}");
                        conflicts.fetch_add(1, Ordering::Relaxed);
                    }
                    done.fetch_add(BATCH as u64, Ordering::Relaxed);
                }
            });
        }
    });
    let (time, done) = (began.elapsed(), done.into_inner());
    let after = Figures::of(&engine);
    engine.checkpoint()?;
    let all = Figures::of(&engine);
    let each = |figure: u64| figure as f64 / done as f64;
    println!(
        "{:.0} increments/s; each {:.3} reads, {:.0} B read, {:.0} B written ({:.0} with the checkpoint), {:.0} B of log; {} conflicts",
        done as f64 / time.as_secs_f64(),
        each(after.reads - before.reads),
        each(after.read - before.read),
        each(after.written - before.written),
        each(all.written - before.written),
        each(all.log - before.log),
        conflicts.into_inner(),
    );
    check(&engine, tree, count, done)?;
    engine.close()
}

fn increment(engine: &Betree, tree: TreeId, how: How, numbers: &[u64]) -> Result<(), StorageError> {
    let mut writer = engine.begin(Begin::WRITE)?;
    for number in numbers {
        let (key, one) = (key(*number), Merge::Add(1));
        match how {
            How::Blind => writer.merge(tree, &key, one, Claim::Blind, BlockingMode::MayBlock)?,
            How::Update => {
                let old = writer.get(tree, &key, BlockingMode::MayBlock)?;
                let new = one.apply(old.as_deref()).expect("an addition makes a value");
                writer.put(tree, &key, &new)?;
            }
        }
    }
    writer.commit(Durability::Logged)?;
    Ok(())
}

/// No increment is lost, and none counted twice.
fn check(engine: &Betree, tree: TreeId, count: u64, done: u64) -> Result<(), StorageError> {
    let reader = engine.begin(Begin::READ)?;
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let (mut sum, mut counters) = (0_u64, 0);
    while let Some((_, value)) = cursor.next(&*reader as &dyn Transaction, BlockingMode::MayBlock)? {
        sum = sum.wrapping_add(u64::from_le_bytes(value.try_into().expect("a counter has eight bytes")));
        counters += 1;
    }
    let begun = (0..count).fold(0_u64, |sum, number| sum.wrapping_add(beginning(number)));
    assert_eq!((counters, sum.wrapping_sub(begun)), (count, done), "counters, and what was added to them");
    println!("the sum of all counters has grown by {done}");
    Ok(())
}

/// The engine's counters of device traffic.
struct Figures {
    written: u64,
    read: u64,
    reads: u64,
    log: u64,
}

impl Figures {
    fn of(engine: &Betree) -> Figures {
        let statistics = engine.statistics();
        let figure = |wanted| statistics.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value);
        let figure = |wanted| figure(wanted).expect("the engine has this figure");
        Figures {
            written: figure("data.write_bytes"),
            read: figure("data.read_bytes"),
            reads: figure("data.reads"),
            log: figure("log.appended_bytes"),
        }
    }
}
