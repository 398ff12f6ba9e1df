//! Random operations against a model: after each, the engine must answer as a few plain maps do.
//!
//! # The model
//! - A *state* is a map from (slot, key) to value; slots stand for trees. Every commit makes a new state.
//! - A live transaction has a *view*: its snapshot's state with its own writes. It also has the list of those
//!   writes.
//! - Slots 0 and 1 are written with intents. A put there goes blindly into slot 2 as well, as an index entry
//!   would.
//! - Slot 3 is merged into blindly. Where the engine merges without reading, that never conflicts, and merges
//!   apply in the order of their commits. Elsewhere a merge is an update.
//! - An update *must* conflict if another live transaction has updated the key, or a later commit than the
//!   snapshot did. It *may* conflict where a later commit only touched the key and then went back to a
//!   savepoint.
//! - A range delete is an update of all keys within that the transaction sees. An engine that does it by one
//!   message claims the whole range. Then it may conflict with any other write there.
//!
//! Keys are short and made of few bytes, so that operations meet on the same keys often.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use pando_environment::Environment;
use pando_storage::{
    BlockingMode, Capabilities, Claim, CommitReceipt, Compacting, ConflictTime, Direction, Durability,
    KeyRange, Merge, Merging, RangeDeletes, Savepoint, StorageError, Transaction, TreeId,
};

use crate::subject::{Choices, Entry, Opened, Subject, entries_in, value};

type Place = (usize, Vec<u8>);
type State = BTreeMap<Place, Vec<u8>>;

/// The slot of the tree that is written blindly.
const BLIND_SLOT: usize = 2;
/// The slot of the tree of counters.
const MERGED_SLOT: usize = 3;
const SLOTS: usize = 4;
const STEPS: usize = 4_000;
const LIVE_MAX: usize = 5;

struct Live {
    transaction: Box<dyn Transaction>,
    /// Commits before its snapshot.
    began_after: usize,
    view: State,
    writes: Writes,
    touched: BTreeSet<Place>,
    /// Ranges of slots that it has claimed.
    ranges: Vec<(usize, KeyRange)>,
    savepoints: Vec<(Savepoint, State, Writes)>,
}

/// The writes of a transaction to each place.
type Writes = BTreeMap<Place, Written>;

#[derive(Clone)]
enum Written {
    Value(Option<Vec<u8>>),
    /// Merges, the oldest first.
    Merged(Vec<OwnMerge>),
}

#[derive(Clone)]
enum OwnMerge {
    Add(i64),
    Max(Vec<u8>),
    Min(Vec<u8>),
}

impl OwnMerge {
    fn as_merge(&self) -> Merge<'_> {
        match self {
            OwnMerge::Add(number) => Merge::Add(*number),
            OwnMerge::Max(operand) => Merge::Max(operand),
            OwnMerge::Min(operand) => Merge::Min(operand),
        }
    }

    fn apply(&self, state: &mut State, place: &Place) {
        let value = self.as_merge().apply(state.get(place).map(Vec::as_slice)).map(Cow::into_owned);
        state.insert(place.clone(), value.expect("a sum, a greatest and a least are values"));
    }
}

struct Model {
    trees: [TreeId; SLOTS],
    newest: State,
    commits: usize,
    /// The number of the last commit that changed a place.
    changed: BTreeMap<Place, usize>,
    /// The number of the last commit that had touched a place and gone back to a savepoint.
    touched: BTreeMap<Place, usize>,
    /// Ranges that a commit had claimed, with the number of the last one.
    ranges: Vec<(usize, KeyRange, usize)>,
    live: Vec<Live>,
    last_receipt: Option<CommitReceipt>,
    conflicts: ConflictTime,
    merges: Merging,
    range_deletes: RangeDeletes,
}

