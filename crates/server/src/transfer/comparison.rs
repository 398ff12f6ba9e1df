//! The comparison at the end of a copy: the documents of each collection on both sides, by their count and by
//! the digest that `dbHash` gives of their bytes.
//!
//! # Not here
//! Indexes: the target built each from the documents that are compared, or has said why it did not.

use bson::{Bson, Document, doc};

use super::error::TransferError;
use super::import_plan::Unit;
use super::shared_store::SharedStore;
use super::target::Target;
use super::write_mode::WriteMode;

/// How the two sides of a copy are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Documents are counted, and their bytes are hashed. Both sides read everything once.
    #[default]
    Hash,
    /// Documents are counted.
    Count,
}

impl Check {
    /// The names on the command line.
    pub const NAMES: [&'static str; 2] = ["hash", "count"];

    /// The check of a name.
    pub fn of_name(name: &str) -> Option<Check> {
        match name {
            "hash" => Some(Check::Hash),
            "count" => Some(Check::Count),
            _ => None,
        }
    }
}

/// The digests of one collection, in hexadecimal digits. A side on which the collection is not there has
/// none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digests {
    /// That of the source.
    pub source: Option<String>,
    /// That of the target.
    pub target: Option<String>,
}

/// The documents of one collection on both sides, once the copy is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// `database.collection`.
    pub namespace: String,
    /// Documents of the source.
    pub source: u64,
    /// Documents of the target.
    pub target: u64,
    /// Documents of the source that this copy could not bring in.
    pub left_out: u64,
    /// `None` where documents were only counted.
    pub digests: Option<Digests>,
}

impl Compared {
    /// Whether the target has what the source has. Where documents were added to those of a collection, it
    /// may have more.
    pub fn agrees(&self, mode: WriteMode) -> bool {
        let same_content = self.digests.as_ref().is_none_or(|digests| digests.source == digests.target);
        let same_count = match mode {
            WriteMode::Insert => self.source == self.target,
            WriteMode::Upsert | WriteMode::Merge | WriteMode::Delete => self.source <= self.target,
        };
        same_count && same_content && self.left_out == 0
    }

    /// Documents that the target has and the source has not. Where there are such, nothing was hashed.
    pub fn more_at_target(&self) -> u64 {
        self.target.saturating_sub(self.source)
    }
}

/// The two stores of a copy.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    pub(super) source: SharedStore,
    pub(super) target: SharedStore,
}

impl Ends {
    /// Asks both sides.
    fn ask(&self, database: &str, command: Document) -> Result<(Document, Document), TransferError> {
        let of_source = self.source.clone().run(database, command.clone(), None);
        let of_source = of_source.map_err(|error| TransferError::Source {
            place: self.source.place().to_owned(),
            source: Box::new(error),
        })?;
        Ok((of_source, self.target.clone().run(database, command, None)?))
    }

    /// Counts a collection on both sides: by the counters of the servers, and one by one where these differ.
    /// MongoDB's counter may be wrong after a crash.
    pub(super) fn count(&self, unit: &Unit) -> Result<Compared, TransferError> {
        let (of_source, of_target) = self.ask(&unit.database, doc! { "count": &unit.collection })?;
        let mut counts = (number(of_source.get("n")), number(of_target.get("n")));
        if counts.0 != counts.1 {
            let pipeline = [doc! { "$group": { "_id": 1, "n": { "$sum": 1 } } }];
            let exact = doc! { "aggregate": &unit.collection, "pipeline": pipeline.to_vec(), "cursor": {} };
            let (of_source, of_target) = self.ask(&unit.database, exact)?;
            counts = (counted(&of_source), counted(&of_target));
        }
        Ok(Compared {
            namespace: unit.namespace(),
            source: counts.0,
            target: counts.1,
            left_out: 0,
            digests: None,
        })
    }

    /// Whether the target has none of a collection's documents, or the first ones of the source as far as the
    /// counters and the first one tell.
    pub(super) fn is_begun(&self, unit: &Unit) -> Result<bool, TransferError> {
        let (of_source, of_target) = self.ask(&unit.database, doc! { "count": &unit.collection })?;
        let (of_source, of_target) = (number(of_source.get("n")), number(of_target.get("n")));
        if of_target == 0 || of_target > of_source {
            return Ok(of_target == 0);
        }
        let one = |filter: Document| {
            doc! { "find": &unit.collection, "filter": filter, "limit": 1, "projection": { "_id": 1 } }
        };
        let (first, _) = self.ask(&unit.database, one(Document::new()))?;
        let Some(id) = first_document(&first).and_then(|first| first.get("_id")) else { return Ok(false) };
        let there = self.target.clone().run(&unit.database, one(doc! { "_id": { "$eq": id } }), None)?;
        Ok(first_document(&there).is_some())
    }

    /// The digests of a collection on both sides; `None` where neither side has one, as for a time series.
    ///
    /// # Errors
    /// [`TransferError::Refused`], within [`TransferError::Source`] for the source, where a side has no
    /// `dbHash`, as a `mongos` has none.
    pub(super) fn digests(&self, unit: &Unit) -> Result<Option<Digests>, TransferError> {
        let command = doc! { "dbHash": 1, "collections": [&unit.collection] };
        let (of_source, of_target) = self.ask(&unit.database, command)?;
        let digest = |reply: &Document| {
            let digests = reply.get_document("collections").ok();
            digests.and_then(|digests| digests.get_str(&unit.collection).ok()).map(str::to_owned)
        };
        let digests = Digests { source: digest(&of_source), target: digest(&of_target) };
        Ok((digests.source.is_some() || digests.target.is_some()).then_some(digests))
    }
}

/// Whether a side has refused a command, and not failed otherwise.
pub(super) fn is_refusal(error: &TransferError) -> bool {
    match error {
        TransferError::Refused { .. } => true,
        TransferError::Source { source, .. } => is_refusal(source),
        _ => false,
    }
}

/// The count in the one document of an aggregation; there is none over an empty collection.
fn counted(reply: &Document) -> u64 {
    number(first_document(reply).and_then(|group| group.get("n")))
}

/// The first document of a cursor.
fn first_document(reply: &Document) -> Option<&Document> {
    let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    batch.ok().and_then(|batch| batch.first()).and_then(Bson::as_document)
}

fn number(value: Option<&Bson>) -> u64 {
    match value {
        Some(Bson::Int32(number)) => u64::try_from(*number).unwrap_or(0),
        Some(Bson::Int64(number)) => u64::try_from(*number).unwrap_or(0),
        Some(Bson::Double(number)) => *number as u64,
        _ => 0,
    }
}
