//! A history of transactions on the simulated disk, and the check of the state after a crash.
//!
//! Every commit also writes its own number into the tree `anchor`. So the content after a crash must be the
//! state after exactly that many commits. One entry too many or too few is a hole in the order of commits.
//! Every commit also adds one to a counter there by a merge. A merge that is lost or applied twice shows.
//!
//! - *Least*: the number of the last commit that was acknowledged at the durability that the crash respects.
//! - *Most*: the number of the last commit that was attempted.
//!
//! Trees are created and dropped between commits. A tree whose creation (or drop) came after the last
//! surviving commit may exist or not.
//!
//! Steps are numbered. Each follows from the seed and its own number alone. A failing history is therefore
//! [shrunk](shrinking::run) to the steps that it needs.

pub mod backups;
mod comparing;
pub mod shrinking;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use pando_betree::{Betree, Options};
use pando_conformance::change::Change;
use pando_encryption::{Cipher, Encryption, HeldKey, SecretKey};
use pando_environment::{Environment, Random, SeededRandom, Simulation};
use pando_storage::{
    Begin, BlockingMode, CheckRequest, Claim, CommitReceipt, Durability, Engine, ErrorKind, KeyRange,
    StorageError, Transaction, TreeId, TreeOptions,
};

use comparing::{describe_difference, scan};

pub const FOLDER: &str = "/store";
const ANCHOR: &str = "anchor";
const NUMBER: &[u8] = b"commits";
/// The key of the counter to which every commit adds one.
const COUNTER: &[u8] = b"counted";

type Content = BTreeMap<Vec<u8>, Arc<Vec<u8>>>;
/// The trees by name.
type Image = BTreeMap<String, Content>;

/// The ways in which a life ends, by what the crash keeps of unsynced commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The power goes: only what is synced is sure.
    PowerCut { seed: u64 },
    /// The power goes, and the medium then loses both copies of the newest superblock. The one before must
    /// lead to all sure commits, by way of the log. (Where there is only one superblock, it is left alone.)
    LostSuperblock { seed: u64 },
    /// The process dies: logged commits are sure as well.
    Kill,
}

/// A range that a commit deletes before its write of this number.
struct Erased {
    before: usize,
    name: String,
    range: KeyRange,
}

/// See the module's head.
pub struct History {
    pub simulation: Simulation,
    label: String,
    seed: u64,
    random: SeededRandom,
    /// Steps so far, those included that were left out. The shrinking of the history reads it after a panic.
    steps: Rc<Cell<usize>>,
    /// The steps that are to be run; the others do nothing.
    kept: Option<Vec<usize>>,
    /// Those that were run.
    pub ran: Vec<usize>,
    engine: Option<Arc<Betree>>,
    trees: BTreeMap<String, TreeId>,
    /// After 0, 1, 2 … commits.
    images: Vec<Image>,
    /// The image that a failed commit would have made of the last one.
    attempted: Option<Image>,
    /// Whether a commit has found the engine stopped: then no later one has done anything.
    is_stopped: bool,
    created_after: BTreeMap<String, usize>,
    dropped_after: BTreeMap<String, (usize, Content)>,
    synced: usize,
    logged: usize,
    unsynced: Option<(usize, CommitReceipt)>,
    reader: Option<(Box<dyn Transaction>, Image, BTreeMap<String, TreeId>)>,
    next_tree: u32,
    /// One value in this many is large.
    large_values: u64,
    /// Whether steps make backups, too; each finished one is restored after the end of a life.
    pub backups: Option<backups::Backups>,
    /// Whether steps change the layouts of trees, too, and check the open store.
    pub changes_layouts: bool,
    /// Whether transactions go out of memory after a write or two; then many are larger, and committed in
    /// parts.
    pub spills: bool,
    /// Whether the store and its backups are encrypted.
    pub is_encrypted: bool,
    /// Slices that were waiting in inner nodes when the store was looked at after its end.
    pub slices_seen: u64,
    /// Range deletes that were not worked in, likewise.
    pub ranges_seen: u64,
}

