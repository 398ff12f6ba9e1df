//! The key of a lost claim, as the error of the conflict carries it.

use crate::identifiers::{TransactionId, TreeId};

/// The cause of a lost claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contest {
    /// A live transaction has the key.
    Held(TransactionId),
    /// The key is reserved for a statement that came earlier.
    Reserved,
    /// A commit after the snapshot may have updated the key. A newer snapshot may claim it.
    Committed,
}

/// The key of a lost claim.
#[derive(Clone, Debug)]
pub struct Contested {
    pub(crate) fingerprint: u64,
    /// The transaction that has lost.
    pub requester: TransactionId,
    /// The cause.
    pub contest: Contest,
    /// The tree of the key.
    pub tree: TreeId,
    /// The key.
    pub key: Box<[u8]>,
}

impl Contested {
    /// Whether both contests are for one key.
    pub fn is_same_key(&self, other: &Contested) -> bool {
        self.fingerprint == other.fingerprint
    }
}