/// Runs thousands of random operations, from fixed seeds and from a fresh one; `PANDO_SEED` replays one.
pub fn random_operations_are_answered_as_by_a_model(subject: &Subject) {
    let fresh = Environment::real().random().next_u64();
    let replayed = std::env::var("PANDO_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = replayed.map_or_else(|| vec![1, 2, fresh], |seed| vec![seed]);
    let mut engine = subject.open();
    for seed in seeds {
        let mut choices = Choices::of_seed(seed);
        let trees = [0, 1, 2, 3].map(|slot| engine.tree(&format!("slot {slot} of {seed}")));
        let mut model = Model::new(trees, engine.capabilities());
        for _ in 0..STEPS {
            if choices.one_in(1_000) && engine.is_durable() {
                engine = model.restart(subject, engine, &mut choices);
            }
            model.step(&engine, &mut choices);
        }
        model.check_newest(&engine);
    }
}

impl Model {
    fn new(trees: [TreeId; SLOTS], capabilities: Capabilities) -> Model {
        Model {
            trees,
            newest: State::new(),
            commits: 0,
            changed: BTreeMap::new(),
            touched: BTreeMap::new(),
            ranges: Vec::new(),
            live: Vec::new(),
            last_receipt: None,
            conflicts: capabilities.conflicts,
            merges: capabilities.merges,
            range_deletes: capabilities.range_deletes,
        }
    }

    fn step(&mut self, engine: &Opened, choices: &mut Choices) {
        if self.live.is_empty() || (self.live.len() < LIVE_MAX && choices.one_in(8)) {
            return self.begin(engine);
        }
        let at = choices.below(self.live.len());
        match choices.below(48) {
            0..=7 => self.get(at, choices),
            8..=13 => self.scan(at, choices),
            14..=24 => self.put(at, choices),
            25..=29 => self.delete(at, choices),
            30 => self.savepoint(at),
            31 => self.roll_back_to(at, choices),
            32..=36 => self.commit(at),
            37 => self.live.swap_remove(at).transaction.rollback(),
            40..=45 => self.merge(at, choices),
            46 | 47 => self.delete_range(at, choices),
            38 if choices.one_in(4) => engine.checkpoint().expect("the checkpoint succeeds"),
            38 if choices.one_in(8) => self.compact(engine),
            _ => self.check_newest(engine),
        }
    }

    fn compact(&mut self, engine: &Opened) {
        if engine.capabilities().compacting == Compacting::WithoutTransactions {
            self.live.drain(..).for_each(|live| live.transaction.rollback());
        }
        engine.compact(&[], &pando_storage::Operation::default()).expect("the trees are compacted");
    }

    fn begin(&mut self, engine: &Opened) {
        self.live.push(Live {
            transaction: engine.writer(),
            began_after: self.commits,
            view: self.newest.clone(),
            writes: BTreeMap::new(),
            touched: BTreeSet::new(),
            ranges: Vec::new(),
            savepoints: Vec::new(),
        });
    }

    fn get(&self, at: usize, choices: &mut Choices) {
        let live = &self.live[at];
        let place = (choices.below(SLOTS), key(choices));
        let found = value(&*live.transaction, self.trees[place.0], &place.1);
        assert_eq!(found.as_ref(), live.view.get(&place), "the value at {place:?}");
    }

    fn scan(&self, at: usize, choices: &mut Choices) {
        let live = &self.live[at];
        let slot = choices.below(SLOTS);
        let range = KeyRange { lower: bound(choices), upper: bound(choices) };
        let direction = if choices.one_in(2) { Direction::Forward } else { Direction::Backward };
        let found = entries_in(&*live.transaction, self.trees[slot], &range, direction);
        let mut expected: Vec<Entry> = entries_of(&live.view, slot);
        expected.retain(|(key, _)| range.contains(key));
        if direction == Direction::Backward {
            expected.reverse();
        }
        assert_eq!(found, expected, "{range:?} {direction:?} of slot {slot}");
    }

    fn put(&mut self, at: usize, choices: &mut Choices) {
        let place = (choices.below(BLIND_SLOT), key(choices));
        let content = vec![choices.below(256) as u8; [0, 1, 10, 400, 5_000][choices.below(5)]];
        let tree = self.trees[place.0];
        if !self.update(at, &place, |transaction| transaction.put(tree, &place.1, &content)) {
            return;
        }
        self.live[at].write(place.clone(), Some(content));
        // Both slots 0 and 1 guard the same index entry only if it carries the slot in its key.
        let entry = [&[place.0 as u8], place.1.as_slice()].concat();
        let outcome = self.live[at].transaction.put_blind(self.trees[BLIND_SLOT], &entry, &[]);
        outcome.expect("a blind put does not conflict");
        self.live[at].write((BLIND_SLOT, entry), Some(Vec::new()));
    }

    fn delete(&mut self, at: usize, choices: &mut Choices) {
        let place = (choices.below(BLIND_SLOT), key(choices));
        let tree = self.trees[place.0];
        if !self.update(at, &place, |transaction| transaction.delete(tree, &place.1)) {
            return;
        }
        self.live[at].write(place.clone(), None);
        let entry = [&[place.0 as u8], place.1.as_slice()].concat();
        let outcome = self.live[at].transaction.delete_blind(self.trees[BLIND_SLOT], &entry);
        outcome.expect("a blind delete does not conflict");
        self.live[at].write((BLIND_SLOT, entry), None);
    }

    /// Merges: into a counter blindly, or with an intent into what is put and deleted as well.
    fn merge(&mut self, at: usize, choices: &mut Choices) {
        let slot = if choices.one_in(3) { choices.below(BLIND_SLOT) } else { MERGED_SLOT };
        let place = (slot, key(choices));
        let own = match choices.below(3) {
            0 => OwnMerge::Add([1, -3, i64::MAX][choices.below(3)]),
            1 => OwnMerge::Max(vec![choices.below(256) as u8; [1, 8, 100][choices.below(3)]]),
            _ => OwnMerge::Min(vec![choices.below(256) as u8; [0, 1, 8][choices.below(3)]]),
        };
        let tree = self.trees[slot];
        let merge = own.clone();
        let run = |transaction: &mut dyn Transaction, claim| {
            transaction.merge(tree, &place.1, merge.as_merge(), claim, BlockingMode::MayBlock)
        };
        if slot == MERGED_SLOT && self.merges == Merging::Blind {
            let outcome = run(self.live[at].transaction.as_dyn_mut(), Claim::Blind);
            outcome.expect("a blind merge does not conflict");
        } else if !self.update(at, &place, |transaction| run(transaction, Claim::Intent)) {
            return;
        }
        let live = &mut self.live[at];
        own.apply(&mut live.view, &place);
        match live.writes.get_mut(&place) {
            Some(Written::Merged(merges)) => merges.push(own),
            Some(Written::Value(value)) => {
                *value = live.view.get(&place).cloned();
            }
            None => {
                live.writes.insert(place, Written::Merged(vec![own]));
            }
        }
    }

    /// Deletes a range of a guarded slot: an update of every key that is seen within it.
    fn delete_range(&mut self, at: usize, choices: &mut Choices) {
        let slot = choices.below(BLIND_SLOT);
        let range = KeyRange { lower: bound(choices), upper: bound(choices) };
        let of_slot = self.live[at].view.keys().filter(|place| place.0 == slot && range.contains(&place.1));
        let places: Vec<Place> = of_slot.cloned().collect();
        let may = places.iter().any(|place| self.may_conflict(at, place)) || self.may_meet(at, slot, &range);
        let must = places.iter().any(|place| self.must_conflict(at, place));
        let outcome =
            self.live[at].transaction.delete_range(self.trees[slot], &range, BlockingMode::MayBlock);
        match outcome {
            Ok(()) => {
                assert!(!must || self.conflicts == ConflictTime::AtCommit, "{range:?} had to conflict");
                for place in places {
                    self.live[at].touched.insert(place.clone());
                    self.live[at].write(place, None);
                }
                if self.range_deletes == RangeDeletes::OneMessage {
                    self.live[at].ranges.push((slot, range));
                }
            }
            Err(error) => {
                assert!(error.is_conflict() && may, "deleting {range:?} failed: {error:?}");
                self.live.swap_remove(at).transaction.rollback();
            }
        }
    }

    /// Updates a place; false if it conflicted, as it had to, and the transaction was rolled back.
    fn update(
        &mut self,
        at: usize,
        place: &Place,
        run: impl FnOnce(&mut dyn Transaction) -> Result<(), StorageError>,
    ) -> bool {
        let (must, may) = match self.conflicts {
            ConflictTime::AtUpdate => (self.must_conflict(at, place), self.may_conflict(at, place)),
            ConflictTime::AtCommit => (false, false),
        };
        match run(self.live[at].transaction.as_dyn_mut()) {
            Ok(()) => {
                assert!(!must, "the update of {place:?} had to conflict");
                self.live[at].touched.insert(place.clone());
                true
            }
            Err(error) => {
                assert!(error.is_conflict(), "the update failed: {error:?}");
                assert!(may, "the update of {place:?} conflicted with nobody");
                self.live.swap_remove(at).transaction.rollback();
                false
            }
        }
    }

    fn must_conflict(&self, at: usize, place: &Place) -> bool {
        let is_held =
            self.live.iter().enumerate().any(|(other, live)| other != at && live.touched.contains(place));
        is_held || self.changed.get(place).is_some_and(|commit| *commit > self.live[at].began_after)
    }

    fn may_conflict(&self, at: usize, place: &Place) -> bool {
        let (slot, point) = (place.0, KeyRange::point(&place.1));
        self.must_conflict(at, place)
            || self.meets_range(at, slot, &point)
            || self.touched.get(place).is_some_and(|commit| *commit > self.live[at].began_after)
    }

    /// Whether a range meets one that another transaction has claimed, or deleted since the snapshot.
    fn meets_range(&self, at: usize, slot: usize, range: &KeyRange) -> bool {
        let live = self.live.iter().enumerate().filter(|(other, _)| *other != at);
        let mut held = live.flat_map(|(_, live)| &live.ranges);
        let late = |(_, _, commit): &&(usize, KeyRange, usize)| *commit > self.live[at].began_after;
        held.any(|(of, other)| *of == slot && overlap(other, range))
            || self.ranges.iter().filter(late).any(|(of, other, _)| *of == slot && overlap(other, range))
    }

    /// Whether a claim of a whole range may meet anybody: also those who touched keys that this transaction
    /// does not see.
    fn may_meet(&self, at: usize, slot: usize, range: &KeyRange) -> bool {
        if self.range_deletes == RangeDeletes::Emulated {
            return false;
        }
        let others = self.live.iter().enumerate().filter(|(other, _)| *other != at);
        let places = others.flat_map(|(_, live)| &live.touched).chain(self.touched.keys());
        let mut within = places.filter(|place| place.0 == slot && range.contains(&place.1));
        within.any(|place| self.may_conflict(at, place)) || self.meets_range(at, slot, range)
    }

    fn savepoint(&mut self, at: usize) {
        let live = &mut self.live[at];
        live.savepoints.push((live.transaction.savepoint(), live.view.clone(), live.writes.clone()));
    }

    fn roll_back_to(&mut self, at: usize, choices: &mut Choices) {
        let live = &mut self.live[at];
        if live.savepoints.is_empty() {
            return;
        }
        live.savepoints.truncate(1 + choices.below(live.savepoints.len()));
        let (savepoint, view, writes) = live.savepoints.last().expect("one is left").clone();
        live.transaction.rollback_to(savepoint);
        (live.view, live.writes) = (view, writes);
    }

    fn commit(&mut self, at: usize) {
        let is_late = |place: &Place| {
            self.changed.get(place).is_some_and(|at_commit| *at_commit > self.live[at].began_after)
        };
        let guarded = self.live[at].writes.keys().filter(|place| place.0 < BLIND_SLOT);
        let must = self.conflicts == ConflictTime::AtCommit && guarded.clone().any(is_late);
        let live = self.live.swap_remove(at);
        let receipt = match live.transaction.commit(Durability::Logged) {
            Ok(receipt) => receipt,
            Err(error) => {
                assert!(
                    self.conflicts == ConflictTime::AtCommit && error.is_conflict(),
                    "the commit failed: {error:?}"
                );
                return;
            }
        };
        assert!(!must, "the commit had to conflict");
        self.commits += 1;
        let commits = self.commits;
        self.ranges.extend(live.ranges.into_iter().map(|(slot, range)| (slot, range, commits)));
        for place in live.touched {
            self.touched.insert(place, self.commits);
        }
        for (place, value) in live.writes {
            self.changed.insert(place.clone(), self.commits);
            match value {
                Written::Value(Some(value)) => drop(self.newest.insert(place, value)),
                Written::Value(None) => drop(self.newest.remove(&place)),
                Written::Merged(merges) => {
                    merges.iter().for_each(|merge| merge.apply(&mut self.newest, &place));
                }
            }
        }
        self.last_receipt = Some(receipt);
    }

    fn restart(&mut self, subject: &Subject, engine: Opened, choices: &mut Choices) -> Opened {
        self.live.clear();
        // A tree that no surviving commit followed may be gone after a crash.
        let engine = if self.commits == 0 || choices.one_in(2) {
            subject.reopen(engine)
        } else {
            if let Some(receipt) = self.last_receipt {
                engine.wait_durable(receipt, Durability::Logged).expect("the log reaches the durability");
            }
            subject.crash(engine)
        };
        // A receipt means nothing to the next engine.
        self.last_receipt = None;
        self.check_newest(&engine);
        engine
    }

    fn check_newest(&self, engine: &Opened) {
        for (slot, tree) in self.trees.iter().enumerate() {
            assert_eq!(
                engine.entries(*tree),
                entries_of(&self.newest, slot),
                "the newest state of slot {slot}"
            );
        }
    }
}

impl Live {
    fn write(&mut self, place: Place, value: Option<Vec<u8>>) {
        match value.clone() {
            Some(value) => self.view.insert(place.clone(), value),
            None => self.view.remove(&place),
        };
        self.writes.insert(place, Written::Value(value));
    }
}

fn entries_of(state: &State, slot: usize) -> Vec<Entry> {
    let of_slot = state.range((slot, Vec::new())..(slot + 1, Vec::new()));
    of_slot.map(|((_, key), value)| (key.clone(), value.clone())).collect()
}

/// Whether a key may lie within both.
fn overlap(one: &KeyRange, other: &KeyRange) -> bool {
    let meets = |lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>| {
        !KeyRange { lower: lower.clone(), upper: upper.clone() }.is_empty()
    };
    meets(&one.lower, &other.upper) && meets(&other.lower, &one.upper)
}

fn key(choices: &mut Choices) -> Vec<u8> {
    let length = choices.below(4);
    (0..length).map(|_| [0, b'a', b'b', 0xFF][choices.below(4)]).collect()
}

fn bound(choices: &mut Choices) -> Bound<Vec<u8>> {
    match choices.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(key(choices)),
        _ => Bound::Included(key(choices)),
    }
}