/// Options under which a few dozen commits split leaves, merge buffers and fill segments.
pub fn tiny_options() -> Options {
    let entries = [
        ("pageSize", "256B"),
        ("leafSize", "1KB"),
        ("fanout", "4"),
        ("compression", "lz4"),
        ("bufferPercent", "40"),
        ("runSize", "1KB"),
        ("largeValueSize", "140B"),
    ];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    (options.cache_bytes, options.partition_bytes, options.log_budget_bytes) = (64 << 10, 1 << 10, 256 << 10);
    options.range_delete_entries = 0;
    options
}

impl History {
    /// An empty history; even the store is not there yet.
    pub fn new(seed: u64) -> History {
        History::of_steps(seed, None, Rc::default())
    }

    /// A history of which only some steps are run, by their numbers; all for `None`. It counts its steps in
    /// `steps`.
    fn of_steps(seed: u64, kept: Option<Vec<usize>>, steps: Rc<Cell<usize>>) -> History {
        History {
            simulation: Environment::simulated(seed),
            label: format!("seed {seed}"),
            seed,
            random: SeededRandom::new(seed),
            steps,
            kept,
            ran: Vec::new(),
            engine: None,
            trees: BTreeMap::new(),
            images: vec![Image::new()],
            attempted: None,
            is_stopped: false,
            created_after: BTreeMap::new(),
            dropped_after: BTreeMap::new(),
            synced: 0,
            logged: 0,
            unsynced: None,
            reader: None,
            next_tree: 0,
            backups: None,
            changes_layouts: false,
            spills: false,
            is_encrypted: false,
            large_values: if seed.is_multiple_of(2) { 30 } else { 6 },
            slices_seen: 0,
            ranges_seen: 0,
        }
    }

    /// Says in every message what the test was about to find out.
    pub fn set_label(&mut self, label: String) {
        self.label = label;
    }

    /// Goes on until a call at which the power goes (or to the last step), ends so, and recovers. A second
    /// life follows, which is closed cleanly. How many calls the first life made.
    pub fn live_twice(&mut self, steps: u64, call: Option<u64>, ending: Ending) -> u64 {
        if let Some(call) = call {
            self.set_label(format!("{}, call {call}, {ending:?}", self.label));
            self.simulation.disk.crash_at_call(call);
        }
        let outcome = self.open().and_then(|()| self.run(steps));
        let calls = self.simulation.disk.calls();
        if self.simulation.disk.has_power() {
            outcome.expect("without a fault nothing fails");
        }
        self.end(ending);
        self.recover();
        self.run(12).expect("after recovery nothing fails");
        self.close_and_reopen();
        calls
    }

    /// Opens the store and makes the anchor, if it is not there.
    pub fn open(&mut self) -> Result<(), StorageError> {
        let engine = Betree::open(&self.simulation.environment, Path::new(FOLDER), self.options())?;
        self.engine = Some(engine);
        if !self.trees.contains_key(ANCHOR) {
            self.create(ANCHOR)?;
        }
        Ok(())
    }

    fn options(&self) -> Options {
        let mut options = tiny_options();
        if self.backups.is_some() {
            // Small enough that the file is cut, and blocks are moved, all the time.
            options.growth_bytes = 64 << 10;
        }
        if self.spills {
            options.transaction_memory_bytes = 300;
        }
        options.encryption = self.encryption();
        options
    }

    fn encryption(&self) -> Option<Encryption> {
        let key = SecretKey::from_bytes(&[7; 32]).expect("a key has 32 bytes");
        self.is_encrypted
            .then(|| Encryption { cipher: Cipher::Aes256Gcm, source: Arc::new(HeldKey::new(key)) })
    }

    pub fn engine(&self) -> &Arc<Betree> {
        self.engine.as_ref().expect("the history is between open and end")
    }

    pub fn commits(&self) -> usize {
        self.images.len() - 1
    }

    /// Steps until the first error.
    pub fn run(&mut self, steps: u64) -> Result<(), StorageError> {
        (0..steps).try_for_each(|_| self.step())
    }

