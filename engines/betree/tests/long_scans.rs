//! Long scans with prefetch by other threads: correct in both directions, with any timing, with concurrent
//! writes, and with damage.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pando_betree::{Betree, Options};
use pando_environment::{Environment, Random, SeededRandom, Simulation};
use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, Direction, Durability, Engine, ErrorKind, KeyRange, ScanEnd,
    StorageError, TreeId, TreeOptions,
};

const FOLDER: &str = "/store";
/// Entries of about 1 KB: with pages of 8 KB some 2,000 pages, 130 leaves, twice the cache.
const ENTRIES: u64 = 16_000;

fn options(scan_threads: &str) -> Options {
    let entries = [
        ("pageSize", "8KB"),
        ("leafSize", "128KB"),
        ("fanout", "6"),
        ("bufferPercent", "20"),
        ("compression", "lz4"),
        ("scanThreads", scan_threads),
    ];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    // Read-ahead may have a sixteenth: enough for one scan at a time.
    (options.cache_bytes, options.partition_bytes) = (8 << 20, 128 << 10);
    options
}

fn key(number: u64) -> Vec<u8> {
    format!("key number {number:08}").into_bytes()
}

/// Begins with the number and the version.
fn value(number: u64, version: u64) -> Vec<u8> {
    let random = SeededRandom::new(number + version * ENTRIES);
    let noise = (0..120).flat_map(|_| random.next_u64().to_le_bytes());
    [number, version].into_iter().flat_map(u64::to_le_bytes).chain(noise).collect()
}

/// The part of an entry that a scan is checked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    number: u64,
    version: u64,
}

impl Seen {
    fn new(key_found: &[u8], content: &[u8]) -> Seen {
        let word = |at: usize| u64::from_le_bytes(content[at..at + 8].try_into().expect("eight bytes"));
        let seen = Seen { number: word(0), version: word(8) };
        assert_eq!(key_found, key(seen.number));
        seen
    }
}

/// Entries whose numbers differ by this many are always written together.
const GROUPS: u64 = 1_000;

fn fill(engine: &Betree, tree: TreeId, between: impl Fn()) {
    // 7,919 is prime to the number of entries: each comes once, far from the last.
    let numbers: Vec<u64> = (0..ENTRIES).map(|at| at * 7_919 % ENTRIES).collect();
    for chunk in numbers.chunks(200) {
        let mut writer = engine.begin(Begin::WRITE).expect("a writer begins");
        for number in chunk {
            writer.put_blind(tree, &key(*number), &value(*number, 0)).expect("a write succeeds");
        }
        writer.commit(Durability::None).expect("the commit succeeds");
        between();
    }
    engine.checkpoint().expect("a checkpoint succeeds");
}

fn seed_of(direction: Direction) -> u64 {
    if direction == Direction::Forward { 1 } else { 2 }
}

/// Scans in the largest batches; returns the entries, and how the scan ended.
fn scan(
    engine: &Betree,
    tree: TreeId,
    range: KeyRange,
    direction: Direction,
    between: impl Fn(),
) -> (Vec<Seen>, Result<(), StorageError>) {
    let reader = engine.begin(Begin::READ).expect("a reader begins");
    let (mut rest, mut seen) = (range, Vec::new());
    let random = SeededRandom::new(seed_of(direction));
    loop {
        between();
        let mut batch = Batch::new();
        let limits = BatchLimits::LARGEST;
        // As a server does: at once if it can be, and with `MayBlock` if not.
        let blocking = [BlockingMode::CachedOnly, BlockingMode::MayBlock][random.below(2) as usize];
        let end = match reader.scan(tree, &rest, direction, limits, blocking, &mut batch) {
            Ok(end) => end,
            Err(error) if error.is_would_block() => continue,
            Err(error) => return (seen, Err(error)),
        };
        seen.extend(batch.iter().map(|(found, content)| Seen::new(found, content)));
        match batch.last() {
            Some((last, _)) if end == ScanEnd::More => rest.advance_past(last, direction),
            _ => return (seen, Ok(())),
        }
    }
}

fn range(from: u64, to: u64) -> KeyRange {
    KeyRange { lower: Bound::Included(key(from)), upper: Bound::Excluded(key(to)) }
}

/// Scans of all and of parts, in both directions: each finds every entry once, in order, and of one commit
/// all or nothing.
fn check_all(engine: &Betree, tree: TreeId, between: impl Fn() + Copy) {
    for (from, to) in [(0, ENTRIES), (3_000, 3_700), (5_001, 15_000), (ENTRIES - 5, ENTRIES)] {
        for direction in [Direction::Forward, Direction::Backward] {
            let whole = if to - from == ENTRIES { KeyRange::all() } else { range(from, to) };
            let (found, outcome) = scan(engine, tree, whole, direction, between);
            outcome.expect("the scan succeeds");
            let numbers: Vec<u64> = found.iter().map(|seen| seen.number).collect();
            let expected: Vec<u64> = match direction {
                Direction::Forward => (from..to).collect(),
                Direction::Backward => (from..to).rev().collect(),
            };
            assert!(numbers == expected, "{from} to {to} {direction:?}: {} of {}", found.len(), to - from);
            let mut versions = [None; GROUPS as usize];
            for Seen { number, version } in found {
                let of_group = versions[(number % GROUPS) as usize].get_or_insert(version);
                assert_eq!(
                    *of_group, version,
                    "{number}, and others of its group: one snapshot sees one commit"
                );
            }
        }
    }
}

