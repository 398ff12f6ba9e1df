//! Power cuts and kills on a simulated disk, at any call, over many lives of one store.
//!
//! For engines that reach the outside only through [`Environment`]: `engine_power_cuts!` makes tests of this
//! module.
//!
//! # Terms
//! - A *life* goes from opening the store to its end: a power cut, a kill, or a clean close.
//! - The *history* is every commit so far, with the state that it left. Each commit writes its number into
//!   the catalog tree, so that the state found after a crash tells its place in the history.
//! - A commit is *in doubt* if the power went while it was under way: it may be there or not.
//!
//! # The catalog tree
//! It refers to the other trees as Pando's catalog does. A tree is created before the commit that refers to
//! it, and dropped after the commit that removes the reference. So at any point in history every tree that is
//! referred to must be there.
//!
//! # Promises when a store is opened again
//! 1. It opens, also if the power went during the last opening.
//! 2. It stands at one point of the history, all trees together.
//! 3. After a power cut that point is not before the last commit acknowledged as synced. After a kill it is
//!    not before the last one acknowledged as logged. After a close it is the end.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pando_environment::{Environment, Simulation};
use pando_storage::{
    BlockingMode, CheckedEngine, Claim, CommitReceipt, Durability, Engine, ErrorKind, KeyRange, Merge,
    SharedEngine, StorageError, TreeId, TreeOptions,
};

use crate::subject::{Choices, entries, value};

/// Opens the store in a folder of an environment.
pub type OpenIn = Box<dyn Fn(&Environment, &Path) -> Result<SharedEngine, StorageError>>;

const FOLDER: &str = "/store";
const CATALOG: &str = "catalog";
/// Where each commit leaves its number.
const NUMBER_KEY: &[u8] = b"number";
/// Before the numbers of trees that the catalog refers to.
const REFERENCE: &[u8] = b"tree ";
const TREES_MAX: usize = 4;
const KEYS: usize = 60;
/// More calls than any life makes.
const CALLS_WITHOUT_END: u64 = 1 << 40;

type State = BTreeMap<(TreeId, Vec<u8>), Vec<u8>>;

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    PowerCut,
    Kill,
    Close,
}

/// The whole history, and its acknowledged part.
struct History {
    /// `states[n]`: after n commits.
    states: Vec<Arc<State>>,
    /// Commits acknowledged as synced, and as logged: both may be told by wakers.
    synced: Arc<AtomicUsize>,
    logged: usize,
    last_receipt: Option<CommitReceipt>,
}

impl History {
    fn new() -> History {
        let synced = Arc::new(AtomicUsize::new(0));
        History { states: vec![Arc::new(State::new())], synced, logged: 0, last_receipt: None }
    }

    fn commits(&self) -> usize {
        self.states.len() - 1
    }

    fn newest(&self) -> &State {
        self.states.last().expect("there is always the empty state")
    }
}

/// A store in a simulation.
struct World {
    simulation: Simulation,
    open: OpenIn,
    choices: Choices,
    history: History,
    life: u32,
}

/// Many lives with random work and random ends.
pub fn many_lives_lose_nothing_that_was_acknowledged(open: impl Fn() -> OpenIn) {
    for seed in seeds(12) {
        let mut world = World::new(open(), seed);
        for _ in 0..8 {
            let end = [End::PowerCut, End::PowerCut, End::Kill, End::Close][world.choices.below(4)];
            let calls_max = if world.choices.one_in(4) { 30 } else { 400 };
            let calls = 1 + world.choices.below(calls_max) as u64;
            world.live(60, calls, end);
        }
        world.reopen();
    }
}

/// One small piece of work, cut at its calls in turn.
pub fn a_power_cut_at_any_call_leaves_a_point_of_history(open: impl Fn() -> OpenIn) {
    for call in some_calls() {
        let mut world = World::new(open(), 77);
        world.live(25, call, End::PowerCut);
        world.reopen();
        world.live(10, CALLS_WITHOUT_END, End::Close);
        world.reopen();
    }
}

/// The same for the death of the process: all that was logged survives.
pub fn a_kill_at_any_call_leaves_all_that_was_logged(open: impl Fn() -> OpenIn) {
    for call in some_calls() {
        let mut world = World::new(open(), 78);
        world.live(25, call, End::Kill);
        world.reopen();
    }
}

/// Every second of the first calls, from another one in each run: cheap, and in two or three runs all of
/// them.
fn some_calls() -> impl Iterator<Item = u64> {
    let first = 1 + Environment::real().random().next_u64() % 2;
    (first..160).step_by(2)
}

