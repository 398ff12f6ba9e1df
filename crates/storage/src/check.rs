//! The check of an open store in the contract: the request, and the report.

use std::num::NonZeroU64;

use crate::identifiers::TreeId;
use crate::operation::Operation;

/// A check to be made; see [`Engine::check`](crate::Engine::check).
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckRequest<'a> {
    /// The trees to be checked; all if there are none here.
    pub trees: &'a [TreeId],
    /// How much may be read in a second, about; `None`: as fast as it goes.
    pub bytes_per_second: Option<NonZeroU64>,
    /// The operation that the check is; its interruption ends the check between two reads.
    pub operation: Option<&'a Operation>,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Trees checked.
    pub trees: u64,
    /// Entries read: keys, or versions of keys.
    pub entries: u64,
    /// Bytes read.
    pub bytes: u64,
    /// The problems, a sentence each with the keys concerned; at most
    /// [`PROBLEMS_MAX`](CheckReport::PROBLEMS_MAX).
    pub problems: Vec<String>,
}

impl CheckReport {
    /// Problems that are told; a store with more is not mended by knowing them all.
    pub const PROBLEMS_MAX: usize = 1_000;

    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}