fn figure(engine: &Betree, name: &str) -> u64 {
    engine.statistics().get(name).unwrap_or_else(|| panic!("there is no figure {name}"))
}

#[test]
fn scans_beside_each_other_and_a_writer_see_every_entry_once_and_in_order() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for scan_threads in ["1", "3"] {
        let path = folder.path().join(scan_threads);
        let engine = Betree::open(&Environment::real(), &path, options(scan_threads)).expect("it opens");
        let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is made");
        fill(&engine, tree, || {});
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let scans: Vec<_> = (0..3).map(|_| scope.spawn(|| check_all(&engine, tree, || {}))).collect();
            scope.spawn(|| {
                let random = SeededRandom::new(4);
                let mut version = 0;
                while !stop.load(Ordering::Relaxed) {
                    version += 1;
                    let group = random.below(GROUPS);
                    let mut writer = engine.begin(Begin::WRITE).expect("a writer begins");
                    for number in (group..ENTRIES).step_by(GROUPS as usize) {
                        let value = value(number, version);
                        writer.put_blind(tree, &key(number), &value).expect("a write succeeds");
                    }
                    writer.commit(Durability::None).expect("the commit succeeds");
                }
            });
            let outcomes: Vec<_> = scans.into_iter().map(|scan| scan.join()).collect();
            stop.store(true, Ordering::Relaxed);
            outcomes.into_iter().for_each(|outcome| outcome.expect("the scan finds what it should"));
        });
        let (brought, helped) =
            (figure(&engine, "scans.portions_brought"), figure(&engine, "scans.portions_helped"));
        assert!(helped > 50 && helped < brought, "helpers brought {helped} of {brought} portions");
        // The pages that scans have left go by themselves.
        let is_gone = || {
            std::thread::sleep(std::time::Duration::from_millis(10));
            figure(&engine, "cache.scan_ahead_bytes") == 0
        };
        assert!((0..3_000).any(|_| is_gone()), "after half a minute something is left");
        engine.close().expect("it closes");
    }
}

#[test]
fn a_scan_is_right_whether_others_bring_much_little_or_nothing_of_what_it_asks_for() {
    let simulation = Environment::simulated(7);
    let engine = open(&simulation).expect("the store opens");
    let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is made");
    fill(&engine, tree, || simulation.tasks.run_until_idle());
    check_all(&engine, tree, || {});
    check_all(&engine, tree, || {
        simulation.tasks.run_one();
    });
    check_all(&engine, tree, || simulation.tasks.run_until_idle());
}

fn open(simulation: &Simulation) -> Result<Arc<Betree>, StorageError> {
    Betree::open(&simulation.environment, Path::new(FOLDER), options("2"))
}

#[test]
fn a_scan_over_damage_delivers_what_comes_before_it_and_says_what_is_damaged() {
    let simulation = Environment::simulated(11);
    let engine = open(&simulation).expect("the store opens");
    let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is made");
    fill(&engine, tree, || simulation.tasks.run_until_idle());
    engine.compact(&[], &pando_storage::Operation::default()).expect("all that waits goes into leaves");
    engine.close().expect("the store closes");
    drop(engine);
    let data = Path::new(FOLDER).join("data.0000");
    let bytes =
        simulation.disk.content(&data).iter().rposition(|byte| *byte != 0).expect("something is written");
    let (mut failed, mut partly) = (0, 0);
    for step in 1..40 {
        let bit = (bytes / 40 * step + 1_000) * 8;
        simulation.disk.flip_bit(&data, bit);
        if let Ok(engine) = open(&simulation) {
            for direction in [Direction::Forward, Direction::Backward] {
                let help = || {
                    simulation.tasks.run_one();
                };
                let (found, outcome) = scan(&engine, tree, KeyRange::all(), direction, help);
                let is_in_order = match direction {
                    Direction::Forward => found.iter().map(|seen| seen.number).eq(0..found.len() as u64),
                    Direction::Backward => {
                        found.iter().map(|seen| seen.number).eq((0..ENTRIES).rev().take(found.len()))
                    }
                };
                assert!(is_in_order, "bit {bit}, {direction:?}: something is left out");
                match outcome {
                    Ok(()) => assert_eq!(found.len() as u64, ENTRIES, "bit {bit}, {direction:?}"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                        failed += 1;
                        partly += u32::from(!found.is_empty());
                    }
                }
            }
            drop(engine);
        }
        simulation.tasks.forget_all();
        simulation.disk.flip_bit(&data, bit);
    }
    assert!(failed > 10 && partly > 10, "{failed} scans met damage, {partly} delivered something before");
}
