//! One random stream of operations, many configurations, the same answers.
//!
//! The stream is drawn from the seed alone and never looks at an answer. Each configuration runs it on a disk of its own,
//! with background work at moments of its own; what it answers (every get, every scan, forwards and backwards, at the newest
//! and at old snapshots, before and after reopening) is written down line by line. All lines must be equal: whether writes
//! wait in runs or go straight into leaves (always, or now and then as the tree is laid out anew while it is open), with filters and
//! without, in memory or out of it, must not be seen.
//!
//! Every configuration but the usual one is tiny, so that leaves and nodes split, runs are written, united and flushed, and
//! pages leave the cache, all within a few hundred operations. `verify` checks each store at the end.
//!
//! A stream that fails is run again and again with fewer steps; what is left is printed, and `PANDO_SEED=3 PANDO_OPERATIONS=8,21` runs it.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pando_betree::{Betree, Options, verify};
use pando_conformance::change::Change;
use pando_conformance::shrink::{self, failure_of};
use pando_environment::{Environment, Random, SeededRandom, Simulation};
use pando_storage::{
    Batch, BatchLimits, Begin, Claim, Direction, Durability, Engine, KeyRange, Patience, ScanEnd,
    Transaction, TreeId, TreeOptions,
};

const FOLDER: &str = "/store";
const KEYS: u64 = 700;

/// One operation of the stream. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<(Vec<u8>, Change)>),
    DeleteRange(KeyRange),
    Get(Vec<u8>),
    Scan(KeyRange, Direction, usize),
    /// Keeps a snapshot; the oldest goes when there are three.
    Snapshot,
    /// The same as `Get` and `Scan`, at a kept snapshot.
    GetAt(usize, Vec<u8>),
    ScanAt(usize, KeyRange, Direction),
    Checkpoint,
    Reopen,
}

fn key(random: &SeededRandom) -> Vec<u8> {
    let number = random.below(KEYS);
    match number % 3 {
        0 => number.to_be_bytes()[6..].to_vec(),
        1 => format!("a common start, then {number:04}").into_bytes(),
        _ => vec![b'x'; (number % 40) as usize],
    }
}

fn range(random: &SeededRandom) -> KeyRange {
    let bound = || match random.below(4) {
        0 => Bound::Included(key(random)),
        1 => Bound::Excluded(key(random)),
        _ => Bound::Unbounded,
    };
    KeyRange { lower: bound(), upper: bound() }
}

fn direction(random: &SeededRandom) -> Direction {
    if random.below(2) == 0 { Direction::Forward } else { Direction::Backward }
}

fn commit(random: &SeededRandom, next: &mut u64) -> Step {
    let count = 1 + random.below(20);
    // Now and then ascending keys beyond all others, as documents come.
    let ascending = random.below(5) == 0;
    let writes = (0..count).map(|_| {
        let length = [0, 8, 40, 300][random.below(4) as usize];
        let value = vec![random.next_u64() as u8; length];
        if ascending {
            *next += 1;
            return (format!("z{next:08}").into_bytes(), Change::Put(value));
        }
        let change = match random.below(6) {
            0 => Change::Delete,
            1 | 2 => Change::random_merge(random, 120),
            _ => Change::Put(value),
        };
        (key(random), change)
    });
    let mut writes: Vec<_> = writes.collect();
    writes.sort_by(|left, right| left.0.cmp(&right.0));
    writes.dedup_by(|left, right| left.0 == right.0);
    Step::Commit(writes)
}

fn stream(seed: u64, steps: usize) -> Vec<Step> {
    let random = SeededRandom::new(seed);
    let mut next = 0;
    let step = |_| match random.below(100) {
        0..56 => commit(&random, &mut next),
        56..60 => Step::DeleteRange(range(&random)),
        60..72 => Step::Get(key(&random)),
        72..82 => Step::Scan(range(&random), direction(&random), 1 + random.below(60) as usize),
        82..86 => Step::Snapshot,
        86..91 => Step::GetAt(random.below(3) as usize, key(&random)),
        91..95 => Step::ScanAt(random.below(3) as usize, range(&random), direction(&random)),
        95..98 => Step::Checkpoint,
        _ => Step::Reopen,
    };
    (0..steps).map(step).collect()
}

