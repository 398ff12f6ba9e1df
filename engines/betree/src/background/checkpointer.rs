//! The checkpointer: makes durable images of all trees. No client waits for one.
//!
//! 1. Close the commit gate for an instant and take the last LSN. Every record up to it is in some buffer,
//!    node or leaf.
//! 2. Tree by tree: take its view, write the inner nodes that are not on disk yet, take its space change.
//!    Buffered writes stay in the buffers; replay will begin at the oldest of their records.
//! 3. Sync the log: it must hold everything that the image contains. A replay that would begin within a large
//!    commit begins at the first part of it ([`crate::commit::large_commit`]).
//! 4. Write the catalog, the space map and the superblock
//!    ([`Checkpoint::commit`](crate::space::Checkpoint::commit)).
//! 5. Release the log before the position from which *either* superblock replays, and free the old catalog.
//!
//! Old buffers are flushed by the flush tasks ([`super::buffer_age`]), so that the position moves on. If the
//! log has grown long even so, the checkpoint first flushes all writes that were buffered before the last
//! one.
//!
//! # Failures
//! A failed checkpoint changes nothing: its space changes are kept for the next attempt. A failed sync stops
//! the engine. A dropped tree that is damaged stays in the catalog as dropped. It keeps its room, since the
//! walk cannot find all of it. `checkpoints.failed_drops` counts such trees.
//!
//! A live tree that is damaged cannot be flushed. Its buffers stay, and so does the log from its oldest
//! buffered record on. The image is made even so: it has the progress of all other trees. The checkpoint
//! reports the damage after that, and commits that find the log full fail with it until the tree is dropped.

use pando_environment::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use pando_environment::sync::{Mutex, MutexGuard};
use pando_environment::{Clock, Monotonic};
use pando_storage::{CommitTimestamp, ErrorKind, Lsn, TreeId};

use super::buffer_age::AgedBuffers;
use super::buffer_flush::BufferFlusher;
use super::dropped_trees::DroppedTrees;
use super::flush_monitor::FlushMonitor;
use super::partial_flush::PartialFlushes;
use super::space_return::SpaceReturn;
use super::write_buffers::WriteBuffers;
use crate::base::{BlockKind, Pointer, extents_of};
use crate::base::{LockWaits, WaitFor};
use crate::commit_order::{CommitGate, LargeCommits, Visibility};
use crate::counters::Counters;
use crate::error::BetreeError;
use crate::format::catalog::{self, StoredPartition, StoredRoot, StoredState, StoredTree};
use crate::options::live_options::LiveOptions;
use crate::range_deletes::DeletedRanges;
use crate::space::{CheckpointContents, Compression, ExtentWriter, Shutdown, SpaceChange};
use crate::tree::node::{Child, NodeSlot};
use crate::tree::registry::TreeRegistry;
use crate::tree::tree_blocks::Blocks;
use crate::tree::tree_state::Tree;
use crate::tree::view::{TreeVersion, TreeView};

/// The catalog belongs to no tree.
const NO_TREE: TreeId = TreeId::new(0);
/// The freed bytes for which an idle store makes a checkpoint.
const PENDING_BYTES_MIN: u64 = 1 << 20;

/// The state that checkpoints keep from one to the next.
#[derive(Default)]
pub(crate) struct CheckpointState {
    last: Mutex<Last>,
    /// Bytes that the log has been given since the last checkpoint.
    log_bytes: AtomicU64,
    /// The log was replayed, and no checkpoint has been made since. The first checkpoint flushes all of it.
    /// Otherwise the next opening would replay all of it again, and a process that is killed repeatedly would
    /// start more slowly each time.
    replayed: AtomicBool,
    /// Why the last checkpoint failed, if it did.
    failure: Mutex<Option<BetreeError>>,
    /// The last checkpoint could not flush a damaged tree. So its image may have released no log.
    keeps_log: AtomicBool,
}

