//! A missed read: the read that a call needed and did not make, because the call must not block.
//!
//! 1. An engine is asked to answer from memory, and meets a block that is not there. Its refusal carries the
//!    missed read.
//! 2. The caller makes the read in its own way (an event loop: through a [`ReadQueue`](crate::ReadQueue)),
//!    and hands the bytes to [`fulfil`](MissedRead::fulfil).
//! 3. The caller repeats the call. It finds the block in memory, or gets another missed read.
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

    /// Takes the bytes into memory. Bytes that fail their checks are dropped: a reader with `MayBlock` reads
    /// them again, and reports the fault.
    fn fulfil(&self, bytes: &[u8]);
}
