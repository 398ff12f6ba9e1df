//! The workloads, one per file, and the data that they run on.
//!
//! - [`documents`]: the sysbench documents and collections.
//! - [`load`]: fills the collections.
//! - [`point`]: the point query by `_id`.
//!
//! A workload that measures requests gives each client a [`Script`]; connections, timing, counting and
//! reporting are the frame's and the same for all.

pub mod documents;
pub mod load;
pub mod point;

use crate::client::Script;
use crate::error::BenchError;
use pando_document::Document;

/// What the clients of a run do.
pub trait Workload {
    /// What this client (counted from 0) does.
    fn script(&self, client: u32) -> Result<Box<dyn Script>, BenchError>;

    /// A reply with which any request of the workload is content, for the null server.
    fn null_reply(&self) -> Document;
}
