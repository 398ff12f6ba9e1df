//! The ids of ended sessions, for later sessions.
//!
//! The store keeps the newest transaction number of each session id for half an hour, and a record of it in
//! `config.transactions`. A program that starts a session for each transaction would fill both. So a new
//! session takes the id of an ended one, as in the official drivers, and counts its transactions on from
//! there.
//!
//! # Invariants
//! - An id belongs to one session at a time.
//! - The store has ended the transaction and the cursors of an id in the pool.
//! - The transaction numbers of an id only grow. So a late call of the ended session cannot join a
//!   transaction of the next one.

use bson::Bson;
use parking_lot::Mutex;

/// The most ids that wait here.
const IDS_MAX: usize = 1_000;

/// The id of a session, and the number of its newest transaction.
pub(crate) struct SessionIdentity {
    /// `lsid` as a command has it.
    pub id: Bson,
    /// 0 before the first transaction.
    pub number: i64,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct SessionPool {
    ended: Mutex<Vec<SessionIdentity>>,
}

impl SessionPool {
    /// The id that was given back last.
    pub fn take(&self) -> Option<SessionIdentity> {
        self.ended.lock().pop()
    }

    /// Keeps the id of a session that the store has ended. A full pool drops it.
    pub fn give_back(&self, identity: SessionIdentity) {
        let mut ended = self.ended.lock();
        if ended.len() < IDS_MAX {
            ended.push(identity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pool_takes_no_more_ids() {
        let pool = SessionPool::default();
        for number in 0..1_500 {
            pool.give_back(SessionIdentity { id: Bson::Null, number });
        }
        assert_eq!(pool.take().map(|identity| identity.number), Some(999));
        assert_eq!(std::iter::from_fn(|| pool.take()).count(), 999);
    }
}
