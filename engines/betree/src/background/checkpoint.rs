//! Checkpoints: a durable image of all trees that no client waits for.
//!
//! 1. Behind the gate, for an instant: the last LSN. Every record up to it is in some tree's buffers or leaves.
//! 2. Tree by tree: take its view, write the inner nodes that are not on disk yet, take its space change. What a partition has
//!    buffered stays there; the log will be replayed from the oldest such record.
//! 3. Sync the log: nothing of what the image contains may be missing from it. Where replay would begin within a large commit it
//!    begins at its first part ([`crate::large_commit`]).
//! 4. Write the catalog, the space map and the superblock ([`Checkpoint::commit`](crate::space::Checkpoint::commit)).
//! 5. Release the log before the position from which *either* superblock replays, and free the old catalog.
//!
//! What has been buffered for long is merged by the mergers ([`crate::background::buffer_age`]), so that the position moves on. If the log has grown long
//! even so, the checkpoint merges what was buffered before the last one first.
//!
//! # A failure
//! changes nothing: the space changes are kept for the next attempt. A failed sync stops the engine. A dropped tree that is damaged, so
//! that nobody knows what room it has, stays in the catalog as dropped and keeps that room: `checkpoints.failed_drops` counts such trees.

use pando_environment::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pando_environment::sync::{Mutex, MutexGuard};
use pando_environment::{Monotonic, Step};
use pando_storage::{CommitTimestamp, Lsn, TreeId};

use crate::background::relocation::{MoveLimits, relocate};
use crate::base::WaitFor;
use crate::base::{BlockKind, Pointer, extents_of};
use crate::core::Core;
use crate::error::BetreeError;
use crate::format::catalog::{self, StoredPartition, StoredRoot, StoredState, StoredTree};
use crate::range_deletes::DeletedRanges;
use crate::space::{CheckpointContents, Compression, ExtentWriter, Shutdown, SpaceChange};
use crate::tree::node::{Child, NodeSlot};
use crate::tree::tree_state::Tree;
use crate::tree::view::TreeView;

/// The catalog belongs to no tree.
const NO_TREE: TreeId = TreeId::new(0);
/// How often the task looks around when nothing wakes it.
const TICK: Duration = Duration::from_secs(1);
/// Bytes that are moved at once, to make the file shorter.
const MOVE_BYTES: u64 = 8 << 20;
/// So many freed bytes are worth a checkpoint of an idle store.
const PENDING_BYTES_MIN: u64 = 1 << 20;
/// How long it rests after a failure.
const RETRY: Duration = Duration::from_secs(2);

/// What checkpoints remember from one to the next.
#[derive(Default)]
pub(crate) struct CheckpointState {
    last: Mutex<Last>,
    /// Bytes that the log has been given since the last checkpoint.
    log_bytes: AtomicU64,
    /// The log was replayed, and no checkpoint has been made since: the next opening would replay all of it again, and a
    /// process that is killed again and again would start more slowly each time. The first checkpoint merges what was replayed.
    replayed: AtomicBool,
    /// Blocks were moved since the last checkpoint, to make the file shorter.
    moved: AtomicBool,
    /// Why and when the last merge failed, if it did.
    merge_failure: Mutex<Option<(BetreeError, Monotonic)>>,
    /// Why the last checkpoint failed, if it did.
    failure: Mutex<Option<BetreeError>>,
}

/// What the last checkpoint left behind.
#[derive(Default)]
pub(crate) struct Last {
    /// Where the image ended.
    lsn: Lsn,
    /// The steps of background work that it contains: they add no record, but replace blocks.
    steps: u64,
    at: Monotonic,
    catalog: Option<Pointer>,
    /// Of attempts that failed.
    change: SpaceChange,
    /// Dropped trees whose room some reader still holds.
    graveyard: Vec<Arc<Tree>>,
    /// Dropped trees of which something cannot be read, so that their room is not known.
    damaged: BTreeSet<TreeId>,
}

/// A tree as an image has it. It holds the version, so that nothing of it is reused before the image is durable.
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

    /// The store was opened by replaying the log: a checkpoint is due at once.
    pub(crate) fn note_replay(&self) {
        self.replayed.store(true, Ordering::Relaxed);
    }

    /// Why the last checkpoint failed, if it did.
    pub(crate) fn failure(&self) -> Option<BetreeError> {
        self.failure.lock().clone()
    }

    /// Whether one is being made, or kept from being made.
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

