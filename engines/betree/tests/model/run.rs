//! One run of the model test: a store on a simulated disk, the history of its content, and a source of
//! randomness.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_betree::{Betree, Options, verify_keeping};
use pando_conformance::change::Change;
use pando_encryption::{Cipher, Encryption, HeldKey, SecretKey};
use pando_environment::{Environment, Random, SeededRandom, Simulation};
use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, CheckedEngine, Claim, Direction, Durability, Engine, Isolation,
    KeyRange, Merge, Mode, ScanEnd, SharedEngine, SnapshotTimestamp, Transaction, TreeId, TreeOptions,
};

use super::history::{History, KeyWrites, Writes};

/// A transaction under way, and the model's knowledge of it.
struct Open {
    transaction: Box<dyn Transaction>,
    snapshot: u64,
    writes: Writes,
    /// Ranges that it has deleted.
    ranges: Vec<(u32, KeyRange)>,
    is_writer: bool,
}

pub struct Run {
    seed: u64,
    random: SeededRandom,
    simulation: Simulation,
    folder: PathBuf,
    options: Options,
    engine: Option<SharedEngine>,
    open: Vec<Open>,
    history: History,
    /// The newest commit that must survive a killed process.
    logged: u64,
    names: u32,
    key_space: u64,
    value_bytes: u64,
    /// Slices that the checks have seen.
    pub slices: std::cell::Cell<u64>,
}

impl Run {
    pub fn new(seed: u64) -> Run {
        let random = SeededRandom::new(seed);
        let simulation = Environment::simulated(seed);
        let folder = Path::new("/store").to_owned();
        let options = random_options(&random);
        let key_space = [5, 40, 400, 3_000][random.pick(4)];
        let value_bytes = [1, 20, 100, 600][random.pick(4)];
        let engine = open_store(&simulation, &folder, &options);
        let mut run = Run {
            seed,
            random,
            simulation,
            folder,
            options,
            engine: Some(engine),
            open: Vec::new(),
            history: History::default(),
            logged: 0,
            names: 0,
            key_space,
            value_bytes,
            slices: std::cell::Cell::new(0),
        };
        run.create_tree();
        run
    }

    fn engine(&self) -> &SharedEngine {
        self.engine.as_ref().expect("the store is open between steps")
    }

    fn fail(&self, what: &str) -> ! {
        panic!("seed {}: {what}; options {:?}", self.seed, self.options)
    }

    /// The operation of this number, and some background work. Its choices follow from the seed and its
    /// number, not from earlier operations.
    pub fn step(&mut self, number: usize) {
        self.random = SeededRandom::new(self.seed ^ ((number as u64 + 1) << 32));
        match self.random.pick(1000) {
            0..350 => self.write_many(),
            350..480 => self.begin(),
            480..640 => self.write_in_open(),
            640..740 => self.end_one(),
            740..850 => self.check_one(),
            850..900 => self.check_newest(),
            900..930 => self.run_background(40),
            930..945 => self.checkpoint(),
            945..950 => self.compact(),
            950..965 => self.reopen(),
            965..985 => self.kill(),
            985..993 => self.create_tree(),
            _ => self.drop_tree(),
        }
        if self.random.pick(3) == 0 {
            self.run_background(self.random.pick(4));
        }
    }

    /// Ends the run: everything is compared once more, then the files are checked.
    pub fn finish(&mut self) {
        self.check_newest();
        self.reopen();
        self.check_newest();
        self.engine().close().expect("the store closes");
        self.engine = None;
        self.verify();
    }

    /// Tells the model of a commit that the engine has not been given: a planted failure, which a test has to
    /// find.
    pub fn plant(&mut self) {
        let tree = self.history.trees()[0];
        let mut planted = KeyWrites::default();
        planted.add(Change::Put(b"never written".to_vec()), Claim::Intent);
        let writes = Writes::from([((tree, b"planted".to_vec()), planted)]);
        // As of now: earlier deletes of ranges do not matter.
        self.history.commit(self.newest(), &writes, &[]);
    }

    fn key(&self) -> Vec<u8> {
        let number = self.random.next_u64() % self.key_space;
        match number % 3 {
            0 => number.to_be_bytes()[4..].to_vec(),
            1 => format!("key with a common start {number}").into_bytes(),
            _ => vec![(number % 251) as u8; (number % 23) as usize],
        }
    }

