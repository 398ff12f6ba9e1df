//! The result of an import: its counts, its end, and the files and places from which it can go on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::error::TransferError;
use super::import_counts::ImportCounts;
use super::import_plan::Unit;
use super::resume_point::ResumePoint;

/// The end of an import.
#[derive(Debug)]
pub enum End {
    /// The whole input was read, and each document was sent to the store. Of a folder, files may be damaged:
    /// see [`Imported::damaged`].
    Complete,
    /// The user has asked to stop.
    Interrupted,
    /// An error.
    Failed(TransferError),
}

/// The place at which an import stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedAt {
    /// The input.
    pub input: String,
    /// Lines or documents are counted.
    pub unit: &'static str,
    /// The line, or the number of a BSON document, of the first record that is not done.
    pub line: u64,
    /// Documents from there on that may be in or not.
    pub doubtful: u64,
    /// For `--resume`.
    pub point: ResumePoint,
}

/// A file that was not read to its end, while the import went on.
#[derive(Debug)]
pub struct DamagedFile {
    /// The file.
    pub path: PathBuf,
    /// The database of its documents.
    pub database: String,
    /// Their collection.
    pub collection: String,
    /// The damage.
    pub damage: Damage,
}

impl DamagedFile {
    pub(super) fn of(unit: &Unit, damage: Damage) -> DamagedFile {
        DamagedFile {
            path: unit.input_name().into(),
            database: unit.database.clone(),
            collection: unit.collection.clone(),
            damage,
        }
    }
}

/// Why a file was not read to its end.
#[derive(Debug)]
pub enum Damage {
    /// It cannot be read on. An import of this file alone can go on at the point, once it is mended.
    Unreadable {
        /// The fault.
        error: TransferError,
        /// The point of the file alone.
        point: ResumePoint,
    },
    /// Its gzip data was read to the end, and there is something else behind it, which is passed over.
    BehindGzip {
        /// The byte at which that begins.
        offset: u64,
    },
    /// The import before this one has told the damage, and has gone on behind it.
    ToldBefore,
}

/// The result of an import.
#[derive(Debug)]
pub struct Imported {
    /// The counts.
    pub counts: ImportCounts,
    /// The collections that were written.
    pub namespaces: Vec<String>,
    /// Documents that were refused or unreadable, by collection; collections without such are missing.
    pub left_out: BTreeMap<String, u64>,
    /// Files that were not read to their end.
    pub damaged: Vec<DamagedFile>,
    /// Bytes of the input, as they stand in the file.
    pub input_bytes: u64,
    /// The time that it took.
    pub elapsed: Duration,
    /// How it ended.
    pub end: End,
    /// Where it stopped; `None` for a complete one.
    pub stopped: Option<StoppedAt>,
    /// Remarks on the input and on what was dropped, a sentence each.
    pub remarks: Vec<String>,
}

impl Imported {
    /// Whether every document of the input is where it belongs.
    pub fn is_complete(&self) -> bool {
        matches!(self.end, End::Complete) && self.counts.is_faultless() && self.damaged.is_empty()
    }
}
