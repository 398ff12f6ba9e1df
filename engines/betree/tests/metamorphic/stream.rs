//! The stream: the kinds of steps, and how a seed draws them.
//!
//! A step names its tree, snapshot and writer by numbers, which are taken modulo the existing ones; without
//! any, the step does nothing. So any part of a stream is a stream too. Tree 0 exists from the beginning.
//!
//! # Keys
//! Commits write [common keys](key), and ascending keys beyond all others. Each writer has a region of its
//! own before those ([`own_key`]). It meets commits and the other writer seldom, in common keys only, else no
//! commit would succeed.

use std::ops::Bound;

use pando_conformance::change::Change;
use pando_environment::{Random, SeededRandom};
use pando_storage::{Claim, Direction, Durability, KeyRange, LoadDurability};

/// Writers that may be under way at once.
pub const WRITERS: usize = 2;
/// Where the ascending keys begin, which no writer writes to.
pub const ASCENDING: &[u8] = b"z";
const KEYS: u64 = 700;
/// Numbers of keys in a writer's region, each of which is two keys.
const OWN_KEYS: u64 = 150;

pub type Entry = (Vec<u8>, Vec<u8>);

/// One operation of the stream.
#[derive(Clone, Debug)]
pub enum Step {
    Commit(usize, Vec<(Vec<u8>, Change)>),
    DeleteRange(usize, KeyRange),
    Get(Reader, usize, Vec<u8>),
    Scan(Reader, usize, KeyRange, Direction, usize),
    /// Keeps a snapshot; the oldest goes when there are three.
    Snapshot,
    /// Writes of a writer, which begins with the first of them.
    Write(usize, usize, Writes),
    End(usize, Ending),
    /// A new tree, filled at once; the oldest that was filled so goes when there are four.
    Load(Load),
    /// Never the first.
    DropTree(usize),
    /// Begins a backup; one that is under way is finished before.
    Backup(Extent),
    /// Finishes the backup that is under way, and restores it.
    FinishBackup,
    /// One tree, or all.
    Compact(Option<usize>),
    Check,
    Checkpoint,
    Reopen,
    /// The process dies, once a commit has been logged, and the store is opened again.
    Kill,
}

/// The transaction that reads.
#[derive(Clone, Copy, Debug)]
pub enum Reader {
    Newest,
    Kept(usize),
    Writer(usize),
}

/// The work of a writer in one step, in this order.
#[derive(Clone, Debug)]
pub struct Writes {
    pub writes: Vec<OwnWrite>,
    /// Whether it goes back to where it was before.
    pub is_undone: bool,
}

#[derive(Clone, Debug)]
pub enum OwnWrite {
    Change(Vec<u8>, Change, Claim),
    /// Of its own region.
    DeleteRange(KeyRange),
}

#[derive(Clone, Copy, Debug)]
pub enum Ending {
    Commit(Durability),
    Rollback,
}

#[derive(Clone, Debug)]
pub struct Load {
    pub entries: Vec<Entry>,
    pub durability: LoadDurability,
    /// Whether what may be deleted of the tree is deleted before, though it is empty.
    pub is_cleared: bool,
    pub flaw: Option<Flaw>,
}

/// Why a load is refused.
#[derive(Clone, Copy, Debug)]
pub enum Flaw {
    /// The first key comes once more at the end.
    KeysDescend,
    TreeHasEntries,
    SourceFails,
}

#[derive(Clone, Copy, Debug)]
pub enum Extent {
    Full,
    /// The changes since the last one, if there is one.
    Incremental,
}

/// The stream of a seed.
pub fn stream(seed: u64, steps: usize) -> Vec<Step> {
    let random = &SeededRandom::new(seed);
    let mut next = 0;
    let step = |_| match random.below(200) {
        0..90 => Step::Commit(tree(random), changes(random, &mut next)),
        90..96 => Step::DeleteRange(tree(random), range(random)),
        96..116 => Step::Get(reader(random), tree(random), any_key(random)),
        116..136 => {
            let batch = 1 + random.below(60) as usize;
            Step::Scan(reader(random), tree(random), range(random), direction(random), batch)
        }
        136..143 => Step::Snapshot,
        143..161 => {
            let writer = number(random, WRITERS);
            Step::Write(writer, tree(random), writes(random, writer))
        }
        161..168 => Step::End(number(random, WRITERS), ending(random)),
        168..174 => Step::Load(load(random)),
        174..176 => Step::DropTree(tree(random)),
        176..180 => Step::Backup(extent(random)),
        180..183 => Step::FinishBackup,
        183..185 => Step::Compact(Some(tree(random))),
        185 => Step::Compact(None),
        186..188 => Step::Check,
        188..194 => Step::Checkpoint,
        194..197 => Step::Kill,
        _ => Step::Reopen,
    };
    (0..steps).map(step).collect()
}

fn number(random: &SeededRandom, limit: usize) -> usize {
    random.below(limit as u64) as usize
}

/// Mostly the first tree.
fn tree(random: &SeededRandom) -> usize {
    number(random, 10).saturating_sub(4)
}

