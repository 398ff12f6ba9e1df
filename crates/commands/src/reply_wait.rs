//! The wait of a reply that is ready and must not be sent yet.

use pando_catalog::{DurabilityWaker, StorageError};

/// The condition of a reply that has to wait: as a rule, that a commit is durable.
pub trait ReplyWait: Send {
    /// Calls `waker` once: with `Ok` when the reply may be sent; with the error when the reply will never be
    /// true. Then the connection has to be closed without it. May call on this thread, at once. Never blocks.
    fn notify(self: Box<Self>, waker: DurabilityWaker);

    /// Waits on this thread, for callers in the same process.
    ///
    /// # Errors
    /// The reply will never be true.
    fn wait(self: Box<Self>) -> Result<(), StorageError>;
}
