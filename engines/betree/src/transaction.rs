//! Transactions: snapshots, the order of commits, and the transaction object itself.

mod publisher;
mod snapshots;
mod transaction_state;

pub(crate) use publisher::Publisher;
pub(crate) use snapshots::{Live, Snapshots};
pub(crate) use transaction_state::BetreeTransaction;

#[cfg(all(test, shuttle))]
mod schedules;
