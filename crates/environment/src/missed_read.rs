//! A read that somebody that must not block needed and did not make, so that a thread which serves many clients can have it made
//! and ask again.
//!
//! 1. An engine is asked to answer from memory, and meets a block that is not there. Its refusal carries the read that is
//!    missing.
//! 2. The caller makes the read as it likes (an event loop: through a [`ReadQueue`](crate::ReadQueue)), and hands the bytes to
//!    [`fulfil`](MissedRead::fulfil).
//! 3. The same question finds the block in memory; or meets another one.
//!
//! Nothing has to be fulfilled: a missed read that is dropped leaves no trace.

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

    /// Takes the bytes into memory. What fails its checks is left alone: whoever reads it with `MayBlock` reads it again, and
    /// reports it.
    fn fulfil(&self, bytes: &[u8]);
}
