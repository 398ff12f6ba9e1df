//! Online backup as the contract has it: what is asked for, and what came of it.

use std::path::Path;

use pando_environment::Environment;

use crate::CommitTimestamp;

/// A backup to be made; see [`Engine::backup`](crate::Engine::backup).
#[derive(Clone, Copy)]
pub struct BackupRequest<'a> {
    /// Where the folders lie: the doors through which the backup is written.
    pub environment: &'a Environment,
    /// The folder that takes the backup: not there yet, empty, or with what an unfinished backup left.
    pub folder: &'a Path,
    /// The folder of an earlier backup of the same store: what that has is left out, where the engine can.
    pub since: Option<&'a Path>,
}

/// Whether a backup stands alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupExtent {
    /// All there is.
    Full,
    /// What an earlier backup has not: a restore needs that one, too.
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
