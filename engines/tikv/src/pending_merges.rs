//! Pending merges: operators on a key whose value nobody has read.
//!
//! Two transactions that write one key conflict in TiKV. So a merge does not write its key. It puts a record
//! of its own beside it, under a number that is never used again. Many transactions add to one counter at
//! once, and no two conflict.
//!
//! ```text
//! entry   counter -> 10
//! merges  counter/7 -> add 1   counter/8 -> add 5        a reader sees 16
//! ```
//!
//! # Terms
//! - *Merging tree*: a tree that has had merges. Reads of other trees never look for them.
//! - *Fold*: the pending merges of a key go into its value.
//!
//! # Invariants
//! - The numbers of a key's merges are in the order of their commits as far as that matters: additions
//!   commute, and every other operator commits alone ([`crate::store`], the merge gate).
//! - A put or a delete removes the pending merges that it covers, in its own transaction.
//!
//! # Not here
//! Patches. Reads of every collection would have to look for their records, and those of two servers would
//! not conflict. So the transaction emulates a patch by a get and a put ([`EngineSnapshot::takes_patch`]).
//!
//! [`EngineSnapshot::takes_patch`]: pando_storage::EngineSnapshot::takes_patch

use std::borrow::Cow;
use std::collections::BTreeMap;

use pando_storage::{KeyRange, Merges, StorageError, TreeId};

use crate::cluster::{Cluster, Mutation, Order};
use crate::failure::corrupt;
use crate::layout::Keyspace;
use crate::value::{Stored, decode, whole};

/// Records of a page.
const PAGE: u32 = 1_024;

/// The pending merges of some keys: for each the encoded operators, oldest first.
pub(crate) type PendingMerges = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

/// The merges of the keys of a range.
pub(crate) fn in_range(
    cluster: &Cluster,
    keyspace: &Keyspace,
    at: u64,
    tree: TreeId,
    range: &KeyRange,
) -> Result<PendingMerges, StorageError> {
    let mut pending = PendingMerges::new();
    for (record, merges) in records(cluster, keyspace, at, tree, range)? {
        let key =
            keyspace.key_of_merge(&record).ok_or_else(|| corrupt("the key of a merge makes no sense"))?;
        let Some(Stored::Whole(merges)) = decode(&merges) else {
            return Err(corrupt("a pending merge makes no sense"));
        };
        pending.entry(key).or_default().push(merges.to_vec());
    }
    Ok(pending)
}

fn records(
    cluster: &Cluster,
    keyspace: &Keyspace,
    at: u64,
    tree: TreeId,
    range: &KeyRange,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StorageError> {
    let Some(mut range) = keyspace.merges(tree, range) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    loop {
        let page = cluster.scan(at, &range, Order::Ascending, PAGE)?;
        let is_last = page.len() < PAGE as usize;
        found.extend(page);
        match found.last() {
            Some((last, _)) if !is_last => range.start = [last, &[0][..]].concat(),
            _ => return Ok(found),
        }
    }
}

/// A value with merges over it.
pub(crate) fn apply(value: Option<&[u8]>, merges: &[Vec<u8>]) -> Result<Option<Vec<u8>>, StorageError> {
    let mut value = value.map(<[u8]>::to_vec);
    for merges in merges {
        let merges = Merges::decode(merges).ok_or_else(|| corrupt("a pending merge makes no sense"))?;
        value = merges.apply(value.as_deref()).map(Cow::into_owned);
    }
    Ok(value)
}

/// The deletions of a key's pending merges, for the transaction that covers them.
pub(crate) fn removals(
    cluster: &Cluster,
    keyspace: &Keyspace,
    at: u64,
    tree: TreeId,
    key: &[u8],
) -> Result<Vec<Mutation>, StorageError> {
    let records = records(cluster, keyspace, at, tree, &KeyRange::point(key))?;
    Ok(records.into_iter().map(|(record, _)| Mutation::Delete(record)).collect())
}

/// Folds the pending merges of a key.
pub(crate) fn fold(
    cluster: &Cluster,
    keyspace: &Keyspace,
    tree: TreeId,
    key: &[u8],
) -> Result<(), StorageError> {
    let entry = keyspace.entry(tree, key);
    cluster.change(|at| {
        let pending = in_range(cluster, keyspace, at, tree, &KeyRange::point(key))?;
        let Some(merges) = pending.get(key) else { return Ok(Vec::new()) };
        let stored = cluster.get(at, &entry)?;
        let value = match stored.as_deref().map(decode) {
            None => None,
            Some(Some(Stored::Whole(value))) => Some(value),
            // A large value keeps its merges: they are applied when it is read.
            Some(Some(Stored::Large { .. })) => return Ok(Vec::new()),
            Some(None) => return Err(corrupt("a value makes no sense")),
        };
        let Some(value) = apply(value, merges)? else { return Ok(Vec::new()) };
        let mut changes = vec![Mutation::Put(entry.clone(), whole(&value))];
        changes.extend(removals(cluster, keyspace, at, tree, key)?);
        Ok(changes)
    })
}
