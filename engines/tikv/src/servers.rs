//! The servers of a store that several servers have open, as the engine needs them to know each other.
//!
//! The catalog of each server keeps the descriptions of collections (`pando_catalog`, `sharing`). The engine
//! keeps the list of trees, and the snapshots that somebody reads.
//!
//! # Terms
//! - *Record* of a server: the timestamp at which it has read the list of trees last, and a timestamp below
//!   which it reads nothing. Its number is a timestamp of the cluster, so that numbers never come again.
//! - *Lapse*: a server whose record others have taken out. Its transactions of before end: the entries that
//!   they read may be gone.
//!
//! # Steps
//! 1. A server that opens the store notes itself. An owner of the store alone (`lease`) refuses it, and is
//!    refused where servers are noted.
//! 2. Every [`RENEWED_EVERY`] it reads the list of trees and writes its record.
//! 3. A record that stands still for [`EXPIRES_AFTER`] belongs to a dead server, and is taken out.
//! 4. A server that could not write its record for [`TRUSTED_FOR`] neither begins nor reads nor commits. A
//!    commit under way ends after [`COMMITS_END_AFTER`].
//! 5. The first merge in a tree waits until all servers have read the list of trees anew: a server that takes
//!    the tree for one without merges would not see it. Then it is noted that all know of them.
//! 6. The entries of a dropped tree go when no server reads a snapshot from before.
//!
//! # Invariant
//! One server of a store does the work that one does for all: the one with the smallest number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pando_environment::{Clock, Monotonic};
use pando_storage::{SHARED_COMMIT_MAX, StorageError, TreeId};
use parking_lot::{Mutex, RwLock};

use crate::cluster::{Cluster, Mutation, Order};
use crate::failure::corrupt;
use crate::layout::Keyspace;

/// How often a server writes its record.
pub(crate) const RENEWED_EVERY: Duration = Duration::from_secs(1);
/// How long a record stands still before its server is dead to the others.
pub(crate) const EXPIRES_AFTER: Duration = Duration::from_secs(20);
/// How long a server is trusted after it has written its record, or renewed its lease.
pub(crate) const TRUSTED_FOR: Duration = Duration::from_secs(12);
/// How long after its last record, or after it has renewed its lease, a server still waits for a commit.
pub(crate) const COMMITS_END_AFTER: Duration = SHARED_COMMIT_MAX;
/// The most servers of one store.
const SERVERS_MAX: u32 = 4_096;

/// A server, as it has told the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// When it has read the list of trees.
    pub read_at: u64,
    /// No transaction that it has or will begin reads before this.
    pub oldest: u64,
}

