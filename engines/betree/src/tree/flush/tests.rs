//! Sequences of flushes, checked against a map: the values that are read, the shape of the nodes, the space.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use pando_environment::simulated::{Fault, FaultRule};
use pando_environment::{Environment, Operation, Random, SeededRandom, Simulation};
use pando_storage::{CommitTimestamp, Lsn, Merge, SnapshotTimestamp};

use super::super::buffer::{Buffer, BufferedVersion, DeleteOrMerge, OwnedChange, PruneBounds};
use super::super::large_value_writer::write_large_values;
use super::super::lookup;
use super::super::view::{Partition, TreeView};
use super::*;
use crate::base::extents_of;
use crate::format::content::{Content, merges_of};
use crate::range_deletes::DeletedRanges;
use crate::space::{BlockStore, Compression, SpaceOptions};
use crate::tree::flush_debt::{FlushDebt, Payment};
use crate::tree::flush_policy::{LARGE_FACTOR, SLICES_MAX};
use crate::tree::owned_extents::Owners;
use crate::tree::partial_flush_step::{PartialFlush, Place, partial_flush};
use crate::tree::tree_blocks::PageCache;

/// A key and the change to it.
type KeyChange = (Vec<u8>, OwnedChange);

struct World {
    simulation: Simulation,
    blocks: Blocks,
    settings: TreeSettings,
    version: Arc<TreeVersion>,
    flush_debt: FlushDebt,
    /// Every key that was ever written, with its newest value.
    model: BTreeMap<Vec<u8>, Option<Bytes>>,
    time: u64,
}

fn tiny() -> TreeSettings {
    TreeSettings {
        page_bytes: 128,
        leaf_bytes: 1_000,
        fanout: 5,
        compression: Compression::None,
        run_compression: Compression::None,
        buffer_percent: 30,
        run_bytes: 1_000,
        filter_bits: 10,
        leaf_filter_bits: 0,
        large_value_bytes: 24,
    }
}

impl World {
    fn new(settings: TreeSettings) -> World {
        let simulation = Environment::simulated(9);
        let store = BlockStore::create(&simulation.environment, Path::new("/store"), SpaceOptions::default())
            .unwrap();
        let blocks = Blocks::new(Arc::new(store), PageCache::new(16 << 10, 128));
        let (version, flush_debt, model) = (Arc::default(), FlushDebt::default(), BTreeMap::new());
        World { simulation, blocks, settings, version, flush_debt, model, time: 0 }
    }

    fn retained(&self) -> Retained {
        Retained::new(Vec::new(), SnapshotTimestamp::new(self.time))
    }

    /// The messages of a buffer with these writes.
    fn messages(&mut self, writes: &[KeyChange]) -> Messages {
        let mut buffer = Buffer::default();
        for (key, change) in writes {
            self.time += 1;
            let version =
                BufferedVersion { timestamp: CommitTimestamp::new(self.time), change: change.clone() };
            let bounds = PruneBounds { oldest: SnapshotTimestamp::ZERO, ranges: &DeletedRanges::default() };
            buffer.push(key, version, bounds);
        }
        Messages::of_buffer(&buffer, &self.retained())
    }

    fn try_flush(&mut self, messages: &mut Messages) -> Result<FlushFigures, BetreeError> {
        let flushed = self.flushed(messages)?;
        Ok(self.install(messages.span().bytes(), flushed))
    }

    fn flushed(&self, messages: &mut Messages) -> Result<Flushed, BetreeError> {
        let (large, retained) = (self.write_large_values(messages)?, self.retained());
        let to_leaves = self.flush_debt.allowed_to_leaves(messages.span().bytes());
        flush_with(self.input(messages, &retained), large, to_leaves)
    }

    fn write_large_values(&self, messages: &mut Messages) -> Result<LargeValues, BetreeError> {
        write_large_values(messages, &self.blocks, TreeId::new(1), self.settings)
    }