impl Core {
    /// One step of the checkpointing task.
    pub(crate) fn checkpoint_step(&self) -> Step {
        self.refresh_horizon();
        self.share_out_memory();
        self.reclaim();
        self.look_for_aged();
        self.look_for_ranges();
        self.look_for_idle();
        self.give_room_back();
        self.shorten_log();
        if !self.is_checkpoint_due() {
            return Step::Wait(TICK.min(self.options.checkpoint_period));
        }
        match self.checkpoint(Shutdown::Running) {
            Ok(()) => Step::Wait(TICK.min(self.options.checkpoint_period)),
            Err(_) => Step::Wait(RETRY),
        }
    }

    /// Gives a little of the free room back to the device, and moves a little of what keeps the file long. Where that fails, the
    /// store is as it was.
    fn give_room_back(&self) {
        let store = self.blocks.store();
        match self.move_inward() {
            Ok(0) => {}
            Ok(bytes) => {
                self.counters.moved_bytes.add(bytes);
                self.checkpoint.moved.store(true, Ordering::Relaxed);
            }
            Err(_) => self.counters.failed_returns.add(1),
        }
        match store.cut_free_end().and_then(|cut| Ok(cut + store.punch_next()?)) {
            Ok(bytes) => self.counters.returned_bytes.add(bytes),
            Err(_) => self.counters.failed_returns.add(1),
        }
    }

    /// Where nobody writes, and the last image contains everything, a short segment takes the place of long ones, which the next two
    /// checkpoints release. Where that fails, the log goes on as it was, or says to the next commit what is wrong with it.
    fn shorten_log(&self) {
        if self.is_at_rest() {
            let _tried = self.log().shorten();
        }
    }

    /// Whether nobody writes, and no buffer has anything that is not in its final place.
    fn is_at_rest(&self) -> bool {
        self.is_quiet() && self.buffered_bytes() == 0
    }

    /// Gives all of the free room back to the device that can be given back without moving anything.
    pub(crate) fn give_all_room_back(&self) {
        match self.blocks.store().give_back_all() {
            Ok(bytes) => self.counters.returned_bytes.add(bytes),
            Err(_) => self.counters.failed_returns.add(1),
        }
    }

    /// Moves blocks that lie far out in the file, if much of it is free and nobody waits for merges; bytes moved.
    fn move_inward(&self) -> Result<u64, BetreeError> {
        let Some(ceiling) = self.blocks.store().plan_ceiling() else { return Ok(0) };
        let mut moved = 0;
        for tree in self.trees_in_order() {
            if moved >= MOVE_BYTES || self.buffered_bytes() > self.merge_from() {
                break;
            }
            if !tree.is_dropped()
                && let Some(_merging) = tree.try_lock_merging()
            {
                let limits = MoveLimits { ceiling, bytes: MOVE_BYTES - moved };
                moved += relocate(&self.blocks, &tree, limits)?;
            }
        }
        Ok(moved)
    }

    fn is_checkpoint_due(&self) -> bool {
        let replayed = self.checkpoint.replayed.load(Ordering::Relaxed);
        if replayed || self.log_bytes_since_checkpoint() >= self.checkpoint_log_bytes() {
            return true;
        }
        let Some(last) = self.checkpoint.last.try_lock() else { return false };
        let age = self.environment.clock().monotonic().since(last.at);
        // What was freed can be used again, or given back, only after two further checkpoints.
        let waits = self.blocks.store().statistics().pending_bytes >= PENDING_BYTES_MIN;
        let moves = self.checkpoint.moved.load(Ordering::Relaxed) || self.blocks.store().wants_checkpoint();
        let changed = last.lsn < self.last_lsn() || last.steps != self.background_steps();
        let log_is_long = self.is_at_rest() && self.log().has_older_segments();
        age >= self.options.checkpoint_period && (changed || waits || moves || log_is_long)
    }

    /// Merges, digests and steps of range deletes since the store was opened.
    fn background_steps(&self) -> u64 {
        self.counters.merges.get() + self.counters.digests.get() + self.counters.range_steps.get()
    }