impl Record {
    pub(crate) fn encode(self) -> Vec<u8> {
        [self.read_at.to_be_bytes(), self.oldest.to_be_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Record> {
        let (read_at, oldest) = bytes.split_first_chunk::<8>()?;
        let oldest = u64::from_be_bytes(oldest.try_into().ok()?);
        Some(Record { read_at: u64::from_be_bytes(*read_at), oldest })
    }
}

/// When a server that was trusted at a moment gives up its commits.
pub(crate) fn commits_end_at(renewed_at: Monotonic) -> Monotonic {
    renewed_at.plus(COMMITS_END_AFTER)
}

/// The records of all servers, by number.
pub(crate) type Records = BTreeMap<u64, Record>;

/// Reads the records.
pub(crate) fn read(cluster: &Cluster, keyspace: &Keyspace, at: u64) -> Result<Records, StorageError> {
    let damaged = || corrupt("the record of a server of the store makes no sense");
    let found = cluster.scan(at, &keyspace.servers(), Order::Ascending, SERVERS_MAX)?;
    let record = |(key, value): (Vec<u8>, Vec<u8>)| -> Result<(u64, Record), StorageError> {
        let number = keyspace.server_of(&key).ok_or_else(damaged)?;
        Ok((number, Record::decode(&value).ok_or_else(damaged)?))
    };
    found.into_iter().map(record).collect()
}

/// The part of this server.
pub(crate) struct Membership {
    /// Another one after a lapse.
    number: AtomicU64,
    lapses: AtomicU64,
    is_first: AtomicBool,
    /// No server reads before this.
    oldest_of_all: AtomicU64,
    /// Dropped trees whose entries are there, and when each was found to be dropped.
    dropped: Mutex<BTreeMap<TreeId, u64>>,
    /// Trees of which all servers know that they have merges.
    merging: RwLock<BTreeSet<TreeId>>,
    /// The number of the last commit of this server that has ordered merges.
    last_ordered: AtomicU64,
}

impl Membership {
    pub(crate) fn new(number: u64) -> Membership {
        Membership {
            number: AtomicU64::new(number),
            lapses: AtomicU64::new(0),
            is_first: AtomicBool::new(false),
            oldest_of_all: AtomicU64::new(0),
            dropped: Mutex::default(),
            merging: RwLock::default(),
            last_ordered: AtomicU64::new(0),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// How often others have taken this server out.
    pub(crate) fn lapses(&self) -> u64 {
        self.lapses.load(Ordering::Acquire)
    }

    /// The server was taken out, and has got another number.
    pub(crate) fn note_lapse(&self, number: u64) {
        self.lapses.fetch_add(1, Ordering::AcqRel);
        self.number.store(number, Ordering::Release);
    }

    pub(crate) fn is_first(&self) -> bool {
        self.is_first.load(Ordering::Acquire)
    }

    /// Takes the records over.
    pub(crate) fn note(&self, records: &Records) {
        self.is_first.store(records.keys().next() == Some(&self.number()), Ordering::Release);
        let oldest = records.values().map(|record| record.oldest).min().unwrap_or(0);
        self.oldest_of_all.store(oldest, Ordering::Release);
    }

    pub(crate) fn last_ordered(&self) -> u64 {
        self.last_ordered.load(Ordering::Acquire)
    }

    /// Merges of other commits come before or behind a commit with this number. The caller keeps them away.
    pub(crate) fn note_ordered(&self, number: u64) {
        self.last_ordered.store(number, Ordering::Release);
    }

    pub(crate) fn all_know_merges_of(&self, trees: &BTreeSet<TreeId>) -> bool {
        trees.is_empty() || trees.is_subset(&self.merging.read())
    }

    pub(crate) fn note_merges_known(&self, trees: &BTreeSet<TreeId>) {
        self.merging.write().extend(trees);
    }

    /// Notes the trees that are dropped at a timestamp.
    pub(crate) fn note_dropped(&self, found: &[TreeId], at: u64) {
        let mut dropped = self.dropped.lock();
        dropped.retain(|tree, _| found.contains(tree));
        for tree in found {
            dropped.entry(*tree).or_insert(at);
        }
    }

    /// Dropped trees whose entries are there.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped.lock().len()
    }

    /// The dropped trees that no server reads any more, where this server is the one that removes them.
    pub(crate) fn unseen(&self) -> Vec<TreeId> {
        if !self.is_first() {
            return Vec::new();
        }
        let oldest = self.oldest_of_all.load(Ordering::Acquire);
        let dropped = self.dropped.lock();
        dropped.iter().filter(|(_, found_at)| **found_at <= oldest).map(|(tree, _)| *tree).collect()
    }
}

/// The records that stand still, and since when.
#[derive(Default)]
pub(crate) struct Watch {
    last: BTreeMap<u64, (Record, Monotonic)>,
}

impl Watch {
    /// Takes the servers out whose records stand still. Gives those that are left.
    pub(crate) fn clear(
        &mut self,
        cluster: &Cluster,
        keyspace: &Keyspace,
        clock: &dyn Clock,
    ) -> Result<Records, StorageError> {
        let mut records = read(cluster, keyspace, cluster.timestamp()?)?;
        let now = clock.monotonic();
        self.last.retain(|number, _| records.contains_key(number));
        for (number, record) in records.clone() {
            let (last, since) = self.last.entry(number).or_insert((record, now));
            if *last != record {
                (*last, *since) = (record, now);
            } else if now.since(*since) >= EXPIRES_AFTER {
                take_out(cluster, keyspace, number, record)?;
                records.remove(&number);
            }
        }
        Ok(records)
    }
}

/// Takes a server out, unless its record has changed.
fn take_out(cluster: &Cluster, keyspace: &Keyspace, number: u64, seen: Record) -> Result<(), StorageError> {
    let key = keyspace.server(number);
    cluster.change(|at| {
        let is_same = cluster.get(at, &key)?.as_deref().and_then(Record::decode) == Some(seen);
        let snapshot = keyspace.oldest_snapshot(Some(number));
        Ok(if is_same { vec![Mutation::Delete(key.clone()), Mutation::Delete(snapshot)] } else { Vec::new() })
    })
}

/// Takes this server out.
pub(crate) fn leave(cluster: &Cluster, keyspace: &Keyspace, number: u64) -> Result<(), StorageError> {
    let keys = [keyspace.server(number), keyspace.oldest_snapshot(Some(number))];
    cluster.change(|_| Ok(keys.iter().cloned().map(Mutation::Delete).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_ends_before_the_others_hold_its_server_for_dead() {
        assert!(TRUSTED_FOR < COMMITS_END_AFTER && COMMITS_END_AFTER < EXPIRES_AFTER);
        let renewed_at = Monotonic::new(Duration::from_secs(100));
        let last_begin = renewed_at.plus(TRUSTED_FOR);
        assert!(last_begin < commits_end_at(renewed_at));
        assert!(commits_end_at(renewed_at) < renewed_at.plus(EXPIRES_AFTER));
    }

    #[test]
    fn records_read_back_and_broken_ones_are_told() {
        let record = Record { read_at: 1 << 50, oldest: 7 };
        assert_eq!(Record::decode(&record.encode()), Some(record));
        assert_eq!(Record::decode(&[0; 15]), None);
        assert_eq!(Record::decode(&[0; 17]), None);
    }

    #[test]
    fn the_first_server_removes_a_dropped_tree_when_no_server_reads_from_before() {
        let (first, second) = (Membership::new(3), Membership::new(5));
        let tree = TreeId::new(9);
        let told = |oldest: u64| Record { read_at: 100, oldest };
        for server in [&first, &second] {
            server.note_dropped(&[tree], 40);
            server.note(&Records::from([(3, told(50)), (5, told(39))]));
            assert!(server.unseen().is_empty(), "the second server reads from before");
            server.note_dropped(&[tree], 60);
            server.note(&Records::from([(3, told(50)), (5, told(40))]));
        }
        assert_eq!(first.unseen(), [tree]);
        assert!(second.unseen().is_empty(), "it is not the first one");
        first.note_dropped(&[], 70);
        assert!(first.unseen().is_empty(), "it is gone");
    }
}
