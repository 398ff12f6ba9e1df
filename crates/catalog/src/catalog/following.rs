//! The server's part in a shared store: it follows the changes of other servers, and has them follow its own.
//! See `sharing` for the terms and the algorithm.

use std::sync::Arc;
use std::time::Duration;

use pando_storage::{Begin, ErrorKind, Operation, OperationWait, SharedTime, SnapshotTimestamp, TreeId};
use parking_lot::ArcRwLockWriteGuard;

use super::{Catalog, Exclusive, LATCH_WAIT, Names};
use crate::collection::Collection;
use crate::error::{BuildEnd, CatalogError};
use crate::namespace::Namespace;
use crate::sharing::{
    Answers, Asked, BarrierRecord, Board, Following, LOOK_AT_BARRIERS_EVERY, LOOK_EVERY, Question, Sharing,
};
use crate::store::Store;

/// How often a change is made again where another server has changed the catalog meanwhile.
const CHANGES_TRIED: u32 = 1_000;
/// The pause before that.
const CONFLICT_WAIT: Duration = Duration::from_millis(2);

/// The longest that a change waits, behind its barrier, until the other servers know of it. They look every
/// [`LOOK_AT_BARRIERS_EVERY`].
const TOLD_WITHIN: Duration = Duration::from_secs(2);

/// A barrier that this server has raised. Dropping it lowers the barrier, once the other servers know of the
/// change that was made behind it: they look often as long as it is up.
pub(crate) struct Barrier {
    store: Arc<Store>,
    namespace: String,
    record: BarrierRecord,
    /// The version behind which the change is made.
    before: u64,
}

impl Drop for Barrier {
    fn drop(&mut self) {
        let Some(sharing) = &self.store.sharing else { return };
        let version = sharing.seen();
        // A server that has died would be waited for until it is taken out, and one that is not trusted does
        // not know who has seen what. The change holds all the same.
        if version > self.before && !matches!(sharing.is_seen_within(version, TOLD_WITHIN), Ok(true)) {
            tracing::debug!("other servers take a change over at their next look");
        }
        if let Err(error) = sharing.lower(&self.namespace, self.record) {
            let namespace = &self.namespace;
            tracing::warn!(%namespace, %error, "writes to the collection wait until the barrier before it is removed");
        }
    }
}

impl Catalog {
    /// Whether other servers may have the store open.
    pub fn is_shared(&self) -> bool {
        self.store.sharing.is_some()
    }

    /// Whether this server does the work that one server does for all of a store: it is the only one, or the
    /// first of several.
    pub fn keeps_house(&self) -> bool {
        self.store.sharing.as_ref().is_none_or(|sharing| sharing.is_first())
    }

    /// The version of the catalog tree by which this server works; `None` in a store of one server.
    pub fn version(&self) -> Option<u64> {
        self.store.sharing.as_ref().map(|sharing| sharing.seen())
    }

    /// The newest moment of the clock of a shared store that this server has seen: every answer of it so far
    /// comes from that moment or an earlier one. `None` where the store has no such clock.
    pub fn shared_time(&self) -> Option<SharedTime> {
        self.store.sharing.as_ref().and_then(|_| self.store.engine.shared_time())
    }

    /// A snapshot that other servers may have gone beyond for this long at most, where a reader of it is
    /// cheaper than one of the newest ([`Engine::recent_snapshot`](pando_storage::Engine::recent_snapshot)).
    pub fn recent_snapshot(&self, within: Duration) -> Option<SnapshotTimestamp> {
        self.store.engine.recent_snapshot(within)
    }

    /// Whether another server of a shared store may have changed the catalog at or before a moment, without
    /// the knowledge of this one.
    pub fn is_behind(&self, moment: SharedTime) -> bool {
        self.store.sharing.as_ref().is_some_and(|sharing| sharing.looked_at() < moment)
    }

    /// Takes over all that other servers of a shared store have changed in the catalog so far. It takes a
    /// request or two where they have changed nothing. Blocks.
    ///
    /// # Errors
    /// The cluster could not be reached.
    pub fn catch_up(&self) -> Result<(), CatalogError> {
        let Some(sharing) = &self.store.sharing else { return Ok(()) };
        // A server that is not trusted has to note the collections that have changed: `follow` does.
        sharing.check_trusted()?;
        let reader = self.store.engine.begin(Begin::READ)?;
        let (version, snapshot) = (sharing.version_at(&*reader), reader.snapshot());
        reader.rollback();
        if version? == sharing.seen() {
            sharing.note_look(snapshot);
            return Ok(());
        }
        self.take_over()
    }

    /// Asks other servers of a shared store, and waits for their answers for two seconds at most. Without a
    /// server of the name there are neither answers nor silent servers. Blocks.
    ///
    /// # Errors
    /// The cluster could not be reached, or the operation was interrupted.
    pub fn ask(&self, asked: Asked<'_>, text: &[u8], operation: &Operation) -> Result<Answers, CatalogError> {
        match &self.store.sharing {
            None => Ok(Answers::default()),
            Some(sharing) => sharing.ask(asked, text, operation),
        }
    }

