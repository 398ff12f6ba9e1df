//! A disk in memory that can lose power between any two calls, and that fails, lies and forgets as told.
//!
//! # Terms
//! - *Sector*: 512 bytes, the unit that a power cut treats alike.
//! - *Dirty* sector: written and not synced. The disk keeps every version of it since the last sync.
//! - *Call*: an operation that changes the disk. Reads are not counted, because a crash at a read is the
//!   crash at the next change.
//!
//! # Algorithm
//! 1. A write changes what reads see at once, and keeps the version that it replaced.
//! 2. A sync makes the present content of a file, and its length, durable, and forgets the older versions.
//! 3. A folder operation changes what `open` and `list` see at once, and is remembered until the folder is
//!    synced.
//! 4. [`SimulatedDisk::crash`] draws from its seed for every dirty sector: the newest version survives, or
//!    the durable one, or one between, or a mixture torn at some byte. For every remembered folder operation
//!    it draws whether it happened. All handles and locks die with the process.
//! 5. [`SimulatedDisk::kill`] is the death of the process alone: the kernel keeps all that it was given.
//!
//! # Invariants
//! - Data that a successful sync covered survives every crash, unless a fault said otherwise.
//! - Data that was never written never appears.
//! - The same seed gives the same crash.
//!
//! # Not here
//! Sectors that become unreadable, and latency.

mod disk;
mod fault;
mod handle;
mod inode;
mod namespace;
mod sparse_bytes;

pub use disk::SimulatedDisk;
pub use fault::{Fault, FaultRule};

/// The unit that a power cut treats alike, in bytes.
pub const SECTOR_BYTES: usize = 512;

#[cfg(test)]
mod tests;