    fn value(&self) -> Vec<u8> {
        let length = match self.random.pick(3) {
            0 => size_of::<u64>(),
            _ => (self.random.next_u64() % self.value_bytes) as usize,
        };
        vec![self.random.next_u64() as u8; length]
    }

    fn change(&self) -> Change {
        match self.random.pick(9) {
            0 => Change::Delete,
            1 | 2 => Change::random_merge(&self.random, self.value_bytes),
            3 | 4 => Change::random_patch(&self.random),
            5 | 6 => Change::random_document(&self.random),
            _ => Change::Put(self.value()),
        }
    }

    fn tree(&self) -> u32 {
        let trees = self.history.trees();
        trees[self.random.pick(trees.len())]
    }

    /// A transaction of its own with some writes, ascending now and then, committed.
    fn write_many(&mut self) {
        let mut writer = self.begin_with(Begin::WRITE, Mode::Write);
        let count = 1 + self.random.pick(30);
        let ascending = self.random.pick(6) == 0;
        let tree = self.tree();
        let first = self.random.next_u64() % (1 << 40);
        let erased_at = (self.random.pick(5) == 0).then(|| self.random.pick(count));
        for at in 0..count {
            if erased_at == Some(at) && !self.delete_range(&mut writer, tree) {
                return;
            }
            let key = if ascending { (first + at as u64).to_be_bytes().to_vec() } else { self.key() };
            let change = if ascending { Change::Put(self.value()) } else { self.change() };
            if !self.write(&mut writer, tree, key, change) {
                return;
            }
        }
        self.commit(writer);
    }

    fn begin_with(&self, begin: Begin, mode: Mode) -> Open {
        let transaction =
            self.engine().begin(begin).unwrap_or_else(|error| self.fail(&format!("begin: {error}")));
        let snapshot = transaction.snapshot().get();
        let (writes, ranges) = (Writes::new(), Vec::new());
        Open { transaction, snapshot, writes, ranges, is_writer: mode == Mode::Write }
    }

    fn begin(&mut self) {
        if self.open.len() >= 5 {
            return self.end_one();
        }
        let past = self.open.get(self.random.pick(6)).map(|open| SnapshotTimestamp::new(open.snapshot));
        let mode = if self.random.pick(2) == 0 { Mode::Read } else { Mode::Write };
        let open = self.begin_with(Begin { mode, at: past, isolation: Isolation::Snapshot }, mode);
        self.open.push(open);
    }

    /// False after a conflict, which the model must have foreseen.
    fn write(&self, open: &mut Open, tree: u32, key: Vec<u8>, change: Change) -> bool {
        let id = TreeId::new(tree);
        let claim = match change.merge() {
            Some(Merge::Patch(_)) | None => Claim::Intent,
            Some(_) if self.random.pick(4) > 0 => Claim::Blind,
            _ => Claim::Intent,
        };
        match change.write(&mut *open.transaction, id, &key, claim) {
            Ok(()) => {
                let is_late = self.history.last_write(tree, &key) > open.snapshot
                    || self.history.is_erased_since(open.snapshot, tree, &key);
                if claim == Claim::Intent && is_late {
                    self.fail(&format!("a write over {key:?} of tree {tree} was not refused"));
                }
                open.writes.entry((tree, key)).or_default().add(change, claim);
                true
            }
            Err(error) if error.is_conflict() && claim == Claim::Intent => {
                let own = |other: &Open| {
                    let is_within = |(of, range): &(u32, KeyRange)| *of == tree && range.contains(&key);
                    other.writes.contains_key(&(tree, key.clone())) || other.ranges.iter().any(is_within)
                };
                let is_held =
                    self.open.iter().any(own) || self.history.is_erased_since(open.snapshot, tree, &key);
                // An intent is kept after a rollback to a savepoint, and table entries may be evicted:
                // neither happens here.
                if !is_held && self.history.last_write(tree, &key) <= open.snapshot {
                    self.fail(&format!("a conflict on {key:?} of tree {tree} that nobody else wrote"));
                }
                false
            }
            Err(error) => self.fail(&format!("write: {error}")),
        }
    }

