//! The parameters of an import, and those that a copy shares with it.

use super::csv_rows::RowOptions;
use super::format::InputFormat;
use super::input::Source;
use super::resume_point::ResumePoint;
use super::target::TargetChoice;
use super::write_mode::Writing;

/// The format of an import, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatChoice {
    /// JSON of either form.
    Json,
    /// This one.
    Exact(InputFormat),
}

/// The treatment of a collection that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It is kept, and added to.
    #[default]
    Kept,
    /// It is dropped before the first document.
    Dropped,
}

/// How much is printed on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Talk {
    /// Progress and complaints.
    #[default]
    All,
    /// Complaints.
    Quiet,
}

/// The parameters of an import.
#[derive(Clone, Debug)]
pub struct Import {
    /// The input: a file, standard input, or a folder of mongodump.
    pub source: Source,
    /// Its format; detected if not given.
    pub format: Option<FormatChoice>,
    /// The store to write to.
    pub target: TargetChoice,
    /// The database; `test` if neither this nor the connection string names one.
    pub database: Option<String>,
    /// The collection; the name of the file if not given.
    pub collection: Option<String>,
    /// How rows of text become documents.
    pub rows: RowOptions,
    /// How documents go in.
    pub options: ImportOptions,
}

/// How documents go in, wherever they come from.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// How documents are written.
    pub writing: Writing,
    /// The treatment of a collection that is there.
    pub existing: Existing,
    /// Where an earlier import of the same input has stopped.
    pub resume: Option<ResumePoint>,
    /// Documents in one command at most.
    pub batch_records: Option<usize>,
    /// How much is printed on the way.
    pub talk: Talk,
}
