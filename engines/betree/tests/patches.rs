//! Patches on their way down a tree: a cold document is not read for one, their number is bounded, and a
//! store that may have some is refused by programs before them.

use std::path::Path;
use std::sync::Arc;

use pando_betree::{Betree, Options, verify};
use pando_document::patch::{PatchChange, PatchOperator, encode};
use pando_document::{RawValue, doc};
use pando_environment::{Environment, Simulation};
use pando_storage::{
    Begin, BlockingMode, CheckedEngine, Claim, Durability, Engine, Merge, PENDING_PATCHES_MAX, SharedEngine,
    Transaction, TreeId, TreeOptions,
};

const FOLDER: &str = "/store";
const DOCUMENTS: u64 = 20_000;

struct Store {
    simulation: Simulation,
    engine: SharedEngine,
    tree: TreeId,
}

impl Store {
    /// Documents in leaves, of which the cache holds few.
    fn full() -> Store {
        let simulation = Environment::simulated(7);
        let engine = open(&simulation);
        let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is created");
        let store = Store { simulation, engine, tree };
        for first in (0..DOCUMENTS).step_by(200) {
            store.write(|writer, tree| {
                for number in first..first + 200 {
                    writer.put(tree, &key(number), &document(number, 0)).expect("nobody else writes");
                }
            });
            store.simulation.tasks.run_until_idle();
        }
        store.engine.compact(&[tree], &Default::default()).expect("the tree is compacted");
        store.engine.checkpoint().expect("the checkpoint succeeds");
        store
    }

    fn reopened(self) -> Store {
        let Store { simulation, engine, tree } = self;
        engine.close().expect("the store closes");
        drop(engine);
        simulation.tasks.forget_all();
        let report = verify(&simulation.environment, Path::new(FOLDER)).expect("it can be checked");
        assert!(report.is_sound(), "{:?}", report.damage);
        Store { engine: open(&simulation), simulation, tree }
    }

    fn write(&self, write: impl FnOnce(&mut dyn Transaction, TreeId)) {
        let mut writer = self.engine.begin(Begin::WRITE).expect("a writer begins");
        write(&mut *writer, self.tree);
        writer.commit(Durability::Logged).expect("the commit succeeds");
    }

    fn patch(&self, number: u64) {
        let patch = adding();
        self.write(|writer, tree| {
            writer
                .merge(tree, &key(number), Merge::Patch(&patch), Claim::Intent, BlockingMode::MayBlock)
                .expect("the patch succeeds");
        });
    }

    fn get(&self, number: u64) -> Option<Vec<u8>> {
        let reader = self.engine.begin(Begin::READ).expect("a reader begins");
        let value = reader.get(self.tree, &key(number), BlockingMode::MayBlock).expect("gets succeed");
        value.map(|value| value.to_vec())
    }

    fn figure(&self, name: &str) -> u64 {
        self.engine.statistics().get(name).unwrap_or_else(|| panic!("there is no figure {name}"))
    }

    /// The incompatible features of both superblocks.
    fn features(&self) -> [u64; 2] {
        let mut features = [0; 2];
        self.simulation.disk.corrupt(&Path::new(FOLDER).join("data.0000"), |bytes| {
            features = [0, 4_096].map(|slot: usize| {
                u64::from_le_bytes(bytes[slot + 32..slot + 40].try_into().expect("eight bytes"))
            });
        });
        features
    }
}

fn open(simulation: &Simulation) -> SharedEngine {
    let entries = [("pageSize", "1KB"), ("leafSize", "16KB"), ("fanout", "8"), ("compression", "none")];
    let entries: Vec<_> = entries.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    (options.cache_bytes, options.partition_bytes) = (1 << 20, 1 << 20);
    let engine = Betree::open(&simulation.environment, Path::new(FOLDER), options);
    CheckedEngine::shared(engine.expect("the store opens") as Arc<dyn Engine>)
}

fn key(number: u64) -> Vec<u8> {
    format!("document {number:06}").into_bytes()
}

fn document(number: u64, n: i32) -> Vec<u8> {
    doc! { "_id": (number as i64), "n": n, "text": ("x".repeat(60)) }.to_raw().as_bytes().to_vec()
}

