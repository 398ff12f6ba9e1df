//! The write-ahead log: records in order, in the kernel when asked, on the device when asked.
//!
//! # Terms
//! - A *record* is a payload of the engine's with its LSN; LSNs are consecutive, but for *leaps* ([`leap`]), which say so.
//! - A *segment* is a file of the log. Its header holds a random *salt* and the LSN of its first record.
//! - A record's *chain* is the checksum of the record before it.
//! - *Appended* is what has an LSN, *logged* what is in the kernel (it survives a killed process), *durable* what a sync
//!   has covered (it survives a power cut).
//!
//! # The life of a record
//! 1. Its payload is compressed where that is worth it ([`Packed`]). [`Log::append`] gives it the next LSN and copies it into the
//!    active batch, under a mutex held for the copy.
//! 2. [`Log::write_through`]: one thread at a time takes all batches and writes them, each up to the end of a page of the kernel's, so that
//!    it reads nothing for it; those who waited for it find theirs written.
//! 3. [`Log::sync`]: one sync is in flight at a time; what is appended meanwhile is covered by the next one. Callers wait,
//!    or leave a waker ([`Log::on_durable`]) that the flusher serves. Nothing stays unsynced for longer than the flush
//!    interval.
//! 4. After a checkpoint [`Log::release_before`] gives segments free, to be used again under a new salt.
//! 5. After a crash [`Log::open`] reads from a position on, hands every record over, and continues in a new segment.
//!
//! # What makes the end of the log certain
//! - The checksum of a record is seeded with its segment's salt, so what an earlier use of the file left is no record.
//! - LSN and chain must continue, so what an earlier end of the log left behind it is not taken up again.
//! - A segment is synced before the next one is written. A bad record with a later segment behind it is therefore damage.
//! - A record says how many records before it were not yet durable when it was appended. A bad record with a good one
//!   behind it that says the bad one was durable is damage too. Damage is refused; a torn tail is the end of the log.
//!
//! # Invariants
//! - appended ≥ logged ≥ durable; none of them goes back.
//! - After a failed write or sync every call fails ([`LogError::Poisoned`]); neither is ever tried again.
//! - An append that finds no room has no LSN, and nothing has changed.
//!
//! # Not here
//! What payloads mean (`format::record`), which position a checkpoint records (the engine).

mod appender;
mod copy;
mod error;
mod flusher;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod lsn_gap;
mod packed;
mod read_back;
mod reader;
mod record;
mod recovery;
mod segment;
mod segment_files;
mod segment_table;
mod wakers;
mod writer;

pub(crate) use copy::{CopiedSegment, CopyProblem, LogHold, adopt};
pub use error::{LogError, RecordProblem};
pub(crate) use lsn_gap::{is_gap, lsn_after_gap};
pub use packed::LogCompression;
pub(crate) use packed::Packed;
pub(crate) use read_back::ReadBack;
pub(crate) use recovery::{FOLDER as LOG_FOLDER, LogRecord};
pub(crate) use segment::file_name as segment_file_name;
pub(crate) use writer::{Appended, Log, LogOptions};

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(test)]
mod tests;
