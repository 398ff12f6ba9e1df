//! The gate before LMDB's map: reads of the map pass it, and the growing of the map closes it.
//!
//! # Why
//! To grow its map, LMDB unmaps the file and maps it again, at another address as a rule. Its manual wants no
//! transaction to be active meanwhile, because a transaction may have a cursor, or a value that it returned,
//! within the old map. An idle reading transaction has neither: it keeps the number of its root page and its
//! slot in the reader table, and every call finds pages from the start of the map as it is then
//! (`mdb_page_get`). So transactions stay live while the map grows, and only calls wait.
//!
//! # Invariants
//! - No cursor, and no value that borrows from the map, outlives the [`MapGuard`] under which it was made.
//! - A thread takes one guard at a time: a second one would wait for a growing map that waits for the first.
//! - A thread that has a guard waits for none of the store's other locks but `trees`.
//! - LMDB's writing transactions, and the beginning of reading ones, need no guard: whoever grows the map
//!   holds the locks under which they run.

use pando_storage::{ErrorKind, StorageError};
use parking_lot::{RwLock, RwLockReadGuard};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapState {
    Mapped,
    /// The old map is gone, and there is no new one.
    Lost,
}

/// See the module's head.
pub(crate) struct MapGate {
    state: RwLock<MapState>,
}

/// As long as it lives, the map stays where it is.
pub(crate) struct MapGuard<'g> {
    _state: RwLockReadGuard<'g, MapState>,
}

impl MapGate {
    pub(crate) fn new() -> MapGate {
        MapGate { state: RwLock::new(MapState::Mapped) }
    }

    /// Keeps the map where it is. Fails if there is none any more.
    pub(crate) fn enter(&self) -> Result<MapGuard<'_>, StorageError> {
        let state = self.state.read();
        match *state {
            MapState::Mapped => Ok(MapGuard { _state: state }),
            MapState::Lost => {
                let message = "LMDB's map is gone: open the engine again";
                Err(StorageError::new(ErrorKind::Closed, message))
            }
        }
    }

    /// Replaces the map while no call reads it. After a failure there is no map.
    pub(crate) fn replace<E>(&self, replace: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let mut state = self.state.write();
        let outcome = replace();
        if outcome.is_err() {
            *state = MapState::Lost;
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_map_nobody_enters() {
        let gate = MapGate::new();
        assert_eq!(gate.replace(|| Ok::<_, ()>(())), Ok(()));
        assert!(gate.enter().is_ok());
        assert_eq!(gate.replace(|| Err("no address space")), Err("no address space"));
        assert_eq!(gate.enter().err().map(|error| error.kind()), Some(ErrorKind::Closed));
    }
}