    /// The questions of other servers that the last [look](Catalog::follow) has found. The caller answers
    /// each.
    pub fn questions(&self) -> Vec<Question> {
        self.store.sharing.as_ref().map_or_else(Vec::new, |sharing| sharing.questions())
    }

    /// Answers a question of another server. Blocks.
    ///
    /// # Errors
    /// The cluster could not be reached: the question stands among the [`questions`](Catalog::questions)
    /// until it is answered or gone.
    pub fn answer(&self, question: &Question, text: &[u8]) -> Result<(), CatalogError> {
        self.store.sharing.as_ref().map_or(Ok(()), |sharing| Ok(sharing.answer(question, text)?))
    }

    /// Tells the other servers of a shared store that documents have changed of which they keep the content
    /// in memory: their [`version`](Catalog::version) moves. Blocks.
    ///
    /// # Errors
    /// The cluster could not be reached.
    pub fn announce_change(&self) -> Result<(), CatalogError> {
        let Some(sharing) = &self.store.sharing else { return Ok(()) };
        sharing.change(|transaction| sharing.count_change(transaction))?;
        Ok(())
    }

    /// One look at the other servers of a shared store: takes their changes over, and lets them make theirs.
    /// Gives the time until the next look. Only one thread calls it, at these times, as long as the catalog
    /// is in use. Blocks.
    ///
    /// # Errors
    /// The cluster could not be reached: the next look tries again.
    pub fn follow(&self) -> Result<Duration, CatalogError> {
        let Some(sharing) = &self.store.sharing else { return Ok(Duration::MAX) };
        let mut following = sharing.following().lock();
        if sharing.has_left() {
            return Ok(Duration::MAX);
        }
        let has_lapsed = sharing.note_lapse();
        let now = sharing.now();
        let board = sharing.read_board()?;
        if !board.members.contains_key(&sharing.member()) {
            sharing.register()?;
            return Ok(Duration::ZERO);
        }
        let before = has_lapsed.then(|| self.names());
        self.take_over()?;
        if let Some(before) = before {
            self.note_stale(&before, &mut following);
        }
        forget_ended(&mut following);
        let stands = self.stand_behind(sharing, &board, &mut following);
        // A server that was not trusted has to do all that others have not waited for.
        if following.stale.is_empty() && (stands || !has_lapsed) {
            sharing.beat(&mut following, now)?;
        }
        sharing.note_questions(&board);
        sharing.clear(&mut following, &board, now)?;
        let is_quiet = board.barriers.is_empty() && following.stale.is_empty();
        Ok(if is_quiet { LOOK_EVERY } else { LOOK_AT_BARRIERS_EVERY })
    }

    /// Notes the collections whose descriptions have changed since a lapse. Statements that hold one of
    /// before have to end before the server is trusted again: nobody has waited for them.
    fn note_stale(&self, before: &Names, following: &mut Following) {
        let now = self.names();
        let is_same = |old: &Arc<Collection>| {
            let namespace = old.namespace();
            let now = now.get(namespace.database()).and_then(|names| names.get(namespace.collection()));
            now.is_some_and(|now| Arc::ptr_eq(now, old))
        };
        let changed = before.values().flat_map(|names| names.values()).filter(|old| !is_same(old));
        following.stale.extend(changed.map(|old| Arc::clone(old.latch())));
    }

    /// Stands behind the barriers of others, as far as its own statements have ended, and lets statements
    /// write again where a barrier is gone. The changes behind that have been taken over before. Tells
    /// whether it stands behind all.
    fn stand_behind(&self, sharing: &Sharing, board: &Board, following: &mut Following) -> bool {
        let others = || board.barriers.iter().filter(|(_, barrier)| barrier.owner != sharing.member());
        following.standing.retain(|number, _| others().any(|(_, barrier)| barrier.number == *number));
        for (namespace, barrier) in others() {
            if following.standing.contains_key(&barrier.number) {
                continue;
            }
            let (database, collection) = namespace.split_once('.').unwrap_or_default();
            let latch = match self.collection(database, collection) {
                None => Some(None),
                Some(collection) => collection.latch().try_write_arc_for(LATCH_WAIT).map(Some),
            };
            if let Some(latch) = latch {
                following.standing.insert(barrier.number, latch);
            }
        }
        others().all(|(_, barrier)| following.standing.contains_key(&barrier.number))
    }

    /// Takes the server out of a shared store before it is closed: the others need not wait for it.
    ///
    /// # Errors
    /// The cluster could not be reached: the others find out by themselves.
    pub fn leave(&self) -> Result<(), CatalogError> {
        self.store.sharing.as_ref().map_or(Ok(()), |sharing| Ok(sharing.leave()?))
    }