    fn input<'w>(&'w self, messages: &'w Messages, retained: &'w Retained) -> FlushInput<'w> {
        FlushInput {
            blocks: &self.blocks,
            tree: TreeId::new(1),
            settings: self.settings,
            version: &self.version,
            messages,
            retained,
        }
    }

    fn install(&mut self, arrived: usize, flushed: Flushed) -> FlushFigures {
        for blocks in &flushed.replaced {
            extents_of(blocks).into_iter().for_each(|extent| self.blocks.store().abandon(extent));
        }
        self.flush_debt.note(arrived, flushed.figures.moved, flushed.overdue);
        self.version = Arc::new(TreeVersion { root: flushed.root });
        flushed.figures
    }

    /// A step between flushes. Returns whether it changed the tree.
    fn partial_flush(&mut self, key: &[u8], height: u8, what: PartialFlush) -> bool {
        let (messages, retained) = (Messages::default(), self.retained());
        let flushed = partial_flush(self.input(&messages, &retained), Place { key, height }, what).unwrap();
        let changed = !flushed.replaced_nodes.is_empty();
        self.install(0, flushed);
        changed
    }

    /// Flushes overdue messages as far as there is a quota.
    fn catch_up(&mut self) {
        while self.flush_debt.is_due() {
            let overdue = self.flush_debt.take(Payment::Quota).unwrap();
            self.partial_flush(&overdue.key, overdue.height, PartialFlush::Due);
        }
    }

    fn flush(&mut self, writes: &[KeyChange]) -> FlushFigures {
        let mut messages = self.messages(writes);
        let figures = self.try_flush(&mut messages).unwrap();
        self.note(writes);
        self.catch_up();
        figures
    }

    /// Applies the writes to the model.
    fn note(&mut self, writes: &[KeyChange]) {
        for (key, change) in writes {
            let value = match change.content() {
                Content::Value(value) => Some(Bytes::copy_from_slice(value)),
                Content::Merge(merges) => {
                    let before = self.model.get(key).and_then(Option::as_deref);
                    merges_of(merges).apply(before).map(|value| Bytes::copy_from_slice(&value))
                }
                Content::Deleted | Content::Large(_) => None,
            };
            self.model.insert(key.clone(), value);
        }
    }

    fn used_bytes(&self) -> u64 {
        let space = self.blocks.store().statistics();
        space.file_bytes - space.free_bytes
    }

    /// Everything is found, the nodes are in shape, and every unit that is not free has an owner.
    fn check(&self) {
        let partition = Partition::empty(Box::default(), Lsn::ZERO);
        let view = TreeView::new(vec![Arc::new(partition)], Arc::clone(&self.version));
        let newest = SnapshotTimestamp::new(self.time);
        for (key, value) in &self.model {
            let found = lookup::get(&view, &self.blocks, key, newest, BlockingMode::MayBlock).unwrap();
            assert_eq!(found, *value, "{key:?}");
        }
        let mut owners = Owners::default();
        if let Some(root) = &self.version.root {
            self.check_child(root, None);
            owners.collect(&self.blocks, root).unwrap();
        }
        let extents = owners.extents.iter().chain(&owners.values).map(|(extent, _)| *extent);
        let units: u64 = extents.map(|extent| extent.end() - extent.start()).sum();
        // The head of the file belongs to superblocks.
        assert_eq!(self.used_bytes(), (units + 32) * UNIT_BYTES, "room leaks, or is owned twice");
    }

    fn check_child(&self, child: &Child, height: Option<u8>) {
        let Child::Inner(slot) = child else { return assert_eq!(height.unwrap_or(0), 0) };
        assert!(height.is_none_or(|height| height == slot.height()));
        let node = self.blocks.node(slot, BlockingMode::MayBlock).unwrap();
        // A node that grew in a partial flush is divided by the next flush.
        assert!(node.children().len() <= self.settings.fanout * 2, "{} children", node.children().len());
        let pending: usize = node.all_slices().map(|slice| pending_bytes(slice)).sum();
        let target = match node.height() {
            1 => self.settings.leaf_bytes * self.settings.buffer_percent / 100,
            _ => self.settings.run_bytes / 2,
        };
        // A node that was just divided may exceed its target by the limit of one child. If its neighbour was
        // united with it, the flush debt has the two as one place.
        let overdue = self.flush_debt.bytes();
        assert!(
            pending <= 2 * target * (node.children().len() + 2) + overdue,
            "{pending} bytes are pending in a node"
        );
        for (at, child) in node.children().iter().enumerate() {
            assert!(node.slices(at).len() <= SLICES_MAX);
            let upper = (at + 1 < node.children().len()).then(|| node.pivots().get(at + 1));
            let (nothing, retained, mut dropped) = (Messages::default(), self.retained(), Dropped::new());
            let merged = Messages::merge(
                nothing.span(),
                node.slices(at),
                &self.blocks,
                &mut SlicePages::default(),
                &retained,
                &mut dropped,
            );
            let (merged, lower) = (merged.unwrap(), node.pivots().get(at));
            assert!(merged.span().first_key().is_none_or(|first| first >= lower));
            assert!(merged.span().last_key().is_none_or(|last| upper.is_none_or(|upper| last < upper)));
            self.check_child(child, Some(node.height() - 1));
        }
    }
}

fn key(random: &SeededRandom, keys: u64) -> Vec<u8> {
    format!("key {:05}", random.below(keys)).into_bytes()
}

