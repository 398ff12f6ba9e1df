//! Statistics of an open store: every counter and gauge, traffic by cause and by tree, and waits.

mod engine_statistics;
mod traffic_statistics;

pub(crate) use engine_statistics::statistics;
pub(crate) use traffic_statistics::{all_waits, tree_statistics};
