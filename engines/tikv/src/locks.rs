//! The locks that a transaction has left whose first key was never locked, and their removal.
//!
//! A prewrite goes to all regions of a transaction at once. A server that dies meanwhile, or a region that
//! takes nothing, may leave locks of a transaction without its first key, which decides the fate of all. A
//! request that meets one asks for that key, and hears that there is no such transaction. The client then
//! fails each time, also when the time of the lock is over (`tikv-client` 0.4.0: its
//! `get_txn_status_from_lock` looks for another shape of the error; issue 543 of tikv/client-rust).
//!
//! # Steps
//! 1. A request fails because a transaction is not found ([`missing_transaction`](crate::failure)).
//! 2. The locks of that transaction on the keys of the request are listed. While their time is not over, the
//!    first key may still come.
//! 3. [`remove_orphans`] has the client roll back the first key, so that it cannot be locked any more, and
//!    with it all locks of the transaction in that region.
//!
//! # Not here
//! Locks of asynchronous commits, which the option `commit` = `one-phase` makes. The client's removal commits
//! a transaction of that kind though one of its keys lacks. They stay until old versions are removed, and the
//! client resolves them the same way then.

use std::ops::Range;

use tikv_client::transaction::ResolveLocksOptions;
use tikv_client::{Error, ProtoLockInfo, Timestamp, TimestampExt, TransactionClient};

use crate::failure::missing_transaction;

/// Locks that are looked at once.
const LOCKS_AT_ONCE: u32 = 256;

/// The keys of a request.
#[derive(Clone, Copy)]
pub(crate) enum Keys<'k> {
    None,
    One(&'k [u8]),
    Several(&'k [Vec<u8>]),
    Range(&'k Range<Vec<u8>>),
}

impl Keys<'_> {
    /// A range that has all of them.
    fn range(self) -> Option<Range<Vec<u8>>> {
        match self {
            Keys::None => None,
            Keys::One(key) => Some(key.to_vec()..behind(key)),
            Keys::Several(keys) => Some(keys.iter().min()?.clone()..behind(keys.iter().max()?)),
            Keys::Range(range) => Some(range.clone()),
        }
    }
}

/// The first key behind another one.
pub(crate) fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0][..]].concat()
}

/// Removes the locks that have made a request fail, if they are such as the module's head tells of.
pub(crate) async fn remove_orphans(
    client: &TransactionClient,
    keys: Keys<'_>,
    error: &Error,
) -> Result<(), Error> {
    let (Some(start), Some(range)) = (missing_transaction(error), keys.range()) else { return Ok(()) };
    // Some nodes list the locks up to a timestamp, others those before it.
    let (start, until) = (Timestamp::from_version(start), Timestamp::from_version(start.saturating_add(1)));
    let now = client.current_timestamp().await?;
    let locks = client.scan_locks(&until, range, LOCKS_AT_ONCE).await?;
    for lock in locks.iter().filter(|lock| is_orphan(lock, &start, &now)) {
        let keys = lock.key.clone()..behind(&lock.key);
        client.cleanup_locks(keys, &until, ResolveLocksOptions::default()).await?;
    }
    Ok(())
}

/// Whether a lock is one of the transaction with this start, and its time is over.
fn is_orphan(lock: &ProtoLockInfo, start: &Timestamp, now: &Timestamp) -> bool {
    let lives_for = i64::try_from(lock.lock_ttl).unwrap_or(i64::MAX);
    lock.lock_version == start.version()
        && !lock.use_async_commit
        && start.physical.saturating_add(lives_for) <= now.physical
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_all_keys_of_a_request() {
        let keys = [b"c".to_vec(), b"a".to_vec(), b"b".to_vec()];
        let range = Keys::Several(&keys).range().expect("there are keys");
        assert!(keys.iter().all(|key| range.contains(key)) && !range.contains(&b"ca".to_vec()));
        assert!(Keys::One(b"a").range().expect("there is a key").contains(&b"a".to_vec()));
        assert_eq!(Keys::None.range(), None);
        assert_eq!(Keys::Several(&[]).range(), None);
    }

    #[test]
    fn a_lock_is_removed_when_its_time_is_over_and_only_one_of_the_transaction() {
        let start = Timestamp { physical: 10_000, logical: 7, ..Timestamp::default() };
        let mut lock = ProtoLockInfo::default();
        (lock.lock_version, lock.lock_ttl) = (start.version(), 3_000);
        let is_orphan_at = |lock: &ProtoLockInfo, physical: i64| {
            is_orphan(lock, &start, &Timestamp { physical, ..Timestamp::default() })
        };
        assert!(!is_orphan_at(&lock, 12_999) && is_orphan_at(&lock, 13_000));
        let other = ProtoLockInfo { lock_version: start.version() - 1, ..lock.clone() };
        let asynchronous = ProtoLockInfo { use_async_commit: true, ..lock.clone() };
        assert!(!is_orphan_at(&other, 90_000) && !is_orphan_at(&asynchronous, 90_000));
    }
}