    /// Steps, and goes on after errors. Returns the kinds of the errors. A commit that fails has not
    /// happened, which the next comparison shows.
    pub fn run_through_errors(&mut self, steps: u64) -> Vec<ErrorKind> {
        let mut kinds = Vec::new();
        for _ in 0..steps {
            if let Err(error) = self.step() {
                kinds.push(error.kind());
            }
        }
        kinds
    }

    /// One thing that happens: mostly a commit, now and then a checkpoint, a tree that comes or goes,
    /// background work.
    pub fn step(&mut self) -> Result<(), StorageError> {
        let number = self.steps.get();
        self.steps.set(number + 1);
        if self.kept.as_ref().is_some_and(|kept| kept.binary_search(&number).is_err()) {
            return Ok(());
        }
        self.random = SeededRandom::new(self.seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        self.ran.push(number);
        for _ in 0..self.random.below(3) {
            self.simulation.tasks.run_one();
        }
        if self.backups.is_some() && self.random.below(3) == 0 {
            return self.step_backup();
        }
        if self.changes_layouts && self.random.below(10) == 0 {
            return self.change_some_layout();
        }
        match self.random.below(42) {
            0 | 1 if self.trees.len() < 4 => {
                self.next_tree += 1;
                self.create(&format!("tree-{}", self.next_tree))
            }
            2 => self.drop_some_tree(),
            3..=5 => self.engine().checkpoint(),
            6 | 7 => self.sync_last(),
            8 => {
                self.simulation.clock.advance(std::time::Duration::from_millis(60));
                self.simulation.tasks.run_until_idle();
                Ok(())
            }
            9 | 10 => self.turn_reader(),
            11 => {
                // Long enough for a checkpoint in the background, which leaves to the log what is still
                // buffered.
                self.simulation.clock.advance(std::time::Duration::from_secs(61));
                self.simulation.tasks.run_until_idle();
                Ok(())
            }
            _ => self.commit(),
        }
    }

    /// A commit of a few random writes.
    pub fn commit(&mut self) -> Result<(), StorageError> {
        let names: Vec<String> = self.trees.keys().cloned().collect();
        let mut writes = Vec::new();
        let most = if self.spills && self.random.below(3) == 0 { 40 } else { 6 };
        for _ in 0..1 + self.random.below(most) {
            let name = names[self.random.below(names.len() as u64) as usize].clone();
            let (key, value) = (self.key(), self.value());
            let change = match self.random.below(9) {
                0 => Change::Delete,
                1 | 2 => Change::random_merge(&self.random, 300),
                3 | 4 => Change::random_patch(&self.random),
                5 | 6 => Change::random_document(&self.random),
                _ => Change::Put(value),
            };
            writes.push((name, key, change));
        }
        let durability =
            [Durability::None, Durability::Logged, Durability::Synced][self.random.below(3) as usize];
        let erased = (self.random.below(6) == 0).then(|| {
            let name = names[self.random.below(names.len() as u64) as usize].clone();
            Erased { before: self.random.below(3) as usize, name, range: self.range() }
        });
        self.commit_writes(writes, erased, durability)
    }

    /// A commit of one new key with this many bytes that do not compress.
    pub fn commit_bytes(&mut self, length: usize) -> Result<(), StorageError> {
        let mut value = vec![0; length];
        self.random.fill(&mut value);
        let key = format!("large-{:06}", self.images.len()).into_bytes();
        self.commit_writes(vec![(ANCHOR.to_owned(), key, Change::Put(value))], None, Durability::Logged)
    }

    fn commit_writes(
        &mut self,
        mut writes: Vec<(String, Vec<u8>, Change)>,
        erased: Option<Erased>,
        durability: Durability,
    ) -> Result<(), StorageError> {
        let number = self.images.len();
        let stamp = (number as u64).to_le_bytes().to_vec();
        writes.push((ANCHOR.to_owned(), NUMBER.to_vec(), Change::Put(stamp)));
        writes.push((ANCHOR.to_owned(), COUNTER.to_vec(), Change::Add(1)));
        let mut transaction = self.engine().begin(Begin::WRITE)?;
        let mut image = self.images[number - 1].clone();
        for (at, (name, key, change)) in writes.into_iter().enumerate() {
            if let Some(erased) = erased.as_ref().filter(|erased| erased.before == at) {
                let tree = self.trees[&erased.name];
                transaction.delete_range(tree, &erased.range, BlockingMode::MayBlock)?;
                let content = image.entry(erased.name.clone()).or_default();
                content.retain(|key, _| !erased.range.contains(key));
            }
            let content = image.entry(name.clone()).or_default();
            change.write(&mut *transaction, self.trees[&name], &key, Claim::Blind)?;
            match change.over(content.get(&key).map(|value| value.as_slice())) {
                Some(value) => content.insert(key, Arc::new(value)),
                None => content.remove(&key),
            };
        }
        if !self.is_stopped {
            self.attempted = Some(image.clone());
        }
        if self.spills {
            let own = &image[ANCHOR];
            let found = scan(transaction.as_ref(), self.trees[ANCHOR])?;
            assert!(found == *own, "{}: a transaction does not see its own writes", self.label);
        }
        let receipt = transaction.commit(durability);
        self.is_stopped |= receipt.as_ref().is_err_and(|error| error.kind() == ErrorKind::Closed);
        let receipt = receipt?;
        self.attempted = None;
        self.images.push(image);
        self.unsynced = Some((number, receipt));
        match durability {
            Durability::None => {}
            Durability::Logged => self.logged = number,
            Durability::Synced => self.sync_last()?,
        }
        Ok(())
    }

    pub fn checkpoint(&self) -> Result<(), StorageError> {
        self.engine().checkpoint()
    }

    /// Waits for the last commit to be on the device.
    pub fn sync_last(&mut self) -> Result<(), StorageError> {
        if let Some((number, receipt)) = self.unsynced {
            self.engine().wait_durable(receipt, Durability::Synced)?;
            (self.synced, self.logged) = (number, number);
        }
        Ok(())
    }

    fn create(&mut self, name: &str) -> Result<(), StorageError> {
        self.created_after.insert(name.to_owned(), self.commits());
        let id = self.engine().create_tree(name, &TreeOptions::default())?;
        self.trees.insert(name.to_owned(), id);
        self.images
            .last_mut()
            .expect("there is the image of no commit")
            .insert(name.to_owned(), Content::new());
        Ok(())
    }

    fn drop_some_tree(&mut self) -> Result<(), StorageError> {
        let Some((name, id)) = self.trees.iter().find(|(name, _)| *name != ANCHOR) else { return Ok(()) };
        let (name, id) = (name.clone(), *id);
        let content = self.images[self.commits()].get(&name).cloned().unwrap_or_default();
        self.dropped_after.insert(name.clone(), (self.commits(), content));
        self.engine().drop_tree(id)?;
        self.trees.remove(&name);
        let last = self.commits();
        self.images[last].remove(&name);
        Ok(())
    }

    fn change_some_layout(&mut self) -> Result<(), StorageError> {
        let report = self.engine().check(&CheckRequest::default())?;
        assert!(report.is_sound(), "{}: {report:?}", self.label);
        let layouts: [&[(&str, &str)]; 6] = [
            &[],
            &[("largeValueSize", "16B")],
            &[("pageSize", "128B"), ("compression", "none")],
            &[("leafSize", "4KB"), ("compression", "zstd-3"), ("filterBits", "0")],
            &[("bufferPercent", "0")],
            &[("fanout", "8"), ("runSize", "512B"), ("largeValueSize", "32MB")],
        ];
        let entries = layouts[self.random.below(6) as usize];
        let entries = entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let ids: Vec<TreeId> = self.trees.values().copied().collect();
        let tree = ids[self.random.below(ids.len() as u64) as usize];
        self.engine().change_tree_options(tree, &TreeOptions { entries })
    }

    /// A reader keeps its snapshot whatever happens meanwhile.
    fn turn_reader(&mut self) -> Result<(), StorageError> {
        match self.reader.take() {
            // Where the log's device has refused a commit that was visible already, a new reader sees it;
            // then there are no further ones.
            None if self.attempted.is_some() => {}
            None => {
                let transaction = self.engine().begin(Begin::READ)?;
                self.reader = Some((transaction, self.images[self.commits()].clone(), self.trees.clone()));
            }
            Some((transaction, image, trees)) => {
                for (name, id) in trees {
                    let content = image.get(&name).cloned().unwrap_or_default();
                    let found = scan(transaction.as_ref(), id)?;
                    let hint = || describe_difference(&found, &content);
                    assert!(
                        found == content,
                        "{}: a reader of {name} sees another state: {}",
                        self.label,
                        hint()
                    );
                }
            }
        }
        Ok(())
    }

    /// A few keys, or all from one on.
    fn range(&self) -> KeyRange {
        let from = self.random.below(90);
        let upper = match self.random.below(5) {
            0 => Bound::Unbounded,
            _ => Bound::Excluded(format!("key-{:03}", from + 1 + self.random.below(40)).into_bytes()),
        };
        KeyRange { lower: Bound::Included(format!("key-{from:03}").into_bytes()), upper }
    }

    fn key(&self) -> Vec<u8> {
        format!("key-{:03}", self.random.below(90)).into_bytes()
    }

    fn value(&self) -> Vec<u8> {
        let length = match self.random.below(self.large_values) {
            0 => 3_000 + self.random.below(12_000),
            _ => self.random.below(200),
        };
        let tag = self.random.below(u64::from(u8::MAX)) as u8;
        (0..length).map(|at| tag.wrapping_add((at % 13) as u8)).collect()
    }

    /// Ends this life of the process.
    pub fn end(&mut self, ending: Ending) {
        match ending {
            Ending::PowerCut { seed } => self.simulation.disk.crash(seed),
            Ending::LostSuperblock { seed } => {
                self.simulation.disk.crash(seed);
                lose_newest_superblock(&self.simulation);
            }
            Ending::Kill => {
                self.simulation.disk.kill();
                self.synced = self.logged;
            }
        }
        self.reader = None;
        self.is_stopped = false;
        self.end_backup();
        self.engine = None;
        self.unsynced = None;
        self.simulation.tasks.forget_all();
    }

    /// Closes cleanly. The engine's memory is gone.
    pub fn close(&mut self) {
        self.reader = None;
        self.end_backup();
        self.engine().close().unwrap_or_else(|error| panic!("{}: {error:?}", self.label));
        (self.synced, self.logged) = (self.commits(), self.commits());
        self.end(Ending::Kill);
    }

    /// Closes cleanly, and checks what the next open finds.
    pub fn close_and_reopen(&mut self) {
        self.close();
        self.recover();
    }
}

/// The generation of a superblock, by the format; `None` where it is not whole.
fn generation_at(content: &[u8], offset: usize) -> Option<u64> {
    let copy = content.get(offset..offset + 4_096)?;
    let (body, checksum) = copy.split_last_chunk::<16>()?;
    let is_whole =
        body.starts_with(b"PANDO\0DB") && xxhash_rust::xxh3::xxh3_128(body).to_le_bytes() == *checksum;
    is_whole.then(|| u64::from_le_bytes(std::array::from_fn(|at| body[56 + at])))
}

pub fn lose_newest_superblock(simulation: &Simulation) {
    let path = Path::new(FOLDER).join("data.0000");
    if !simulation.environment.files().exists(&path).expect("the folder can be looked into") {
        return;
    }
    simulation.disk.corrupt(&path, |content| {
        let (a, b) = (generation_at(content, 0), generation_at(content, 4_096));
        if let (Some(a), Some(b)) = (a, b) {
            let newest = if a > b { 0 } else { 4_096 };
            for copy in [newest, newest + 65_536] {
                content[copy..copy + 4_096].fill(0xEE);
            }
        }
    });
}
