//! Sessions: accepted and numbered, so that drivers use them. Their only state are their cursors.

pub(crate) mod end_sessions;
pub(crate) mod kill_sessions;
pub(crate) mod logout;
pub(crate) mod start_session;
pub(crate) mod transactions;
