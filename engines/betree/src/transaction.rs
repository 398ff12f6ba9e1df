//! Transactions: snapshots, the order of commits, and the transaction object itself.

mod own_ranges;
mod publisher;
mod snapshots;
mod transaction_state;

pub(crate) use own_ranges::{OWN_RANGES_MAX, OwnRanges};
pub(crate) use publisher::Publisher;
pub(crate) use snapshots::{Live, Snapshots};
pub(crate) use transaction_state::BetreeTransaction;

#[cfg(all(test, shuttle))]
mod schedules;
