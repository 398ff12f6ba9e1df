//! Reads of views: `find`, `count` and `distinct` as pipelines.
//!
//! Options that a pipeline cannot carry out are refused in MongoDB's words.

use pando_document::{Document, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue, Value, doc};
use pando_query::expression::{EvaluationWatch, ParseScope};

use super::aggregate::{self, AggregateRequest};
use super::find_request::FindRequest;
use crate::context::Context;
use crate::cursor_facts::Expiry;
use crate::cursor_reply::Keeping;
use crate::cursor_source::CursorSource;
use crate::error::Execution;
use crate::views::ResolvedView;
use crate::{CommandError, ErrorCode, Request};

/// The stages of a pipeline, one behind the other.
#[derive(Default)]
pub(super) struct Stages {
    stages: Vec<Value>,
}

impl Stages {
    /// Adds a stage with this argument.
    pub fn push(&mut self, name: &str, argument: impl Into<Value>) {
        let mut stage = Document::new();
        stage.push(name, argument);
        self.stages.push(Value::Document(stage));
    }

    /// Adds `$match`, unless the filter is empty.
    pub fn push_match(&mut self, filter: &RawDocument) -> Result<(), CommandError> {
        if !filter.is_empty() {
            self.push("$match", Document::from_raw(filter)?);
        }
        Ok(())
    }

    /// Adds `$skip` and `$limit`, as far as they are there.
    pub fn push_reach(&mut self, skip: u64, limit: Option<u64>) {
        let number = |count| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX));
        if skip > 0 {
            self.push("$skip", number(skip));
        }
        if let Some(limit) = limit {
            self.push("$limit", number(limit));
        }
    }

    /// The array.
    pub fn to_array(&self) -> RawDocumentBuf {
        let places = (0_usize..).map(|at| at.to_string());
        places.zip(self.stages.iter().cloned()).collect::<Document>().to_raw()
    }
}

/// The pipeline of a `find`.
pub(super) fn stages_of_find(find: &FindRequest<'_>) -> Result<Stages, CommandError> {
    if find.tailing.is_some() {
        return Err(CommandError::failed(
            ErrorCode::InvalidPipelineOperator,
            "Tailable cursors are not supported in aggregation.",
        ));
    }
    let refused = if find.metadata.returns_key {
        Some("returnKey")
    } else if find.metadata.shows_record_id {
        Some("showRecordId")
    } else if find.min.is_some() {
        Some("min")
    } else if find.max.is_some() {
        Some("max")
    } else if find.expiry == Expiry::Never {
        Some("noCursorTimeout")
    } else if find.allows_partial_results {
        Some("allowPartialResults")
    } else if find.keeping == Keeping::SingleBatch && find.limit != Some(1) {
        Some("singleBatch")
    } else {
        None
    };
    if let Some(option) = refused {
        return Err(CommandError::failed(
            ErrorCode::InvalidPipelineOperator,
            format!("Option {option} not supported in aggregation."),
        ));
    }
    let mut stages = Stages::default();
    stages.push_match(find.filter)?;
    if let Some(sort) = find.sort.filter(|sort| natural_order(sort).is_none()) {
        stages.push("$sort", Document::from_raw(sort)?);
    }
    stages.push_reach(find.skip, find.limit);
    if let Some(projection) = find.projection {
        stages.push("$project", Document::from_raw(projection)?);
    }
    Ok(stages)
}

/// The natural order as a hint, where a sort is that.
fn natural_order(sort: &RawDocument) -> Option<RawValue<'_>> {
    matches!(sort.get("$natural"), Ok(Some(_))).then_some(RawValue::Document(sort))
}

/// Finds in a view.
pub(super) fn find(
    context: &Context<'_>,
    request: &Request<'_>,
    find: &FindRequest<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let stages = stages_of_find(find)?.to_array();
    let aggregate = AggregateRequest {
        hint: find.hint.or(find.sort.and_then(natural_order)),
        variables: find.variables,
        collation: find.collation,
        batch_size: find.batch_size,
        disk_use: find.disk_use,
        ..AggregateRequest::of(find.collection, RawArray::from_document(&stages))
    };
    aggregate::open(context, request.body, &aggregate, reply).map_err(|error| match error {
        CommandError::Failed(mut failure) if failure.code == ErrorCode::InvalidPipelineOperator => {
            failure.message = format!("Unsupported in view pipeline: {}", failure.message);
            CommandError::Failed(failure)
        }
        other => other,
    })
}

