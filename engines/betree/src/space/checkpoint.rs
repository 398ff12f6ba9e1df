//! The commit of a checkpoint: it writes the space map, syncs, writes the superblock, and syncs again.
//!
//! 1. The caller has captured the trees and begun the checkpoint. Through it the caller has written the
//!    changed inner nodes and the catalog. The log is synced up to the last commit that the captures contain.
//! 2. [`commit`](Checkpoint::commit) allocates and writes the blocks of the space map. The map is the used
//!    units of the last generation, plus the units that the trees attached, minus those that they detached.
//!    The map's own blocks are treated likewise.
//! 3. The data file is synced. The superblock is written into the slot that the last generation does not
//!    occupy. The data file is synced again. From this moment the new generation counts.
//! 4. Units that neither slot reaches any more become free.
//!
//! A failure before step 3 changes nothing, but a map that contradicts itself poisons the store. A failure in
//! step 3 poisons the store, too: it is unknown which of the two generations the next open will find.

use pando_storage::{CommitTimestamp, Lsn, SnapshotTimestamp, TreeId};

use super::allocator::Purpose;
use super::block_store::{inconsistent, write_one};
use super::extent_writer::PlacedBlocks;
use super::interval_set::IntervalSet;
use super::space_change::{extent_of, units_of};
use super::space_map::{self, MapBlocks, SNAPSHOT_BLOCK_BYTES};
use super::superblock_slots::{FoundSuperblocks, Slot, write_slot};
use super::{
    BlockProblem, BlockStore, Compression, ExtentWriter, Shutdown, SpaceChange, SpaceError, Superblock,
};
use crate::base::LogPosition;
use crate::base::WaitFor;
use crate::base::{BlockKind, Extent, Generation, Pointer, extents_of};

/// Blocks of the space map belong to no tree.
const NO_TREE: TreeId = TreeId::new(0);

/// The last durable generation and the units that it uses.
pub(super) struct DurableState {
    superblock: Superblock,
    slot: Slot,
    /// Generation and log position of the other slot; `None` if it never held a superblock.
    older: Option<(Generation, LogPosition)>,
    used: IntervalSet,
    root: Option<Pointer>,
    map: MapBlocks,
}

impl DurableState {
    pub(super) fn new(found: FoundSuperblocks) -> DurableState {
        let older = found.other.map(|other| (other.generation, other.log_position));
        DurableState {
            root: found.newest.space_root,
            superblock: found.newest,
            slot: found.slot,
            older,
            used: IntervalSet::new(),
            map: MapBlocks::default(),
        }
    }

    pub(super) fn generation(&self) -> Generation {
        self.superblock.generation
    }

    pub(super) fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    pub(super) fn used(&self) -> &IntervalSet {
        &self.used
    }

    /// See [`BlockStore::has_left_behind`].
    pub(super) fn has_left_behind(&self, store: &BlockStore, generation: Generation, lsn: Lsn) -> bool {
        let newest = (self.superblock.generation, self.superblock.log_position);
        let is_past = |(of, log): (Generation, LogPosition)| of > generation && log.lsn() > lsn;
        let mut map = self.root.iter().chain(self.map.pointers());
        is_past(newest) && self.older.is_some_and(is_past) && !map.any(|pointer| store.is_outdated(pointer))
    }

    /// The extents of the space map's own blocks.
    pub(super) fn map_extents(&self) -> Vec<Extent> {
        extents_of(self.root.iter().chain(self.map.pointers()))
    }

