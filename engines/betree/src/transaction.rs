//! Transactions: the engine's half, over which `storage` lays the private writes and the claims.

mod betree_snapshot;

pub(crate) use betree_snapshot::BetreeSnapshot;