/// Fixed seeds and a fresh one; `PANDO_SEED` replays one.
fn seeds(fixed: u64) -> Vec<u64> {
    let replayed = std::env::var("PANDO_SEED").ok().and_then(|seed| seed.parse().ok());
    let fresh = Environment::real().random().next_u64();
    replayed.map_or_else(|| (0..fixed).chain([fresh]).collect(), |seed| vec![seed])
}

impl World {
    fn new(open: OpenIn, seed: u64) -> World {
        let simulation = Environment::simulated(seed);
        World { simulation, open, choices: Choices::of_seed(seed), history: History::new(), life: 0 }
    }

    /// Opens, checks, works, and ends; the power goes at the given call if the work gets so far.
    fn live(&mut self, steps: usize, calls: u64, end: End) {
        let Some((engine, catalog)) = self.open_with_power_for(calls) else {
            return self.die(end);
        };
        for _ in 0..steps {
            let outcome = self.step(&engine, catalog);
            if !self.simulation.disk.has_power() {
                break;
            }
            match outcome {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Busy => self.run_tasks(),
                Err(error) => panic!("a step failed, though there was power: {error:?}"),
            }
        }
        if end == End::Close && self.simulation.disk.has_power() && engine.close().is_ok() {
            self.acknowledge_all();
        }
        self.die(end);
        drop(engine);
    }

    fn acknowledge_all(&mut self) {
        self.history.logged = self.history.commits();
        self.history.synced.fetch_max(self.history.commits(), Ordering::SeqCst);
    }

    /// `None`: the power went before the store was open.
    fn open_with_power_for(&mut self, calls: u64) -> Option<(SharedEngine, TreeId)> {
        self.simulation.disk.crash_at_call(calls);
        let opened = (self.open)(&self.simulation.environment, Path::new(FOLDER));
        match opened {
            // The open goes on where the device has no room. A device that loses its power when it is asked
            // for room may look like a full one.
            Ok(_) if !self.simulation.disk.has_power() => None,
            Ok(engine) => {
                let engine = CheckedEngine::shared(engine);
                let catalog = self.find_or_make_catalog(&*engine).ok()?;
                Some((engine, catalog))
            }
            Err(error) => {
                assert!(!self.simulation.disk.has_power(), "the store does not open: {error:?}");
                None
            }
        }
    }

    /// The end of a life: the disk is left as the end leaves it, and the store's handles and tasks are gone.
    fn die(&mut self, end: End) {
        match end {
            End::PowerCut => {
                let seed = self.choices.below(usize::MAX) as u64;
                self.simulation.disk.crash(seed);
                self.history.logged = self.history.synced.load(Ordering::SeqCst);
            }
            End::Kill | End::Close => self.simulation.disk.kill(),
        }
        self.simulation.tasks.forget_all();
        self.history.last_receipt = None;
        self.life += 1;
    }

    /// Opens with power enough, checks where in history the store stands, and closes without a word.
    fn reopen(&mut self) {
        let opened = self.open_with_power_for(CALLS_WITHOUT_END);
        let (engine, catalog) = opened.expect("the store opens where there is power");
        self.check_state(&*engine, catalog);
        self.simulation.disk.kill();
        self.simulation.tasks.forget_all();
        drop(engine);
    }

    /// Finds the catalog tree, and with it the point of history; the first life makes it.
    fn find_or_make_catalog(&mut self, engine: &dyn Engine) -> Result<TreeId, StorageError> {
        let trees = engine.list_trees()?;
        let Some(catalog) = trees.iter().find(|tree| tree.name == CATALOG).map(|tree| tree.id) else {
            assert_eq!(self.history.logged, 0, "the catalog tree is gone");
            self.history.states.truncate(1);
            return engine.create_tree(CATALOG, &TreeOptions::default());
        };
        self.find_point(engine, catalog);
        // As the catalog does at opening: trees without a reference are dropped.
        for tree in trees.iter().filter(|tree| tree.id != catalog) {
            let reference = (catalog, reference_key(tree.id));
            if !self.history.newest().contains_key(&reference) {
                engine.drop_tree(tree.id)?;
            }
        }
        Ok(catalog)
    }

    /// The point of history at which the store stands. Later commits are forgotten, since they never come
    /// back.
    fn find_point(&mut self, engine: &dyn Engine, catalog: TreeId) {
        let reader = engine.begin(pando_storage::Begin::READ).expect("a reader begins");
        let number = value(&*reader, catalog, NUMBER_KEY).map_or(0, |bytes| {
            u32::from_be_bytes(*bytes.first_chunk::<4>().expect("a number has four bytes")) as usize
        });
        let (least, most) = (self.history.logged, self.history.commits());
        let life = self.life;
        assert!(
            number >= least,
            "life {life}: commit {least} was acknowledged, the store stands at {number} of {most}"
        );
        assert!(
            number <= most,
            "life {life}: the store stands at {number}, and only {most} commits were made"
        );
        self.history.states.truncate(number + 1);
        drop(reader);
        self.check_state(engine, catalog);
    }