    /// Reads the map of the newest superblock. Returns the units that its generation removed.
    pub(super) fn load_map(&mut self, store: &BlockStore) -> Result<IntervalSet, SpaceError> {
        let Some(root) = self.root else { return Ok(IntervalSet::new()) };
        let malformed = |pointer: Pointer| move |error| store.corrupt(&pointer, BlockProblem::Content(error));
        let (map, removed) = space_map::decode_root(&store.read_block(&root)?).map_err(malformed(root))?;
        let mut bytes = Vec::new();
        for pointer in &map.snapshot {
            bytes.extend_from_slice(&store.read_block(pointer)?);
        }
        if let Some(first) = map.snapshot.first() {
            self.used = space_map::decode_snapshot(&bytes).map_err(malformed(*first))?;
        }
        for pointer in &map.deltas {
            let (added, removed) =
                space_map::decode_delta(&store.read_block(pointer)?).map_err(malformed(*pointer))?;
            space_map::apply(&mut self.used, &added, &removed)
                .map_err(|(rule, units)| inconsistent(rule, units))?;
        }
        self.map = map;
        Ok(removed)
    }
}

/// The content of a generation: its roots, and the changes of the trees.
#[derive(Clone, Debug)]
pub(crate) struct CheckpointContents {
    /// Where the list of trees begins.
    pub(crate) catalog: Option<Pointer>,
    /// Where replay begins.
    pub(crate) log_position: LogPosition,
    /// The log is durable up to here; at least the largest LSN that the generation contains.
    pub(crate) log_synced_to: Lsn,
    /// The newest commit that the generation contains.
    pub(crate) last_commit: CommitTimestamp,
    /// The oldest snapshot that can still be read.
    pub(crate) oldest: SnapshotTimestamp,
    /// The number that the next new tree gets.
    pub(crate) next_tree: u32,
    /// How the store is left.
    pub(crate) shutdown: Shutdown,
    /// The extents that all captured trees and the catalog gained and lost since the last generation.
    pub(crate) change: SpaceChange,
}

/// The result of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointOutcome {
    /// The generation that is durable now.
    pub(crate) generation: Generation,
    /// Replay never begins in a log segment before that of this position, whichever slot the next open finds.
    pub(crate) log_keep_from: LogPosition,
}

/// A checkpoint in progress. Dropping it ends it without effect.
pub(crate) struct Checkpoint<'a> {
    store: &'a BlockStore,
    generation: Generation,
}

impl<'a> Checkpoint<'a> {
    pub(super) fn new(store: &'a BlockStore, generation: Generation) -> Checkpoint<'a> {
        Checkpoint { store, generation }
    }

    /// A writer of blocks that belong to this generation; it may use the reserve.
    pub(crate) fn extent_writer(&self, tree: TreeId) -> ExtentWriter<'a> {
        ExtentWriter::new(self.store, tree, self.generation, Purpose::Checkpoint)
    }

    /// Writes one block of this generation into an extent of its own.
    pub(crate) fn write_block(
        &self,
        tree: TreeId,
        kind: BlockKind,
        compression: Compression,
        raw: &[u8],
    ) -> Result<Pointer, SpaceError> {
        write_one(self.extent_writer(tree), kind, compression, raw)
    }

    /// Makes the generation durable. After an error nothing has changed, and the change of the contents
    /// belongs to the next attempt.
    pub(crate) fn commit(self, contents: &CheckpointContents) -> Result<CheckpointOutcome, SpaceError> {
        let mut durable = self.store.waits().lock(WaitFor::SpaceMap, &self.store.durable);
        let map = self.write_map(&durable, &contents.change)?;
        let outcome = self.write_superblock(&mut durable, contents, &map)?;
        self.install_map(&mut durable, map);
        Ok(outcome)
    }

    /// Allocates and writes the blocks of the new map.
    fn write_map(&self, durable: &DurableState, trees: &SpaceChange) -> Result<WrittenMap, SpaceError> {
        self.check_change(durable, trees)?;
        let delta_bytes = space_map::delta_bytes_max(trees.added(), trees.removed(), 4);
        let mut written = Vec::new();
        let is_in_the_way = self.store.allocator().lock().reaches_beyond_ceiling(&durable.map_extents());
        let is_outdated = durable.map.pointers().any(|pointer| self.store.is_outdated(pointer));
        let result = if durable.map.wants_snapshot(delta_bytes) || is_in_the_way || is_outdated {
            self.write_snapshot(durable, trees, &mut written)
        } else {
            self.write_delta(durable, trees, delta_bytes, &mut written)
        };
        if result.is_err() {
            extents_of(&written).into_iter().for_each(|extent| self.store.abandon(extent));
        }
        result
    }

