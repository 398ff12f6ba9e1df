//! The write-ahead log: records in order, in the kernel when asked, on the device when asked.
//!
//! ```text
//!  append              write_through               sync
//!  batch in memory --> kernel's page cache ------> device
//!  appended LSN        logged LSN                  durable LSN
//!                      survives a killed process   survives a power cut
//! ```
//!
//! # Terms
//! - *Record*: a payload of the engine with its LSN. LSNs are consecutive but for *gaps*, which are marked
//!   ([`lsn_gap`]).
//! - *Segment*: a file of the log. Its header holds a random *salt* and the LSN of its first record.
//!   PostgreSQL uses the same word.
//! - *Chain* of a record: the checksum of the record before it.
//! - *Appended*: has an LSN. *Logged*: is in the kernel. *Durable*: a sync has covered it.
//! - *Sync task*: the thread that syncs the log. It has no part in the flushes of trees.
//!
//! # The life of a record
//! 1. Its payload is compressed if that is worth it ([`Packed`]). [`Log::append`] assigns the next LSN and
//!    copies it into the active batch, under a mutex held for the copy.
//! 2. [`Log::write_through`]: one thread at a time takes all batches and writes them. Each write ends at the
//!    end of a page of the kernel, which therefore reads nothing. Threads that waited find their records
//!    written.
//! 3. [`Log::sync`]: one sync is in flight at a time, and the next one covers all records appended meanwhile
//!    (group commit). Callers wait, or leave a waker ([`Log::on_durable`]) that the sync task serves. Where
//!    many commits wait, it pauses until more have joined ([`gathering`]). No record stays unsynced longer
//!    than the sync interval.
//! 4. After a checkpoint, [`Log::release_before`] releases segments. They are recycled under a new salt.
//! 5. After a crash, [`Log::open`] reads from a position on, gives every record to replay, and continues in a
//!    new segment.
//!
//! # How the end of the log is found
//! - The checksum of a record is seeded with the salt of its segment. So bytes of an earlier use of the file
//!   are no record.
//! - LSN and chain must continue. So records behind an earlier end of the log are not taken up again.
//! - A segment is synced before the next one is written. So a bad record with a later segment behind it is
//!   damage.
//! - A record says how many records before it were not durable yet when it was appended. So a bad record is
//!   damage, too, if a later good record says that it was durable. Damage is refused; a torn tail is the end
//!   of the log.
//!
//! # Invariants
//! - appended ≥ logged ≥ durable, and none of them decreases.
//! - After a failed write or sync every call fails ([`LogError::Poisoned`]). Neither is ever retried.
//! - An append that finds no room has no LSN, and has changed nothing.
//!
//! # Not here
//! The content of payloads (`format::record_payload`), and the position that a checkpoint records
//! (`background::checkpointer`).

mod appender;
mod copy;
mod error;

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod gathering;
mod log_recovery;
mod lsn_gap;
mod packed;
mod read_back;
mod reader;
mod record;
mod segment;
mod segment_files;
mod segment_table;
mod sync_task;
mod wakers;
mod writer;

pub(crate) use copy::{CopiedSegment, CopyProblem, LogHold, adopt};
pub use error::{LogError, RecordProblem};
pub(crate) use log_recovery::{FOLDER as LOG_FOLDER, LogRecord};
pub(crate) use lsn_gap::{is_gap, lsn_after_gap, records_between};
pub use packed::LogCompression;
pub(crate) use packed::Packed;
pub(crate) use read_back::ReadBack;
pub(crate) use segment::file_name as segment_file_name;
pub(crate) use writer::{Appended, Log, LogOptions};

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(test)]
mod tests;