    fn check_state(&self, engine: &dyn Engine, catalog: TreeId) {
        let reader = engine.begin(pando_storage::Begin::READ).expect("a reader begins");
        let state = self.history.newest();
        let mut found = State::new();
        for tree in referenced(state, catalog).into_iter().chain([catalog]) {
            found.extend(entries(&*reader, tree).into_iter().map(|(key, value)| ((tree, key), value)));
        }
        let (life, at) = (self.life, self.history.commits());
        if found != *state {
            let missing =
                state.iter().find(|(place, value)| found.get(*place) != Some(*value)).map(|(place, _)| place);
            let foreign = found.keys().find(|place| !state.contains_key(*place));
            panic!(
                "life {life}: another state than that of commit {at}: missing or changed {missing:?}, foreign {foreign:?}"
            );
        }
    }

    fn step(&mut self, engine: &SharedEngine, catalog: TreeId) -> Result<(), StorageError> {
        match self.choices.below(24) {
            0..=11 => self.commit_entries(engine, catalog),
            12 => self.commit_new_tree(engine, catalog),
            13 => self.commit_dropped_tree(engine, catalog),
            14 => engine.checkpoint(),
            15 => self.wait(engine),
            16 => {
                self.ask_to_be_woken(engine);
                Ok(())
            }
            17 => {
                let millis = 1 + self.choices.below(200) as u64;
                self.simulation.clock.advance(Duration::from_millis(millis));
                Ok(())
            }
            18 => self.roll_back(engine, catalog),
            _ => {
                self.run_tasks();
                Ok(())
            }
        }
    }

    fn run_tasks(&mut self) {
        for _ in 0..1 + self.choices.below(8) {
            if !self.simulation.tasks.run_one() {
                return;
            }
        }
    }

    /// Puts and deletes at random in the trees that the catalog refers to.
    fn commit_entries(&mut self, engine: &SharedEngine, catalog: TreeId) -> Result<(), StorageError> {
        let mut state = self.history.newest().clone();
        let mut writer = engine.begin(pando_storage::Begin::WRITE)?;
        let trees = referenced(&state, catalog);
        for _ in 0..self.choices.below(6) {
            let Some(tree) = trees.get(self.choices.below(TREES_MAX)).copied() else { continue };
            let key = format!("{:03}", self.choices.below(KEYS)).into_bytes();
            if self.choices.one_in(4) {
                writer.delete(tree, &key)?;
                state.remove(&(tree, key));
            } else if self.choices.one_in(3) {
                let merge = if key[2] % 2 == 0 { Merge::Add(1) } else { Merge::Max(b"max") };
                writer.merge(tree, &key, merge, Claim::Blind, BlockingMode::MayBlock)?;
                let place = (tree, key);
                let merged = merge
                    .apply(state.get(&place).map(Vec::as_slice))
                    .expect("a sum or a greatest is a value")
                    .into_owned();
                state.insert(place, merged);
            } else {
                let size = [0, 3, 40, 700, 6_000, 30_000][self.choices.below(6)];
                let content = vec![self.choices.below(256) as u8; size];
                writer.put(tree, &key, &content)?;
                state.insert((tree, key), content);
            }
        }
        if !trees.is_empty() && self.choices.one_in(30) {
            let tree = trees[self.choices.below(trees.len())];
            writer.delete_range(tree, &KeyRange::prefix(b"02"), BlockingMode::MayBlock)?;
            state.retain(|(of, key), _| *of != tree || !key.starts_with(b"02"));
        }
        self.commit(writer, catalog, state)
    }

    fn commit_new_tree(&mut self, engine: &SharedEngine, catalog: TreeId) -> Result<(), StorageError> {
        let mut state = self.history.newest().clone();
        if referenced(&state, catalog).len() >= TREES_MAX {
            return Ok(());
        }
        let name = format!("tree {} of life {}", self.history.commits(), self.life);
        let tree = match engine.create_tree(&name, &TreeOptions::default()) {
            // One whose commit came to nothing has the name.
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Ok(()),
            created => created?,
        };
        let mut writer = engine.begin(pando_storage::Begin::WRITE)?;
        writer.put(catalog, &reference_key(tree), b"")?;
        writer.put(tree, b"first", b"entry")?;
        state.insert((catalog, reference_key(tree)), Vec::new());
        state.insert((tree, b"first".to_vec()), b"entry".to_vec());
        self.commit(writer, catalog, state)
    }

