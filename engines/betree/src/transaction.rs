//! Transactions: the engine's half. The crate `storage` lays the private writes and the claims over it.

mod betree_snapshot;

pub(crate) use betree_snapshot::BetreeSnapshot;
