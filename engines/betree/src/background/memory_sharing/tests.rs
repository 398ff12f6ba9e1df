//! Resident inner nodes and filters stay within their limit during any reads and writes, and no result
//! changes.

use std::collections::BTreeMap;
use std::path::Path;

use pando_environment::{Environment, Random, SeededRandom, Simulation};
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Durability, Engine, KeyRange, Transaction, TreeId, TreeOptions,
};

use std::sync::Arc;

use crate::engine::Betree;
use crate::memory::{RESIDENT_PERCENT, Releasable, ResidentBytes, ResidentTree};
use crate::options::Options;
use crate::store::Store;
use crate::tree::node::Child;
use crate::tree::resident_nodes::resident_bytes_of;

const FOLDER: &str = "/store";
const CACHE_BYTES: u64 = 128 << 10;
const LIMIT: usize = (CACHE_BYTES * RESIDENT_PERCENT / 100) as usize;

struct LoadedStore {
    simulation: Simulation,
    engine: Arc<Betree>,
    tree: TreeId,
    random: SeededRandom,
    model: BTreeMap<Vec<u8>, u64>,
}

impl LoadedStore {
    fn new() -> LoadedStore {
        let entries = [
            ("pageSize", "256B"),
            ("leafSize", "2KB"),
            ("fanout", "8"),
            ("runSize", "4KB"),
            ("bufferPercent", "30"),
        ];
        let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut options = Options::default().with_entries(&entries).expect("the options are possible");
        (options.cache_bytes, options.partition_bytes) = (CACHE_BYTES, 16 << 10);
        let simulation = Environment::simulated(7);
        let engine = Betree::open(&simulation.environment, Path::new(FOLDER), options).expect("it opens");
        let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is created");
        LoadedStore { simulation, engine, tree, random: SeededRandom::new(3), model: BTreeMap::new() }
    }

    fn parts(&self) -> &Store {
        &self.engine.store
    }

    fn write(&mut self, count: u64) {
        for _ in 0..count / 100 {
            let mut writer = self.engine.begin(Begin::WRITE).expect("a writer begins");
            for _ in 0..100 {
                let key = (self.random.next_u64() % 40_000).to_be_bytes().to_vec();
                let value = self.random.next_u64();
                writer.put_blind(self.tree, &key, &value.to_be_bytes()).expect("a write succeeds");
                self.model.insert(key, value);
            }
            writer.commit(Durability::Logged).expect("the commit succeeds");
            self.simulation.tasks.run_until_idle();
        }
    }

    fn checkpoint(&self) {
        self.engine.checkpoint().expect("the disk has room");
    }

    /// The resident bytes now, measured anew.
    fn resident(&self) -> ResidentBytes {
        let view = self.parts().trees.live(self.tree).expect("the tree is there").view_owned();
        view.version.root.as_ref().map_or_else(ResidentBytes::default, resident_bytes_of)
    }

    fn check_gets(&self) {
        let reader = self.engine.begin(Begin::READ).expect("a reader begins");
        for (key, value) in &self.model {
            let found = reader.get(self.tree, key, BlockingMode::MayBlock).expect("a get succeeds");
            assert_eq!(found.as_deref(), Some(&value.to_be_bytes()[..]), "{key:?}");
        }
    }

    /// The rest of a scan equals the model's entries after the first `rows`.
    fn scan(reader: &dyn Transaction, cursor: &mut Cursor, model: &BTreeMap<Vec<u8>, u64>, rows: usize) {
        let mut expected = model.iter().skip(rows);
        while let Some((key, value)) = cursor.next(reader, BlockingMode::MayBlock).expect("a scan goes on") {
            let (model_key, model_value) = expected.next().expect("there is as much in the model");
            assert_eq!((key, value), (&model_key[..], &model_value.to_be_bytes()[..]));
        }
        assert_eq!(expected.next(), None);
    }
}