    /// False after a conflict, which somebody who has written to the tree must be the reason for.
    fn delete_range(&self, open: &mut Open, tree: u32) -> bool {
        let range = KeyRange { lower: self.bound(), upper: self.bound() };
        let seen = self.history.entries(tree, open.snapshot, &open.writes, &open.ranges);
        let within: Vec<Vec<u8>> = seen.into_keys().filter(|key| range.contains(key)).collect();
        match open.transaction.delete_range(TreeId::new(tree), &range, BlockingMode::MayBlock) {
            Ok(()) => {
                if within.iter().any(|key| self.history.last_write(tree, key) > open.snapshot) {
                    self.fail(&format!("deleting {range:?} of tree {tree} was not refused"));
                }
                let own = open.writes.iter_mut().filter(|((of, key), _)| *of == tree && range.contains(key));
                own.for_each(|(_, writes)| writes.reset());
                if !range.is_empty() {
                    open.ranges.push((tree, range));
                }
                true
            }
            Err(error) if error.is_conflict() => {
                // Of long keys only the first bytes are compared, so any transaction that wrote to the tree
                // may be in the way.
                let wrote = |other: &Open| {
                    other.writes.keys().any(|(of, _)| *of == tree)
                        || other.ranges.iter().any(|(of, _)| *of == tree)
                };
                let is_late = self.history.last_write_of_tree(tree) > open.snapshot
                    || self.history.is_any_erased_since(open.snapshot, tree);
                if !is_late && !self.open.iter().any(wrote) {
                    self.fail(&format!("a conflict on {range:?} of tree {tree} that nobody else wrote to"));
                }
                false
            }
            Err(error) => self.fail(&format!("delete_range: {error}")),
        }
    }

    fn write_in_open(&mut self) {
        let at = self.random.pick(self.open.len().max(1));
        if at >= self.open.len() || !self.open[at].is_writer {
            return;
        }
        let mut open = self.open.swap_remove(at);
        let (tree, key, change) = (self.tree(), self.key(), self.change());
        if self.random.pick(6) == 0 {
            if self.delete_range(&mut open, tree) {
                self.open.push(open);
            }
            return;
        }
        if self.write(&mut open, tree, key, change) {
            self.open.push(open);
        }
    }

    fn end_one(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let open = self.open.swap_remove(self.random.pick(self.open.len()));
        if self.random.pick(3) == 0 {
            open.transaction.rollback();
        } else {
            self.commit(open);
        }
    }

    fn commit(&mut self, open: Open) {
        let durability = [Durability::None, Durability::Logged, Durability::Synced][self.random.pick(3)];
        let receipt = open.transaction.commit(durability);
        let receipt = receipt.unwrap_or_else(|error| self.fail(&format!("commit: {error}")));
        if open.writes.is_empty() && open.ranges.is_empty() {
            return;
        }
        self.history.commit(receipt.timestamp.get(), &open.writes, &open.ranges);
        if durability == Durability::Synced {
            self.engine().wait_durable(receipt, durability).expect("the log can be synced");
        }
        if durability != Durability::None {
            self.logged = receipt.timestamp.get();
        }
    }

    fn check_one(&mut self) {
        if self.open.is_empty() {
            return self.check_newest();
        }
        let open = &self.open[self.random.pick(self.open.len())];
        self.check(open, self.tree());
    }

    fn check_newest(&mut self) {
        let reader = self.begin_with(Begin::READ, Mode::Read);
        for tree in self.history.trees() {
            self.check(&reader, tree);
        }
    }