fn key(random: &SeededRandom) -> Vec<u8> {
    let number = random.below(KEYS);
    match number % 3 {
        0 => number.to_be_bytes()[6..].to_vec(),
        1 => format!("a common start, then {number:04}").into_bytes(),
        _ => vec![b'x'; (number % 40) as usize],
    }
}

/// A key that only one writer writes to.
fn own_key(random: &SeededRandom, writer: usize) -> Vec<u8> {
    let number = random.below(OWN_KEYS);
    match random.below(2) {
        0 => format!("y{writer}{number:03}").into_bytes(),
        _ => format!("y{writer}, the region of a writer, {number:03}").into_bytes(),
    }
}

fn any_key(random: &SeededRandom) -> Vec<u8> {
    match random.below(3) {
        0 => own_key(random, number(random, WRITERS)),
        _ => key(random),
    }
}

fn value(random: &SeededRandom) -> Vec<u8> {
    let length = [0, 8, 40, 300][number(random, 4)];
    vec![random.next_u64() as u8; length]
}

fn change(random: &SeededRandom) -> Change {
    match random.below(9) {
        0 => Change::Delete,
        1 | 2 => Change::random_merge(random, 120),
        3 | 4 => Change::random_patch(random),
        5 | 6 => Change::random_document(random),
        _ => Change::Put(value(random)),
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

/// A range within a writer's region.
fn own_range(random: &SeededRandom, writer: usize) -> KeyRange {
    let whole = KeyRange::prefix(format!("y{writer}").as_bytes());
    let lower = match random.below(3) {
        0 => whole.lower,
        1 => Bound::Included(own_key(random, writer)),
        _ => Bound::Excluded(own_key(random, writer)),
    };
    let upper = match random.below(3) {
        0 => whole.upper,
        1 => Bound::Included(own_key(random, writer)),
        _ => Bound::Excluded(own_key(random, writer)),
    };
    KeyRange { lower, upper }
}

fn direction(random: &SeededRandom) -> Direction {
    if random.below(2) == 0 { Direction::Forward } else { Direction::Backward }
}

fn reader(random: &SeededRandom) -> Reader {
    match random.below(20) {
        0..8 => Reader::Newest,
        8..15 => Reader::Kept(number(random, 3)),
        _ => Reader::Writer(number(random, WRITERS)),
    }
}

/// The writes of a commit, each key once.
fn changes(random: &SeededRandom, next: &mut u64) -> Vec<(Vec<u8>, Change)> {
    let count = 1 + random.below(20);
    // Now and then ascending keys beyond all others, as documents come.
    let is_ascending = random.below(5) == 0;
    let changes = (0..count).map(|_| {
        if is_ascending {
            *next += 1;
            return (ascending_key(*next), Change::Put(value(random)));
        }
        (key(random), change(random))
    });
    let mut changes: Vec<_> = changes.collect();
    changes.sort_by(|left, right| left.0.cmp(&right.0));
    changes.dedup_by(|left, right| left.0 == right.0);
    changes
}

fn ascending_key(number: u64) -> Vec<u8> {
    [ASCENDING, format!("{number:08}").as_bytes()].concat()
}

fn writes(random: &SeededRandom, writer: usize) -> Writes {
    let count = 1 + random.below(60);
    let writes = (0..count).map(|_| match random.below(120) {
        0..2 => OwnWrite::DeleteRange(own_range(random, writer)),
        2..6 => OwnWrite::Change(key(random), change(random), Claim::Intent),
        // These meet whatever others do to the key, and conflict with nobody.
        6..14 => OwnWrite::Change(key(random), Change::random_merge(random, 120), Claim::Blind),
        _ => OwnWrite::Change(own_key(random, writer), change(random), Claim::Blind),
    });
    Writes { writes: writes.collect(), is_undone: random.below(6) == 0 }
}

fn ending(random: &SeededRandom) -> Ending {
    match random.below(4) {
        0 => Ending::Rollback,
        _ => Ending::Commit([Durability::None, Durability::Logged, Durability::Synced][number(random, 3)]),
    }
}

fn load(random: &SeededRandom) -> Load {
    let count = [2, 60, 400][number(random, 3)];
    let is_ascending = random.below(3) == 0;
    let keys = (0..1 + random.below(count)).map(|number| match is_ascending {
        true => ascending_key(number),
        false => any_key(random),
    });
    let mut entries: Vec<Entry> = keys.map(|key| (key, value(random))).collect();
    entries.sort();
    entries.dedup_by(|left, right| left.0 == right.0);
    let durability = [LoadDurability::Durable, LoadDurability::Scratch][number(random, 2)];
    let flaw = match random.below(15) {
        0 => Some(Flaw::KeysDescend),
        1 => Some(Flaw::TreeHasEntries),
        2 => Some(Flaw::SourceFails),
        _ => None,
    };
    Load { entries, durability, is_cleared: random.below(4) == 0, flaw }
}

fn extent(random: &SeededRandom) -> Extent {
    if random.below(5) == 0 { Extent::Full } else { Extent::Incremental }
}
