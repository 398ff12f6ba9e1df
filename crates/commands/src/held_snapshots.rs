//! The snapshots that reads with read concern `snapshot` may come back to, by their cluster times.
//!
//! # Terms
//! - *Time* of a snapshot: the `atClusterTime` in the replies of its reads. The snapshot holds every write
//!   that was answered with this time or an earlier one.
//! - *Window*: the time after its last use for which a snapshot is held.
//!
//! # Algorithm
//! 1. A read without a time takes the time of the clock first and the newest snapshot afterwards, and holds
//!    both. While nothing is written, reads share one of them. Where a snapshot of that time is older than
//!    the newest commit, the clock moves on.
//!    In a store whose servers share a clock, the time is that of the snapshot itself.
//! 2. A read with a time begins at the snapshot of that time, with the names of collections of then. Where
//!    servers share a clock, one that has not given the time out takes its snapshot anew.
//! 3. A chore lets go of what was not used for the window.
//!
//! # Invariants
//! - A time stands for one snapshot at most.
//! - There are at most [`SNAPSHOTS_MAX`]. The one that was not used for the longest time makes room.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use pando_catalog::{
    Begin, Catalog, ErrorKind, SeenNames, SessionTransaction, SnapshotTimestamp, StorageError, Transaction,
};
use pando_document::Timestamp;
use pando_environment::Monotonic;
use parking_lot::Mutex;

use crate::cluster_clock::ClusterClock;
use crate::operations::ConnectionRecord;
use crate::{CommandError, ErrorCode};

/// Snapshots that are held at once.
const SNAPSHOTS_MAX: usize = 256;
/// The window, where nobody says otherwise.
const WINDOW_DEFAULT: Duration = Duration::from_secs(60);

/// A snapshot that is held.
pub(crate) struct HeldSnapshot {
    pub time: Timestamp,
    pub snapshot: SnapshotTimestamp,
    /// The collections as the snapshot saw them.
    pub names: SeenNames,
    /// The connection whose read has taken it.
    pub connection: Arc<ConnectionRecord>,
    /// Holds the versions. Nobody reads by it.
    _holder: Mutex<Box<dyn Transaction>>,
}

struct Entry {
    held: Arc<HeldSnapshot>,
    used: Monotonic,
}

/// See the module's head.
pub(crate) struct HeldSnapshots {
    table: Mutex<BTreeMap<u64, Entry>>,
    window_s: AtomicU64,
    /// Reads at a time that is not held.
    too_old: AtomicI64,
}

impl Default for HeldSnapshots {
    fn default() -> HeldSnapshots {
        HeldSnapshots {
            table: Mutex::default(),
            window_s: AtomicU64::new(WINDOW_DEFAULT.as_secs()),
            too_old: AtomicI64::new(0),
        }
    }
}

/// The read that wants a snapshot.
pub(crate) struct SnapshotWanted<'r> {
    pub catalog: &'r Catalog,
    pub clock: &'r ClusterClock,
    pub wall_ms: i64,
    pub now: Monotonic,
    pub connection: &'r Arc<ConnectionRecord>,
}

impl HeldSnapshots {
    /// The newest snapshot, held from now on.
    pub fn newest(&self, wanted: &SnapshotWanted<'_>) -> Result<Arc<HeldSnapshot>, CommandError> {
        let mut table = self.table.lock();
        let mut time = wanted.clock.now(wanted.wall_ms);
        let mut holder = wanted.catalog.begin(Begin::READ)?;
        if let Some(time) = wanted.clock.time_of(holder.snapshot()) {
            return Ok(hold(&mut table, time, (holder, wanted.catalog.seen_names()), wanted));
        }
        if let Some(entry) = table.get_mut(&time.to_u64()) {
            if entry.held.snapshot == holder.snapshot() {
                entry.used = wanted.now;
                return Ok(Arc::clone(&entry.held));
            }
            time = wanted.clock.tick(wanted.wall_ms);
            holder = wanted.catalog.begin(Begin::READ)?;
        }
        Ok(hold(&mut table, time, (holder, wanted.catalog.seen_names()), wanted))
    }

