//! `validate`: whether the documents of a collection and the entries of its indexes agree. Reads all of them.
//!
//! With `full`, the engine checks every block of the collection's trees first, and the reply names the keys
//! of every damage. The command repairs nothing, even if the client asks for it.

use pando_catalog::{
    BlockingMode, Collection, CollectionReport, Direction, ID_INDEX, KeyRange, Transaction, verify_collection,
};
use pando_document::{DocumentWriter, RawDocument, RawValue};

use crate::arguments::{Arguments, collection_name_or};
use crate::context::Context;
use crate::error::write_failure;
use crate::validation::Validator;
use crate::{CommandError, ErrorCode, Request};

/// Options of MongoDB without effect here, which do not go together with `metadata`.
const OTHER_OPTIONS: [&str; 2] = ["enforceFastCount", "repair"];

/// How much is looked at.
#[derive(Clone, Copy)]
struct Depth {
    metadata_only: bool,
    full: bool,
}

impl Depth {
    fn of(request: &Request<'_>) -> Result<Depth, CommandError> {
        let (mut metadata_only, mut full, mut background, mut others) = (false, false, false, false);
        for argument in Arguments::of_command("validate", request.body) {
            let argument = argument?;
            // Unknown fields are passed over here, as MongoDB does.
            full |= argument.name == "full" && argument.value.to_bool();
            metadata_only |= argument.name == "metadata" && argument.value.to_bool();
            background |= argument.name == "background" && argument.value.to_bool();
            others |= OTHER_OPTIONS.contains(&argument.name) && argument.value.to_bool();
        }
        if full && background {
            return Err(CommandError::failed(
                ErrorCode::InvalidOptions,
                "Running the validate command with both { background: true } and { full: true } is not supported.",
            ));
        }
        if metadata_only && (full || background || others) {
            return Err(CommandError::failed(
                ErrorCode::InvalidOptions,
                "Running the validate command with { metadata: true } is not supported with any other options",
            ));
        }
        Ok(Depth { metadata_only, full })
    }
}

/// Reads and compares.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name_or(request.command()?.1, ErrorCode::InvalidNamespace)?;
    let Depth { metadata_only, full } = Depth::of(request)?;
    let mut namespace = context.namespace(name)?;
    let found = context.catalog().collection(context.database, name);
    // A time series is validated by its buckets.
    let buckets = if found.is_none() { context.series(name)?.map(|(buckets, _)| buckets) } else { None };
    if let Some(buckets) = &buckets {
        namespace = buckets.namespace().clone();
    }
    let Some(collection) = found.or(buckets) else {
        if context.view(name)?.is_some() {
            return Err(CommandError::failed(ErrorCode::CommandNotSupportedOnView, "Cannot validate a view"));
        }
        return Err(CommandError::failed(
            ErrorCode::NamespaceNotFound,
            format!("Collection '{namespace}' does not exist to validate."),
        ));
    };
    reply.append_str("ns", &namespace.to_string());
    let (mut report, mut non_compliant) = (CollectionReport::default(), 0);
    let damage =
        if full && !metadata_only { collection.check_trees(context.operation)?.problems } else { Vec::new() };
    if !metadata_only && damage.is_empty() {
        let transaction = context.begin_read()?;
        report = verify_collection(&collection, &*transaction, context.operation)
            .map_err(|error| write_failure(error, &namespace.to_string()))?;
        non_compliant = count_non_compliant(context, &collection, &*transaction)?;
        transaction.rollback();
        write_counts(&collection, &report, non_compliant, reply);
    }
    if let Some(first) = damage.iter().chain(&report.problems).next() {
        let problems = damage.len() as u64 + report.problem_count;
        tracing::error!(%namespace, problems, "validate has found problems; the first is: {first}");
    }
    reply.append_bool("valid", report.problem_count == 0 && damage.is_empty());
    reply.append_bool("repaired", false);
    let mut warnings = reply.array("warnings");
    if non_compliant > 0 {
        warnings.push(RawValue::String(NON_COMPLIANT));
    }
    warnings.finish();
    let mut errors = reply.array("errors");
    for problem in damage.iter().chain(&report.problems) {
        errors.push(RawValue::String(problem));
    }
    errors.finish();
    for name in ["extraIndexEntries", "missingIndexEntries", "corruptRecords"] {
        reply.array(name).finish();
    }
    Ok(())
}

/// The warning about such documents, as MongoDB has it.
const NON_COMPLIANT: &str = "Detected one or more documents not compliant with the collection's schema. Check logs for log id 5363500.";

/// The entries of each index by name, `_id_` first. The index that the documents are has as many as they.
fn entries_of_indexes(collection: &Collection, report: &CollectionReport) -> Vec<(String, u64)> {
    let mut entries = report.entries.clone();
    if let Some(name) = collection.primary_index_name() {
        let at = usize::from(entries.first().is_some_and(|(first, _)| first == ID_INDEX));
        entries.insert(at, (name.to_owned(), report.documents));
    }
    entries
}

/// The number of documents that do not keep the rule of their collection.
fn count_non_compliant(
    context: &Context<'_>,
    collection: &Collection,
    transaction: &dyn Transaction,
) -> Result<u64, CommandError> {
    let Some(validator) = Validator::of_collection(context, collection)? else { return Ok(0) };
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    let mut found = 0;
    while let Some((_, document)) = scan.next(transaction, BlockingMode::MayBlock)? {
        context.check()?;
        found += u64::from(!validator.is_kept(RawDocument::from_bytes(document)?)?);
    }
    Ok(found)
}

fn write_counts(
    collection: &Collection,
    report: &CollectionReport,
    non_compliant: u64,
    reply: &mut DocumentWriter<'_>,
) {
    let count = |number: u64| match i32::try_from(number) {
        Ok(small) => RawValue::Int32(small),
        Err(_) => RawValue::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
    };
    reply.append("nInvalidDocuments", RawValue::Int32(0));
    reply.append("nNonCompliantDocuments", count(non_compliant));
    reply.append("nrecords", count(report.documents));
    let entries = entries_of_indexes(collection, report);
    reply.append("nIndexes", count(entries.len() as u64));
    let mut keys = reply.document("keysPerIndex");
    for (name, entries) in &entries {
        keys.append(name, count(*entries));
    }
    keys.finish();
    let mut details = reply.document("indexDetails");
    for (name, _) in &entries {
        let mut detail = details.document(name);
        detail.append_bool("valid", report.problem_count == 0);
        detail.finish();
    }
    details.finish();
}