/// The outcome of the last checkpoint.
#[derive(Default)]
pub(crate) struct Last {
    /// The last record in the image.
    lsn: Lsn,
    /// The steps of background work in the image. They add no record, but replace blocks.
    steps: u64,
    at: Monotonic,
    catalog: Option<Pointer>,
    /// Space changes of failed attempts.
    change: SpaceChange,
    /// Dropped trees whose room some reader still holds.
    graveyard: Vec<Arc<Tree>>,
    /// Dropped trees with an unreadable block, so that their room is not known.
    damaged: BTreeSet<TreeId>,
}

/// A tree as an image has it. It holds the version, so that none of its blocks is reused before the image is
/// durable.
struct Captured {
    stored: StoredTree,
    view: Arc<TreeView>,
    change: SpaceChange,
}

impl CheckpointState {
    /// Counts what was appended to the log.
    pub(crate) fn add_log_bytes(&self, bytes: u64) {
        self.log_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that the store was opened by replaying the log: a checkpoint is due at once.
    pub(crate) fn note_replay(&self) {
        self.replayed.store(true, Ordering::Relaxed);
    }

    /// Why the last checkpoint failed, if it did.
    pub(crate) fn failure(&self) -> Option<BetreeError> {
        self.failure.lock().clone()
    }

    /// Whether a checkpoint is under way, or kept from beginning.
    pub(crate) fn is_under_way(&self) -> bool {
        self.last.try_lock().is_none()
    }

    /// Keeps checkpoints from being made, as long as the result lives; waits for one that is under way.
    pub(crate) fn exclude(&self) -> MutexGuard<'_, Last> {
        self.last.lock()
    }

    /// Begins after the checkpoint that the store was opened from.
    pub(crate) fn start_from(&self, lsn: Lsn, at: Monotonic, catalog: Option<Pointer>) {
        *self.last.lock() = Last { lsn, at, catalog, ..Last::default() };
    }
}

/// See the module's head.
pub(crate) struct Checkpointer {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<LiveOptions>,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) trees: Arc<TreeRegistry>,
    pub(crate) gate: Arc<CommitGate>,
    pub(crate) visibility: Arc<Visibility>,
    pub(crate) large: Arc<LargeCommits>,
    pub(crate) buffers: Arc<WriteBuffers>,
    pub(crate) monitor: Arc<FlushMonitor>,
    pub(crate) flusher: Arc<BufferFlusher>,
    pub(crate) partial_flushes: Arc<PartialFlushes>,
    pub(crate) aged_buffers: Arc<AgedBuffers>,
    pub(crate) space_return: Arc<SpaceReturn>,
    pub(crate) dropped_trees: DroppedTrees,
    pub(crate) counters: Arc<Counters>,
    pub(crate) waits: Arc<LockWaits>,
    pub(crate) state: CheckpointState,
}

impl Checkpointer {
    /// Replaces long segments by a short one, where nobody writes and the last image contains everything. The
    /// next two checkpoints release the long ones. After a failure the log goes on as it was, or the next
    /// commit gets its error.
    pub(crate) fn shorten_log(&self) {
        if self.is_at_rest() {
            let _tried = self.gate.log().shorten();
        }
    }

    /// Whether nobody writes and all buffers are empty.
    fn is_at_rest(&self) -> bool {
        self.partial_flushes.is_quiet() && self.buffers.bytes() == 0
    }

    pub(crate) fn is_due(&self) -> bool {
        let replayed = self.state.replayed.load(Ordering::Relaxed);
        if replayed || self.log_bytes_since_checkpoint() >= self.checkpoint_log_bytes() {
            return true;
        }
        if self.state.keeps_log.load(Ordering::Relaxed) && self.is_log_full() {
            // The damaged tree may have been dropped meanwhile, and commits wait for that.
            return true;
        }
        let Some(last) = self.state.last.try_lock() else { return false };
        let age = self.clock.monotonic().since(last.at);
        // Freed room can be used again, or given back, only after two further checkpoints.
        let waits = self.blocks.store().statistics().pending_bytes >= PENDING_BYTES_MIN;
        let moves = self.space_return.has_moved() || self.blocks.store().wants_checkpoint();
        let changed = last.lsn < self.gate.last_lsn() || last.steps != self.background_steps();
        let log_is_long = self.is_at_rest() && self.gate.log().has_older_segments();
        age >= self.options.checkpoint_period && (changed || waits || moves || log_is_long)
    }

