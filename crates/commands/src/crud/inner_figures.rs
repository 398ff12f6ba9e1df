//! The stages that make documents from figures of a collection, at the front of the pipeline of a `$lookup`
//! or `$unionWith`. They are carried out before the pipeline begins, and their documents take their place.
//!
//! MongoDB permits those of a collection there: `$collStats`, `$indexStats` and `$planCacheStats`. Stages
//! about operations and sessions belong to other collections, which the parser of pipelines says.

use pando_document::{ArrayWriter, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};
use pando_query::pipeline::PipelineFault;

use super::aggregate::AggregateRequest;
use super::coll_stats_stage::first_stage;
use super::given_stages;
use crate::context::Context;
use crate::error::Execution;
use crate::{CommandError, ErrorCode};

const OF_COLLECTIONS: [&str; 3] = ["$collStats", "$indexStats", "$planCacheStats"];
/// Pipelines within one another; the parser refuses more.
const DEPTH_MAX: usize = 20;

/// The pipeline with the documents of such stages; `None` where it has none of them.
pub(super) fn carried_out(
    context: &Context<'_>,
    stages: &RawArray,
) -> Result<Option<RawDocumentBuf>, CommandError> {
    with_documents(context, None, stages, 0)
}

/// The same for the stages over another collection.
fn with_documents(
    context: &Context<'_>,
    foreign: Option<&str>,
    stages: &RawArray,
    depth: usize,
) -> Result<Option<RawDocumentBuf>, CommandError> {
    if depth > DEPTH_MAX {
        return Ok(None);
    }
    let mut changed = Vec::new();
    for (at, stage) in stages.iter().enumerate() {
        let Some(Ok((name, argument))) = stage?.as_document().and_then(|stage| stage.iter().next()) else {
            continue;
        };
        let new = match (name, foreign, argument) {
            (_, Some(foreign), _) if at == 0 && OF_COLLECTIONS.contains(&name) => {
                Some(documents_of(context, foreign, stages, name)?)
            }
            ("$lookup" | "$unionWith", _, RawValue::Document(options)) => {
                with_pipeline(context, name, options, depth)?
            }
            _ => None,
        };
        changed.extend(new.map(|new| (at, new)));
    }
    if changed.is_empty() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    let mut changed = changed.into_iter().peekable();
    for (at, stage) in stages.iter().enumerate() {
        match changed.next_if(|(place, _)| *place == at) {
            Some((_, new)) => writer.push_document(&new),
            None => writer.push(stage?),
        }
    }
    writer.finish();
    Ok(Some(RawDocumentBuf::from_vec(bytes)?))
}

/// The stage with documents in its pipeline.
fn with_pipeline(
    context: &Context<'_>,
    name: &str,
    options: &RawDocument,
    depth: usize,
) -> Result<Option<RawDocumentBuf>, CommandError> {
    let (Some(RawValue::Array(inner)), Some(RawValue::String(foreign))) =
        (options.get("pipeline")?, options.get(if name == "$lookup" { "from" } else { "coll" })?)
    else {
        return Ok(None);
    };
    let Some(new) = with_documents(context, Some(foreign), inner, depth + 1)? else { return Ok(None) };
    if options.get("localField")?.is_some() {
        // A filter of the fields would stand in front of the stage.
        for figures in OF_COLLECTIONS {
            if first_stage(inner, figures)?.is_some() {
                return Err(misplaced(figures));
            }
        }
    }
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    let mut stage = writer.document(name);
    for option in options {
        match option? {
            ("pipeline", _) => stage.append("pipeline", RawValue::Array(RawArray::from_document(&new))),
            (option, value) => stage.append(option, value),
        }
    }
    stage.finish();
    writer.finish();
    Ok(Some(RawDocumentBuf::from_vec(bytes)?))
}

/// A stage with the documents of the first one.
fn documents_of(
    context: &Context<'_>,
    foreign: &str,
    stages: &RawArray,
    name: &str,
) -> Result<RawDocumentBuf, CommandError> {
    if context.open_transaction().is_some() {
        return Err(CommandError::failed(
            ErrorCode::OperationNotSupportedInTransaction,
            format!("Stage not supported inside of a multi-document transaction: {name}"),
        ));
    }
    // The stages of a view stand in front of the stage.
    if context.collection(foreign)?.is_none() && context.view(foreign)?.is_some() {
        return Err(misplaced(name));
    }
    let documents = given_stages::documents(context, &AggregateRequest::of(foreign, stages))?;
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    let mut expression = writer.document("$documents");
    let mut list = expression.array("$literal");
    for document in documents.into_iter().flat_map(|(documents, _)| documents) {
        list.push_document(RawDocument::from_bytes(&document)?);
    }
    list.finish();
    expression.finish();
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

fn misplaced(name: &str) -> CommandError {
    let sentence = format!("{name} is only valid as the first stage in a pipeline");
    Execution::Aggregate.fault(PipelineFault::StageNotFirst.error(sentence))
}