fn writes(random: &SeededRandom, keys: u64, count: u64, deletes: u64) -> Vec<KeyChange> {
    let write = |_| {
        let value = Bytes::from(vec![random.next_u64() as u8; random.below(30) as usize]);
        let change = match random.below(100) {
            below if below < deletes => OwnedChange::Other(DeleteOrMerge::Delete),
            number if number % 4 > 0 => OwnedChange::Put(value),
            number => {
                let merges = [Merge::Add(number as i64), Merge::Max(&value), Merge::Min(&value)];
                OwnedChange::Other(DeleteOrMerge::Merge(merges[random.below(3) as usize].to_bytes().into()))
            }
        };
        (key(random, keys), change)
    };
    let mut writes: Vec<_> = (0..count).map(write).collect();
    writes.sort_by(|left, right| left.0.cmp(&right.0));
    writes.dedup_by(|left, right| left.0 == right.0);
    writes
}

#[test]
fn growing_and_shrinking_trees_keep_entries_and_shape_and_lose_no_space() {
    for seed in 0..6 {
        let random = SeededRandom::new(seed);
        let mut world = World::new(tiny());
        let mut slices = 0;
        for round in 0..120 {
            // Growth, then mostly deletes, then growth again.
            let deletes = if (50..90).contains(&round) { 90 } else { 10 };
            let count = 1 + random.below(60);
            slices += world.flush(&writes(&random, 2_000, count, deletes)).slices;
            if round % 10 == 0 {
                world.check();
            }
        }
        world.check();
        assert!(slices > 100, "seed {seed}: {slices} slices");
    }
}

#[test]
fn a_flush_that_fails_at_any_call_leaves_all_as_it_was() {
    let random = SeededRandom::new(3);
    let mut world = World::new(tiny());
    for _ in 0..40 {
        world.flush(&writes(&random, 2_000, 40, 10));
    }
    let wanted = writes(&random, 2_000, 300, 10);
    for (operation, fault) in [
        (Operation::Write, Fault::InputOutputError),
        (Operation::Write, Fault::NoSpace),
        (Operation::Read, Fault::InputOutputError),
    ] {
        let mut failures = 0;
        for call in (0..60).step_by(7) {
            let before = (world.used_bytes(), Arc::clone(&world.version));
            world.simulation.disk.inject(FaultRule::new(operation, fault).after(call));
            let fresh = Arc::clone(&world.version);
            let mut messages = world.messages(&wanted);
            let outcome = world.try_flush_aside(&mut messages);
            world.simulation.disk.clear_faults();
            assert!(Arc::ptr_eq(&fresh, &before.1));
            assert_eq!(world.used_bytes(), before.0, "{operation:?} {call}: room is lost");
            failures += u64::from(outcome.is_err());
        }
        assert!(failures > 1, "{operation:?}: only {failures} flushes failed");
    }
    world.check();
    world.flush(&wanted);
    world.check();
}

impl World {
    /// A flush whose result is thrown away, whether it succeeds or not.
    fn try_flush_aside(&self, messages: &mut Messages) -> Result<(), BetreeError> {
        let flushed = self.flushed(messages)?;
        flushed.written.iter().for_each(|extent| self.blocks.store().abandon(*extent));
        Ok(())
    }
}

#[test]
fn a_tree_without_node_buffers_has_no_runs_and_flushes_those_that_it_had() {
    let random = SeededRandom::new(5);
    let mut world = World::new(tiny());
    for _ in 0..40 {
        world.flush(&writes(&random, 2_000, 40, 10));
    }
    world.settings.buffer_percent = 0;
    let everywhere: Vec<_> = (0..2_000)
        .map(|number| (format!("key {number:05}").into_bytes(), OwnedChange::Put(Bytes::from_static(b"new"))))
        .collect();
    assert_eq!(world.flush(&everywhere).slices, 0);
    let pending = |world: &World| match &world.version.root {
        Some(Child::Inner(slot)) => {
            world.blocks.node(slot, BlockingMode::MayBlock).unwrap().all_slices().count()
        }
        _ => 0,
    };
    assert_eq!(pending(&world), 0);
    world.settings.buffer_percent = 30;
    world.check();
}

#[test]
fn nodes_over_any_fanout_are_made_and_unmade_when_the_fanout_changes() {
    let random = SeededRandom::new(6);
    let mut world = World::new(tiny());
    for round in 0..60 {
        world.settings.fanout = [9, 9, 4, 16][round / 15];
        world.flush(&writes(&random, 2_000, 60, 20));
    }
    world.settings.fanout = 16;
    world.check();
}

