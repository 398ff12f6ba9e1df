//! Read claims: the keys and ranges that serializable transactions have read, and the commits that came after
//! their snapshots.
//!
//! # Terms
//! - *Reader*: a serializable transaction, from its begin to its end.
//! - *Claim*: a range of a tree that a reader has read, absent keys included. Readers share it.
//! - *Overtaken*: a reader that has read a key which a commit after its snapshot has written. It may go on
//!   reading, and must not write.
//!
//! # Algorithm
//! 1. A reader reads its snapshot. Then it claims the range, and looks for commits after its snapshot that
//!    wrote into it. If there is one, the reader is overtaken, or gets a conflict if it has written.
//! 2. A write into a range that another transaction has claimed is a conflict, when it is made and once more
//!    at its commit. The second look also finds claims that came after the write.
//! 3. A commit notes its keys in the same step as the look for claims. So of a claim and a commit, one sees
//!    the other.
//! 4. Claims end with their transaction. Noted commits go when no reader has an older snapshot.
//!
//! Everything that a reader has read is therefore unchanged when it commits: it could have run wholly at that
//! moment. The order of the commits is a serial order. A reader without writes could have run at the moment
//! of its snapshot, so that it needs no claims and is never refused.
//!
//! # Commits without a reader
//! They note nothing. A reader that begins waits for the commits under way, and takes its snapshot afterwards
//! ([`CommitsUnderWay`]). So its snapshot sees all commits that noted nothing.
//!
//! # Memory
//! A reader with more than `spans::SPANS_MAX` ranges has neighbours joined, with the keys between them. That
//! may refuse a write without need. Noted commits beyond a limit are forgotten, the oldest first. A reader
//! with an older snapshot then counts as overtaken by whatever it reads.
//!
//! # Invariants
//! - Every commit that is later than the snapshot of a reader has been noted, or is forgotten by its time.
//! - No reader is refused or overtaken by its own writes.
//!
//! # Not here
//! The winner of two writes of a key: see [`Intents`](crate::Intents).

mod commits_under_way;
mod noted_commits;
mod spans;

use std::collections::HashMap;

use pando_environment::sync::Mutex;
use pando_environment::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) use commits_under_way::CommitToken;
use commits_under_way::CommitsUnderWay;
use noted_commits::NotedCommits;
pub(crate) use noted_commits::{CommitNote, WrittenKeys};
use spans::Spans;

use crate::error::StorageError;
use crate::identifiers::{SnapshotTimestamp, TransactionId, TreeId};
use crate::key_range::KeyRange;

/// All read claims of an engine. See the module's head.
#[derive(Default)]
pub struct ReadClaims {
    /// Readers that are live or begin.
    readers: AtomicUsize,
    commits: CommitsUnderWay,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    readers: HashMap<TransactionId, Reader>,
    noted: NotedCommits,
}

struct Reader {
    snapshot: SnapshotTimestamp,
    claimed: Spans,
}

/// A reader that begins. Dropping it takes it back.
pub struct EnteringReader<'c> {
    claims: &'c ReadClaims,
}

/// The part of a transaction that makes it serializable. Its owner ends it by [`ReadClaims::leave`].
pub struct SerializableReads {
    owner: TransactionId,
    snapshot: SnapshotTimestamp,
    is_overtaken: AtomicBool,
}

/// Whether a reader has written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnWrites {
    None,
    Some,
}