    /// In a shared store: raises a barrier before a collection, and waits until no statement of another
    /// server writes to it. The descriptions are the newest ones then.
    pub(super) fn barrier_before(
        &self,
        namespace: &Namespace,
        operation: &Operation,
    ) -> Result<Option<Barrier>, CatalogError> {
        let Some(sharing) = &self.store.sharing else { return Ok(None) };
        self.take_over()?;
        self.existing(namespace)?;
        let mut barrier = self.raise_barrier(sharing, namespace, operation)?;
        operation.wait_for(OperationWait::Collection, || {
            match sharing.is_stood_behind(barrier.record) {
                Ok(false) => None,
                answer => Some(answer),
            }
        })??;
        self.take_over()?;
        barrier.before = sharing.seen();
        Ok(Some(barrier))
    }

    fn take_over(&self) -> Result<(), CatalogError> {
        let _changing = self.store.changing.lock();
        self.refresh()
    }

    fn raise_barrier(
        &self,
        sharing: &Sharing,
        namespace: &Namespace,
        operation: &Operation,
    ) -> Result<Barrier, CatalogError> {
        let namespace = namespace.to_string();
        let record = operation.wait_for(OperationWait::Collection, || {
            let raised = sharing.raise(&namespace).transpose();
            if raised.is_none() {
                std::thread::sleep(LOOK_AT_BARRIERS_EVERY);
            }
            raised
        })??;
        Ok(Barrier { store: Arc::clone(&self.store), namespace, record, before: u64::MAX })
    }

    /// Makes a change of the catalog under its mutex. It rests on the newest descriptions: in a shared store
    /// it is made again where another server has changed the catalog meanwhile.
    pub(crate) fn changing<T>(
        &self,
        mut change: impl FnMut() -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        let _changing = self.store.changing.lock();
        let mut tries = 0;
        loop {
            self.refresh()?;
            match change() {
                Err(CatalogError::Storage(error))
                    if self.is_shared() && error.is_conflict() && tries < CHANGES_TRIED =>
                {
                    std::thread::sleep(CONFLICT_WAIT);
                    tries += 1;
                }
                changed => {
                    self.store.note_outcome(&changed);
                    return changed;
                }
            }
        }
    }

    /// Drops a tree that the newest description does not name any more; in a shared store when no server
    /// reads it by an older one.
    pub(crate) fn drop_tree(&self, tree: TreeId) -> Result<(), CatalogError> {
        if let Some(sharing) = &self.store.sharing {
            sharing.wait_until_seen(sharing.seen())?;
        }
        Ok(self.store.engine.drop_tree(tree)?)
    }

    /// Ends the index builds of servers of a shared store that are gone, and gives their number. Blocks.
    pub fn end_abandoned_builds(&self, operation: &Operation) -> Result<usize, CatalogError> {
        let Some(sharing) = &self.store.sharing else { return Ok(0) };
        if self.names().values().flat_map(|names| names.values()).all(|one| one.building().is_empty()) {
            return Ok(0);
        }
        let board = sharing.read_board()?;
        let is_abandoned = |collection: &Collection| {
            let mut building = collection.building().iter();
            building.any(|one| {
                let is_own = one.builder == sharing.member();
                if is_own { one.ticket.ended().is_some() } else { !board.members.contains_key(&one.builder) }
            })
        };
        let names = self.names();
        let mut ended = 0;
        for collection in names.values().flat_map(|names| names.values()).filter(|one| is_abandoned(one)) {
            let alone = match self.exclusive(collection.namespace(), operation) {
                Err(CatalogError::CollectionNotFound { .. }) => continue,
                alone => alone?,
            };
            ended += self.end_builds_of_the_gone(&alone, &board)?;
        }
        Ok(ended)
    }

    fn end_builds_of_the_gone(&self, alone: &Exclusive, board: &Board) -> Result<usize, CatalogError> {
        let mut parts = alone.collection.parts();
        let is_alive = |builder: u64| board.members.contains_key(&builder);
        let (kept, gone): (Vec<_>, Vec<_>) =
            parts.building.into_iter().partition(|one| is_alive(one.builder) && one.ticket.ended().is_none());
        parts.building = kept;
        self.show(parts)?;
        for building in &gone {
            building.ticket.end(BuildEnd::IndexDropped);
            tracing::warn!(
                collection = %alone.collection.full_name(), index = building.index.name(),
                "the server that built the index is gone: the build is ended, and can be begun again"
            );
            for tree in [building.index.tree(), building.changes] {
                match self.drop_tree(tree) {
                    Err(CatalogError::Storage(error)) if error.kind() == ErrorKind::NotFound => {}
                    dropped => dropped?,
                }
            }
        }
        Ok(gone.len())
    }
}

/// Forgets the stale descriptions that no statement holds any more.
fn forget_ended(following: &mut Following) {
    let Following { standing, stale, .. } = following;
    stale.retain(|latch| {
        let is_held =
            standing.values().flatten().any(|held| Arc::ptr_eq(ArcRwLockWriteGuard::rwlock(held), latch));
        !is_held && latch.try_write_arc_for(LATCH_WAIT).is_none()
    });
}
