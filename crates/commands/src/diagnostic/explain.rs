//! `explain`: the plan of a command, and with `executionStats` what carrying it out comes to.
//!
//! Updates and deletes are explained by the documents that they would look for; nothing is changed.

use std::sync::Arc;

use pando_catalog::Collection;
use pando_document::{Document, DocumentWriter, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::execute::{Executor, Revisits};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::pipeline::Pipeline;
use pando_query::plan::{
    Access, Coverage, ExecutionStatistics, ExplainedProjection, FindSpecification, Hint, Plan,
    ProjectionNeeds, execution_stats, plan, query_planner,
};
use pando_query::sort::DiskUse;

use crate::arguments::{Argument, Arguments, collection_name_or, missing};
use crate::context::Context;
use crate::crud::aggregate::{AggregateRequest, CursorField, PlannedPipeline, stage_texts};
use crate::crud::find_request::{FindRequest, ParsedFind};
use crate::identity::MONGODB_VERSION;
use crate::{CommandError, ErrorCode, Request};

const VERBOSITIES: [&str; 3] = ["queryPlanner", "executionStats", "allPlansExecution"];
/// Commands that can be explained.
const EXPLAINED: [&str; 8] =
    ["aggregate", "count", "delete", "distinct", "find", "findAndModify", "findandmodify", "update"];

/// Explains the command inside.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let inner = Argument::of_value("explain", "explain", request.command()?.1).document()?;
    let inner = inner.ok_or_else(|| missing("explain", "explain"))?;
    let mut verbosity = "allPlansExecution";
    for argument in Arguments::of_command("explain", request.body) {
        let argument = argument?;
        match argument.name {
            "verbosity" => verbosity = argument.one_of(&VERBOSITIES)?.unwrap_or(verbosity),
            _ => argument.refuse_unless_generic()?,
        }
    }
    explain(context, inner, verbosity, reply)
}

fn check_explainable(name: &str) -> Result<(), CommandError> {
    if EXPLAINED.contains(&name) {
        return Ok(());
    }
    match crate::registry::find(name) {
        Some(_) => {
            Err(CommandError::failed(ErrorCode::IllegalOperation, format!("Cannot explain cmd: {name}")))
        }
        None => Err(CommandError::failed(
            ErrorCode::CommandNotFound,
            format!("Explain failed due to unknown command: {name}"),
        )),
    }
}

/// What is explained: a filter with its plan, and how its documents are shown.
struct Explained {
    filter: Filter,
    plan: Plan,
    projection: Option<(RawDocumentBuf, Shape)>,
    /// Stages of a pipeline behind the plan.
    stages: Vec<RawDocumentBuf>,
}

/// How a projection is shown.
#[derive(Clone, Copy)]
enum Shape {
    Simple,
    General,
}

/// Explains a command document.
pub(crate) fn explain(
    context: &Context<'_>,
    command: &RawDocument,
    verbosity: &str,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_patience()?;
    let Some(first) = command.iter().next() else {
        return Err(CommandError::failed(
            ErrorCode::CommandNotFound,
            "Explain failed due to unknown command: ",
        ));
    };
    let (name, value) = first?;
    check_explainable(name)?;
    let collection_name = collection_name_or(value, ErrorCode::InvalidNamespace)?;
    let namespace = context.namespace(collection_name)?;
    let transaction = context.begin_read()?;
    let found = context.catalog().collection(namespace.database(), namespace.collection());
    let explained = explained(context, name, command, found.as_ref())?;
    let projection = match &explained.projection {
        None => ExplainedProjection::Whole,
        Some((projection, Shape::Simple)) => ExplainedProjection::Simple(projection),
        Some((projection, Shape::General)) => ExplainedProjection::General(projection),
    };
    let mut sections = Document::new();
    let planner = query_planner(&namespace.to_string(), &explained.filter, &explained.plan, projection);
    sections.push("queryPlanner", planner);
    if verbosity != "queryPlanner" {
        let statistics = execute(context, &explained, found.as_ref(), &*transaction)?;
        sections.push("executionStats", execution_stats(&explained.plan, projection, statistics));
    }
    transaction.rollback();
    write(reply, command, &sections, &explained.stages, &context.shared.options.address);
    Ok(())
}

