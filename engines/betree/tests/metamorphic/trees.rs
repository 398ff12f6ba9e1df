//! The trees of a run: the initial one, loaded ones, and dropped ones, which readers that began before may go
//! on reading.

use pando_betree::Betree;
use pando_storage::{
    Begin, BlockingMode, Durability, Engine, ErrorKind, KeyRange, LoadDurability, SortedEntries,
    StorageError, Transaction, TreeId, TreeOptions,
};

use super::stream::{Flaw, Load};

/// Trees at once.
const TREES_MAX: usize = 4;

pub struct Trees {
    live: Vec<TreeId>,
    /// Since the store was opened.
    dropped: Vec<TreeId>,
    /// Whether one was filled since then that a crash may take.
    has_scratch: bool,
}

/// A transaction, and the trees that were dropped before it began.
pub struct Begun {
    pub transaction: Box<dyn Transaction>,
    drops_before: usize,
}

impl Trees {
    /// The first tree of a new store.
    pub fn new(engine: &Betree) -> Trees {
        let first = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is created");
        Trees { live: vec![first], dropped: Vec::new(), has_scratch: false }
    }

    pub fn begin(&self, engine: &Betree, begin: Begin) -> Begun {
        let transaction = engine.begin(begin).expect("a transaction begins");
        Begun { transaction, drops_before: self.dropped.len() }
    }

    /// The store is about to be opened again: nobody can have begun before.
    pub fn reopened(&mut self) {
        self.dropped.clear();
        self.has_scratch = false;
    }

    pub fn has_scratch(&self) -> bool {
        self.has_scratch
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.live.len()
    }

    /// One of the trees that are there.
    pub fn live(&self, number: usize) -> TreeId {
        self.live[number_of(number, self.live.len())]
    }

    /// One of the trees that a transaction may read.
    pub fn readable(&self, number: usize, by: &Begun) -> TreeId {
        let trees = [&self.live[..], self.dropped_since(by)].concat();
        trees[number_of(number, trees.len())]
    }

    /// The trees that were dropped since a transaction began.
    pub fn dropped_since(&self, begun: &Begun) -> &[TreeId] {
        &self.dropped[begun.drops_before..]
    }

    /// Makes a tree and fills it, or drops it again where that is refused. Returns the line about it. Of the
    /// empty tree no more than `deletable` is deleted.
    pub fn load(&mut self, engine: &Betree, name: &str, load: &Load, deletable: &KeyRange) -> Vec<String> {
        let mut answers = Vec::new();
        if self.live.len() == TREES_MAX {
            answers.extend(self.drop_tree(engine, 1));
        }
        let tree = engine.create_tree(name, &TreeOptions::default()).expect("a tree is created");
        if load.is_cleared {
            let mut writer = engine.begin(Begin::WRITE).expect("a writer begins");
            let deleted = writer.delete_range(tree, deletable, BlockingMode::MayBlock);
            deleted.expect("nobody writes to the tree");
            writer.commit(Durability::Logged).expect("the commit succeeds");
        }
        if matches!(load.flaw, Some(Flaw::TreeHasEntries)) {
            let mut filled = Source { load, at: 0 };
            engine.load(tree, &mut filled, load.durability).expect("the tree is empty");
        }
        self.has_scratch |= load.durability == LoadDurability::Scratch;
        let loaded = engine.load(tree, &mut Source { load, at: 0 }, load.durability);
        answers.push(format!("{name}: {:?}", loaded.as_ref().map_err(StorageError::kind)));
        match loaded {
            Ok(_) => self.live.push(tree),
            Err(_) => engine.drop_tree(tree).expect("a tree is dropped"),
        }
        answers
    }

    /// Drops a loaded tree, if there is one. Returns the line about it from now on.
    pub fn drop_tree(&mut self, engine: &Betree, number: usize) -> Option<String> {
        // Never the first.
        let tree = match number_of(number.max(1), self.live.len()) {
            0 => return None,
            loaded => self.live.remove(loaded),
        };
        engine.drop_tree(tree).expect("a tree is dropped");
        self.dropped.push(tree);
        let late = engine.begin(Begin::READ).expect("a reader begins");
        let found = late.get(tree, b"x", BlockingMode::MayBlock).map_err(|error| error.kind());
        Some(format!("dropped: {found:?}"))
    }
}

/// The tree that a number stands for, of this many: 0 for the first, all others for one of the others, if
/// there are any.
fn number_of(number: usize, trees: usize) -> usize {
    match (number, trees) {
        (0, _) | (_, 1) => 0,
        _ => 1 + (number - 1) % (trees - 1),
    }
}

/// The entries of a load, and its flaw behind them.
struct Source<'l> {
    load: &'l Load,
    at: usize,
}

impl SortedEntries for Source<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        let (entries, at) = (&self.load.entries, self.at);
        self.at += 1;
        let next = match self.load.flaw {
            Some(Flaw::KeysDescend) if at == entries.len() => entries.first(),
            Some(Flaw::SourceFails) if at == entries.len() => {
                return Err(StorageError::new(ErrorKind::Io, "the source fails"));
            }
            _ => entries.get(at),
        };
        Ok(next.map(|(key, value)| (key.as_slice(), value.as_slice())))
    }
}
