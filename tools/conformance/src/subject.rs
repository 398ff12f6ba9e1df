//! The engine under test: opening, closing and crashing it, and short forms of the calls that tests make.

use std::cell::RefCell;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use pando_environment::{Random, SeededRandom};
use pando_storage::{
    Begin, BlockingMode, CheckedEngine, CommitReceipt, ConflictTime, Cursor, Direction, Durability, Engine,
    ErrorKind, KeyRange, Persistence, SharedEngine, StorageError, Transaction, TreeId, TreeOptions,
};
use tempfile::TempDir;

/// An entry as a scan gives it.
pub type Entry = (Vec<u8>, Vec<u8>);

/// Opens the store in a folder, which is empty at first and later holds what the engine left there.
pub type Open = Box<dyn Fn(&Path) -> SharedEngine>;

/// One engine with a folder of its own, which goes away with it.
pub struct Subject {
    open: Open,
    folder: TempDir,
    /// Folders of further stores.
    beside: RefCell<Vec<TempDir>>,
}

impl Subject {
    /// An engine that has not been opened yet.
    pub fn new(open: impl Fn(&Path) -> SharedEngine + 'static) -> Subject {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        Subject { open: Box::new(open), folder, beside: RefCell::default() }
    }

    /// Opens the store, under the supervision of [`CheckedEngine`].
    pub fn open(&self) -> Opened {
        Opened(CheckedEngine::shared((self.open)(self.folder.path())))
    }

    /// Another store of the same engine, empty.
    pub fn beside(&self) -> Opened {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let opened = Opened(CheckedEngine::shared((self.open)(folder.path())));
        self.beside.borrow_mut().push(folder);
        opened
    }

    /// Closes the engine cleanly and opens its store again.
    pub fn reopen(&self, engine: Opened) -> Opened {
        engine.close().expect("the engine closes");
        engine.let_go();
        self.open()
    }

    /// Drops the engine as a killed process would, and opens its store again.
    pub fn crash(&self, engine: Opened) -> Opened {
        engine.let_go();
        self.open()
    }
}

/// An open engine, with shorthands for tests. It dereferences to the engine itself.
pub struct Opened(SharedEngine);

impl Deref for Opened {
    type Target = dyn Engine;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Opened {
    /// Another handle, for another thread.
    pub fn share(&self) -> SharedEngine {
        Arc::clone(&self.0)
    }

    fn let_go(self) {
        assert_eq!(Arc::strong_count(&self.0), 1, "the test still holds the engine that it wants to end");
    }

    /// A new tree with the default layout.
    pub fn tree(&self, name: &str) -> TreeId {
        self.create_tree(name, &TreeOptions::default()).expect("the tree can be created")
    }

    /// The number of the tree of this name.
    pub fn find_tree(&self, name: &str) -> Option<TreeId> {
        let trees = self.list_trees().expect("the trees can be listed");
        trees.into_iter().find(|tree| tree.name == name).map(|tree| tree.id)
    }

    /// A writing transaction.
    pub fn writer(&self) -> Box<dyn Transaction> {
        self.begin(Begin::WRITE).expect("a writer begins")
    }

    /// A reading transaction.
    pub fn reader(&self) -> Box<dyn Transaction> {
        self.begin(Begin::READ).expect("a reader begins")
    }

    /// Puts one entry in a transaction of its own.
    pub fn put(&self, tree: TreeId, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> CommitReceipt {
        let mut writer = self.writer();
        writer.put(tree, key.as_ref(), value.as_ref()).expect("the put succeeds");
        commit(writer)
    }

    /// Deletes one key in a transaction of its own.
    pub fn delete(&self, tree: TreeId, key: impl AsRef<[u8]>) -> CommitReceipt {
        let mut writer = self.writer();
        writer.delete(tree, key.as_ref()).expect("the delete succeeds");
        commit(writer)
    }

    /// The newest value of a key.
    pub fn value(&self, tree: TreeId, key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        value(&*self.reader(), tree, key)
    }

    /// All entries of a tree as the newest snapshot sees them.
    pub fn entries(&self, tree: TreeId) -> Vec<Entry> {
        entries(&*self.reader(), tree)
    }

    /// Whether commits survive the end of the process.
    pub fn is_durable(&self) -> bool {
        self.capabilities().durable == Persistence::Durable
    }

    /// Lets a transaction do what must conflict, and checks that it is told at the time that the engine
    /// declares.
    pub fn expect_conflict(
        &self,
        mut loser: Box<dyn Transaction>,
        update: impl FnOnce(&mut dyn Transaction) -> Result<(), StorageError>,
    ) {
        let outcome = update(loser.as_dyn_mut());
        match self.capabilities().conflicts {
            ConflictTime::AtUpdate => {
                assert_eq!(kind(outcome), Some(ErrorKind::Conflict), "the update must conflict");
                loser.rollback();
            }
            ConflictTime::AtCommit => {
                outcome.expect("the engine says that it tells conflicts at commit");
                let outcome = loser.commit(Durability::None);
                assert_eq!(kind(outcome), Some(ErrorKind::Conflict), "the commit must conflict");
            }
        }
    }
}

/// The kind of the error, if it is one.
pub fn kind<T>(outcome: Result<T, StorageError>) -> Option<ErrorKind> {
    outcome.err().map(|error| error.kind())
}

/// Commits without waiting for anything.
pub fn commit(transaction: Box<dyn Transaction>) -> CommitReceipt {
    transaction.commit(Durability::None).expect("the commit succeeds")
}

/// The value of a key as a transaction sees it.
pub fn value(transaction: &dyn Transaction, tree: TreeId, key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    let value = transaction.get(tree, key.as_ref(), BlockingMode::MayBlock).expect("the get succeeds");
    value.map(|value: Bytes| value.to_vec())
}

/// All entries of a tree as a transaction sees them.
pub fn entries(transaction: &dyn Transaction, tree: TreeId) -> Vec<Entry> {
    entries_in(transaction, tree, &KeyRange::all(), Direction::Forward)
}

/// The entries of a range as a transaction sees them.
pub fn entries_in(
    transaction: &dyn Transaction,
    tree: TreeId,
    range: &KeyRange,
    direction: Direction,
) -> Vec<Entry> {
    let mut cursor = Cursor::new(tree, range.clone(), direction);
    let mut found = Vec::new();
    while let Some((key, value)) =
        cursor.next(transaction, BlockingMode::MayBlock).expect("the scan succeeds")
    {
        found.push((key.to_vec(), value.to_vec()));
    }
    found
}

/// An entry of two texts.
pub fn entry(key: &str, value: &str) -> Entry {
    (key.as_bytes().to_vec(), value.as_bytes().to_vec())
}

/// A test's choices, all of them drawn from one seed, which is printed if the test fails.
pub struct Choices {
    random: SeededRandom,
    seed: u64,
}

impl Choices {
    /// The choices of this seed.
    pub fn of_seed(seed: u64) -> Choices {
        Choices { random: SeededRandom::new(seed), seed }
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        (self.random.next_u64() % bound) as usize
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

impl Drop for Choices {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the failing test drew its choices from the seed {}", self.seed);
        }
    }
}
