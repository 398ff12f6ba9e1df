//! The wait of a reply until its commit is as durable as the client has asked for. The request is listed
//! meanwhile. It cannot be interrupted: its writes are committed, and an answer before they are durable would
//! be neither yes nor no.

use pando_catalog::{CommitReceipt, Durability, DurabilityWaker, SharedEngine, StorageError};

use crate::operations::ListedWait;
use crate::reply_wait::ReplyWait;

/// A wait for the log to reach a commit.
pub(crate) struct DurabilityWait {
    pub engine: SharedEngine,
    pub receipt: CommitReceipt,
    pub durability: Durability,
    /// The request, listed as one that waits.
    pub listed: ListedWait,
}

impl ReplyWait for DurabilityWait {
    fn notify(self: Box<Self>, waker: DurabilityWaker) {
        let DurabilityWait { engine, receipt, durability, listed } = *self;
        let ended = Box::new(move |outcome| {
            drop(listed);
            waker(outcome);
        });
        engine.when_durable(receipt, durability, ended);
    }

    fn wait(self: Box<Self>) -> Result<(), StorageError> {
        self.engine.wait_durable(self.receipt, self.durability)
    }
}
