//! `pando copy`: collections of one store into another, which may be running servers or data folders.
//!
//! # Steps
//! 1. The source is opened, never made, and its collections are listed ([`stored_collections`]).
//! 2. The target is opened. It has to be another store, and without documents in these collections, unless
//!    the user says how to treat them.
//! 3. The run of [`import`](super::import) writes them: options, documents, indexes; views last.
//! 4. The documents of each collection are counted on both sides ([`Compared`]).
//!
//! [`stored_collections`]: super::stored_collections

use bson::{Bson, Document, doc};
use pandodb::MissingStore;

use super::error::TransferError;
use super::import::{End, Existing, ImportOptions, Imported, import_into};
use super::import_plan::{ImportPlan, Unit};
use super::interrupt::Interrupt;
use super::shared_store::SharedStore;
use super::stored_collections::{Selection, plan_of};
use super::target::{Target, TargetChoice};
use super::write_mode::WriteMode;

/// Collections that an error names one by one.
const NAMES_SHOWN: usize = 5;

/// The parameters of a copy.
#[derive(Clone, Debug)]
pub struct StoreCopy {
    /// The store to read.
    pub from: TargetChoice,
    /// The store to write to.
    pub to: TargetChoice,
    /// One database; all if not given.
    pub database: Option<String>,
    /// One collection of it.
    pub collection: Option<String>,
    /// How documents go in.
    pub options: ImportOptions,
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
}

impl Compared {
    /// Whether the target has what the source has. Where documents were added to those of a collection, it
    /// may have more.
    pub fn agrees(&self, mode: WriteMode) -> bool {
        match mode {
            WriteMode::Insert => self.source == self.target,
            WriteMode::Upsert | WriteMode::Merge | WriteMode::Delete => self.source <= self.target,
        }
    }
}

/// The result of a copy.
#[derive(Debug)]
pub struct Copied {
    /// The run.
    pub imported: Imported,
    /// The counts of both sides; none for a copy that did not come to its end.
    pub compared: Vec<Compared>,
}

/// Copies. Documents that are refused are printed to standard error, and counted.
///
/// # Errors
/// A store cannot be opened, or the copy is refused, so that nothing was done. An error after that is part of
/// the result.
pub fn copy(copy: &StoreCopy) -> Result<Copied, TransferError> {
    if is_same_folder(&copy.from, &copy.to) {
        return Err(TransferError::SameStore);
    }
    let interrupt = Interrupt::watch().map_err(TransferError::System)?;
    let source = SharedStore::open(&copy.from, MissingStore::Refuse, &interrupt)
        .map_err(|error| TransferError::Source { place: copy.from.place(), source: Box::new(error) })?;
    let selection = Selection { database: copy.database.as_deref(), collection: copy.collection.as_deref() };
    let plan = plan_of(&source, selection)?;
    let target = SharedStore::open(&copy.to, MissingStore::Create, &interrupt)?;
    if is_same_server(copy, &source, &target) {
        return Err(TransferError::SameStore);
    }
    copy_into(&copy.options, &plan, Ends { source, target }, interrupt)
}

/// The two stores of a copy.
pub(super) struct Ends {
    pub(super) source: SharedStore,
    pub(super) target: SharedStore,
}

/// Copies between stores that are open, and closes them.
pub(super) fn copy_into(
    options: &ImportOptions,
    plan: &ImportPlan,
    ends: Ends,
    interrupt: Interrupt,
) -> Result<Copied, TransferError> {
    let Ends { source, target } = ends;
    let adds = options.writing.mode != WriteMode::Insert || options.resume.is_some();
    if !adds && options.existing == Existing::Kept {
        refuse_filled(plan, &target)?;
    }
    let mut imported = import_into(options, plan, Box::new(target.clone()), interrupt);
    let mut compared = Vec::new();
    if matches!(imported.end, End::Complete) {
        let collections = plan.units.iter().filter(|unit| unit.content.is_some());
        match collections.map(|unit| compare(unit, &source, &target)).collect() {
            Ok(counts) => compared = counts,
            Err(error) => imported.end = End::Failed(error),
        }
    }
    if let (Err(error), End::Complete) = (target.end(), &imported.end) {
        imported.end = End::Failed(error);
    }
    // It was only read.
    let _ = source.end();
    Ok(Copied { imported, compared })
}

