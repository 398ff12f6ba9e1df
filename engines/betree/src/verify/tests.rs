//! Trees that a correct engine never writes, written by hand. The check must name the damage of each.

use bytes::Bytes;
use pando_environment::Access;
use pando_environment::Simulation;
use pando_storage::{BlockingMode, Engine, Merge, SnapshotTimestamp, TreeOptions};

use super::*;
use crate::Betree;
use crate::base::BlockKind;
use crate::format::content::Content;
use crate::format::filter::{Filter, KeyHash};
use crate::format::inner_node::StoredSlice;
use crate::format::slice_index::SliceIndex;
use crate::options::Options;
use crate::options::tree_settings::TreeSettings;
use crate::range_deletes::DeletedRanges;
use crate::space::{CheckpointContents, Compression, Shutdown, SpaceChange, Superblock};
use crate::tree::buffer::{Buffer, BufferedVersion, OwnedChange, PruneBounds};
use crate::tree::leaf_merge::LeafMerge;
use crate::tree::leaf_writer::{LeafWriter, Residency};
use crate::tree::messages::Messages;
use crate::tree::node::{Child, InnerNode, NodeSlot, Part};
use crate::tree::run_writer::RunWriter;
use crate::tree::slice::{Slice, Slices};
use crate::tree::version_retention::Retained;

const FOLDER: &str = "/store";
const TREE: TreeId = TreeId::new(1);

/// A store with an empty tree, whose catalog is then replaced.
struct Forge {
    simulation: Simulation,
    blocks: Blocks,
    superblock: Superblock,
    settings: TreeSettings,
    written: Vec<Extent>,
}

impl Forge {
    fn new() -> Forge {
        let simulation = Environment::simulated(4);
        let folder = Path::new(FOLDER);
        let engine = Betree::open(&simulation.environment, folder, Options::default()).unwrap();
        assert_eq!(engine.create_tree("tree", &TreeOptions::default()).unwrap(), TREE);
        engine.close().unwrap();
        drop(engine);
        let space = SpaceOptions { access: Access::Buffered, ..SpaceOptions::default() };
        let (store, state) = BlockStore::open(&simulation.environment, folder, space).unwrap();
        let blocks = Blocks::new(Arc::new(store), PageCache::new(1 << 20, 1 << 10));
        let settings = TreeSettings { page_bytes: 64, ..TreeSettings::default() };
        Forge { simulation, blocks, superblock: state.superblock, settings, written: Vec::new() }
    }

    fn messages(&self, entries: &[(&str, u64)]) -> Messages {
        let mut buffer = Buffer::default();
        for (key, time) in entries {
            let version = BufferedVersion {
                timestamp: CommitTimestamp::new(*time),
                change: OwnedChange::Put(Bytes::from_static(b"value")),
            };
            let bounds = PruneBounds { oldest: SnapshotTimestamp::ZERO, ranges: &DeletedRanges::default() };
            buffer.push(key.as_bytes(), version, bounds);
        }
        Messages::of_buffer(&buffer, &retained())
    }

    /// A leaf whose entries keep their timestamps.
    fn leaf(&mut self, entries: &[(&str, u64)]) -> Child {
        let (messages, retained) = (self.messages(entries), retained());
        let mut merge = LeafMerge::new(&self.blocks, TREE, self.settings, &retained);
        let leaf = merge.grow_from_nothing(&[], messages.span()).unwrap().remove(0);
        let written = merge.into_parts().written;
        self.written.extend(written);
        Child::Leaf(leaf.child)
    }

    fn slice(&mut self, entries: &[(&str, u64)]) -> Arc<Slice> {
        let messages = self.messages(entries);
        let mut writer = RunWriter::new(&self.blocks, TREE, self.settings);
        writer.add(messages.span()).unwrap();
        let slice = writer.finish().unwrap().remove(0);
        self.written.extend(writer.written());
        Arc::new(slice)
    }

    /// The slice with another index.
    fn slice_with(&mut self, slice: &Slice, change: impl FnOnce(&mut SliceIndex)) -> Arc<Slice> {
        let mut index = slice.index().unwrap().clone();
        change(&mut index);
        let pointer = self.write(BlockKind::RunIndex, &index.encode());
        let pages: Vec<Pointer> = index.pages.pages().iter().map(|page| page.pointer).collect();
        // The old index goes, its pages stay.
        let old = extents_of(pages.iter().chain([&slice.stored().index]));
        self.written.retain(|extent| !old.contains(extent));
        self.written.extend(extents_of(&pages));
        Arc::new(Slice::on_disk(StoredSlice { index: pointer, ..*slice.stored() }))
    }

