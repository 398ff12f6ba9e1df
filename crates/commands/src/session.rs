//! The commands of sessions: their begin and end, the ends of their transactions, and logins.

pub(crate) mod authenticate;
pub(crate) mod begin_transaction;
pub(crate) mod end_sessions;
pub(crate) mod kill_sessions;
pub(crate) mod logout;
pub(crate) mod sasl_continue;
pub(crate) mod sasl_start;
pub(crate) mod set_client_lock_timeout;
pub(crate) mod start_session;
pub(crate) mod transactions;