    /// A scan of a random range, and some single keys.
    fn check(&self, open: &Open, tree: u32) {
        let expected = self.history.entries(tree, open.snapshot, &open.writes, &open.ranges);
        let range = KeyRange { lower: self.bound(), upper: self.bound() };
        let direction = if self.random.pick(2) == 0 { Direction::Forward } else { Direction::Backward };
        let mut wanted: Vec<_> = expected.iter().filter(|(key, _)| range.contains(key)).collect();
        if direction == Direction::Backward {
            wanted.reverse();
        }
        let found = self.scan(&*open.transaction, tree, &range, direction);
        if !found.iter().map(|(key, value)| (key, value)).eq(wanted.iter().copied()) {
            self.fail(&format!(
                "scan of tree {tree}, {range:?}, {direction:?} at {}: {found:?}, not {wanted:?}",
                open.snapshot
            ));
        }
        for key in expected.keys().take(5).cloned().chain((0..5).map(|_| self.key())) {
            let value = open.transaction.get(TreeId::new(tree), &key, BlockingMode::MayBlock);
            let value = value.unwrap_or_else(|error| self.fail(&format!("get: {error}")));
            if value.as_deref() != expected.get(&key).map(Vec::as_slice) {
                let text = format!("{key:?} of tree {tree} at {} is {value:?}", open.snapshot);
                self.fail(&format!("{text}, not {:?}", expected.get(&key)));
            }
        }
    }

    fn bound(&self) -> Bound<Vec<u8>> {
        match self.random.pick(4) {
            0 => Bound::Included(self.key()),
            1 => Bound::Excluded(self.key()),
            _ => Bound::Unbounded,
        }
    }

    /// All entries of a range, in batches of random size; sometimes that must not block first.
    fn scan(
        &self,
        transaction: &dyn Transaction,
        tree: u32,
        range: &KeyRange,
        direction: Direction,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (mut rest, mut found, mut batch) = (range.clone(), Vec::new(), Batch::new());
        let limits =
            BatchLimits { entries_max: 1 + self.random.pick(20), bytes_max: 1 + self.random.pick(5000) };
        loop {
            let blocking = [BlockingMode::CachedOnly, BlockingMode::MayBlock][self.random.pick(2)];
            let id = TreeId::new(tree);
            let end = match transaction.scan(id, &rest, direction, limits, blocking, &mut batch) {
                Err(error) if error.is_would_block() && blocking == BlockingMode::CachedOnly => continue,
                end => end.unwrap_or_else(|error| self.fail(&format!("scan: {error}"))),
            };
            found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
            match (end, batch.last()) {
                (ScanEnd::More, Some((last, _))) => rest.advance_past(last, direction),
                _ => return found,
            }
        }
    }

    fn run_background(&self, steps: usize) {
        for _ in 0..steps {
            if self.random.pick(4) == 0 {
                self.simulation
                    .clock
                    .advance(std::time::Duration::from_millis(self.random.next_u64() % 4000));
            }
            self.simulation.tasks.run_one();
        }
    }

    fn compact(&mut self) {
        self.engine()
            .compact(&[], &pando_storage::Operation::default())
            .unwrap_or_else(|error| self.fail(&format!("compact: {error}")));
    }

    fn checkpoint(&mut self) {
        self.engine().checkpoint().unwrap_or_else(|error| self.fail(&format!("checkpoint: {error}")));
        self.logged = self.newest();
    }

    fn newest(&self) -> u64 {
        self.begin_with(Begin::READ, Mode::Read).snapshot
    }

    fn reopen(&mut self) {
        self.open.clear();
        self.engine().close().unwrap_or_else(|error| self.fail(&format!("close: {error}")));
        self.engine = None;
        if self.random.pick(2) == 0 {
            self.verify();
        }
        if self.random.pick(2) == 0 {
            // Blocks on disk have the old layout: they are read all the same, and rewritten as they are
            // touched.
            // A store stays encrypted, or plain.
            let encryption = self.options.encryption.take();
            self.options = random_options(&self.random);
            self.options.encryption = encryption;
        }
        self.engine = Some(open_store(&self.simulation, &self.folder, &self.options));
    }

    /// The process dies. Logged commits must be there, and of the rest a prefix.
    fn kill(&mut self) {
        self.open.clear();
        self.simulation.disk.kill();
        self.simulation.tasks.forget_all();
        self.engine = None;
        if self.random.pick(2) == 0 {
            self.verify();
        }
        self.engine = Some(open_store(&self.simulation, &self.folder, &self.options));
        let newest = self.newest();
        if newest < self.logged {
            self.fail(&format!("{newest} is the newest commit after a kill, {} was logged", self.logged));
        }
        self.history.cut_after(newest);
        for tree in self.history.trees() {
            let id = TreeId::new(tree);
            if !self.engine().list_trees().expect("trees are listed").iter().any(|listed| listed.id == id) {
                self.fail(&format!("tree {tree} is lost"));
            }
        }
        self.check_newest();
    }