    fn write(&mut self, kind: BlockKind, raw: &[u8]) -> Pointer {
        let mut writer = self.blocks.store().extent_writer(TREE);
        let index = writer.append(kind, Compression::None, raw).unwrap();
        let placed = writer.place().unwrap();
        let pointer = placed.pointer(index);
        placed.finish().unwrap();
        self.written.extend(extents_of([&pointer]));
        pointer
    }

    fn node(&mut self, height: u8, parts: Vec<(&str, Child, Slices)>) -> Child {
        let parts = parts.into_iter().map(|(lower, child, slices)| Part {
            lower: lower.as_bytes().into(),
            child,
            slices,
        });
        let slot = NodeSlot::dirty(InnerNode::new(height, parts.collect()));
        let raw = slot.loaded().unwrap().to_stored().encode();
        let pointer = self.write(BlockKind::InnerNode, &raw);
        slot.set_stored(pointer);
        Child::Inner(Arc::new(slot))
    }

    /// Makes this the root of the tree in a new checkpoint of the store, and checks that. Returns the damage,
    /// one line each.
    fn verify(self, root: &Child) -> Vec<String> {
        let Forge { simulation, blocks, superblock, written, .. } = self;
        let old = superblock.catalog().unwrap();
        let mut trees = catalog::decode(&blocks.store().read_block(&old).unwrap()).unwrap();
        let height = match root {
            Child::Leaf(_) => 0,
            Child::Inner(slot) => slot.height(),
        };
        trees[0].root = Some(catalog::StoredRoot { height, pointer: root.pointer().unwrap() });
        (trees[0].entries, trees[0].content_bytes) = (root.entries(), root.content_bytes());
        let checkpoint = blocks.store().begin_checkpoint();
        let raw = catalog::encode(&trees);
        let pointer =
            checkpoint.write_block(TreeId::new(0), BlockKind::Catalog, Compression::None, &raw).unwrap();
        let mut change = SpaceChange::new();
        change.attach(written);
        change.attach(extents_of([&pointer]));
        change.detach(extents_of([&old]));
        let contents = CheckpointContents {
            catalog: Some(pointer),
            log_position: superblock.log_position(),
            log_synced_to: superblock.log_synced_to(),
            last_commit: superblock.last_commit(),
            oldest: SnapshotTimestamp::ZERO,
            next_tree: superblock.next_tree(),
            shutdown: Shutdown::Clean,
            change,
        };
        checkpoint.commit(&contents).unwrap();
        drop(blocks);
        let report = verify(&simulation.environment, Path::new(FOLDER)).unwrap();
        report.damage.into_iter().map(|damage| damage.problem).collect()
    }
}

/// Snapshots so old that every entry keeps its timestamp.
fn retained() -> Retained {
    Retained::new(vec![SnapshotTimestamp::new(1)], SnapshotTimestamp::new(2))
}

#[track_caller]
fn assert_says(damage: &[String], expected: &str) {
    assert!(damage.iter().any(|problem| problem.contains(expected)), "{damage:?} lacks {expected:?}");
}

#[test]
fn a_tree_of_two_levels_with_slices_in_order_is_sound() {
    let mut forge = Forge::new();
    let (left, right) = (forge.leaf(&[("a", 3), ("b", 3)]), forge.leaf(&[("m", 3)]));
    let slices = vec![forge.slice(&[("a", 9), ("c", 9)]), forge.slice(&[("a", 7), ("b", 5), ("c", 4)])];
    let below = forge.node(1, vec![("", left, slices), ("k", right, Vec::new())]);
    let above = forge.slice(&[("a", 12), ("b", 6), ("m", 4)]);
    let root = forge.node(2, vec![("", below, vec![above])]);
    assert_eq!(forge.verify(&root), Vec::<String>::new());
}