    fn commit_dropped_tree(&mut self, engine: &SharedEngine, catalog: TreeId) -> Result<(), StorageError> {
        let mut state = self.history.newest().clone();
        let trees = referenced(&state, catalog);
        if trees.is_empty() {
            return Ok(());
        }
        let tree = trees[self.choices.below(trees.len())];
        let mut writer = engine.begin(pando_storage::Begin::WRITE)?;
        writer.delete(catalog, &reference_key(tree))?;
        state.retain(|(of, key), _| *of != tree && *key != reference_key(tree));
        self.commit(writer, catalog, state)?;
        engine.drop_tree(tree)
    }

    fn roll_back(&mut self, engine: &SharedEngine, catalog: TreeId) -> Result<(), StorageError> {
        let mut writer = engine.begin(pando_storage::Begin::WRITE)?;
        writer.put(catalog, NUMBER_KEY, b"never committed")?;
        writer.rollback();
        Ok(())
    }

    /// Commits under the next number, and notes the new point of history.
    fn commit(
        &mut self,
        mut writer: Box<dyn pando_storage::Transaction>,
        catalog: TreeId,
        mut state: State,
    ) -> Result<(), StorageError> {
        let number = [(self.history.commits() as u32 + 1).to_be_bytes(), self.life.to_be_bytes()].concat();
        writer.put(catalog, NUMBER_KEY, &number)?;
        state.insert((catalog, NUMBER_KEY.to_vec()), number);
        let durability = [Durability::None, Durability::Logged, Durability::Synced][self.choices.below(3)];
        match writer.commit(durability) {
            Ok(receipt) => {
                self.history.states.push(Arc::new(state));
                self.history.last_receipt = Some(receipt);
                // If the power went at this very call, nobody was told.
                if durability == Durability::Logged && self.simulation.disk.has_power() {
                    self.history.logged = self.history.commits();
                }
                Ok(())
            }
            Err(error) => {
                if !self.simulation.disk.has_power() {
                    // In doubt: the last that the store may stand at.
                    self.history.states.push(Arc::new(state));
                }
                Err(error)
            }
        }
    }

    fn wait(&mut self, engine: &SharedEngine) -> Result<(), StorageError> {
        let Some(receipt) = self.history.last_receipt else { return Ok(()) };
        let durability = [Durability::Logged, Durability::Synced][self.choices.below(2)];
        engine.wait_durable(receipt, durability)?;
        self.history.logged = self.history.commits();
        if durability == Durability::Synced {
            self.history.synced.fetch_max(self.history.commits(), Ordering::SeqCst);
        }
        Ok(())
    }

    fn ask_to_be_woken(&mut self, engine: &SharedEngine) {
        let Some(receipt) = self.history.last_receipt else { return };
        let (commits, synced) = (self.history.commits(), Arc::clone(&self.history.synced));
        let waker = move |outcome: Result<(), StorageError>| {
            if outcome.is_ok() {
                synced.fetch_max(commits, Ordering::SeqCst);
            }
        };
        engine.when_durable(receipt, Durability::Synced, Box::new(waker));
    }
}

/// The trees that the catalog refers to.
fn referenced(state: &State, catalog: TreeId) -> Vec<TreeId> {
    let of_catalog = state.keys().filter(|(tree, key)| *tree == catalog && key.starts_with(REFERENCE));
    let numbers = of_catalog.filter_map(|(_, key)| key.last_chunk::<4>());
    numbers.map(|number| TreeId::new(u32::from_be_bytes(*number))).collect()
}

fn reference_key(tree: TreeId) -> Vec<u8> {
    [REFERENCE, &tree.get().to_be_bytes()].concat()
}

/// The tests of this module for one engine, in a module of the given name. The second argument opens the
/// store in a folder of a simulated environment: `|environment, folder|
/// Ok(Arc::new(MyEngine::open(environment, folder)?))`.
#[macro_export]
macro_rules! engine_power_cuts {
    ($name:ident, $open:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "what opens the engine may need nothing from outside")]
            use super::*;

            fn open() -> $crate::power_cuts::OpenIn {
                Box::new($open)
            }

            #[test]
            fn many_lives_lose_nothing_that_was_acknowledged() {
                $crate::power_cuts::many_lives_lose_nothing_that_was_acknowledged(open);
            }

            #[test]
            fn a_power_cut_at_any_call_leaves_a_point_of_history() {
                $crate::power_cuts::a_power_cut_at_any_call_leaves_a_point_of_history(open);
            }

            #[test]
            fn a_kill_at_any_call_leaves_all_that_was_logged() {
                $crate::power_cuts::a_kill_at_any_call_leaves_all_that_was_logged(open);
            }
        }
    };
}
