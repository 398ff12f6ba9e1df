//! A disk in memory that can lose power between any two calls, and that fails, lies and forgets as told.
//!
//! Terms: a *sector* is 512 bytes, the unit that a power cut treats alike. *Dirty* sectors are written but not synced;
//! of each, every version since the last sync is kept. *Calls* are the operations that change the disk; reads are not
//! counted, because a crash at a read is the crash at the next change.
//!
//! 1. A write changes what reads see at once, and keeps the version that it replaced.
//! 2. A sync makes the present content of a file, and its length, durable, and forgets the older versions.
//! 3. A folder operation changes what `open` and `list` see at once, and is remembered until the folder is synced.
//! 4. [`SimulatedDisk::crash`] draws from its seed, for every dirty sector by itself: the newest version survives, or the
//!    durable one, or one between, or a mixture torn at some byte; and for every remembered folder operation: it happened
//!    or it did not. All handles and locks die with the process.
//! 5. [`SimulatedDisk::kill`] is the death of the process alone: the kernel keeps all it was given.
//!
//! Invariants: what a successful sync covered survives every crash (unless a fault said otherwise); what was never
//! written never appears; the same seed gives the same crash.
//!
//! Not here: sectors that become unreadable, and latency.

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
