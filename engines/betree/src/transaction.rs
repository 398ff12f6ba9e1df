//! Transactions: a snapshot, a private write set over it, and the claims that keep other writers away.

mod transaction_state;

pub(crate) use transaction_state::BetreeTransaction;