fn adding() -> Vec<u8> {
    let change = PatchChange { operator: PatchOperator::Add, path: "n", operand: RawValue::Int32(1) };
    encode(vec![change]).expect("it is a patch")
}

#[test]
fn a_patch_of_a_cold_document_reads_nothing() {
    let store = Store::full();
    store.patch(0);
    store.engine.checkpoint().expect("the checkpoint succeeds");
    let store = store.reopened();
    let cold = || (0..400).map(|number| number * 47 % DOCUMENTS);
    let reads_for = |change: &dyn Fn(u64)| {
        let before = store.figure("data.reads");
        cold().for_each(change);
        store.figure("data.reads") - before
    };
    let gets = store.figure("reads.gets");
    let blind = reads_for(&|number| store.patch(number));
    assert_eq!((blind, store.figure("reads.gets")), (0, gets), "no leaf, no inner node, no directory");
    assert_eq!(store.figure("commits.patches"), 400);
    let ordinary = reads_for(&|number| {
        let n = 2 + i32::from(number == 0);
        assert_eq!(store.get(number), Some(document(number, n - 1)));
        store.write(|writer, tree| {
            writer.put(tree, &key(number), &document(number, n)).expect("nobody else writes");
        });
    });
    println!("400 updates of cold documents: {blind} reads by patches, {ordinary} by get and put");
    assert!(ordinary >= 300, "{ordinary} reads: the documents were not cold");
    let store = store.reopened();
    cold().for_each(|number| {
        assert_eq!(store.get(number), Some(document(number, 2 + i32::from(number == 0))));
    });
}

#[test]
fn the_patches_that_wait_for_one_document_are_bounded() {
    let store = Store::full();
    store.patch(0);
    store.engine.checkpoint().expect("the checkpoint succeeds");
    let store = store.reopened();
    let (gets, patches) = (store.figure("reads.gets"), 10 * (PENDING_PATCHES_MAX as u64 + 1));
    (0..patches).for_each(|_| store.patch(5));
    // One in so many reads and puts; whatever follows meets that value in the buffer.
    let read = store.figure("reads.gets") - gets;
    assert!((1..=10).contains(&read), "{read} of {patches} patches have read");
    assert_eq!(store.get(5), Some(document(5, patches as i32)));
    let store = store.reopened();
    assert_eq!(store.get(5), Some(document(5, patches as i32)));
}

#[test]
fn a_snapshot_keeps_the_document_before_patches_that_come_down_meanwhile() {
    let store = Store::full();
    store.patch(0);
    store.engine.checkpoint().expect("the checkpoint succeeds");
    let reader = store.engine.begin(Begin::READ).expect("a reader begins");
    for round in 0..100 {
        (0..20).for_each(|number| store.patch(number * 100));
        if round % 30 == 10 {
            store.engine.checkpoint().expect("the checkpoint succeeds");
            store.engine.compact(&[store.tree], &Default::default()).expect("the tree is compacted");
        }
    }
    for number in (0..20).map(|number| number * 100) {
        let first = i32::from(number == 0);
        let seen = reader.get(store.tree, &key(number), BlockingMode::MayBlock).expect("gets succeed");
        assert_eq!(seen.as_deref(), Some(&*document(number, first)));
        assert_eq!(store.get(number), Some(document(number, first + 100)));
    }
}

#[test]
fn the_superblock_has_the_feature_before_the_log_has_a_patch() {
    let store = Store::full();
    assert_eq!(store.features(), [0, 0], "a store without patches is one of the first format");
    store.patch(7);
    assert_eq!((store.figure("commits.patches"), store.get(7)), (0, Some(document(7, 1))));
    store.engine.checkpoint().expect("the checkpoint succeeds");
    assert!(store.features().contains(&4), "{:?}", store.features());
    store.patch(7);
    assert_eq!((store.figure("commits.patches"), store.get(7)), (1, Some(document(7, 2))));
    let store = store.reopened();
    store.patch(7);
    assert_eq!((store.figure("commits.patches"), store.get(7)), (1, Some(document(7, 3))));
}
