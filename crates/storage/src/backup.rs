//! Online backup in the contract: the request, and the report.

use std::path::Path;

use pando_environment::Environment;

use crate::identifiers::CommitTimestamp;
use crate::operation::Operation;

/// A backup to be made; see [`Engine::backup`](crate::Engine::backup).
#[derive(Clone, Copy)]
pub struct BackupRequest<'a> {
    /// Where the folders lie: the doors through which the backup is written.
    pub environment: &'a Environment,
    /// The folder that takes the backup: not there yet, empty, or with the rest of an unfinished backup.
    pub folder: &'a Path,
    /// The folder of an earlier backup of the same store. An engine that can leaves out its content.
    pub since: Option<&'a Path>,
    /// The operation that the backup is; its interruption ends the backup between two steps.
    pub operation: Option<&'a Operation>,
}

/// Whether a backup stands alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupExtent {
    /// The whole store.
    Full,
    /// The changes since an earlier backup: a restore needs that one, too.
    Incremental,
}

/// A finished backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// The last commit in it: all up to this one are, and no other.
    pub moment: CommitTimestamp,
    /// Whether it stands alone.
    pub extent: BackupExtent,
    /// Bytes that were written.
    pub bytes: u64,
}
