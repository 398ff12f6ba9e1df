//! A missed read: the read that a call needed and did not make, because the call must not block.
//!
//! 1. An engine is asked to answer from memory, and meets a block that is not there. Its refusal carries the
//!    missed read.
//! 2. The caller makes the read in its own way (an event loop: through a [`ReadQueue`](crate::ReadQueue)),
//!    and hands the bytes to [`fulfil`](MissedRead::fulfil).
//! 3. The caller repeats the call. It finds the block in memory, or meets another one that is missing.
//!
//! A missed read may be dropped: it leaves no trace.

use std::fmt;
use std::sync::Arc;

use crate::File;

/// A read that was not made.
pub trait MissedRead: Send + Sync + fmt::Debug {
    /// Where to read.
    fn file(&self) -> &Arc<dyn File>;

    /// The first byte; fits the file's alignment.
    fn offset(&self) -> u64;

    /// How many bytes; fits the file's alignment.
    fn length(&self) -> usize;

    /// Takes the bytes into memory. What fails its checks is left alone: whoever reads it with `MayBlock`
    /// reads it again, and reports it.
    fn fulfil(&self, bytes: &[u8]);
}