fn options(entries: &[(&str, &str)], cache: u64, partition: usize) -> Options {
    let entries: Vec<_> = entries.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    (options.cache_bytes, options.partition_bytes, options.log_budget_bytes) = (cache, partition, 1 << 20);
    options
}

const USUAL: &str = "usual";
/// The configuration that deletes ranges key by key, as the usual one does where they are small; all others do by messages.
const KEY_BY_KEY: &str = "no codec";
/// The configuration whose tree is laid out anew on the way.
const CHANGING: &str = "laid out anew";

fn configurations() -> Vec<(&'static str, Options)> {
    let configurations = all_configurations();
    let by_messages = configurations.into_iter().map(|(name, mut options)| {
        if name != KEY_BY_KEY && name != USUAL {
            options.range_delete_entries = 0;
        }
        (name, options)
    });
    by_messages.collect()
}

fn all_configurations() -> Vec<(&'static str, Options)> {
    let tiny = [("pageSize", "128B"), ("leafSize", "1KB"), ("fanout", "4"), ("runSize", "512B")];
    let with = |more: &[(&'static str, &'static str)]| [&tiny[..], more].concat();
    vec![
        (USUAL, Options::default()),
        ("straight into leaves", options(&with(&[("bufferPercent", "0")]), 16 << 10, 1_000)),
        (
            "straight into leaves that have filters",
            options(&with(&[("bufferPercent", "0"), ("leafFilterBits", "10")]), 4 << 10, 500),
        ),
        (CHANGING, options(&with(&[("bufferPercent", "40")]), 16 << 10, 500)),
        (
            "leaf filters of few bits",
            options(&with(&[("bufferPercent", "20"), ("leafFilterBits", "2")]), 16 << 10, 800),
        ),
        ("8 percent", options(&with(&[("bufferPercent", "8")]), 16 << 10, 1_000)),
        ("50 percent", options(&with(&[("bufferPercent", "50"), ("compression", "lz4")]), 16 << 10, 600)),
        ("no cache", options(&with(&[("bufferPercent", "30"), ("filterBits", "0")]), 2 << 10, 2_000)),
        (
            "all values out of line",
            options(&with(&[("bufferPercent", "40"), ("largeValueSize", "16B")]), 16 << 10, 2_000),
        ),
        (
            "the largest values out of line, none kept in memory",
            options(
                &with(&[("bufferPercent", "20"), ("largeValueSize", "100B"), ("compression", "lz4")]),
                1 << 10,
                3_000,
            ),
        ),
        (
            KEY_BY_KEY,
            options(
                &with(&[("bufferPercent", "30"), ("compression", "none"), ("logCompression", "none")]),
                1 << 20,
                300,
            ),
        ),
        (
            "large runs",
            options(
                &[
                    ("pageSize", "64B"),
                    ("leafSize", "512B"),
                    ("fanout", "5"),
                    ("bufferPercent", "50"),
                    ("runSize", "8KB"),
                ],
                8 << 10,
                4_000,
            ),
        ),
    ]
}

/// A configuration on its way through the stream.
struct Run {
    seed: u64,
    simulation: Simulation,
    options: Options,
    engine: Option<Arc<Betree>>,
    tree: TreeId,
    kept: Vec<Box<dyn Transaction>>,
    chance: SeededRandom,
    answers: Vec<String>,
    slices: u64,
    /// Whether the tree is laid out anew now and then.
    is_changing: bool,
}

impl Run {
    fn new(seed: u64, name: &str, options: Options) -> Run {
        let simulation = Environment::simulated(seed);
        let engine = Betree::open(&simulation.environment, Path::new(FOLDER), options.clone());
        let engine = engine.expect("a new store opens");
        let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is created");
        Run {
            seed,
            simulation,
            options,
            engine: Some(engine),
            tree,
            kept: Vec::new(),
            chance: SeededRandom::new(seed ^ 0x6d65_7461),
            answers: Vec::new(),
            slices: 0,
            is_changing: name == CHANGING,
        }
    }