    fn verify(&self) {
        let report =
            verify_keeping(&self.simulation.environment, &self.folder, self.options.encryption.as_ref(), "");
        let report = report.unwrap_or_else(|error| self.fail(&format!("verify: {error}")));
        if !report.is_sound() {
            self.fail(&format!("verify found {:?}", report.damage));
        }
        let slices: u64 = report.trees.iter().map(|tree| tree.slices).sum();
        self.slices.set(self.slices.get() + slices);
    }

    /// Trees are created and dropped durably, so that the model knows which there are after a kill.
    fn create_tree(&mut self) {
        if self.history.trees().len() >= 4 {
            return;
        }
        self.names += 1;
        let id = self.engine().create_tree(&format!("tree {}", self.names), &TreeOptions::default());
        let id = id.unwrap_or_else(|error| self.fail(&format!("create: {error}")));
        self.history.add_tree(id.get());
        self.write_logged(id.get());
    }

    fn drop_tree(&mut self) {
        let trees = self.history.trees();
        if trees.len() < 2 {
            return;
        }
        let tree = trees[self.random.pick(trees.len())];
        // A transaction that has written to it would be refused at commit.
        self.open.retain(|open| open.writes.keys().all(|(of, _)| *of != tree));
        self.open.retain(|open| !open.is_writer);
        self.open.clear();
        self.engine()
            .drop_tree(TreeId::new(tree))
            .unwrap_or_else(|error| self.fail(&format!("drop: {error}")));
        self.history.remove_tree(tree);
        let other = self.tree();
        self.write_logged(other);
    }

    fn write_logged(&mut self, tree: u32) {
        let mut writer = self.begin_with(Begin::WRITE, Mode::Write);
        if self.write(&mut writer, tree, b"logged".to_vec(), Change::Put(vec![1])) {
            let receipt = writer.transaction.commit(Durability::Logged).expect("the commit succeeds");
            self.history.commit(receipt.timestamp.get(), &writer.writes, &[]);
            self.logged = receipt.timestamp.get();
        }
    }
}

/// A number below a limit.
trait Pick {
    fn pick(&self, limit: usize) -> usize;
}

impl Pick for SeededRandom {
    fn pick(&self, limit: usize) -> usize {
        (self.next_u64() % limit as u64) as usize
    }
}

fn random_options(random: &SeededRandom) -> Options {
    let entries = [
        ("pageSize", ["64B", "128B", "256B"][random.pick(3)]),
        ("leafSize", ["512B", "1KB", "4KB"][random.pick(3)]),
        ("fanout", ["4", "5", "9"][random.pick(3)]),
        ("compression", ["none", "lz4", "zstd"][random.pick(3)]),
        ("logCompression", ["none", "lz4"][random.pick(2)]),
        ("mergeThreads", ["1", "2"][random.pick(2)]),
        ("bufferPercent", ["0", "8", "25", "50"][random.pick(4)]),
        ("runSize", ["256B", "700B", "3KB"][random.pick(3)]),
        ("filterBits", ["0", "4", "10"][random.pick(3)]),
        ("largeValueSize", ["16B", "50B", "400B", "16KB"][random.pick(4)]),
    ];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    options.cache_bytes = [2 << 10, 16 << 10, 1 << 20][random.pick(3)];
    options.log_budget_bytes = [1 << 20, 8 << 20][random.pick(2)];
    options.partition_bytes = [300, 2_000, 10_000][random.pick(3)];
    options.range_delete_entries = 0;
    if random.pick(4) == 0 {
        let key = SecretKey::from_bytes(&[7; 32]).expect("a key has 32 bytes");
        let cipher = Cipher::ALL[random.pick(2)];
        options.encryption = Some(Encryption { cipher, source: Arc::new(HeldKey::new(key)) });
    }
    options
}

fn open_store(simulation: &Simulation, folder: &Path, options: &Options) -> SharedEngine {
    let engine = Betree::open(&simulation.environment, folder, options.clone());
    CheckedEngine::shared(engine.expect("the store opens") as Arc<dyn Engine>)
}