#[test]
fn merge_operators_in_a_leaf_are_found_and_never_read_as_a_value() {
    let mut forge = Forge::new();
    let mut writer = LeafWriter::new(&forge.blocks, TREE, forge.settings);
    let (time, add) = (CommitTimestamp::new(3), Merge::Add(1).to_bytes());
    writer.begin(&[], 1 << 10);
    writer.push(b"a", time, Content::Merge(&add), Residency::Leave).unwrap();
    let leaf = writer.end().unwrap().remove(0).child;
    forge.written.extend(writer.into_written());
    let directory = forge.blocks.directory(&leaf.directory, BlockingMode::MayBlock).unwrap();
    let page = directory.pages()[0].pointer;
    forge.blocks.forget(&page);
    assert!(matches!(forge.blocks.page(&page, BlockingMode::MayBlock), Err(BetreeError::Format { .. })));
    assert_says(&forge.verify(&Child::Leaf(leaf)), "a leaf has merge operators");
}

#[test]
fn slices_that_stand_in_the_wrong_order_are_found() {
    let mut forge = Forge::new();
    let leaf = forge.leaf(&[("a", 3)]);
    let slices = vec![forge.slice(&[("a", 7)]), forge.slice(&[("a", 9)])];
    let root = forge.node(1, vec![("", leaf, slices)]);
    assert_says(&forge.verify(&root), "is not older than one above it");
}

#[test]
fn a_leaf_and_a_lower_slice_that_are_newer_than_a_slice_above_are_found() {
    let mut forge = Forge::new();
    let leaf = forge.leaf(&[("a", 8)]);
    let slice = forge.slice(&[("a", 7)]);
    let root = forge.node(1, vec![("", leaf, vec![slice])]);
    assert_says(&forge.verify(&root), "entry 0 of a page is not older");
    let mut forge = Forge::new();
    let leaf = forge.leaf(&[("a", 3)]);
    let (lower, upper) = (forge.slice(&[("a", 7)]), forge.slice(&[("a", 6)]));
    let below = forge.node(1, vec![("", leaf, vec![lower])]);
    let root = forge.node(2, vec![("", below, vec![upper])]);
    assert_says(&forge.verify(&root), "entry 0 of a slice is not older");
}

#[test]
fn a_slice_that_has_keys_of_another_child_is_found() {
    let mut forge = Forge::new();
    let (left, right) = (forge.leaf(&[("a", 3)]), forge.leaf(&[("m", 3)]));
    let slice = forge.slice(&[("b", 7), ("n", 7)]);
    let root = forge.node(1, vec![("", left, vec![slice]), ("k", right, Vec::new())]);
    assert_says(&forge.verify(&root), "lies outside");
}

#[test]
fn a_filter_without_a_key_is_found() {
    let mut forge = Forge::new();
    let leaf = forge.leaf(&[("a", 3)]);
    let slice = forge.slice(&[("b", 7), ("c", 7)]);
    let other = [KeyHash::of(b"b"), KeyHash::of(b"x")];
    let slice = forge.slice_with(&slice, |index| index.filter = Filter::new(&other, 10));
    let root = forge.node(1, vec![("", leaf, vec![slice])]);
    assert_says(&forge.verify(&root), "the filter of a slice misses entry 1");
}

#[test]
fn a_node_whose_record_of_a_slice_is_wrong_is_found() {
    for change in [
        (|stored: &mut StoredSlice| stored.entries += 1) as fn(&mut StoredSlice),
        |stored| stored.content_bytes += 1,
        |stored| stored.oldest = CommitTimestamp::new(1),
        |stored| stored.newest = CommitTimestamp::new(90),
    ] {
        let mut forge = Forge::new();
        let leaf = forge.leaf(&[("a", 3)]);
        let slice = forge.slice(&[("b", 7), ("c", 8)]);
        let mut stored = *slice.stored();
        change(&mut stored);
        let root = forge.node(1, vec![("", leaf, vec![Arc::new(Slice::on_disk(stored))])]);
        assert_says(&forge.verify(&root), "a slice has");
    }
}

#[test]
fn a_slice_that_two_children_have_is_found() {
    let mut forge = Forge::new();
    let (left, right) = (forge.leaf(&[("a", 3)]), forge.leaf(&[("m", 3)]));
    let slice = forge.slice(&[("b", 7)]);
    let parts = vec![("", left, vec![Arc::clone(&slice)]), ("k", right, vec![slice])];
    let root = forge.node(1, parts);
    let damage = forge.verify(&root);
    assert_says(&damage, "lies outside");
}