    pub(crate) fn log_bytes_since_checkpoint(&self) -> u64 {
        self.checkpoint.log_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn checkpoint_log_bytes(&self) -> u64 {
        self.options.log_budget_bytes / 8
    }

    /// Makes a checkpoint; waits for one that is under way. Says `Clean` only after all buffers are merged.
    pub(crate) fn checkpoint(&self, shutdown: Shutdown) -> Result<(), BetreeError> {
        let mut last = self.waits.lock(WaitFor::Checkpoint, &self.checkpoint.last);
        self.checkpoint_locked(&mut last, shutdown)
    }

    /// Makes the last checkpoint, after all buffers are merged. The log of a closed store is short.
    pub(crate) fn checkpoint_at_end(&self) -> Result<(), BetreeError> {
        self.log().sync(self.log().appended_lsn())?;
        // Where there is no room for another segment, the old ones stay.
        let is_shorter = matches!(self.log().shorten(), Ok(true));
        let waits = self.blocks.store().statistics().pending_bytes >= PENDING_BYTES_MIN;
        if is_shorter || waits || self.log().has_older_segments() {
            // The older superblock leads to the old segments, and to what was freed since, until both are new.
            self.checkpoint(Shutdown::Running)?;
        }
        self.checkpoint(Shutdown::Clean)?;
        self.give_all_room_back();
        // What the checkpoints released was kept to be used again.
        let _tried = self.log().shorten();
        Ok(())
    }

    /// Makes a checkpoint, unless the log is short enough by the time that no other is under way.
    pub(crate) fn checkpoint_of_full_log(&self) -> Result<(), BetreeError> {
        let mut last = self.waits.lock(WaitFor::Checkpoint, &self.checkpoint.last);
        if !self.is_log_full() {
            return Ok(());
        }
        self.checkpoint_locked(&mut last, Shutdown::Running)
    }

    fn checkpoint_locked(&self, last: &mut Last, shutdown: Shutdown) -> Result<(), BetreeError> {
        let began = self.environment.clock().monotonic();
        let merged = if self.checkpoint.replayed.load(Ordering::Relaxed) {
            self.merge_everything()
        } else {
            self.merge_aged(last.lsn)
        };
        let outcome = merged.and_then(|()| self.make_image(last, shutdown));
        match &outcome {
            Ok(()) => self.counters.checkpoints.add(1),
            Err(_) => self.counters.failed_checkpoints.add(1),
        }
        let nanos = self.environment.clock().monotonic().since(began).as_nanos();
        self.counters.checkpoint_nanos.add(nanos as u64);
        *self.checkpoint.failure.lock() = outcome.as_ref().err().cloned();
        self.announce_room();
        outcome
    }

    /// Merges everything that has been committed so far.
    pub(crate) fn merge_everything(&self) -> Result<(), BetreeError> {
        let target = {
            let _gate = self.gate.write();
            self.last_lsn()
        };
        self.share_merges_up_to(target);
        self.merge_all_up_to(target)
    }

    /// Merges what all trees have buffered of records up to `target`. A tree that fails keeps no other from it; dropped ones that
    /// nobody reads any more need not be merged.
    fn merge_all_up_to(&self, target: Lsn) -> Result<(), BetreeError> {
        let oldest = self.snapshots.oldest(&self.publisher);
        let mut outcome = Ok(());
        for tree in self.trees_in_order() {
            if !tree.is_dropped() || tree.is_usable_at(oldest) {
                outcome = outcome.and(self.merge_up_to(&tree, target));
            }
        }
        outcome
    }

    /// Where the log has grown long, merges what was buffered before the last checkpoint.
    fn merge_aged(&self, before: Lsn) -> Result<(), BetreeError> {
        if self.log().live_bytes() < self.options.log_budget_bytes / 2 {
            return Ok(());
        }
        self.merge_all_up_to(before)
    }

    fn make_image(&self, last: &mut Last, shutdown: Shutdown) -> Result<(), BetreeError> {
        let log_bytes = self.log_bytes_since_checkpoint();
        let moved = self.checkpoint.moved.swap(false, Ordering::Relaxed);
        // Read before any tree is captured: what comes later may be in the image, and costs another at worst.
        let steps = self.background_steps();
        let end = {
            let _gate = self.gate.write();
            self.last_lsn()
        };
        let oldest = self.snapshots.oldest(&self.publisher);
        let next_tree = self.naming.lock().next;
        let mut change = std::mem::take(&mut last.change);
        let mut captured = Vec::new();
        let generation = self.blocks.store().generation();
        let outcome = self.capture_all(&mut captured, &mut change, last).and_then(|()| {
            let from = self.large.keep_whole(replay_from(end, &captured));
            self.log().sync(self.log().appended_lsn())?;
            let image = Image { end, from, oldest, next_tree, shutdown };
            self.commit_image(last, &captured, &mut change, image)
        });
        if outcome.is_err() && self.blocks.store().generation() == generation {
            // What was captured counts as attached, though no image has it. Were it freed in the generation that it was born in, its
            // room would be used again at once, and attached a second time. So that generation ends, while the views still hold it.
            drop(self.blocks.store().begin_checkpoint());
        }
        drop(captured);
        match outcome {
            Ok(()) => {
                last.lsn = end;
                last.steps = steps;
                last.at = self.environment.clock().monotonic();
                self.checkpoint.log_bytes.fetch_sub(log_bytes, Ordering::Relaxed);
                self.checkpoint.replayed.store(false, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                self.checkpoint.moved.fetch_or(moved, Ordering::Relaxed);
                last.change = change;
                Err(error)
            }
        }
    }

    /// Captures every tree; dropped ones that nobody reads any more are taken apart. What was captured before an error counts.
    fn capture_all(
        &self,
        all: &mut Vec<Captured>,
        change: &mut SpaceChange,
        last: &mut Last,
    ) -> Result<(), BetreeError> {
        let oldest = self.snapshots.oldest(&self.publisher);
        for tree in self.trees_in_order() {
            if tree.is_dropped() && !tree.is_usable_at(oldest) && !last.damaged.contains(&tree.id) {
                match self.take_apart(&tree) {
                    Ok(freed) => {
                        change.merge(freed);
                        self.change_trees_locked(|trees| {
                            trees.remove(&tree.id.get());
                        });
                        last.graveyard.push(tree);
                        continue;
                    }
                    // Its room is not known. It stays as a dropped tree until the store is opened again; the rest goes on.
                    Err(_) => {
                        self.counters.failed_drops.add(1);
                        last.damaged.insert(tree.id);
                        self.forget_buffered(&tree);
                    }
                }
            }
            let mut captured = self.capture(&tree)?;
            change.merge(std::mem::take(&mut captured.change));
            all.push(captured);
        }
        Ok(())
    }

    fn change_trees_locked(&self, change: impl FnOnce(&mut crate::core::Trees)) {
        let _naming = self.naming.lock();
        self.change_trees(change);
    }

    fn capture(&self, tree: &Tree) -> Result<Captured, BetreeError> {
        let mut installed = tree.installed.lock();
        let view = tree.view_to_keep();
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
                // Each begins a unit of its own, since each is replaced on its own.
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
        let position = self.log().position_of(image.from);
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
            log_synced_to: self.log().durable_lsn(),
            last_commit: CommitTimestamp::new(image.end.get()),
            oldest: image.oldest,
            next_tree: image.next_tree,
            shutdown: image.shutdown,
            change: whole,
        };
        let outcome = match checkpoint.commit(&contents) {
            Ok(outcome) => outcome,
            Err(error) => {
                // After a failed sync the superblock may or may not be there: what it leads to stays as it is.
                if store.check_poison().is_ok() {
                    extents_of([&pointer]).into_iter().for_each(|extent| store.abandon(extent));
                }
                return Err(error.into());
            }
        };
        *change = SpaceChange::new();
        if let Some(old) = last.catalog.replace(pointer) {
            extents_of([&old]).into_iter().for_each(|extent| store.free(extent, old.birth()));
        }
        self.log().release_before(outcome.log_keep_from)?;
        self.large.forget_before(image.from);
        Ok(())
    }

    /// Frees what readers held when it was replaced, if they are gone.
    fn reclaim(&self) {
        for tree in self.trees().values() {
            if let Some(mut installed) = tree.installed.try_lock() {
                installed.reclaim(&self.blocks);
            }
        }
        if let Some(mut last) = self.checkpoint.last.try_lock() {
            last.graveyard.retain(|tree| {
                let mut installed = tree.installed.lock();
                installed.reclaim(&self.blocks);
                installed.has_retired()
            });
        }
    }

    /// Remembers how the last merge ended.
    pub(crate) fn set_merge_failure(&self, error: Option<&BetreeError>) {
        let failure = error.map(|error| (error.clone(), self.environment.clock().monotonic()));
        *self.checkpoint.merge_failure.lock() = failure;
    }

    /// Why the last merge failed, if it did.
    pub(crate) fn merge_failure(&self) -> Option<BetreeError> {
        self.checkpoint.merge_failure.lock().as_ref().map(|(error, _)| error.clone())
    }

    /// When the last merge failed, if it did.
    pub(crate) fn last_merge_failure(&self) -> Option<Monotonic> {
        self.checkpoint.merge_failure.lock().as_ref().map(|(_, at)| *at)
    }
}

/// What an image says beside the trees.
struct Image {
    end: Lsn,
    from: Lsn,
    oldest: pando_storage::SnapshotTimestamp,
    next_tree: u32,
    shutdown: Shutdown,
}

/// The record after which replay has to begin: all before it are in the leaves.
fn replay_from(end: Lsn, captured: &[Captured]) -> Lsn {
    let partitions = captured.iter().flat_map(|captured| &captured.view.partitions);
    let unmerged = partitions.filter_map(|partition| partition.first_unmerged()).min();
    match unmerged {
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
    let partitions = view
        .partitions
        .iter()
        .map(|partition| StoredPartition { lower: partition.lower.clone(), persisted: partition.persisted });
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
        // What is on disk has only such children as are on disk, too.
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
