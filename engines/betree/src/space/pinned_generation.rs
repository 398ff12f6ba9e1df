//! A pin on a generation: while a [`PinnedGeneration`] lives, no unit that its superblock reaches is reused.
//!
//! Checkpoints go on meanwhile. Backups copy the pinned generation, and online checks walk it.
//!
//! Extents that later generations free are pending in the allocator as usual, only longer. They are released
//! up to the oldest pinned generation instead of the older superblock slot.

use std::sync::Arc;

use crate::base::{Extent, UNIT_BYTES};
use crate::space::block_store::inconsistent;
use crate::space::interval_set::IntervalSet;
use crate::space::space_change::units_of;
use crate::space::{BlockStore, SpaceError, Superblock};

/// See the [module](self).
pub(crate) struct PinnedGeneration {
    store: Arc<BlockStore>,
    superblock: Superblock,
    used: IntervalSet,
    map_extents: Vec<Extent>,
}

impl PinnedGeneration {
    /// Pins the newest durable generation. Waits for a checkpoint that is being made durable.
    pub(crate) fn newest(store: &Arc<BlockStore>) -> PinnedGeneration {
        let durable = store.durable.lock();
        store.allocator().lock().pin(durable.generation());
        PinnedGeneration {
            store: Arc::clone(store),
            superblock: durable.superblock().clone(),
            used: durable.used().clone(),
            map_extents: durable.map_extents(),
        }
    }

    pub(crate) fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Its superblock for a copy whose log goes beyond the generation: with the features that the device has
    /// by now, because later commits may need them.
    pub(crate) fn superblock_of_copy(&self) -> Superblock {
        let mut superblock = self.superblock.clone();
        superblock.features.incompatible |= self.store.features().durable();
        superblock
    }

    /// Every unit that the generation reaches.
    pub(crate) fn used(&self) -> &IntervalSet {
        &self.used
    }

    /// Checks that these extents and the space map's own are exactly what the generation uses, each once.
    pub(crate) fn check_reached(&self, reachable: &[Extent]) -> Result<(), SpaceError> {
        let mut missing = self.used.clone();
        for extent in reachable.iter().chain(&self.map_extents) {
            let units = units_of(*extent);
            if missing.remove(&units).is_none() {
                return Err(inconsistent("what is reached is in use, and reached once", units));
            }
        }
        match missing.iter().next() {
            Some(units) => Err(inconsistent("what is in use is reached", units)),
            None => Ok(()),
        }
    }

    /// The extents of the space map's own blocks, which no tree leads to.
    pub(crate) fn map_extents(&self) -> &[Extent] {
        &self.map_extents
    }

    pub(crate) fn store(&self) -> &BlockStore {
        &self.store
    }

    /// Reads units of the file as they are stored, from `unit` on, into the buffer.
    pub(crate) fn read_units(&self, unit: u64, buffer: &mut [u8]) -> Result<(), SpaceError> {
        self.store.read(buffer, unit * UNIT_BYTES)
    }
}

impl Drop for PinnedGeneration {
    fn drop(&mut self) {
        self.store.allocator().lock().unpin(self.superblock.generation);
    }
}