    /// Flushes, partial flushes and steps of range deletes since the store was opened.
    fn background_steps(&self) -> u64 {
        self.counters.flushes.get()
            + self.counters.partial_flushes.get()
            + self.counters.range_delete_steps.get()
    }

    pub(crate) fn log_bytes_since_checkpoint(&self) -> u64 {
        self.state.log_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn checkpoint_log_bytes(&self) -> u64 {
        self.options.log_budget_bytes / 8
    }

    /// Whether the log may be near its budget. It is cheap, since every commit asks.
    pub(crate) fn is_log_long(&self) -> bool {
        self.log_bytes_since_checkpoint() >= self.options.log_budget_bytes / 2
            || self.state.keeps_log.load(Ordering::Relaxed)
    }

    /// Whether commits have to wait for a checkpoint.
    pub(crate) fn is_log_full(&self) -> bool {
        self.is_log_long() && self.gate.log().live_bytes() >= self.log_budget()
    }

    /// Bytes that the log may have. Records of large commits come on top: no checkpoint could release them.
    pub(crate) fn log_budget(&self) -> u64 {
        self.options.log_budget_bytes + self.large.log_bytes()
    }

    /// Makes a checkpoint; waits for one that is under way. Says `Clean` only after all buffers are flushed.
    pub(crate) fn checkpoint(&self, shutdown: Shutdown) -> Result<(), BetreeError> {
        let mut last = self.waits.lock(WaitFor::Checkpoint, &self.state.last);
        self.checkpoint_locked(&mut last, shutdown)
    }

    /// Makes the last checkpoint, after all buffers are flushed. The log of a closed store is short.
    pub(crate) fn checkpoint_at_end(&self) -> Result<(), BetreeError> {
        self.gate.log().sync(self.gate.log().appended_lsn())?;
        // Where there is no room for another segment, the old ones stay.
        let is_shorter = matches!(self.gate.log().shorten(), Ok(true));
        let waits = self.blocks.store().statistics().pending_bytes >= PENDING_BYTES_MIN;
        if is_shorter || waits || self.gate.log().has_older_segments() {
            // The older superblock leads to the old segments, and to what was freed since, until both are
            // new.
            self.checkpoint(Shutdown::Running)?;
        }
        self.checkpoint(Shutdown::Clean)?;
        self.space_return.return_all();
        // Released segments were kept to be used again.
        let _tried = self.gate.log().shorten();
        Ok(())
    }

    /// Makes a checkpoint after any other that is under way, unless the log is short enough then.
    pub(crate) fn checkpoint_of_full_log(&self) -> Result<(), BetreeError> {
        let mut last = self.waits.lock(WaitFor::Checkpoint, &self.state.last);
        if !self.is_log_full() {
            return Ok(());
        }
        self.checkpoint_locked(&mut last, Shutdown::Running)
    }

    fn checkpoint_locked(&self, last: &mut Last, shutdown: Shutdown) -> Result<(), BetreeError> {
        let began = self.clock.monotonic();
        let flushed = if self.state.replayed.load(Ordering::Relaxed) {
            self.flush_everything()
        } else {
            self.flush_before(last.lsn)
        };
        let outcome = match flushed {
            Ok(()) => self.make_image(last, shutdown),
            Err(damage) if damage.kind() == ErrorKind::Corrupt => {
                self.state.keeps_log.store(true, Ordering::Relaxed);
                // Not `Clean`, since writes stay buffered.
                self.make_image(last, Shutdown::Running).and(Err(damage))
            }
            Err(error) => Err(error),
        };
        if outcome.is_ok() {
            self.state.keeps_log.store(false, Ordering::Relaxed);
        }
        match &outcome {
            Ok(()) => self.counters.checkpoints.add(1),
            Err(_) => self.counters.failed_checkpoints.add(1),
        }
        let nanos = self.clock.monotonic().since(began).as_nanos();
        self.counters.checkpoint_nanos.add(nanos as u64);
        self.counters.last_checkpoint.note(nanos as u64, self.clock.wall().millis());
        *self.state.failure.lock() = outcome.as_ref().err().cloned();
        self.monitor.announce_room();
        outcome
    }

    /// Flushes everything that has been committed so far.
    pub(crate) fn flush_everything(&self) -> Result<(), BetreeError> {
        let target = {
            let _gate = self.gate.close();
            self.gate.last_lsn()
        };
        self.aged_buffers.share_flushes_up_to(target);
        self.flush_all_up_to(target)
    }

    /// Flushes all buffered writes of records up to `target`. A tree that fails stops no other; dropped ones
    /// that nobody reads any more need no flush.
    fn flush_all_up_to(&self, target: Lsn) -> Result<(), BetreeError> {
        let oldest = self.visibility.oldest_now();
        let mut outcome = Ok(());
        for tree in self.trees.in_order() {
            if !tree.is_dropped() || tree.is_usable_at(oldest) {
                outcome = outcome.and(self.flusher.flush_up_to(&tree, target));
            }
        }
        outcome
    }

    /// Where the log has grown long, flushes the writes that were buffered before the last checkpoint.
    fn flush_before(&self, before: Lsn) -> Result<(), BetreeError> {
        if self.gate.log().live_bytes() < self.options.log_budget_bytes / 2 {
            return Ok(());
        }
        self.flush_all_up_to(before)
    }

    fn make_image(&self, last: &mut Last, shutdown: Shutdown) -> Result<(), BetreeError> {
        let log_bytes = self.log_bytes_since_checkpoint();
        let moved = self.space_return.take_moved();
        // Read before any tree is captured: a later step may be in the image, and costs another checkpoint at
        // worst.
        let steps = self.background_steps();
        let end = {
            let _gate = self.gate.close();
            self.gate.last_lsn()
        };
        let oldest = self.visibility.oldest_now();
        let next_tree = self.trees.lock_naming().next;
        let mut change = std::mem::take(&mut last.change);
        let mut captured = Vec::new();
        let generation = self.blocks.store().generation();
        let outcome = self.capture_all(&mut captured, &mut change, last).and_then(|()| {
            let from = self.large.keep_whole(replay_from(end, &captured));
            self.gate.log().sync(self.gate.log().appended_lsn())?;
            let image = Image { end, from, oldest, next_tree, shutdown };
            self.commit_image(last, &captured, &mut change, image)
        });
        if outcome.is_err() && self.blocks.store().generation() == generation {
            // Captured blocks count as attached, though no image has them. If they were freed in their
            // generation of birth, their room would be used again at once and attached a second time. So that
            // generation ends while the views still hold the blocks.
            drop(self.blocks.store().begin_checkpoint());
        }
        drop(captured);
        match outcome {
            Ok(()) => {
                last.lsn = end;
                last.steps = steps;
                last.at = self.clock.monotonic();
                self.state.log_bytes.fetch_sub(log_bytes, Ordering::Relaxed);
                self.state.replayed.store(false, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                self.space_return.restore_moved(moved);
                last.change = change;
                Err(error)
            }
        }
    }

    /// Captures every tree. Dropped trees that nobody reads any more are reclaimed. Captures before an error
    /// count.
    fn capture_all(
        &self,
        all: &mut Vec<Captured>,
        change: &mut SpaceChange,
        last: &mut Last,
    ) -> Result<(), BetreeError> {
        let oldest = self.visibility.oldest_now();
        for tree in self.trees.in_order() {
            if tree.is_dropped() && !tree.is_usable_at(oldest) && !last.damaged.contains(&tree.id) {
                match self.dropped_trees.reclaim(&tree) {
                    Ok(freed) => {
                        change.merge(freed);
                        self.trees.remove(tree.id);
                        last.graveyard.push(tree);
                        continue;
                    }
                    // Its room is not known. It stays as a dropped tree until the store is opened again; the
                    // other trees go on.
                    Err(_) => {
                        self.counters.failed_drops.add(1);
                        last.damaged.insert(tree.id);
                        self.dropped_trees.forget_buffered(&tree);
                    }
                }
            }
            let mut captured = self.capture(&tree)?;
            change.merge(std::mem::take(&mut captured.change));
            all.push(captured);
        }
        Ok(())
    }

    fn capture(&self, tree: &Tree) -> Result<Captured, BetreeError> {
        let mut installed = tree.installed.lock();
        let view = tree.view_owned();
        if let Some(Child::Inner(root)) = &view.version.root {
            let mut dirty = Vec::new();
            collect_dirty(root, &mut dirty);
            self.write_nodes(tree, &dirty, &mut installed.change)?;
        }
        let change = std::mem::take(&mut installed.change);
        installed.reclaim(&self.blocks);
        Ok(Captured { stored: stored_tree(tree, &view), view, change })
    }

    /// Writes nodes, children before parents, level by level: a level is one device write or a few.
    fn write_nodes(
        &self,
        tree: &Tree,
        dirty: &[Arc<NodeSlot>],
        change: &mut SpaceChange,
    ) -> Result<(), BetreeError> {
        const WRITE_BYTES: u64 = 1 << 20;
        let mut rest = dirty;
        while let Some(first) = rest.first() {
            let height = first.height();
            let mut writer: ExtentWriter<'_> = self.blocks.store().extent_writer(tree.id);
            let mut count = 0;
            while count < rest.len() && rest[count].height() == height && writer.stored_bytes() < WRITE_BYTES
            {
                let node = rest[count].loaded().expect("a dirty node is in memory");
                // Each node begins a unit of its own, since each is replaced on its own.
                writer.next_unit();
                writer.append(BlockKind::InnerNode, Compression::Zstd(1), &node.to_stored().encode())?;
                count += 1;
            }
            let pointers = writer.place()?.finish()?;
            for (slot, pointer) in rest.iter().zip(&pointers) {
                slot.set_stored(*pointer);
            }
            for pointer in &pointers {
                change.attach(extents_of([pointer]));
            }
            rest = &rest[count..];
        }
        Ok(())
    }

    fn commit_image(
        &self,
        last: &mut Last,
        captured: &[Captured],
        change: &mut SpaceChange,
        image: Image,
    ) -> Result<(), BetreeError> {
        let store = self.blocks.store();
        let position = self.gate.log().position_of(image.from);
        let checkpoint = store.begin_checkpoint();
        let stored: Vec<StoredTree> = captured.iter().map(|captured| captured.stored.clone()).collect();
        let raw = catalog::encode(&stored);
        let pointer = checkpoint.write_block(NO_TREE, BlockKind::Catalog, Compression::Zstd(1), &raw)?;
        let mut whole = change.clone();
        whole.attach(extents_of([&pointer]));
        whole.detach(extents_of(last.catalog.as_ref()));
        let contents = CheckpointContents {
            catalog: Some(pointer),
            log_position: position,
            log_synced_to: self.gate.log().durable_lsn(),
            last_commit: CommitTimestamp::new(image.end.get()),
            oldest: image.oldest,
            next_tree: image.next_tree,
            shutdown: image.shutdown,
            change: whole,
        };
        let outcome = match checkpoint.commit(&contents) {
            Ok(outcome) => outcome,
            Err(error) => {
                // After a failed sync the superblock may or may not be there: the blocks that it leads to
                // stay as they are.
                if store.check_poison().is_ok() {
                    extents_of([&pointer]).into_iter().for_each(|extent| store.abandon(extent));
                }
                return Err(error.into());
            }
        };
        *change = SpaceChange::new();
        self.trees.lock_naming().catalog_bytes = raw.len() as u64;
        if let Some(old) = last.catalog.replace(pointer) {
            extents_of([&old]).into_iter().for_each(|extent| store.free(extent, old.birth()));
        }
        self.gate.log().release_before(outcome.log_keep_from)?;
        self.large.forget_before(image.from);
        Ok(())
    }

    /// The versions of trees that readers may still hold, but for the newest ones of live trees.
    pub(crate) fn versions_of_readers(&self) -> Vec<Weak<TreeVersion>> {
        let mut versions = Vec::new();
        // No checkpoint puts a tree into the graveyard meanwhile.
        let last = self.state.last.lock();
        for tree in self.trees.in_order().iter().chain(&last.graveyard) {
            let installed = tree.installed.lock();
            versions.extend(installed.older_versions());
            if tree.is_dropped() {
                versions.push(Arc::downgrade(&tree.view().version));
            }
        }
        versions
    }

    /// Frees replaced blocks whose readers are gone.
    pub(crate) fn reclaim(&self) {
        for tree in self.trees.all().values() {
            if let Some(mut installed) = tree.installed.try_lock() {
                installed.reclaim(&self.blocks);
            }
        }
        if let Some(mut last) = self.state.last.try_lock() {
            last.graveyard.retain(|tree| {
                let mut installed = tree.installed.lock();
                installed.reclaim(&self.blocks);
                installed.has_retired()
            });
        }
    }
}

/// The fields of an image beside the trees.
struct Image {
    end: Lsn,
    from: Lsn,
    oldest: pando_storage::SnapshotTimestamp,
    next_tree: u32,
    shutdown: Shutdown,
}

/// The record after which replay has to begin: all up to it have left the buffers.
fn replay_from(end: Lsn, captured: &[Captured]) -> Lsn {
    let partitions = captured.iter().flat_map(|captured| &captured.view.partitions);
    let unflushed = partitions.filter_map(|partition| partition.first_unflushed()).min();
    match unflushed {
        Some(first) => end.min(Lsn::new(first.get() - 1)),
        None => end,
    }
}

fn stored_tree(tree: &Tree, view: &TreeView) -> StoredTree {
    let root = view.version.root.as_ref().map(|root| StoredRoot {
        height: match root {
            Child::Leaf(_) => 0,
            Child::Inner(slot) => slot.height(),
        },
        pointer: root.pointer().expect("the capture has written all nodes"),
    });
    let partitions = view.partitions.iter().map(|partition| StoredPartition {
        lower: partition.lower.clone(),
        persisted: partition.flushed_lsn,
    });
    StoredTree {
        id: tree.id,
        state: if tree.is_dropped() { StoredState::Dropped } else { StoredState::Live },
        name: tree.name.clone(),
        options: tree.options(),
        root,
        entries: view.version.root.as_ref().map_or(0, Child::entries),
        content_bytes: view.version.root.as_ref().map_or(0, Child::content_bytes),
        reach: view.version.root.as_ref().map_or(0, Child::reach),
        partitions: partitions.collect(),
        ranges: DeletedRanges::clone(&view.ranges),
    }
}

/// The dirty nodes of a subtree, children before parents, one level after the other.
fn collect_dirty(root: &Arc<NodeSlot>, dirty: &mut Vec<Arc<NodeSlot>>) {
    if root.stored().is_some() {
        // A node on disk has only children on disk.
        return;
    }
    if let Some(node) = root.loaded() {
        for child in node.children() {
            if let Child::Inner(slot) = child {
                collect_dirty(slot, dirty);
            }
        }
    }
    let at = dirty.partition_point(|other| other.height() <= root.height());
    dirty.insert(at, Arc::clone(root));
}
