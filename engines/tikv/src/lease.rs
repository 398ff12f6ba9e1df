//! The lease: one server at a time has a store open.
//!
//! The list of trees, the claims of transactions and the pending merges of a store live in one server's
//! memory, so that a second server would write indexes by a description that is no longer true. A store that
//! is opened for several servers has them know each other instead (`servers`).
//!
//! # Steps
//! 1. A server that opens the store reads the lease. Where another one owns it, it watches the lease: one
//!    that is renewed belongs to a living server, and the store is refused. One that stands still for
//!    [`EXPIRES_AFTER`] is taken over. The same holds for several servers that have it open.
//! 2. The owner renews the lease every [`RENEWED_EVERY`].
//! 3. A server that could not renew it for [`TRUSTED_FOR`](servers::TRUSTED_FOR) commits nothing until it
//!    can. One that finds another owner stops.
//!
//! A server knows itself by a number in the file `tikv-store` of its folder (`marker`), so that it need not
//! wait for its own lease after a crash.
//!
//! # Invariant
//! The time of trust is shorter than [`EXPIRES_AFTER`], and both are measured by the clock of one process, so
//! that the clocks of two machines need not agree.

use std::time::Duration;

use pando_environment::Clock;
use pando_storage::{ErrorKind, StorageError};

use crate::cluster::{Cluster, Mutation};
use crate::failure::corrupt;
use crate::layout::Keyspace;
use crate::servers::{self, EXPIRES_AFTER, Records};

/// How often the owner renews its lease.
pub(crate) const RENEWED_EVERY: Duration = Duration::from_secs(3);
/// How often a server looks at the lease of another.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(500);

const RECORD_BYTES: usize = 16;

/// A server's number and how often it has renewed its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    owner: u64,
    renewals: u64,
}

impl Record {
    fn encode(self) -> Vec<u8> {
        [self.owner.to_be_bytes(), self.renewals.to_be_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Result<Record, StorageError> {
        let damaged = || corrupt("the lease of the store makes no sense");
        let (owner, renewals) = bytes.split_first_chunk::<8>().ok_or_else(damaged)?;
        let renewals = renewals.try_into().map_err(|_| damaged())?;
        debug_assert_eq!(bytes.len(), RECORD_BYTES);
        Ok(Record { owner: u64::from_be_bytes(*owner), renewals: u64::from_be_bytes(renewals) })
    }
}

fn read(cluster: &Cluster, keyspace: &Keyspace, at: u64) -> Result<Option<Record>, StorageError> {
    cluster.get(at, &keyspace.lease())?.as_deref().map(Record::decode).transpose()
}

/// The servers that have a store open.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holders {
    /// The one that has it alone.
    owner: Option<Record>,
    /// The others, as far as they hold the claimant back.
    several: Records,
}

/// A server that opens a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimant {
    /// It wants to have it alone. A server that had it alone under this number is itself.
    Alone { server: u64 },
    /// It lets others have it, too.
    OneOfSeveral { server: u64 },
}

impl Claimant {
    fn holders(self, cluster: &Cluster, keyspace: &Keyspace, at: u64) -> Result<Holders, StorageError> {
        let several = match self {
            Claimant::Alone { .. } => servers::read(cluster, keyspace, at)?,
            Claimant::OneOfSeveral { .. } => Records::new(),
        };
        Ok(Holders { owner: read(cluster, keyspace, at)?, several })
    }

    fn server(self) -> u64 {
        let (Claimant::Alone { server } | Claimant::OneOfSeveral { server }) = self;
        server
    }

    /// The changes by which it opens the store. Both write the lease, so that the two conflict.
    fn changes(self, keyspace: &Keyspace, found: &Holders, at: u64) -> Vec<Mutation> {
        match self {
            Claimant::Alone { server } => {
                let renewals = found.owner.map_or(1, |owner| owner.renewals + 1);
                let mine = Record { owner: server, renewals };
                let gone = found.several.keys().map(|number| Mutation::Delete(keyspace.server(*number)));
                gone.chain([Mutation::Put(keyspace.lease(), mine.encode())]).collect()
            }
            Claimant::OneOfSeveral { .. } => {
                let mine = servers::Record { read_at: 0, oldest: 0 };
                vec![Mutation::Delete(keyspace.lease()), Mutation::Put(keyspace.server(at), mine.encode())]
            }
        }
    }
}

