//! The gate before LMDB's map: reads of the map pass it, and whatever replaces the map closes it.
//!
//! # Why
//! To grow its map, LMDB unmaps the file and maps it again, at another address as a rule. Its manual wants no
//! transaction to be active meanwhile, because a transaction may have a cursor, or a value that it returned,
//! within the old map. An idle reading transaction has neither: it keeps the number of its root page and its
//! slot in the reader table, and every call finds pages from the start of the map as it is then
//! (`mdb_page_get`). So transactions stay live while the map grows, and only calls wait. A compaction puts
//! another file in the place of the first, and waits until no transaction is live: see `compaction`.
//!
//! # Invariants
//! - No cursor, and no value that borrows from the map, outlives the [`MapGuard`] under which it was made.
//! - A thread takes one guard at a time: a second one would wait for a growing map that waits for the first.
//! - A thread that has a guard waits for none of the store's other locks but `trees`.

use std::ops::Deref;

use pando_storage::{ErrorKind, StorageError};
use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard};

/// See the module's head. `F` is what the map belongs to.
pub(crate) struct MapGate<F> {
    /// `None`: the old map is gone, and there is no new one.
    file: RwLock<Option<F>>,
}

/// As long as it lives, the map stays where it is.
pub(crate) struct MapGuard<'g, F>(MappedRwLockReadGuard<'g, F>);

impl<F> Deref for MapGuard<'_, F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.0
    }
}

impl<F> MapGate<F> {
    pub(crate) fn new(file: F) -> MapGate<F> {
        MapGate { file: RwLock::new(Some(file)) }
    }

    /// Keeps the map where it is. Fails if there is none any more.
    pub(crate) fn enter(&self) -> Result<MapGuard<'_, F>, StorageError> {
        let file = RwLockReadGuard::try_map(self.file.read(), Option::as_ref);
        file.map(MapGuard).map_err(|_| lost())
    }

    /// Replaces the map while no call reads it. After a failure there is no map.
    pub(crate) fn replace(
        &self,
        replace: impl FnOnce(F) -> Result<F, StorageError>,
    ) -> Result<(), StorageError> {
        let mut file = self.file.write();
        let old = file.take().ok_or_else(lost)?;
        *file = Some(replace(old)?);
        Ok(())
    }
}

fn lost() -> StorageError {
    StorageError::new(ErrorKind::Closed, "LMDB's map is gone: open the engine again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_map_nobody_enters() {
        let gate = MapGate::new(1);
        assert!(gate.replace(|file| Ok(file + 1)).is_ok());
        assert_eq!(gate.enter().map(|file| *file).ok(), Some(2));
        let failure = StorageError::new(ErrorKind::Io, "no address space");
        assert_eq!(gate.replace(|_| Err(failure)).err().map(|error| error.kind()), Some(ErrorKind::Io));
        assert_eq!(gate.enter().err().map(|error| error.kind()), Some(ErrorKind::Closed));
        assert_eq!(gate.replace(Ok).err().map(|error| error.kind()), Some(ErrorKind::Closed));
    }
}
