//! The interface of the fuzz targets (feature `fuzzing`): every decoder of blocks and records, and replay of
//! a log.
//!
//! # Invariants for any input

use std::path::Path;

use bytes::Bytes;
use pando_environment::Environment;
use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, Claim, CommitTimestamp, Direction, Durability, Engine, KeyRange,
    Merge, SnapshotTimestamp, TreeOptions,
};

use crate::base::FormatError;
use crate::engine::Betree;
use crate::format::directory::Directory;
use crate::format::filter::KeyHash;
use crate::format::inner_node::StoredInnerNode;
use crate::format::page::Page;
use crate::format::slice_index::SliceIndex;
use crate::format::{catalog, record_payload};
use crate::options::Options;
use crate::space;
use crate::tree::node::InnerNode;

/// Gives the bytes to every decoder.
pub fn decode_all(bytes: &[u8]) {
    page(bytes);
    if let Ok(directory) = Directory::decode(bytes) {
        let again = Directory::decode(&directory.encode()).expect("what was encoded can be decoded");
        assert_eq!(again.pages().len(), directory.pages().len());
        assert!(directory.page_of(bytes) < directory.pages().len());
    }
    if let Ok(index) = SliceIndex::decode(bytes) {
        let again = SliceIndex::decode(&index.encode()).expect("what was encoded can be decoded");
        assert_eq!(again.filter, index.filter);
        assert!(index.pages.page_of(bytes) < index.pages.pages().len());
        let _passes = index.filter.may_contain(KeyHash::of(bytes));
    }
    if let Ok(node) = StoredInnerNode::decode(bytes) {
        let again = StoredInnerNode::decode(&node.encode()).expect("what was encoded can be decoded");
        assert_eq!(again.children.len(), node.children.len());
        let node = InnerNode::from_stored(node);
        assert!(node.pivots().covering(bytes) < node.children().len());
    }
    if let Ok(trees) = catalog::decode(bytes) {
        let again = catalog::decode(&catalog::encode(&trees)).expect("what was encoded can be decoded");
        for (one, other) in trees.iter().zip(&again) {
            assert_eq!(one.ranges, other.ranges);
            let _times = one.ranges.over(bytes);
        }
    }
    let _commit = record_payload::read_commit::<FormatError>(bytes, |_, _, _| Ok(()));
    let _part = record_payload::read_part(bytes);
    let _numbers = record_payload::read_numbers::<2>(bytes);
    if let Ok((ranges, _)) = record_payload::read_range_commit(bytes) {
        let again = record_payload::CommitWriter::of_ranges(&ranges, 0).finish();
        assert_eq!(
            record_payload::read_range_commit(&again).expect("what was encoded can be decoded").0,
            ranges
        );
    }
    if let Ok(end) = record_payload::read_end(bytes) {
        assert_eq!(
            record_payload::read_end(&record_payload::write_end(&end))
                .expect("what was encoded can be decoded"),
            end
        );
    }
    let _created = record_payload::read_create_tree(bytes);
    let _laid_out = record_payload::read_lay_out_tree(bytes);
    let _dropped = record_payload::read_drop_tree(bytes);
    crate::log::fuzzing::decode_all(bytes);
    space::decode_all(bytes);
    crate::backup::decode_for_fuzzing(bytes);
}