    /// Refuses an impossible change before it reaches the disk.
    fn check_change(&self, durable: &DurableState, trees: &SpaceChange) -> Result<(), SpaceError> {
        let allocator = self.store.allocator().lock();
        let free = trees.added().iter().find_map(|units| allocator.free_overlap(&units));
        if let Some(units) = free {
            return Err(self.store.poison(inconsistent("what is attached is not free", units)));
        }
        drop(allocator);
        let unknown = trees.removed().iter().find(|units| !durable.used.contains(units));
        if let Some(units) = unknown {
            return Err(self.store.poison(inconsistent("only what is in use is detached", units)));
        }
        let twice = trees.added().iter().find_map(|units| durable.used.overlap(&units));
        match twice {
            Some(units) => Err(self.store.poison(inconsistent("only what is not in use is attached", units))),
            None => Ok(()),
        }
    }

    fn write_delta(
        &self,
        durable: &DurableState,
        trees: &SpaceChange,
        delta_bytes: usize,
        written: &mut Vec<Pointer>,
    ) -> Result<WrittenMap, SpaceError> {
        let mut change = trees.clone();
        change.detach(extents_of(&durable.root));
        let delta = self.reserve(delta_bytes)?;
        let root =
            self.reserve(space_map::root_bytes_max(durable.map.pointers().count() + 1, change.removed()))?;
        change.attach(delta.extents().into_iter().chain(root.extents()));
        let mut map = durable.map.clone();
        let bytes = space_map::encode_delta(change.added(), change.removed());
        map.deltas.push(delta.write(BlockKind::SpaceDelta, bytes)?);
        written.extend(&map.deltas[map.deltas.len() - 1..]);
        let root = root.write(BlockKind::SpaceRoot, space_map::encode_root(&map, change.removed()))?;
        Ok(WrittenMap { root, map, change })
    }

    fn write_snapshot(
        &self,
        durable: &DurableState,
        trees: &SpaceChange,
        written: &mut Vec<Pointer>,
    ) -> Result<WrittenMap, SpaceError> {
        let mut change = trees.clone();
        change.detach(durable.map_extents());
        let mut used = durable.used.clone();
        let broken = |(rule, units)| self.store.poison(inconsistent(rule, units));
        space_map::apply(&mut used, change.added(), change.removed()).map_err(broken)?;
        let encoded = space_map::encode_snapshot(&used).len();
        // Each reserved block can add an interval to the map. The reservation has room for these intervals as
        // well.
        let blocks = encoded.div_ceil(SNAPSHOT_BLOCK_BYTES - 64 * space_map::INTERVAL_BYTES_MAX).max(1);
        let total = encoded + (8 * blocks + 8) * space_map::INTERVAL_BYTES_MAX;
        let mut reserved = Vec::new();
        for at in 0..blocks {
            let bytes = (total - at * total / blocks).min(total.div_ceil(blocks));
            reserved.push(self.reserve(bytes)?);
        }
        let root = self.reserve(space_map::root_bytes_max(blocks, change.removed()))?;
        let own: Vec<Extent> =
            reserved.iter().flat_map(ReservedBlock::extents).chain(root.extents()).collect();
        change.attach(own.iter().copied());
        for extent in own {
            used.insert(units_of(extent))
                .map_err(|units| broken(("what is allocated is not in use", units)))?;
        }
        let bytes = space_map::encode_snapshot(&used);
        let mut rest = bytes.as_slice();
        let mut map = MapBlocks::default();
        for block in reserved {
            let (part, later) = rest.split_at(rest.len().min(block.bytes_max));
            let pointer = block.write(BlockKind::SpaceSnapshot, part.to_vec())?;
            map.snapshot.push(pointer);
            written.push(pointer);
            rest = later;
        }
        assert!(rest.is_empty(), "{} bytes of the space map found no place", rest.len());
        let root = root.write(BlockKind::SpaceRoot, space_map::encode_root(&map, change.removed()))?;
        Ok(WrittenMap { root, map, change })
    }