impl ReadClaims {
    /// Begins a reader, before its snapshot is taken. Waits for the commits under way.
    pub fn enter(&self) -> EnteringReader<'_> {
        self.readers.fetch_add(1, Ordering::SeqCst);
        self.commits.wait();
        EnteringReader { claims: self }
    }

    /// Readers that are live.
    pub fn readers(&self) -> usize {
        self.readers.load(Ordering::SeqCst)
    }

    /// Ranges that all readers have claimed.
    pub fn ranges(&self) -> usize {
        if self.readers() == 0 {
            return 0;
        }
        self.state.lock().readers.values().map(|reader| reader.claimed.len()).sum()
    }

    /// Claims a range that was read.
    ///
    /// # Errors
    /// A conflict where a later commit has written into it, and the transaction has writes of its own.
    pub(crate) fn claim(
        &self,
        reads: &SerializableReads,
        tree: TreeId,
        range: &KeyRange,
        own: OwnWrites,
    ) -> Result<(), StorageError> {
        if reads.is_overtaken.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Some(range) = range.half_open() else { return Ok(()) };
        let mut state = self.state.lock();
        let State { readers, noted } = &mut *state;
        let Some(reader) = readers.get_mut(&reads.owner) else { return Ok(()) };
        if !noted.has_later(reads.snapshot, tree, &range) {
            reader.claimed.add(tree, &range);
            return Ok(());
        }
        if own == OwnWrites::Some {
            return Err(StorageError::conflict());
        }
        // It can only read from now on, at its snapshot, and keeps no writer away.
        reader.claimed = Spans::default();
        reads.is_overtaken.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Refuses a write into a range that another transaction has claimed.
    #[inline]
    pub(crate) fn check_write(
        &self,
        owner: TransactionId,
        tree: TreeId,
        key: &[u8],
    ) -> Result<(), StorageError> {
        if self.readers.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let state = self.state.lock();
        let is_claimed = state.others(owner).any(|reader| reader.claimed.contain(tree, key));
        if is_claimed { Err(StorageError::conflict()) } else { Ok(()) }
    }

    /// Begins a commit; [`ReadClaims::end_commit`] ends it.
    pub(crate) fn begin_commit(&self) -> CommitToken {
        self.commits.begin()
    }

    /// Ends a commit, whether it was made or not.
    pub(crate) fn end_commit(&self, token: CommitToken) {
        self.commits.end(token);
    }

    /// Whether a commit that has begun has to note its keys.
    pub(crate) fn wants_notes(&self) -> bool {
        self.readers.load(Ordering::SeqCst) > 0
    }

    /// Notes the keys of a commit that has begun, before it is made.
    ///
    /// # Errors
    /// A conflict where another transaction has claimed one of them.
    pub(crate) fn note(&self, owner: TransactionId, keys: &WrittenKeys) -> Result<CommitNote, StorageError> {
        let mut state = self.state.lock();
        if state.others(owner).any(|reader| keys.meet(&reader.claimed)) {
            return Err(StorageError::conflict());
        }
        // One that has begun and is not listed yet may have an older snapshot than all that are listed.
        let are_all_listed = state.readers.len() == self.readers.load(Ordering::SeqCst);
        let oldest = if are_all_listed { state.oldest() } else { None };
        Ok(state.noted.add(keys, oldest))
    }

    /// Ends a reader.
    pub(crate) fn leave(&self, reads: &SerializableReads) {
        let mut state = self.state.lock();
        state.readers.remove(&reads.owner);
        if self.readers.fetch_sub(1, Ordering::SeqCst) == 1 {
            // One that begins now sees every commit that was noted: it waits for those under way.
            state.noted = NotedCommits::default();
        }
    }
}

impl State {
    fn others(&self, owner: TransactionId) -> impl Iterator<Item = &Reader> {
        self.readers.iter().filter(move |(reader, _)| **reader != owner).map(|(_, reader)| reader)
    }

    /// The oldest snapshot of the listed readers.
    fn oldest(&self) -> Option<SnapshotTimestamp> {
        self.readers.values().map(|reader| reader.snapshot).min()
    }
}

impl EnteringReader<'_> {
    /// The reader, with its snapshot, which was taken after [`ReadClaims::enter`].
    pub fn begin(self, owner: TransactionId, snapshot: SnapshotTimestamp) -> SerializableReads {
        let reader = Reader { snapshot, claimed: Spans::default() };
        self.claims.state.lock().readers.insert(owner, reader);
        std::mem::forget(self);
        SerializableReads { owner, snapshot, is_overtaken: AtomicBool::new(false) }
    }
}

impl Drop for EnteringReader<'_> {
    fn drop(&mut self) {
        self.claims.readers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl SerializableReads {
    /// Refuses writes and the commit of writes after a commit has changed what was read.
    pub(crate) fn check(&self) -> Result<(), StorageError> {
        if self.is_overtaken.load(Ordering::Relaxed) { Err(StorageError::conflict()) } else { Ok(()) }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests;

#[cfg(all(test, shuttle))]
mod schedules;
