//! Outdated blocks: those born up to a generation, which are being written anew under a later data key.

use pando_environment::sync::atomic::Ordering;
use pando_storage::Lsn;

use super::BlockStore;
use crate::base::{Generation, Pointer};

impl BlockStore {
    /// Notes that blocks born up to this generation are being written anew. From then on checkpoints do the
    /// same with those of the space map.
    pub(crate) fn outdate(&self, generation: Generation) {
        self.outdated.store(generation.get(), Ordering::SeqCst);
    }

    pub(super) fn is_outdated(&self, pointer: &Pointer) -> bool {
        pointer.birth().get() <= self.outdated.load(Ordering::SeqCst)
    }

    /// Whether both superblocks are later than a generation, reach no outdated block of the space map, and
    /// need no log record up to `lsn`.
    pub(crate) fn has_left_behind(&self, generation: Generation, lsn: Lsn) -> bool {
        self.durable.lock().has_left_behind(self, generation, lsn)
    }

    /// Whether a backup or a check holds a generation.
    pub(crate) fn is_pinned(&self) -> bool {
        self.allocator().lock().pins() > 0
    }
}
