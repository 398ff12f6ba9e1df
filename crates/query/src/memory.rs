//! The memory of the stages of one query: its account, and whether its stages may use the disk.
//!
//! # Rules
//! - A stage that may spill does so when its reservation cannot grow.
//! - Without disk use a stage holds at most [`MEMORY_BYTES_MAX`] bytes. More is an error. Less is one where
//!   the memory of all queries is used up.
//! - One value that has to be in memory as a whole, such as the array of a `$push`, may have
//!   [`VALUE_BYTES_LEAST`] bytes in any case, and up to [`MEMORY_BYTES_MAX`] as far as there is memory.

use pando_catalog::{QueryAccount, Reservation};

use crate::{ErrorCode, QueryError};

/// Bytes that a stage may hold without disk use, as MongoDB's
/// `internalQueryMaxBlockingSortMemoryUsageBytes`.
pub const MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Bytes that one value may have in any case: a document's.
const VALUE_BYTES_LEAST: usize = pando_document::DOCUMENT_BYTES_MAX;

/// Whether a stage may use the disk when memory runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskUse {
    /// It may.
    Allowed,
    /// It may not: more than [`MEMORY_BYTES_MAX`] is an error.
    Forbidden,
}

/// The memory of a query's stages.
#[derive(Clone, Debug)]
pub struct StageMemory {
    /// The query's account.
    pub account: QueryAccount,
    /// Whether stages may use the disk.
    pub disk_use: DiskUse,
}

impl StageMemory {
    /// The memory of a query. A store in memory has no disk to use: where its queries have a budget, a stage
    /// that needs more fails as one without disk use does.
    pub fn new(account: QueryAccount, disk_use: DiskUse) -> StageMemory {
        let disk_use = if account.is_bounded_without_files() { DiskUse::Forbidden } else { disk_use };
        StageMemory { account, disk_use }
    }

    /// No account bounds it, for tools and tests.
    pub fn unlimited(disk_use: DiskUse) -> StageMemory {
        StageMemory { account: QueryAccount::unlimited(), disk_use }
    }
}

/// The thing that a stage which keeps to memory lacks, and why.
pub(crate) const NO_SCRATCH: &str = "scratch files, since it does not allow disk use or the engine has none";

/// The end of the message of a stage that may not use the disk and finds the memory of all queries used up.
pub(crate) const USED_UP: &str = "the memory of all queries is used up: allow disk use, run fewer queries at once, or raise it (--query-memory, in a program query_memory_bytes)";

/// Counts a value that has to be in memory as a whole.
///
/// # Errors
/// [`ExceededMemoryLimit`](ErrorCode::ExceededMemoryLimit).
pub fn hold_value(reservation: &mut Reservation, bytes: usize, owner: &str) -> Result<(), QueryError> {
    if bytes <= reservation.bytes() {
        return Ok(());
    }
    if bytes > MEMORY_BYTES_MAX {
        return Err(too_large(owner));
    }
    if !reservation.grow_to(bytes) {
        if bytes > VALUE_BYTES_LEAST {
            let held = reservation.account().bytes().saturating_sub(reservation.bytes());
            let limit = reservation.limit();
            let message = format!(
                "{owner} needs {bytes} bytes of memory and cannot spill to disk. A query may have half of the memory of queries \
                 (--query-memory, in a program query_memory_bytes), which is {limit} bytes now, and this one holds {held} besides; \
                 all together may have no more than it: raise it, also by setParameter queryMemory, or run fewer queries at once"
            );
            return Err(QueryError::new(ErrorCode::ExceededMemoryLimit, message));
        }
        reservation.hold(bytes);
    }
    Ok(())
}

/// The error of a value beyond [`MEMORY_BYTES_MAX`].
pub(crate) fn too_large(owner: &str) -> QueryError {
    QueryError::new(
        ErrorCode::ExceededMemoryLimit,
        format!(
            "{owner} used too much memory and cannot spill to disk. Memory limit: {MEMORY_BYTES_MAX} bytes"
        ),
    )
}
