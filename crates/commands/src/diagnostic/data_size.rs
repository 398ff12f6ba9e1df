//! `dataSize`: the bytes of the documents of a collection, which the request names with its database, or of a
//! range of an index's keys.
//!
//! # Steps
//! 1. Without a range and without a limit the counters answer.
//! 2. The bounds `min` (inclusive) and `max` (exclusive) name the first fields of an index. Both are extended
//!    by the least values of its other fields.
//! 3. The documents of the range are counted until one is beyond `maxSize` or `maxObjects`. With `estimate`
//!    each counts as an average one.

use std::sync::Arc;

use pando_catalog::{Collection, CollectionCounts, IndexDescription, Namespace, Sparseness};
use pando_document::{Document, DocumentWriter, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_keyorder::Direction;
use pando_query::execute::Executor;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::plan::{AssumedShares, FindSpecification, Hint, plan_at};
use pando_query::shell_text::document_text;

use super::coll_stats::scaled;
use crate::arguments::{Arguments, collection_name, whole};
use crate::context::Context;
use crate::error::Failure;
use crate::{CommandError, ErrorCode, Request};

/// The part of a collection that a request asks about.
#[derive(Default)]
struct Wanted<'r> {
    pattern: Option<&'r RawDocument>,
    min: Option<&'r RawDocument>,
    max: Option<&'r RawDocument>,
    estimates: bool,
    size_max: Option<u64>,
    documents_max: Option<u64>,
}

/// The documents of a part.
#[derive(Default)]
struct Part {
    bytes: u64,
    documents: u64,
    is_cut: bool,
}

/// Answers the size.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let full = collection_name(request.command()?.1)?;
    let wanted = Wanted::read(request.body)?;
    let Some((database, collection)) = full.split_once('.') else {
        return Err(CommandError::failed(
            ErrorCode::InvalidNamespace,
            format!("Invalid namespace specified '{full}'"),
        ));
    };
    let namespace = Namespace::new(database, collection)?;
    let began = context.shared.now_ms();
    let part = match context.no_view(&namespace)? {
        None => Part::default(),
        Some(collection) => {
            reply.append_bool("estimate", wanted.estimates);
            wanted.measure(context, &collection)?
        }
    };
    if part.is_cut {
        reply.append_bool("maxReached", true);
    }
    reply.append("size", scaled(part.bytes, 1));
    reply.append("numObjects", scaled(part.documents, 1));
    let millis = context.shared.now_ms().saturating_sub(began);
    reply.append_i32("millis", i32::try_from(millis).unwrap_or(i32::MAX));
    Ok(())
}

impl<'r> Wanted<'r> {
    /// Reads the fields. Those of another type, and unknown ones, are passed over, as in MongoDB.
    fn read(body: &'r RawDocument) -> Result<Wanted<'r>, CommandError> {
        let mut wanted = Wanted::default();
        for argument in Arguments::of_command("dataSize", body) {
            let argument = argument?;
            let bound = || argument.value.as_document().filter(|bound| !bound.is_empty());
            let limit = || {
                let limit = Some(argument.value).filter(|value| value.is_number()).map(whole);
                limit.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0)
            };
            match argument.name {
                "estimate" => wanted.estimates = argument.value.to_bool(),
                "keyPattern" => wanted.pattern = bound(),
                "min" => wanted.min = bound(),
                "max" => wanted.max = bound(),
                "maxSize" => wanted.size_max = limit(),
                "maxObjects" => wanted.documents_max = limit(),
                _ => {}
            }
        }
        let refused = |reason: &str| Err(CommandError::failed(ErrorCode::BadValue, reason));
        match (body.get("min")?.is_some(), body.get("max")?.is_some()) {
            (true, false) => refused("max must be set if min is set"),
            (false, true) => refused("min must be set if max is set"),
            _ => Ok(wanted),
        }
    }

