//! The commands of sessions: their begin and end, and the ends of their transactions.

pub(crate) mod begin_transaction;
pub(crate) mod end_sessions;
pub(crate) mod kill_sessions;
pub(crate) mod log_in;
pub(crate) mod logout;
pub(crate) mod set_client_lock_timeout;
pub(crate) mod start_session;
pub(crate) mod transactions;
pub(crate) mod users;