/// Opens the store. Waits for holders that are gone. Gives the number of the server among several.
pub(crate) fn acquire(
    cluster: &Cluster,
    keyspace: &Keyspace,
    claimant: Claimant,
    name: &str,
    clock: &dyn Clock,
) -> Result<u64, StorageError> {
    let (begun, mut last) = (clock.monotonic(), None);
    loop {
        let found = claimant.holders(cluster, keyspace, cluster.timestamp()?)?;
        let is_unowned = found.owner.is_none_or(|owner| owner.owner == claimant.server());
        let is_free = is_unowned && found.several.is_empty();
        let has_expired = last.as_ref() == Some(&found) && clock.monotonic().since(begun) >= EXPIRES_AFTER;
        if is_free || has_expired {
            let mut taken_at = None;
            cluster.change(|at| {
                taken_at = (claimant.holders(cluster, keyspace, at)? == found).then_some(at);
                Ok(taken_at.map(|at| claimant.changes(keyspace, &found, at)).unwrap_or_default())
            })?;
            if let Some(at) = taken_at {
                return Ok(at);
            }
        }
        if last.as_ref().is_some_and(|last| *last != found) {
            return Err(StorageError::new(ErrorKind::InvalidInput, refusal(name, &found)));
        }
        last = Some(found);
        std::thread::sleep(LOOKED_AT_EVERY);
    }
}

fn refusal(name: &str, found: &Holders) -> String {
    match found.several.len() {
        0 => format!(
            "the store `{name}` of the TiKV cluster is open in another server: stop that one, choose another keyspace, or \
             start both with the option `servers` = several"
        ),
        servers => format!(
            "the store `{name}` of the TiKV cluster is open in {servers} servers that share it: start this one with the \
             option `servers` = several, too, or stop them"
        ),
    }
}

/// Whether a server has the store alone.
pub(crate) fn is_owned(cluster: &Cluster, keyspace: &Keyspace, at: u64) -> Result<bool, StorageError> {
    Ok(read(cluster, keyspace, at)?.is_some())
}

/// Renews the lease. Fails as [`Closed`](ErrorKind::Closed) where another server has taken it.
pub(crate) fn renew(cluster: &Cluster, keyspace: &Keyspace, server: u64) -> Result<(), StorageError> {
    cluster.change(|at| {
        let found = read(cluster, keyspace, at)?.filter(|found| found.owner == server);
        let found = found.ok_or_else(|| {
            let message = "another server has taken over the store in the TiKV cluster, as this one could not be reached \
                           for a while: start it again to take the store back";
            StorageError::new(ErrorKind::Closed, message)
        })?;
        let renewed = Record { renewals: found.renewals + 1, ..found };
        Ok(vec![Mutation::Put(keyspace.lease(), renewed.encode())])
    })
}

/// Gives the lease back.
pub(crate) fn release(cluster: &Cluster, keyspace: &Keyspace, server: u64) -> Result<(), StorageError> {
    cluster.change(|at| {
        let is_mine = read(cluster, keyspace, at)?.is_some_and(|found| found.owner == server);
        Ok(if is_mine { vec![Mutation::Delete(keyspace.lease())] } else { Vec::new() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::TRUSTED_FOR;

    #[test]
    fn a_record_reads_back_and_a_broken_one_is_told() {
        let record = Record { owner: 7, renewals: 1 << 40 };
        assert_eq!(Record::decode(&record.encode()).expect("it reads back"), record);
        assert!(Record::decode(b"short").is_err());
        assert!(TRUSTED_FOR < EXPIRES_AFTER && RENEWED_EVERY < TRUSTED_FOR);
    }
}