/// Opens a store whose log holds records with these payloads. The records are intact but say anything. The
/// open is refused or succeeds. If it succeeds, the store closes and opens again with the same trees.
pub fn replay(bytes: &[u8]) {
    let folder = Path::new("/store");
    let simulation = Environment::simulated(1);
    let open = || Betree::open(&simulation.environment, folder, Options::default());
    let engine = open().expect("a new store can be made");
    simulation.tasks.forget_all();
    drop(engine);
    simulation.disk.kill();
    crate::log::fuzzing::write_records(&simulation.environment, folder, bytes);
    let trees = match open() {
        Ok(engine) => {
            let trees = trees_of(&engine);
            engine.close().expect("the disk is in memory");
            trees
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let engine = open().expect("what was closed can be opened");
    assert_eq!(trees_of(&engine), trees);
}

/// The trees by name, each with the number of its entries.
fn trees_of(engine: &Betree) -> Vec<(String, usize)> {
    let reader = engine.begin(Begin::READ).expect("a reader begins");
    let (range, limits, blocking) = (KeyRange::all(), BatchLimits::LARGEST, BlockingMode::MayBlock);
    let count = |tree| {
        let mut batch = Batch::new();
        reader
            .scan(tree, &range, Direction::Forward, limits, blocking, &mut batch)
            .expect("it is all in buffers");
        batch.len()
    };
    let trees = engine.list_trees().expect("the engine is open");
    let mut trees: Vec<_> = trees.into_iter().map(|tree| (tree.name, count(tree.id))).collect();
    trees.sort_unstable();
    trees
}

/// Valid inputs for [`decode_all`] and [`replay`]: the payloads of all blocks of a small store, and its log
/// records.
pub fn examples() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let folder = Path::new("/store");
    let simulation = Environment::simulated(1);
    let sizes =
        [("partitionSize", "2KB"), ("pageSize", "512B"), ("leafSize", "2KB"), ("compression", "none")];
    let sizes = sizes.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = Options::default().with_entries(&sizes).expect("the options are good ones");
    let engine = Betree::open(&simulation.environment, folder, options).expect("a new store can be made");
    let tree = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is made");
    for round in 0..20_u8 {
        let mut writer = engine.begin(Begin::WRITE).expect("a writer begins");
        for key in 0..12_u8 {
            let key = [key.wrapping_mul(53), round.wrapping_mul(37), key];
            writer.put_blind(tree, &key, &[round; 40][..usize::from(key[0] % 40)]).expect("the put succeeds");
        }
        writer.delete_blind(tree, &[round]).expect("the delete succeeds");
        if round % 5 == 4 {
            let range = KeyRange::prefix(&[round]);
            writer.delete_range(tree, &range, BlockingMode::MayBlock).expect("the range is deleted");
        }
        let merges = [Merge::Add(i64::from(round)), Merge::Max(&[round]), Merge::Min(b"min")];
        for (key, merge) in (round..).zip(merges) {
            writer
                .merge(tree, &[key, 7], merge, Claim::Blind, BlockingMode::MayBlock)
                .expect("the merge succeeds");
        }
        writer.commit(Durability::Logged).expect("the commit succeeds");
        simulation.tasks.run_until_idle();
    }
    engine.checkpoint().expect("a checkpoint is made");
    let records = crate::log::fuzzing::records(&simulation.environment, folder);
    let mut replayed = vec![Vec::new()];
    for (kind, flags, payload) in records.iter().filter(|record| record.2.len() <= usize::from(u8::MAX)) {
        let all = replayed.last_mut().expect("there is one");
        all.extend([*kind, *flags, payload.len() as u8]);
        all.extend(payload);
        if all.len() > 1_000 {
            replayed.push(Vec::new());
        }
    }
    let mut blocks = space::payloads(&simulation.environment, folder);
    blocks.extend(records.into_iter().map(|record| record.2));
    (blocks, replayed)
}

fn page(bytes: &[u8]) {
    let Ok(page) = Page::decode(Bytes::copy_from_slice(bytes)) else { return };
    let _order = page.check_order();
    let mut key = Vec::new();
    for at in 0..page.len() {
        let entry = page.entry(at);
        page.key_into(at, &mut key);
        let content = page.content(&entry);
        let _lengths = (content.in_page().len(), content.value_bytes());
        assert!(page.lower_bound(&key) <= page.len() && page.upper_bound(&key) <= page.len());
    }
    let _found = page.find(&key, SnapshotTimestamp::MAX, CommitTimestamp::ZERO);
}
