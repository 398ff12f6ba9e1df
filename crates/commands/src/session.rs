//! Sessions: accepted and numbered, so that drivers use them. They have no state yet.

pub(crate) mod end_sessions;
pub(crate) mod logout;
pub(crate) mod start_session;
pub(crate) mod transactions;
