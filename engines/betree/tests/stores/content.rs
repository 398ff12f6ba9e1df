//! The content of the stores of frozen formats: a sample of each feature of a format. Never change it,
//! because stores that were written by it are checked by it.

use std::collections::BTreeMap;

use pando_betree::Betree;
use pando_environment::{Random, SeededRandom};
use pando_storage::{
    Begin, BlockingMode, Claim, Durability, Engine, KeyRange, Merge, Transaction, TreeId, TreeOptions,
};

/// Entries of each tree, by the tree's name.
pub type Expected = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// Small nodes, so that little data makes trees of some height; ranges are deleted by messages however little
/// they hold.
pub const OPTIONS: [(&str, &str); 9] = [
    ("cache", "8MB"),
    ("logBudget", "64MB"),
    ("checkpointPeriod", "86400"),
    ("growthSize", "64KB"),
    ("rangeDeleteEntries", "0"),
    ("pageSize", "1KB"),
    ("leafSize", "4KB"),
    ("fanout", "4"),
    ("largeValueSize", "1KB"),
];

/// A tree for each way in which blocks are stored.
const TREES: [(&str, &[(&str, &str)]); 5] = [
    ("zstd", &[]),
    ("lz4", &[("compression", "lz4")]),
    ("plain", &[("compression", "none"), ("filterBits", "0")]),
    ("filtered", &[("leafFilterBits", "10"), ("runCompression", "none")]),
    ("without buffers", &[("bufferPercent", "0")]),
];

const KEYS: u64 = 1_200;
const COUNTERS: u64 = 40;

/// Fills a new store. Its last writes stand in the log only.
pub fn fill(engine: &Betree) -> Expected {
    let mut filling = Filling { engine, expected: Expected::new() };
    for (name, entries) in TREES {
        filling.create(name, entries);
        filling.load(name);
    }
    let dropped = filling.create("dropped", &[]);
    filling.load("dropped");
    engine.checkpoint().expect("checkpoints succeed");
    for (name, _) in TREES {
        filling.change(name, 1);
    }
    engine.drop_tree(dropped).expect("trees are dropped");
    filling.expected.remove("dropped");
    engine.checkpoint().expect("checkpoints succeed");
    for (name, _) in TREES {
        filling.change(name, 2);
    }
    filling.create("in the log only", &[("fanout", "5")]);
    filling.load("in the log only");
    filling.expected
}

struct Filling<'e> {
    engine: &'e Betree,
    expected: Expected,
}

/// One transaction, and its effect on the expected entries.
struct Writing<'w> {
    writer: Box<dyn Transaction>,
    tree: TreeId,
    entries: &'w mut BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Filling<'_> {
    fn create(&mut self, name: &str, entries: &[(&str, &str)]) -> TreeId {
        let entries = entries.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        self.expected.insert(name.to_owned(), BTreeMap::new());
        self.engine.create_tree(name, &TreeOptions { entries }).expect("trees are created")
    }

    fn write(&mut self, name: &str, write: impl FnOnce(&mut Writing<'_>)) {
        let known = self.engine.list_trees().expect("trees are listed");
        let tree = known.iter().find(|tree| tree.name == name).expect("it was created").id;
        let writer = self.engine.begin(Begin::WRITE).expect("writers begin");
        let entries = self.expected.get_mut(name).expect("it was created");
        let mut writing = Writing { writer, tree, entries };
        write(&mut writing);
        writing.writer.commit(Durability::Synced).expect("commits succeed");
    }

    fn load(&mut self, name: &str) {
        for part in 0..4 {
            self.write(name, |writing| {
                (0..KEYS).filter(|number| number % 4 == part).for_each(|number| writing.put(number, 0));
            });
        }
    }

    fn change(&mut self, name: &str, turn: u64) {
        self.write(name, |writing| {
            (0..KEYS).step_by(5).for_each(|number| writing.put(number + turn, turn));
            (0..KEYS).step_by(7).for_each(|number| writing.delete(number + turn));
        });
        for add in 1..4 {
            self.write(name, |writing| {
                (0..COUNTERS).for_each(|number| writing.add(number, (add * turn * number) as i64 - 20));
            });
        }
        self.write(name, |writing| writing.delete_range(100 * turn, 100 * turn + 60));
        self.write(name, |writing| (0..10).for_each(|number| writing.put(100 * turn + number, 9)));
    }
}

impl Writing<'_> {
    fn put(&mut self, number: u64, turn: u64) {
        let (key, value) = (key(number), value(number, turn));
        self.writer.put(self.tree, &key, &value).expect("writers write");
        self.entries.insert(key, value);
    }

    fn delete(&mut self, number: u64) {
        self.writer.delete_blind(self.tree, &key(number)).expect("writers write");
        self.entries.remove(&key(number));
    }

    fn add(&mut self, number: u64, amount: i64) {
        let key = [b"counter ".as_slice(), &number.to_be_bytes()].concat();
        let merged =
            self.writer.merge(self.tree, &key, Merge::Add(amount), Claim::Blind, BlockingMode::MayBlock);
        merged.expect("writers write");
        let before = self.entries.get(&key).map_or(0, |value| {
            i64::from_le_bytes(value.as_slice().try_into().expect("counters have eight bytes"))
        });
        self.entries.insert(key, (before + amount).to_le_bytes().to_vec());
    }

    fn delete_range(&mut self, from: u64, to: u64) {
        let (from, to) = (key(from), key(to));
        let range = KeyRange {
            lower: std::ops::Bound::Included(from.clone()),
            upper: std::ops::Bound::Excluded(to.clone()),
        };
        let deleted = self.writer.delete_range(self.tree, &range, BlockingMode::MayBlock);
        deleted.expect("ranges are deleted");
        self.entries.retain(|key, _| *key < from || *key >= to);
    }
}

/// Most are short; some are longer than a buffer keeps in place.
fn key(number: u64) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    if number.is_multiple_of(90) {
        key.extend_from_slice(&[b'k'; 40]);
    }
    key
}

/// Most compress well, some not at all, and a few stand in blocks of their own.
fn value(number: u64, turn: u64) -> Vec<u8> {
    let random = SeededRandom::new(number * 10 + turn);
    let length = match number {
        number if number % 400 == 17 => 2_500,
        number => 10 + number as usize % 60,
    };
    (0..length).map(|at| if at < 6 || number % 400 == 17 { random.next_u64() as u8 } else { b'v' }).collect()
}