#[test]
fn ascending_keys_go_to_full_leaves_past_all_nodes() {
    let mut world = World::new(tiny());
    let (mut slices, mut entries) = (0, 0);
    for round in 0..50_u32 {
        let ascending: Vec<_> = (round * 40..(round + 1) * 40)
            .map(|number| {
                (format!("{number:08}").into_bytes(), OwnedChange::Put(Bytes::from_static(b"value")))
            })
            .collect();
        let flushed = world.flush(&ascending);
        slices += flushed.slices;
        entries += flushed.leaves.entries;
    }
    assert_eq!(slices, 0);
    assert!(entries < 2 * 2_000, "{entries} entries were written for 2,000");
    world.check();
}

#[test]
fn partial_flushes_anywhere_between_flushes_keep_entries_and_shape_and_lose_no_space() {
    for seed in 10..14 {
        let random = SeededRandom::new(seed);
        let mut world = World::new(tiny());
        let mut changes = 0;
        for round in 0..120 {
            let deletes = if (50..90).contains(&round) { 90 } else { 10 };
            world.flush(&writes(&random, 2_000, 1 + random.below(60), deletes));
            for _ in 0..random.below(6) {
                let (place, height) = (key(&random, 2_000), 1 + random.below(3) as u8);
                let what = [PartialFlush::Due, PartialFlush::Child][random.below(2) as usize];
                changes += u32::from(world.partial_flush(&place, height, what));
            }
            if round % 10 == 0 {
                world.check();
            }
        }
        world.check();
        assert!(changes > 50, "seed {seed}: {changes} steps did something");
    }
}

#[test]
fn a_flush_takes_about_as_much_to_leaves_as_arrives_and_partial_flushes_take_the_rest() {
    let random = SeededRandom::new(15);
    let mut world = World::new(tiny());
    let target = world.settings.leaf_pending_target();
    let (mut overdue, mut steps) = (0, 0);
    for _ in 0..150 {
        let wanted = writes(&random, 2_000, 30, 0);
        let mut messages = world.messages(&wanted);
        let allowed = world.flush_debt.allowed_to_leaves(messages.span().bytes());
        let figures = world.try_flush(&mut messages).unwrap();
        world.note(&wanted);
        // The largest child in any case: its size is at most its limit and the bytes that arrived for it.
        let largest = LARGE_FACTOR * target + messages.span().bytes();
        let most = allowed.max(largest);
        assert!(
            figures.moved.to_leaves() <= most,
            "{} bytes went down, {} arrived",
            figures.moved.to_leaves(),
            messages.span().bytes()
        );
        overdue = overdue.max(world.flush_debt.bytes());
        while world.flush_debt.is_due() {
            let place = world.flush_debt.take(Payment::Quota).unwrap();
            steps += u32::from(world.partial_flush(&place.key, place.height, PartialFlush::Due));
        }
    }
    world.check();
    assert!(overdue > 0 && steps > 10, "{overdue} bytes were overdue, {steps} steps followed");
}

#[test]
fn messages_for_a_few_leaves_only_do_not_pile_up() {
    for leaves in [1, 4] {
        let random = SeededRandom::new(17);
        let settings = TreeSettings { leaf_bytes: 20_000, buffer_percent: 3, ..tiny() };
        let large = LARGE_FACTOR * settings.leaf_pending_target();
        let mut world = World::new(settings);
        for _ in 0..20 {
            world.flush(&writes(&random, 20_000, 1_000, 0));
        }
        let (mut moved, mut arrived) = (0, 0);
        for flush in 0..200 {
            // Some of the keys of one leaf, or of a few.
            let wanted = writes(&random, 500 * leaves, 400, 0);
            let mut messages = world.messages(&wanted);
            let figures = world.try_flush(&mut messages).unwrap();
            world.note(&wanted);
            if flush >= 10 {
                arrived = arrived.max(messages.span().bytes());
                moved = moved.max(figures.moved.to_leaves());
            }
            world.catch_up();
        }
        world.check();
        assert!(
            moved <= arrived + 2 * large,
            "{leaves} leaves: {moved} bytes went down at once, {arrived} came"
        );
    }
}

#[test]
fn without_anything_to_do_a_step_changes_nothing() {
    let random = SeededRandom::new(16);
    let mut world = World::new(tiny());
    assert!(!world.partial_flush(b"key", 1, PartialFlush::Child), "no tree");
    world.flush(&writes(&random, 5, 5, 0));
    assert!(!world.partial_flush(b"key", 1, PartialFlush::Due), "a single leaf");
    for _ in 0..60 {
        world.flush(&writes(&random, 2_000, 40, 0));
    }
    let before = (world.used_bytes(), Arc::clone(&world.version));
    assert!(!world.partial_flush(b"key", 200, PartialFlush::Child), "no such height");
    assert!(!world.partial_flush(b"key", 0, PartialFlush::Due), "leaves are no nodes");
    assert_eq!(world.used_bytes(), before.0);
    world.check();
}