    /// From runs to a B-tree and back, with filters of leaves and without.
    fn lay_out_anew(&self) {
        let option = |name: &str, values: &[&str]| {
            let value = values[self.chance.below(values.len() as u64) as usize];
            (name.to_owned(), value.to_owned())
        };
        let entries = vec![
            option("bufferPercent", &["0", "40"]),
            option("leafFilterBits", &["0", "10"]),
            option("pageSize", &["128B", "256B"]),
            option("largeValueSize", &["16B", "100B", "16KB"]),
            ("leafSize".to_owned(), "1KB".to_owned()),
            ("fanout".to_owned(), "4".to_owned()),
            ("runSize".to_owned(), "512B".to_owned()),
        ];
        let changed = self.engine().change_tree_options(self.tree, &TreeOptions { entries });
        changed.expect("the layout can be changed while the store is open");
    }

    fn engine(&self) -> &Arc<Betree> {
        self.engine.as_ref().expect("the store is open between steps")
    }

    /// The step of this number. What goes on in the background follows from the seed and the number, whatever was before.
    fn step(&mut self, number: usize, step: &Step) {
        self.chance = SeededRandom::new(self.seed ^ 0x6d65_7461 ^ ((number as u64 + 1) << 32));
        if self.chance.below(8) == 0 {
            // Time passes: what is old is merged, and what reads want goes down.
            self.simulation.clock.advance(Duration::from_secs(1));
        }
        if self.is_changing && self.chance.below(20) == 0 {
            self.lay_out_anew();
        }
        for _ in 0..self.chance.below(3) {
            self.simulation.tasks.run_one();
        }
        match step {
            Step::Commit(writes) => self.commit(writes),
            Step::DeleteRange(range) => {
                let mut writer = self.engine().begin(Begin::WRITE).expect("a writer begins");
                let deleted = writer.delete_range(self.tree, range, Patience::MayBlock);
                deleted.expect("nobody else writes");
                writer.commit(Durability::Logged).expect("the commit succeeds");
            }
            Step::Get(key) => {
                let reader = self.engine().begin(Begin::READ).expect("a reader begins");
                self.get(&*reader, key);
            }
            Step::Scan(range, direction, batch) => {
                let reader = self.engine().begin(Begin::READ).expect("a reader begins");
                self.scan(&*reader, range, *direction, *batch);
            }
            Step::Snapshot => {
                if self.kept.len() == 3 {
                    self.kept.remove(0);
                }
                let reader = self.engine().begin(Begin::READ).expect("a reader begins");
                self.kept.push(reader);
            }
            Step::GetAt(at, key) => {
                if let Some(at) = self.kept.len().checked_sub(1).map(|last| last.min(*at)) {
                    let reader = self.kept.remove(at);
                    self.get(&*reader, key);
                    self.kept.insert(at, reader);
                }
            }
            Step::ScanAt(at, range, direction) => {
                if let Some(at) = self.kept.len().checked_sub(1).map(|last| last.min(*at)) {
                    let reader = self.kept.remove(at);
                    self.scan(&*reader, range, *direction, 30);
                    self.kept.insert(at, reader);
                }
            }
            Step::Checkpoint => self.engine().checkpoint().expect("a checkpoint succeeds"),
            Step::Reopen => self.reopen(),
        }
    }

    fn commit(&self, writes: &[(Vec<u8>, Change)]) {
        let mut writer = self.engine().begin(Begin::WRITE).expect("a writer begins");
        for (key, change) in writes {
            change.write(&mut *writer, self.tree, key, Claim::Blind).expect("nobody else writes");
        }
        writer.commit(Durability::Logged).expect("the commit succeeds");
    }

    fn get(&mut self, reader: &dyn Transaction, key: &[u8]) {
        let found = reader.get(self.tree, key, Patience::MayBlock).expect("a get succeeds");
        self.answers.push(format!("{key:?} is {found:?}"));
    }

    fn scan(&mut self, reader: &dyn Transaction, range: &KeyRange, direction: Direction, batch: usize) {
        let limits = BatchLimits { entries_max: batch, bytes_max: 4_000 };
        let (mut rest, mut entries) = (range.clone(), Batch::new());
        let mut line = format!("{range:?} {direction:?}");
        loop {
            let end = reader.scan(self.tree, &rest, direction, limits, Patience::MayBlock, &mut entries);
            let end = end.expect("a scan succeeds");
            entries.iter().for_each(|(key, value)| line += &format!(" {key:?}={value:?}"));
            match (end, entries.last()) {
                (ScanEnd::More, Some((last, _))) => rest.advance_past(last, direction),
                _ => break,
            }
        }
        self.answers.push(line);
    }