/// Plans the command.
fn explained(
    context: &Context<'_>,
    name: &str,
    command: &RawDocument,
    collection: Option<&Arc<Collection>>,
) -> Result<Explained, CommandError> {
    let scope = ParseScope::at(context.shared.now_ms());
    match name {
        "find" => explained_find(context, command, collection),
        "aggregate" => explained_aggregate(context, command, collection),
        "count" | "distinct" => {
            let filter =
                command.get("query")?.and_then(|query| query.as_document()).unwrap_or(RawDocument::empty());
            let needs = if name == "count" { ProjectionNeeds::Nothing } else { ProjectionNeeds::Everything };
            explained_filter(filter, command.get("hint")?, needs, &scope, collection)
        }
        "update" | "delete" => {
            let list = if name == "update" { "updates" } else { "deletes" };
            let statement = match command.get(list)? {
                Some(RawValue::Array(array)) => {
                    array.iter().next().transpose()?.and_then(|first| first.as_document())
                }
                _ => None,
            };
            let Some(statement) = statement else {
                return Err(crate::arguments::missing(
                    if name == "update" { "update" } else { "delete" },
                    list,
                ));
            };
            let filter =
                statement.get("q")?.and_then(|query| query.as_document()).unwrap_or(RawDocument::empty());
            explained_filter(filter, statement.get("hint")?, ProjectionNeeds::Everything, &scope, collection)
        }
        "findAndModify" | "findandmodify" => {
            let filter =
                command.get("query")?.and_then(|query| query.as_document()).unwrap_or(RawDocument::empty());
            explained_filter(filter, command.get("hint")?, ProjectionNeeds::Everything, &scope, collection)
        }
        other => Err(CommandError::failed(
            ErrorCode::CommandNotFound,
            format!("Explain failed due to unknown command: {other}"),
        )),
    }
}

fn plan_for(
    specification: &FindSpecification<'_>,
    collection: Option<&Arc<Collection>>,
) -> Result<Plan, CommandError> {
    match collection {
        Some(collection) => Ok(plan(specification, &collection.describe_indexes())?),
        None => Ok(no_documents()),
    }
}

/// The plan of a collection that does not exist.
fn no_documents() -> Plan {
    Plan {
        access: Access::Nothing,
        residual: None,
        coverage: Coverage::Document,
        sort: None,
        skip: 0,
        limit: None,
    }
}

fn explained_find(
    context: &Context<'_>,
    command: &RawDocument,
    collection: Option<&Arc<Collection>>,
) -> Result<Explained, CommandError> {
    let request = FindRequest::read(command)?;
    let parsed = ParsedFind::parse(&request, context.shared.now_ms())?;
    let plan = plan_for(&parsed.specification(), collection)?;
    let shape = if parsed.is_simple_inclusion() { Shape::Simple } else { Shape::General };
    let projection = request.projection.map(|projection| (projection.to_owned(), shape));
    Ok(Explained { filter: parsed.filter, plan, projection, stages: Vec::new() })
}

fn explained_aggregate(
    context: &Context<'_>,
    command: &RawDocument,
    collection: Option<&Arc<Collection>>,
) -> Result<Explained, CommandError> {
    let request = AggregateRequest::read(command, CursorField::Optional)?;
    let scope = ParseScope::with_let(context.shared.now_ms(), request.variables)?;
    let pipeline = Pipeline::parse(request.pipeline, &scope)?;
    match collection {
        Some(collection) => {
            let planned = PlannedPipeline::new(&request, pipeline, &scope, collection)?;
            let stages = stage_texts(&planned.rest);
            Ok(Explained { filter: planned.filter, plan: planned.plan, projection: None, stages })
        }
        None => Ok(Explained {
            filter: Filter::everything(),
            plan: no_documents(),
            projection: None,
            stages: stage_texts(&pipeline),
        }),
    }
}

fn explained_filter(
    filter: &RawDocument,
    hint: Option<RawValue<'_>>,
    needs: ProjectionNeeds<'_>,
    scope: &ParseScope,
    collection: Option<&Arc<Collection>>,
) -> Result<Explained, CommandError> {
    let filter = Filter::parse(filter, scope)?;
    let hint = hint.map_or(Ok(None), Hint::parse)?;
    let specification =
        FindSpecification { hint: hint.as_ref(), needs, ..FindSpecification::matching(&filter) };
    let plan = plan_for(&specification, collection)?;
    Ok(Explained { filter, plan, projection: None, stages: Vec::new() })
}

/// Carries the plan out and counts.
fn execute(
    context: &Context<'_>,
    explained: &Explained,
    collection: Option<&Arc<Collection>>,
    transaction: &dyn pando_catalog::Transaction,
) -> Result<ExecutionStatistics, CommandError> {
    let began = context.shared.now_ms();
    let counters = match collection {
        Some(collection) => {
            let plan = explained.plan.clone();
            let mut executor =
                Executor::new(Arc::clone(collection), plan, DiskUse::Allowed, Revisits::Impossible)?;
            executor.count(transaction, context.patience)?;
            executor.counters()
        }
        None => pando_query::execute::Counters::default(),
    };
    Ok(ExecutionStatistics { counters, milliseconds: context.shared.now_ms() - began })
}

fn write(
    reply: &mut DocumentWriter<'_>,
    command: &RawDocument,
    sections: &Document,
    stages: &[RawDocumentBuf],
    host: &str,
) {
    reply.append_str("explainVersion", "1");
    if stages.is_empty() {
        for (name, section) in sections.iter() {
            reply.append_value(name, section);
        }
    } else {
        let mut list = reply.array("stages");
        let mut cursor = Document::new();
        cursor.push("$cursor", Value::Document(sections.clone()));
        list.push_value(&Value::Document(cursor));
        for stage in stages {
            list.push_document(stage);
        }
        list.finish();
    }
    reply.append_raw_document("command", command);
    let mut server = reply.document("serverInfo");
    server.append_str("host", host);
    server.append_str("version", MONGODB_VERSION);
    server.finish();
}