/// Calls `visit` with each document of a view and of the stages behind it.
pub(super) fn for_each(
    context: &Context<'_>,
    request: &AggregateRequest<'_>,
    mut visit: impl FnMut(&RawDocument) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let account = context.query_account();
    let watch = EvaluationWatch::of(context.record.operation());
    let scope: ParseScope = context.watched_scope(&watch);
    let scope = aggregate::collated_scope(context, request.collection, request.collation, scope)?;
    let scope = scope.with_let(request.variables)?;
    let mut source = aggregate::source_of(context, request, &scope, &account)?;
    let mut document = Vec::new();
    let executed = |error: CommandError| Execution::Aggregate.fault(error);
    while source.next(context.caller(), &mut document).map_err(executed)? {
        visit(RawDocument::from_bytes(&document)?)?;
        document.clear();
    }
    Ok(())
}

/// The number of documents of a view that match.
pub(super) fn count(context: &Context<'_>, request: &AggregateRequest<'_>) -> Result<u64, CommandError> {
    let mut counted = 0;
    for_each(context, request, |document| {
        counted = document.get("count")?.and_then(|count| count.as_i64_exact()).unwrap_or(0);
        Ok(())
    })?;
    Ok(u64::try_from(counted).unwrap_or(0))
}

/// The `aggregate` over the collection below a view that does the same as a command over the view, for
/// `explain`.
pub(super) fn as_aggregate(
    view: &ResolvedView,
    name: &str,
    command: &RawDocument,
) -> Result<RawDocumentBuf, CommandError> {
    let pipeline = match name {
        "aggregate" => match command.get("pipeline")? {
            Some(RawValue::Array(stages)) => stages.as_document().to_owned(),
            _ => RawDocumentBuf::new(),
        },
        "find" => stages_of_find(&FindRequest::read(command)?)?.to_array(),
        _ => stages_of_counting(name, command)?.to_array(),
    };
    let pipeline = view.followed_by(RawArray::from_document(&pipeline))?;
    let mut bytes = Vec::new();
    let mut out = DocumentWriter::begin(&mut bytes);
    out.append_str("aggregate", &view.collection);
    out.append("pipeline", RawValue::Array(RawArray::from_document(&pipeline)));
    out.document("cursor").finish();
    // The collection below may have a collation of its own.
    match view.order.document() {
        Some(collation) => out.append("collation", RawValue::Document(collation)),
        None => out.append("collation", RawValue::Document(&doc! { "locale": "simple" }.to_raw())),
    }
    for field in ["hint", "let", "allowDiskUse"] {
        if let Some(value) = command.get(field)? {
            let of_buckets = if field == "hint" { view.hint_below(value)? } else { None };
            out.append(field, of_buckets.as_deref().map_or(value, RawValue::Document));
        }
    }
    out.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

/// The pipeline of a `count` or a `distinct` as `explain` shows it.
fn stages_of_counting(name: &str, command: &RawDocument) -> Result<Stages, CommandError> {
    let mut stages = Stages::default();
    if let Some(RawValue::Document(filter)) = command.get("query")? {
        stages.push_match(filter)?;
    }
    if name == "count" {
        let number = |name| -> Result<Option<u64>, CommandError> {
            let number = command.get(name)?.and_then(|number| number.as_i64_exact());
            Ok(number.map(i64::unsigned_abs).filter(|number| *number > 0))
        };
        stages.push_reach(number("skip")?.unwrap_or(0), number("limit")?);
        stages.push("$count", "count");
        return Ok(stages);
    }
    let key = command.get("key")?.and_then(|key| key.as_str()).unwrap_or_default();
    let (mut group, mut values) = (Document::new(), Document::new());
    values.push("$addToSet", format!("${key}"));
    group.push("_id", Value::Null);
    group.push("distinct", values);
    stages.push("$group", group);
    Ok(stages)
}