/// Refuses collections of the target that have documents.
fn refuse_filled(plan: &ImportPlan, target: &SharedStore) -> Result<(), TransferError> {
    let mut filled = Vec::new();
    for unit in plan.units.iter().filter(|unit| unit.content.is_some()) {
        let find = doc! { "find": &unit.collection, "limit": 1, "projection": { "_id": 1 } };
        let reply = target.clone().run(&unit.database, find, None)?;
        let cursor = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
        if cursor.is_ok_and(|batch| !batch.is_empty()) {
            filled.push(unit.namespace());
        }
    }
    if filled.is_empty() {
        return Ok(());
    }
    let more = filled.len().saturating_sub(NAMES_SHOWN);
    filled.truncate(NAMES_SHOWN);
    let more = if more > 0 { format!(" and {more} more collections") } else { String::new() };
    Err(TransferError::Filled { namespaces: format!("{}{more}", filled.join(", ")) })
}

/// Counts a collection on both sides: by the counters of the servers, and one by one where these differ.
/// MongoDB's counter may be wrong after a crash.
fn compare(unit: &Unit, source: &SharedStore, target: &SharedStore) -> Result<Compared, TransferError> {
    let count = |store: &SharedStore, command: Document| {
        let mut store = store.clone();
        store.run(&unit.database, command, None)
    };
    let both = |command: Document| -> Result<(Document, Document), TransferError> {
        let of_source = count(source, command.clone()).map_err(|error| TransferError::Source {
            place: source.place().to_owned(),
            source: Box::new(error),
        })?;
        Ok((of_source, count(target, command)?))
    };
    let (of_source, of_target) = both(doc! { "count": &unit.collection })?;
    let mut counts = (number(of_source.get("n")), number(of_target.get("n")));
    if counts.0 != counts.1 {
        let pipeline = [doc! { "$group": { "_id": 1, "n": { "$sum": 1 } } }];
        let exact = doc! { "aggregate": &unit.collection, "pipeline": pipeline.to_vec(), "cursor": {} };
        let (of_source, of_target) = both(exact)?;
        counts = (counted(&of_source), counted(&of_target));
    }
    Ok(Compared { namespace: unit.namespace(), source: counts.0, target: counts.1 })
}

/// The count in the one document of an aggregation; there is none over an empty collection.
fn counted(reply: &Document) -> u64 {
    let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    let first = batch.ok().and_then(|batch| batch.first()).and_then(Bson::as_document);
    number(first.and_then(|group| group.get("n")))
}

fn number(value: Option<&Bson>) -> u64 {
    match value {
        Some(Bson::Int32(number)) => u64::try_from(*number).unwrap_or(0),
        Some(Bson::Int64(number)) => u64::try_from(*number).unwrap_or(0),
        Some(Bson::Double(number)) => *number as u64,
        _ => 0,
    }
}

fn is_same_folder(from: &TargetChoice, to: &TargetChoice) -> bool {
    match (from, to) {
        (TargetChoice::Data(from), TargetChoice::Data(to)) => {
            from.canonicalize().ok().is_some_and(|from| to.canonicalize().is_ok_and(|to| from == to))
        }
        _ => false,
    }
}

/// Whether both are one server, which may have several addresses: the number of its process tells.
/// With `--drop` such a copy would delete what it is to read.
fn is_same_server(copy: &StoreCopy, source: &SharedStore, target: &SharedStore) -> bool {
    let (TargetChoice::Uri(from), TargetChoice::Uri(to)) = (&copy.from, &copy.to) else { return false };
    let process = |store: &SharedStore| {
        let reply = store.clone().run("admin", doc! { "hello": 1 }, None).ok()?;
        reply.get_document("topologyVersion").ok()?.get("processId").cloned()
    };
    from == to || process(source).is_some_and(|process_id| process(target) == Some(process_id))
}