    /// The snapshot of a time.
    ///
    /// # Errors
    /// `SnapshotTooOld` where it is not held.
    pub fn at(
        &self,
        time: Timestamp,
        wanted: &SnapshotWanted<'_>,
    ) -> Result<Arc<HeldSnapshot>, CommandError> {
        if let Some(entry) = self.table.lock().get_mut(&time.to_u64()) {
            entry.used = wanted.now;
            return Ok(Arc::clone(&entry.held));
        }
        if let Some(moment) = wanted.clock.moment_of(time) {
            if let Some(begun) = wanted.catalog.begin_at(moment)? {
                return Ok(hold(&mut self.table.lock(), time, begun, wanted));
            }
        } else if time == wanted.clock.now(wanted.wall_ms) {
            // Nothing was answered with a later time.
            let newest = self.newest(wanted)?;
            if newest.time == time {
                return Ok(newest);
            }
        }
        self.too_old.fetch_add(1, Ordering::Relaxed);
        let Timestamp { time, increment } = time;
        Err(CommandError::failed(
            ErrorCode::SnapshotTooOld,
            format!(
                "Read timestamp Timestamp({time}, {increment}) is older than the oldest available timestamp."
            ),
        ))
    }

    /// Lets go of what was not used for the window.
    pub fn expire(&self, now: Monotonic) {
        let window = self.window();
        let mut table = self.table.lock();
        let old: Vec<u64> = table
            .iter()
            .filter(|(_, entry)| now.since(entry.used) >= window)
            .map(|(time, _)| *time)
            .collect();
        let gone: Vec<_> = old.iter().filter_map(|time| table.remove(time)).collect();
        drop(table);
        drop(gone);
    }

    /// The time after its last use for which a snapshot is held.
    pub fn window(&self) -> Duration {
        Duration::from_secs(self.window_s.load(Ordering::Relaxed))
    }

    /// Changes that time.
    pub fn set_window_seconds(&self, seconds: u64) {
        self.window_s.store(seconds, Ordering::Relaxed);
    }

    /// Lets go of all: the store is about to be closed.
    pub fn clear(&self) {
        let all = std::mem::take(&mut *self.table.lock());
        drop(all);
    }

    /// All that are held.
    pub fn all(&self) -> Vec<Arc<HeldSnapshot>> {
        self.table.lock().values().map(|entry| Arc::clone(&entry.held)).collect()
    }

    /// Reads at a time that was not held, since the start.
    pub fn too_old(&self) -> i64 {
        self.too_old.load(Ordering::Relaxed)
    }
}

/// Holds a snapshot, and makes room for it.
fn hold(
    table: &mut BTreeMap<u64, Entry>,
    time: Timestamp,
    (holder, names): (Box<dyn Transaction>, SeenNames),
    wanted: &SnapshotWanted<'_>,
) -> Arc<HeldSnapshot> {
    let held = Arc::new(HeldSnapshot {
        time,
        snapshot: holder.snapshot(),
        names,
        connection: Arc::clone(wanted.connection),
        _holder: Mutex::new(holder),
    });
    if table.len() >= SNAPSHOTS_MAX
        && let Some(oldest) = table.iter().min_by_key(|(_, entry)| entry.used).map(|(time, _)| *time)
    {
        table.remove(&oldest);
    }
    table.insert(time.to_u64(), Entry { held: Arc::clone(&held), used: wanted.now });
    held
}

impl HeldSnapshot {
    /// Begins a reader of the snapshot.
    pub fn begin(&self, catalog: &Catalog) -> Result<Box<dyn Transaction>, CommandError> {
        catalog.begin(Begin::read_at(self.snapshot)).map_err(begin_failure)
    }

    /// Begins the transaction of a session at the snapshot.
    pub fn begin_transaction(&self, catalog: &Catalog) -> Result<SessionTransaction, CommandError> {
        catalog.begin_session_transaction_at(self.snapshot, &self.names).map_err(begin_failure)
    }
}