    /// Reserves room for one uncompressed block of at most this many raw bytes.
    fn reserve(&self, bytes_max: usize) -> Result<ReservedBlock<'a>, SpaceError> {
        let placed = self.extent_writer(NO_TREE).place_with_directory(bytes_max)?;
        Ok(ReservedBlock { placed, bytes_max })
    }

    fn write_superblock(
        &self,
        durable: &mut DurableState,
        contents: &CheckpointContents,
        map: &WrittenMap,
    ) -> Result<CheckpointOutcome, SpaceError> {
        let store = self.store;
        let superblock = Superblock {
            features: store.features().after(durable.superblock.features),
            generation: self.generation,
            file_units: store.allocator().lock().end(),
            catalog: contents.catalog,
            space_root: Some(map.root),
            log_position: contents.log_position,
            log_synced_to: contents.log_synced_to,
            last_commit: contents.last_commit,
            oldest: contents.oldest,
            next_tree: contents.next_tree,
            shutdown: contents.shutdown,
            written_millis: store.environment().clock().wall().millis(),
            ..durable.superblock.clone()
        };
        let superblock = superblock.sealed_by(store.vault().map(AsRef::as_ref));
        store.sync()?;
        let slot = durable.slot.other();
        write_slot(store.file(), slot, &superblock).map_err(|error| store.poison(error.into()))?;
        store.sync()?;
        store.count_checkpoint();
        store.features().set_durable(superblock.features);
        durable.older = Some((durable.superblock.generation, durable.superblock.log_position));
        durable.superblock = superblock;
        durable.slot = slot;
        let newer = contents.log_position;
        let older = durable.older.map_or(newer, |(_, position)| position);
        let log_keep_from = if older.segment() < newer.segment() { older } else { newer };
        Ok(CheckpointOutcome { generation: self.generation, log_keep_from })
    }

    fn install_map(&self, durable: &mut DurableState, written: WrittenMap) {
        let removed_own = extents_of(durable.root.iter().chain(durable.map.pointers()));
        space_map::apply(&mut durable.used, written.change.added(), written.change.removed())
            .expect("the change was checked against this very map before it was written");
        let mut allocator = self.store.allocator().lock();
        for units in removed_own.into_iter().flat_map(|extent| durable.used.gaps(units_of(extent))) {
            // The new generation does not reach them, even if the next one is being built by now.
            allocator.defer(units, self.generation);
        }
        drop(allocator);
        durable.root = Some(written.root);
        durable.map = written.map;
        if let Some((older, _)) = durable.older {
            self.store.release(older);
        }
    }
}

impl Drop for Checkpoint<'_> {
    fn drop(&mut self) {
        self.store.end_checkpoint();
    }
}

/// The blocks of a new map, written and not yet durable.
struct WrittenMap {
    root: Pointer,
    map: MapBlocks,
    /// The units that the generation adds and removes, the map's own blocks included.
    change: SpaceChange,
}

/// Room for a block whose content depends on its own address.
struct ReservedBlock<'a> {
    placed: PlacedBlocks<'a>,
    bytes_max: usize,
}

impl ReservedBlock<'_> {
    fn extents(&self) -> Vec<Extent> {
        self.placed.reserved_units().into_iter().map(extent_of).collect()
    }

    /// Writes the block, padded to the reserved length: its extents must be those in the map.
    fn write(self, kind: BlockKind, mut bytes: Vec<u8>) -> Result<Pointer, SpaceError> {
        assert!(
            bytes.len() <= self.bytes_max,
            "{} bytes of the space map in {}",
            bytes.len(),
            self.bytes_max
        );
        bytes.resize(self.bytes_max, 0);
        let (pointer, _others) = self.placed.finish_with_directory(kind, Compression::None, &bytes)?;
        Ok(pointer)
    }
}
