//! Large values: their pieces lie beside the entries, and the entry names them.
//!
//! A node replicates the writes of a transaction as one log entry, of 8 MB at most. So a large value is cut
//! into pieces, which are written by transactions of their own before the one that names them.
//!
//! # Terms
//! - *Group*: the pieces of one large value, under a number that is never used again.
//! - *Owner* of a group: the entry that names it.
//!
//! # Steps
//! 1. A commit writes the owner and the pieces of each large value, some pieces at a time.
//! 2. Its own transaction writes entries that name the groups.
//! 3. A reader that meets such an entry reads the pieces at its own timestamp.
//! 4. The upkeep ([`crate::upkeep`]) looks for groups whose owner names them no more, or never did because
//!    the commit failed, and deletes them. Older snapshots go on reading them, as they do everything deleted.
//!
//! # Invariants
//! - A piece is written once.
//! - A group younger than [`UNOWNED_FOR`] is left alone: its commit may be under way.

use std::time::Duration;

use pando_storage::{StorageError, TreeId};

use crate::cluster::{Cluster, Mutation, Order, earlier};
use crate::failure::corrupt;
use crate::layout::Keyspace;
use crate::value::{Stored, decode};

/// Values from this size on are large.
pub(crate) const LARGE_FROM: usize = 64 << 10;
/// Bytes of a piece.
const PIECE_BYTES: usize = 512 << 10;
/// Pieces of one transaction.
const PIECES_AT_ONCE: usize = 8;
/// The age from which a group without an owner is deleted.
pub(crate) const UNOWNED_FOR: Duration = Duration::from_secs(15 * 60);
/// Groups that the upkeep looks at in one step.
const GROUPS_AT_ONCE: u32 = 256;

/// Writes the pieces of a large value.
pub(crate) fn write(
    cluster: &Cluster,
    keyspace: &Keyspace,
    group: u64,
    (tree, key): (TreeId, &[u8]),
    value: &[u8],
) -> Result<(), StorageError> {
    let owner = [&tree.get().to_be_bytes(), key].concat();
    let mut next = vec![Mutation::Put(keyspace.group(group), owner)];
    for (number, piece) in (0_u32..).zip(value.chunks(PIECE_BYTES)) {
        next.push(Mutation::Put(keyspace.piece(group, number), piece.to_vec()));
        if next.len() == PIECES_AT_ONCE {
            put(cluster, std::mem::take(&mut next))?;
        }
    }
    put(cluster, next)
}

fn put(cluster: &Cluster, mutations: Vec<Mutation>) -> Result<(), StorageError> {
    let copy = |mutation: &Mutation| match mutation {
        Mutation::Put(key, value) => Mutation::Put(key.clone(), value.clone()),
        Mutation::Delete(key) => Mutation::Delete(key.clone()),
    };
    cluster.change(|_| Ok(mutations.iter().map(copy).collect()))
}

/// Reads a large value.
pub(crate) fn read(
    cluster: &Cluster,
    keyspace: &Keyspace,
    at: u64,
    group: u64,
    bytes: u64,
) -> Result<Vec<u8>, StorageError> {
    let damaged = || corrupt(format!("the pieces of the large value {group} are not all there"));
    let bytes = usize::try_from(bytes).map_err(|_| damaged())?;
    let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES)).map_err(|_| damaged())?;
    let mut value = Vec::with_capacity(bytes.min(pando_storage::VALUE_BYTES_MAX));
    let numbers: Vec<u32> = (0..pieces).collect();
    for numbers in numbers.chunks(PIECES_AT_ONCE) {
        let keys: Vec<Vec<u8>> = numbers.iter().map(|number| keyspace.piece(group, *number)).collect();
        let mut found = cluster.get_all(at, &keys)?;
        found.sort_unstable();
        for (_, piece) in &found {
            value.extend_from_slice(piece);
        }
    }
    if value.len() == bytes { Ok(value) } else { Err(damaged()) }
}

/// Deletes groups that no entry names, from one key of the list of groups on. Returns where to go on.
pub(crate) fn delete_unowned(
    cluster: &Cluster,
    keyspace: &Keyspace,
    from: Option<Vec<u8>>,
    unowned_for: Duration,
) -> Result<Option<Vec<u8>>, StorageError> {
    let now = cluster.timestamp()?;
    let mut range = keyspace.groups();
    if let Some(from) = from {
        range.start = from;
    }
    let found = cluster.scan(now, &range, Order::Ascending, GROUPS_AT_ONCE)?;
    let next = found
        .last()
        .filter(|_| found.len() == GROUPS_AT_ONCE as usize)
        .map(|(key, _)| [key, &[0][..]].concat());
    for (record, owner) in found {
        let group = keyspace
            .group_of(&record)
            .ok_or_else(|| corrupt("the number of a large value makes no sense"))?;
        let (tree, key) =
            owner.split_first_chunk().ok_or_else(|| corrupt("the owner of a large value makes no sense"))?;
        let entry = keyspace.entry(TreeId::new(u32::from_be_bytes(*tree)), key);
        let named = match cluster.get(now, &entry)?.as_deref().and_then(decode) {
            Some(Stored::Large { group, .. }) => Some(group),
            Some(Stored::Whole(_)) | None => None,
        };
        if named != Some(group) && group < earlier(now, unowned_for) {
            let pieces = keyspace.piece(group, 0)..keyspace.piece(group, u32::MAX);
            cluster.change(|at| {
                let pieces = cluster.scan_keys(at, &pieces, u32::from(u16::MAX))?;
                Ok(pieces.into_iter().chain([record.clone()]).map(Mutation::Delete).collect())
            })?;
        }
    }
    Ok(next)
}