/// The error of an engine that cannot begin at a snapshot which is held.
fn begin_failure(error: StorageError) -> CommandError {
    match error.kind() {
        ErrorKind::InvalidInput => CommandError::failed(
            ErrorCode::InvalidOptions,
            "this engine reads at no past snapshot; use a transaction with read concern snapshot, or the engine betree",
        ),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pando_catalog::{BlockingMode, Durability, Engine, Operation, SharedEngine};
    use pando_environment::Environment;

    use super::*;

    struct Store {
        catalog: Catalog,
        clock: ClusterClock,
        held: HeldSnapshots,
        connection: Arc<ConnectionRecord>,
    }

    impl Store {
        fn new() -> Store {
            let engine: SharedEngine = Arc::new(pando_memory::MemoryEngine::new(&Environment::real()));
            Store {
                catalog: Catalog::open(engine).unwrap(),
                clock: ClusterClock::new(None, 5_000),
                held: HeldSnapshots::default(),
                connection: Arc::new(ConnectionRecord::new(1, "test", Arc::new(Operation::default()))),
            }
        }

        fn wanted(&self, seconds: u64) -> SnapshotWanted<'_> {
            let now = Monotonic::default().plus(Duration::from_secs(seconds));
            let Store { catalog, clock, connection, .. } = self;
            SnapshotWanted { catalog, clock, wall_ms: 5_000, now, connection }
        }

        /// Commits a write; answered, the clock moves.
        fn write(&self, engine: &dyn Engine) {
            let tree = engine.list_trees().unwrap()[0].id;
            let mut transaction = engine.begin(Begin::WRITE).unwrap();
            transaction.put_blind(tree, b"k", b"v").unwrap();
            transaction.commit(Durability::None).unwrap();
        }
    }

    #[test]
    fn reads_share_a_snapshot_while_nothing_is_written() {
        let store = Store::new();
        let first = store.held.newest(&store.wanted(0)).unwrap();
        assert_eq!(store.held.newest(&store.wanted(1)).unwrap().time, first.time);
        store.write(&**store.catalog.engine());
        let second = store.held.newest(&store.wanted(1)).unwrap();
        assert!(second.time > first.time && second.snapshot > first.snapshot);
        assert_eq!(store.held.at(first.time, &store.wanted(1)).unwrap().snapshot, first.snapshot);
        let tree = store.catalog.engine().list_trees().unwrap()[0].id;
        let past = first.begin(&store.catalog).unwrap();
        assert_eq!(past.get(tree, b"k", BlockingMode::MayBlock).unwrap(), None);
        assert_eq!(store.held.all().len(), 2);
    }

    #[test]
    fn a_snapshot_is_held_for_the_window_after_its_last_use() {
        let store = Store::new();
        let first = store.held.newest(&store.wanted(0)).unwrap();
        store.write(&**store.catalog.engine());
        store.clock.tick(5_000);
        store.held.expire(store.wanted(59).now);
        store.held.at(first.time, &store.wanted(59)).unwrap();
        store.held.expire(store.wanted(118).now);
        store.held.at(first.time, &store.wanted(118)).unwrap();
        store.held.set_window_seconds(1);
        store.held.expire(store.wanted(119).now);
        let Err(CommandError::Failed(failure)) = store.held.at(first.time, &store.wanted(119)) else {
            panic!("the snapshot is gone")
        };
        assert_eq!((failure.code, store.held.too_old()), (ErrorCode::SnapshotTooOld, 1));
        drop(first);
        assert_eq!(store.catalog.engine().live_transactions().len(), 0);
    }

    #[test]
    fn the_time_of_the_newest_write_can_be_read_at() {
        let store = Store::new();
        store.write(&**store.catalog.engine());
        let time = store.clock.tick(5_000);
        assert_eq!(store.held.at(time, &store.wanted(0)).unwrap().time, time);
    }

    #[test]
    fn only_so_many_are_held() {
        let store = Store::new();
        let first = store.held.newest(&store.wanted(0)).unwrap().time;
        for second in 0..SNAPSHOTS_MAX as u64 {
            store.write(&**store.catalog.engine());
            store.clock.tick(5_000);
            store.held.newest(&store.wanted(second)).unwrap();
        }
        assert_eq!(store.held.all().len(), SNAPSHOTS_MAX);
        assert!(store.held.at(first, &store.wanted(1)).is_err());
    }
}