    fn measure(&self, context: &Context<'_>, collection: &Arc<Collection>) -> Result<Part, CommandError> {
        let counts = context.catalog().counts(collection, context.operation)?;
        let is_limited = self.size_max.is_some() || self.documents_max.is_some();
        let range = match (self.min, self.max) {
            (Some(min), Some(max)) => Some(self.range(collection, min, max)?),
            _ if is_limited => None,
            _ => {
                let CollectionCounts { data_bytes, documents, .. } = counts;
                return Ok(Part { bytes: data_bytes, documents, is_cut: false });
            }
        };
        let average = counts.data_bytes.checked_div(counts.documents).unwrap_or(0);
        let filter = Filter::everything();
        let hint = range.as_ref().map(|range| Hint::OfServer(range.index.clone()));
        let find = FindSpecification {
            hint: hint.as_ref(),
            min: range.as_ref().map(|range| &*range.min),
            max: range.as_ref().map(|range| &*range.max),
            ..FindSpecification::matching(&filter)
        };
        let transaction = context.begin_read()?;
        let plan = plan_at(&find, collection, transaction.snapshot(), &AssumedShares)?;
        let memory = StageMemory::new(context.query_account(), DiskUse::Allowed);
        let mut executor = Executor::new(Arc::clone(collection), plan, &memory)?;
        let mut part = Part::default();
        while let Some(row) = executor.next(&*transaction, context.caller())? {
            part.documents += 1;
            part.bytes += if self.estimates { average } else { row.document.as_bytes().len() as u64 };
            part.is_cut = self.size_max.is_some_and(|most| part.bytes > most)
                || self.documents_max.is_some_and(|most| part.documents > most);
            if part.is_cut {
                break;
            }
        }
        transaction.rollback();
        Ok(part)
    }

    /// The range of keys between the bounds.
    fn range(
        &self,
        collection: &Collection,
        min: &RawDocument,
        max: &RawDocument,
    ) -> Result<Range, CommandError> {
        let of_min;
        let pattern = match self.pattern {
            Some(pattern) => pattern,
            None => {
                of_min = ascending(min)?;
                &*of_min
            }
        };
        let indexes = collection.describe_indexes();
        let index = indexes.iter().find(|index| begins_with(index, pattern)).ok_or_else(|| {
            let mut failure =
                Failure::new(ErrorCode::Untold, "couldn't find valid index containing key pattern");
            failure.details.push("estimate", Value::Boolean(self.estimates));
            CommandError::from(failure)
        })?;
        let (min, max) = (extended(min, index)?, extended(max, index)?);
        Ok(Range { index: index.name.clone(), min, max })
    }
}

/// A range of the keys of an index.
struct Range {
    index: String,
    min: RawDocumentBuf,
    max: RawDocumentBuf,
}

/// The pattern of an index over the fields of a bound.
fn ascending(bound: &RawDocument) -> Result<RawDocumentBuf, CommandError> {
    let mut pattern = Document::new();
    for field in bound.iter() {
        pattern.push(field?.0, Value::Int32(1));
    }
    Ok(pattern.to_raw())
}

/// Whether an index has all documents, without arrays, and its key begins with a pattern.
fn begins_with(index: &IndexDescription, pattern: &RawDocument) -> bool {
    let Ok(Some(RawValue::Document(key))) = index.specification.get("key") else { return false };
    let mut fields = key.iter().flatten();
    let is_prefix = pattern.iter().flatten().all(|(name, way)| {
        fields
            .next()
            .is_some_and(|(of_index, of_key)| name == of_index && way.as_i64_exact() == of_key.as_i64_exact())
    });
    let is_partial = matches!(index.specification.get("partialFilterExpression"), Ok(Some(_)));
    is_prefix && index.sparse == Sparseness::Dense && !is_partial && !index.is_multikey()
}

/// A bound of all fields of an index: those that it does not name have their least values.
fn extended(bound: &RawDocument, index: &IndexDescription) -> Result<RawDocumentBuf, CommandError> {
    let mut whole = Document::new();
    let mut given = bound.iter();
    for field in &index.fields {
        let value = match given.next().transpose()? {
            Some((name, value)) if name == field.path => value.to_owned(),
            Some(_) => return Err(other_fields(bound, index)),
            None if field.direction == Direction::Ascending => Value::MinKey,
            None => Value::MaxKey,
        };
        whole.push(field.path.as_str(), value);
    }
    if given.next().is_some() { Err(other_fields(bound, index)) } else { Ok(whole.to_raw()) }
}

fn other_fields(bound: &RawDocument, index: &IndexDescription) -> CommandError {
    let key = index.specification.get("key").ok().flatten().and_then(|key| key.as_document());
    CommandError::failed(
        ErrorCode::Location(16_634),
        format!(
            "field names of bound {} do not match those of keyPattern {}",
            document_text(bound),
            document_text(key.unwrap_or(RawDocument::empty()))
        ),
    )
}