#[test]
fn resident_nodes_stay_within_their_limit_and_everything_is_found() {
    let mut store = LoadedStore::new();
    store.write(30_000);
    store.checkpoint();
    store.check_gets();
    assert!(store.resident().total() > 2 * LIMIT, "all of it was visited: {:?}", store.resident());
    for round in 0..6 {
        store.parts().memory.share_out();
        let resident = store.resident();
        assert!(resident.total() <= LIMIT, "{resident:?} of {LIMIT}");
        assert_eq!(store.parts().memory.resident.node_bytes(), resident.nodes);
        assert_eq!(store.parts().blocks.index_memory.bytes(), resident.indexes);
        if round % 2 == 0 {
            store.check_gets();
        } else {
            store.write(3_000);
            store.checkpoint();
        }
    }
    assert!(store.parts().memory.resident.released_bytes() > LIMIT);
    store.check_gets();
    store.parts().memory.share_out();
    let LoadedStore { simulation, engine, .. } = store;
    engine.close().expect("it is closed");
    drop(engine);
    let report = crate::verify(&simulation.environment, Path::new(FOLDER)).expect("it can be read");
    assert!(report.damage.is_empty(), "{:?}", report.damage);
}

#[test]
fn nodes_used_lately_stay_when_all_others_go() {
    let mut store = LoadedStore::new();
    store.write(30_000);
    store.checkpoint();
    store.check_gets();
    let tree = store.parts().trees.live(store.tree).expect("the tree is there");
    let release_unused = || tree.release(Releasable::Unused, usize::MAX, 3).total();
    assert_eq!(release_unused(), 0, "all of it was used");
    let whole = store.resident().total();
    let (hot, cold) = (20_000_u64.to_be_bytes(), 3_000_u64.to_be_bytes());
    let reader = store.engine.begin(Begin::READ).expect("a reader begins");
    reader.get(store.tree, &hot, BlockingMode::MayBlock).expect("a get succeeds");
    assert!(release_unused() > whole / 2);
    let is_loaded = |key: &[u8]| {
        let view = tree.view_owned();
        let mut child = view.version.root.as_ref();
        while let Some(Child::Inner(slot)) = child {
            let Some(node) = slot.loaded() else { return false };
            child = node.children().get(node.pivots().covering(key));
        }
        true
    };
    assert!(is_loaded(&hot) && !is_loaded(&cold));
    store.check_gets();
    assert!(is_loaded(&cold));
}

#[test]
fn nodes_that_no_checkpoint_has_written_stay() {
    let mut store = LoadedStore::new();
    store.write(30_000);
    let before = store.resident();
    assert!(before.total() > LIMIT, "{before:?}");
    let tree = store.parts().trees.live(store.tree).expect("the tree is there");
    let released = tree.release(Releasable::UpTo(u8::MAX), usize::MAX, 0);
    let after = store.resident();
    assert!(after.nodes > 0 && after.indexes == 0, "no checkpoint was made since the last merges");
    assert_eq!(before.indexes - after.indexes, released.indexes);
    store.check_gets();
    store.checkpoint();
    store.check_gets();
}

#[test]
fn a_reader_of_the_version_before_keeps_what_it_reads() {
    let mut store = LoadedStore::new();
    store.write(30_000);
    store.checkpoint();
    let model = store.model.clone();
    let engine = Arc::clone(&store.engine);
    let reader = engine.begin(Begin::READ).expect("a reader begins");
    let mut cursor = Cursor::new(store.tree, KeyRange::all(), Direction::Forward);
    for _ in 0..500 {
        cursor.next(&*reader, BlockingMode::MayBlock).expect("a scan goes on").expect("there is more");
    }
    for _ in 0..4 {
        store.parts().memory.share_out();
        store.write(4_000);
        store.checkpoint();
    }
    LoadedStore::scan(&*reader, &mut cursor, &model, 500);
}

#[test]
fn nodes_that_only_an_older_version_holds_make_the_newest_release_none() {
    let mut store = LoadedStore::new();
    store.write(30_000);
    store.checkpoint();
    store.check_gets();
    let held = store.parts().trees.live(store.tree).expect("the tree is there").view_owned();
    store.parts().memory.share_out();
    assert!(store.parts().blocks.index_memory.bytes() > LIMIT, "the older version has all of it");
    let (released, resident) = (store.parts().memory.resident.released_bytes(), store.resident());
    store.parts().memory.share_out();
    assert_eq!((store.parts().memory.resident.released_bytes(), store.resident()), (released, resident));
    drop(held);
}