    fn reopen(&mut self) {
        self.kept.clear();
        self.engine().close().expect("the store closes");
        self.engine = None;
        self.simulation.tasks.forget_all();
        self.verify();
        let engine = Betree::open(&self.simulation.environment, Path::new(FOLDER), self.options.clone());
        self.engine = Some(engine.expect("the store opens"));
    }

    fn verify(&mut self) {
        let report =
            verify(&self.simulation.environment, Path::new(FOLDER)).expect("the store can be checked");
        assert!(report.is_sound(), "{:?}: {:?}", self.options, report.damage);
        self.slices += report.trees.iter().map(|tree| tree.slices).sum::<u64>();
    }
}

/// Runs steps of the stream of a seed in every configuration; the slices that each of them met.
///
/// # Panics
/// Where an answer differs from that of the first one.
fn compare(seed: u64, stream: &[Step], kept: &[usize], planted: &[usize]) -> Vec<u64> {
    let mut slices = Vec::new();
    let mut expected: Option<(&str, Vec<String>)> = None;
    for (name, options) in configurations() {
        let mut run = Run::new(seed, name, options);
        kept.iter().for_each(|at| run.step(*at, &stream[*at]));
        run.reopen();
        run.step(stream.len(), &Step::Scan(KeyRange::all(), Direction::Forward, 100));
        run.step(stream.len() + 1, &Step::Scan(KeyRange::all(), Direction::Backward, 7));
        run.reopen();
        if name == CHANGING && !planted.is_empty() && planted.iter().all(|planted| kept.contains(planted)) {
            run.answers[0] += " (planted)";
        }
        slices.push(run.slices);
        let Some((usual, expected)) = &expected else {
            expected = Some((name, run.answers));
            continue;
        };
        assert_eq!(run.answers.len(), expected.len());
        for (found, expected) in run.answers.iter().zip(expected) {
            assert_eq!(found, expected, "seed {seed}: {name} differs from {usual}");
        }
    }
    slices
}

/// As [`compare`]; where that fails, the fewest steps with which it does, and what it says then.
fn compare_or_shrink(
    seed: u64,
    stream: &[Step],
    planted: &[usize],
) -> Result<Vec<u64>, (Vec<usize>, String)> {
    let all =
        std::env::var("PANDO_OPERATIONS").map_or((0..stream.len()).collect(), |kept| shrink::parse(&kept));
    failure_of(|| compare(seed, stream, &all, planted)).map_err(|first| {
        let mut failure = first;
        let fewest = shrink::shrink(&all, |fewer| {
            failure_of(|| compare(seed, stream, fewer, planted)).map_err(|what| failure = what).is_err()
        });
        (fewest, failure)
    })
}

fn number(variable: &str) -> Option<u64> {
    Some(std::env::var(variable).ok()?.parse().expect("the variable is a number"))
}

#[test]
fn every_configuration_gives_the_same_answers() {
    let seeds = number("PANDO_SEED").map_or(0..number("PANDO_RUNS").unwrap_or(4), |seed| seed..seed + 1);
    let mut slices = vec![0; configurations().len()];
    for seed in seeds.clone() {
        let stream = stream(seed, 300);
        let met = compare_or_shrink(seed, &stream, &[]).unwrap_or_else(|(fewest, failure)| {
            let steps: Vec<_> = fewest.iter().map(|at| &stream[*at]).collect();
            let kept = shrink::print(&fewest);
            panic!("{failure}\nwith these steps alone: {steps:?}\nPANDO_SEED={seed} PANDO_OPERATIONS={kept}")
        });
        slices.iter_mut().zip(met).for_each(|(all, met)| *all += met);
    }
    if seeds.end - seeds.start < 4 {
        return;
    }
    // The first three have no runs, all others must have had some, or they have tested nothing.
    assert!(slices[..3].iter().all(|slices| *slices == 0), "{slices:?}");
    assert!(slices[3..].iter().all(|slices| *slices > 0), "{slices:?}");
}

#[test]
fn a_failure_is_shrunk_to_the_steps_that_it_takes() {
    let planted = [9, 26];
    let (fewest, failure) = compare_or_shrink(0, &stream(0, 30), &planted).expect_err("it was planted");
    assert_eq!(fewest, planted, "{failure}");
}
