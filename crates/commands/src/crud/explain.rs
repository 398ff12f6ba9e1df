//! `explain`: the plan of a command, and with `executionStats` the figures of its execution.
//!
//! For updates and deletes it shows the search for their documents, and changes none.

mod execution;
mod pushed_projection;

use std::sync::Arc;

use pando_catalog::{Collection, Namespace};
use pando_collation::TextOrder;
use pando_document::{Document, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::execute::EntryEstimates;
use pando_query::explain::{
    Answer, Choice, Display, ExplainedProjection, Purpose, ShownPlans, execution_stats, query_planner,
};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::DiskUse;
use pando_query::needs::Needs;
use pando_query::pipeline::Pipeline;
use pando_query::plan::{
    Access, Consumer, Coverage, FindSpecification, Hint, IndexFilterUse, Plan, PlanChoice, ProjectionNeeds,
    choose_now,
};
use pando_query::sort::Sort;

use self::execution::{OnNoMatch, add_effect, execute};
use self::pushed_projection::pushed_projection;
use super::aggregate::{
    AggregateRequest, CursorField, PlannedPipeline, check_documents, collated_scope, collection_of,
    foreign_access,
};
use super::find_request::{FindRequest, ParsedFind};
use super::{table_scan, update, view_read, write_stage};
use crate::arguments::{Argument, Arguments, collection_name_or, missing};
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::identity::MONGODB_VERSION;
use crate::reader::Reader;
use crate::rights::check_explained_database;
use crate::views::not_a_collection;
use crate::{CommandError, ErrorCode, Request};

const VERBOSITIES: [&str; 3] = ["queryPlanner", "executionStats", "allPlansExecution"];
/// Commands that can be explained.
const EXPLAINED: [&str; 8] =
    ["aggregate", "count", "delete", "distinct", "find", "findAndModify", "findandmodify", "update"];

/// Those of them that read, and so are possible on views.
const READS: [&str; 4] = ["aggregate", "count", "distinct", "find"];

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
    check_explained_database(inner, context.database)?;
    explain(context, inner, verbosity, reply)
}

fn check_explainable(context: &Context<'_>, name: &str) -> Result<(), CommandError> {
    if EXPLAINED.contains(&name) {
        return Ok(());
    }
    if name == "explain" {
        return Err(CommandError::failed(ErrorCode::IllegalOperation, "Explain cannot explain itself."));
    }
    if context.shared.commands.iter().any(|command| command.name == name) {
        return Err(CommandError::failed(ErrorCode::IllegalOperation, format!("Cannot explain cmd: {name}")));
    }
    Err(CommandError::failed(
        ErrorCode::CommandNotFound,
        format!("Explain failed due to unknown command: {name}"),
    ))
}

/// A command to explain: a filter with its plan, and how its documents are shown.
struct Explained {
    filter: Filter,
    plan: Plan,
    /// The plans that lost against it.
    rejected: Vec<Plan>,
    index_filter: IndexFilterUse,
    projection: Option<(RawDocumentBuf, Shape)>,
    /// The stages of a pipeline behind the plan.
    stages: Pipeline,
    /// Whether the first of them is shown as the projection of the plan, as MongoDB carries it out.
    is_first_in_plan: bool,
    /// The stage behind them that writes. It is shown, and not carried out.
    write_stage: Option<Document>,
    disk_use: DiskUse,
    purpose: Purpose,
    choice: Choice,
    /// The skip and limit of the execution, where the plan as it is shown does not have them.
    reach: (u64, Option<u64>),
    answer: Answer,
    /// The order of strings.
    order: TextOrder,
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
    context.require_may_block()?;
    let Some(first) = command.iter().next() else {
        return Err(CommandError::failed(
            ErrorCode::CommandNotFound,
            "Explain failed due to unknown command: ",
        ));
    };
    let (name, value) = first?;
    check_explainable(context, name)?;
    let collection_name = match name {
        "aggregate" if value.is_number() => collection_of(command)?,
        _ => collection_name_or(value, ErrorCode::InvalidNamespace)?,
    };
    let namespace = context.namespace(collection_name)?;
    let found = context.catalog().collection(namespace.database(), namespace.collection());
    if found.is_none()
        && let Some(view) = context.resolve_view(collection_name)?
    {
        if !READS.contains(&name) {
            return Err(not_a_collection(&namespace));
        }
        let given = CollationChoice::of(collation_in(command)?).given()?;
        if given.is_some_and(|given| given != view.order) {
            return Err(CommandError::failed(
                ErrorCode::OptionNotSupportedOnView,
                "Cannot override a view's default collation",
            ));
        }
        let below = view_read::as_aggregate(&view, name, command)?;
        return explain(context, &below, verbosity, reply);
    }
    let mut sections = Document::new();
    let request = ExplainedCommand { name, command, verbosity, namespace: &namespace, found: found.as_ref() };
    let stages = explain_plan(context, request, &mut sections)?;
    if name == "aggregate"
        && stages.is_empty()
        && let Some(Value::Document(planner)) = sections.get_mut("queryPlanner")
    {
        // As MongoDB says it where the plan is all of the pipeline.
        planner.push("optimizedPipeline", true);
    }
    if name == "update"
        && let Some(section) = update::explain_blind(context, command, found.as_deref())?
    {
        sections.push("blindUpdate", section);
    }
    let address = &context.shared.machine_name();
    write(reply, (command, context.database), Shown { sections, stages }, address);
    Ok(())
}

/// The command of an `explain`.
#[derive(Clone, Copy)]
struct ExplainedCommand<'e> {
    name: &'e str,
    command: &'e RawDocument,
    verbosity: &'e str,
    namespace: &'e Namespace,
    /// `None` if it does not exist.
    found: Option<&'e Arc<Collection>>,
}

/// Adds the sections about the plan; gives the stages behind it.
fn explain_plan(
    context: &Context<'_>,
    request: ExplainedCommand<'_>,
    sections: &mut Document,
) -> Result<Vec<Document>, CommandError> {
    let ExplainedCommand { name, command, verbosity, namespace, found } = request;
    // After the description, so that it sees all entries of its indexes.
    let reader = context.reader()?;
    let explained = explained(context, name, command, Planning { collection: found, reader: &reader })?;
    let projection = match &explained.projection {
        None => ExplainedProjection::Whole,
        Some((projection, Shape::Simple)) => ExplainedProjection::Simple(projection),
        Some((projection, Shape::General)) => ExplainedProjection::General(projection),
    };
    let display = Display { projection, purpose: explained.purpose, choice: explained.choice };
    let (filter, plan) = (&explained.filter, &explained.plan);
    if let Some(collection) = found {
        table_scan::check(context, collection, filter, plan)?;
    }
    let (rejected, index_filter) = (&explained.rejected, explained.index_filter);
    let plans = ShownPlans { winner: plan, rejected, index_filter };
    let section = query_planner(&namespace.to_string(), filter, plans, display, &explained.order);
    sections.push("queryPlanner", section);
    let mut stages = Vec::new();
    if verbosity == "queryPlanner" {
        let held = reader.hold()?;
        let order = &explained.order;
        let mut access = |name: &str, path: &str| foreign_access(context, &held, (name, path), order);
        stages = explained.stages.explain_planned(&mut access)?;
    } else {
        let executed = execute(context, &explained, found, &reader)?;
        let mut section = execution_stats(filter, plan, display, executed.statistics());
        if explained.purpose == Purpose::Update {
            add_effect(&mut section, on_no_match(command)?);
        }
        sections.push("executionStats", section);
        if let Some(run) = &executed.stages {
            stages = explained.stages.explain(Some(run));
        }
    }
    if explained.is_first_in_plan && !stages.is_empty() {
        stages.remove(0);
    }
    stages.extend(explained.write_stage);
    Ok(stages)
}

/// What an update does where it finds no document.
fn on_no_match(command: &RawDocument) -> Result<OnNoMatch, CommandError> {
    let statement = match command.get("updates")? {
        Some(RawValue::Array(statements)) => statements.iter().next().transpose()?,
        _ => Some(RawValue::Document(command)),
    };
    let fields = statement.and_then(|statement| statement.as_document());
    let upsert = fields.map_or(Ok(None), |fields| fields.get("upsert"))?;
    Ok(match upsert {
        Some(upsert) if upsert.to_bool() => OnNoMatch::Inserts,
        _ => OnNoMatch::ChangesNothing,
    })
}

/// The data that a command is planned for.
#[derive(Clone, Copy)]
struct Planning<'p> {
    /// `None` if it does not exist.
    collection: Option<&'p Arc<Collection>>,
    reader: &'p Reader,
}

/// Plans the command.
fn explained(
    context: &Context<'_>,
    name: &str,
    command: &RawDocument,
    planning: Planning<'_>,
) -> Result<Explained, CommandError> {
    let sought = match name {
        "find" => return explained_find(context, command, planning),
        "aggregate" => return explained_aggregate(context, command, planning),
        "count" => Sought {
            filter: filter_in(command, "query")?,
            reach: (count_in(command, "skip")?, Some(count_in(command, "limit")?).filter(|limit| *limit > 0)),
            answer: Answer::Effect,
            ..Sought::of(command, Purpose::Count)?
        },
        "distinct" => Sought {
            filter: filter_in(command, "query")?,
            values: command.get("key")?.and_then(|key| key.as_str()),
            ..Sought::of(command, Purpose::Find)?
        },
        "update" | "delete" => sought_by_write(name, command)?,
        "findAndModify" | "findandmodify" => {
            let removes = command.get("remove")?.is_some_and(|remove| remove.to_bool());
            Sought {
                filter: filter_in(command, "query")?,
                sort: command.get("sort")?.and_then(|sort| sort.as_document()),
                reach: (0, Some(1)),
                ..Sought::of(command, if removes { Purpose::Delete } else { Purpose::Update })?
            }
        }
        other => {
            return Err(CommandError::failed(
                ErrorCode::CommandNotFound,
                format!("Explain failed due to unknown command: {other}"),
            ));
        }
    };
    let variables = command.get("let")?.and_then(|variables| variables.as_document());
    let scope = context.parse_scope().with_let(variables.unwrap_or(RawDocument::empty()))?;
    let scope = sought.collation.scope_in(&scope, planning.collection.map(Arc::as_ref))?;
    explained_search(&sought, &scope, planning)
}

/// The search of a command that is not a find.
struct Sought<'c> {
    filter: &'c RawDocument,
    sort: Option<&'c RawDocument>,
    hint: Option<RawValue<'c>>,
    /// The path whose different values are asked for.
    values: Option<&'c str>,
    purpose: Purpose,
    reach: (u64, Option<u64>),
    answer: Answer,
    collation: CollationChoice<'c>,
}

impl<'c> Sought<'c> {
    /// All documents; hint and collation stand in `options`.
    fn of(options: &'c RawDocument, purpose: Purpose) -> Result<Sought<'c>, CommandError> {
        Ok(Sought {
            filter: RawDocument::empty(),
            sort: None,
            hint: options.get("hint")?,
            values: None,
            purpose,
            reach: (0, None),
            answer: Answer::Documents,
            collation: CollationChoice::of(collation_in(options)?),
        })
    }
}

fn collation_in(options: &RawDocument) -> Result<Option<&RawDocument>, CommandError> {
    Ok(options.get("collation")?.and_then(|collation| collation.as_document()))
}

fn filter_in<'c>(command: &'c RawDocument, name: &str) -> Result<&'c RawDocument, CommandError> {
    Ok(command.get(name)?.and_then(|query| query.as_document()).unwrap_or(RawDocument::empty()))
}

fn count_in(command: &RawDocument, name: &str) -> Result<u64, CommandError> {
    Ok(command.get(name)?.and_then(|count| count.as_i64_exact()).map_or(0, i64::unsigned_abs))
}

/// Of several statements the first is explained.
fn sought_by_write<'c>(name: &str, command: &'c RawDocument) -> Result<Sought<'c>, CommandError> {
    let (list, purpose) = match name {
        "update" => ("updates", Purpose::Update),
        _ => ("deletes", Purpose::Delete),
    };
    let statement = match command.get(list)? {
        Some(RawValue::Array(array)) => {
            array.iter().next().transpose()?.and_then(|first| first.as_document())
        }
        _ => None,
    };
    let statement = statement.ok_or_else(|| missing(name, list))?;
    let is_many = match purpose {
        Purpose::Update => statement.get("multi")?.is_some_and(|multi| multi.to_bool()),
        _ => count_in(statement, "limit")? == 0,
    };
    Ok(Sought {
        filter: filter_in(statement, "q")?,
        reach: (0, if is_many { None } else { Some(1) }),
        answer: Answer::Effect,
        ..Sought::of(statement, purpose)?
    })
}

impl Planning<'_> {
    fn choose(&self, specification: &FindSpecification<'_>) -> Result<PlanChoice, CommandError> {
        let Some(collection) = self.collection else {
            let (plan, rejected) = (no_documents(), Vec::new());
            return Ok(PlanChoice { plan, rejected, index_filter: IndexFilterUse::Absent });
        };
        let held = self.reader.hold()?;
        let estimates = EntryEstimates::new(collection, held.transaction());
        Ok(choose_now(specification, collection, &estimates)?)
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
    planning: Planning<'_>,
) -> Result<Explained, CommandError> {
    let request = FindRequest::read(command)?;
    let scope = context.parse_scope();
    let scope = request.collation.scope_in(&scope, planning.collection.map(Arc::as_ref))?;
    let parsed = ParsedFind::parse(&request, &scope)?;
    let PlanChoice { plan, rejected, index_filter } = planning.choose(&parsed.specification())?;
    let Display { projection, choice, .. } = parsed.display();
    let projection = match projection {
        ExplainedProjection::Whole => None,
        ExplainedProjection::Simple(written) => Some((written.to_owned(), Shape::Simple)),
        ExplainedProjection::General(written) => Some((written.to_owned(), Shape::General)),
    };
    let disk_use = request.disk_use;
    let order = parsed.order;
    let plain = Explained::of(parsed.filter, plan);
    Ok(Explained { rejected, index_filter, projection, choice, disk_use, order, ..plain })
}

fn explained_aggregate(
    context: &Context<'_>,
    command: &RawDocument,
    planning: Planning<'_>,
) -> Result<Explained, CommandError> {
    let request = AggregateRequest::read(command, CursorField::Optional)?;
    let scope = collated_scope(context, request.collection, request.collation, context.parse_scope())?;
    let scope = scope.with_let(request.variables)?;
    let order = scope.text_order().clone();
    let split = write_stage::split(context.database, request.pipeline, &scope)?;
    let stages = split.as_ref().map_or(request.pipeline, |split| RawArray::from_document(&split.rest));
    let pipeline = Pipeline::parse(stages, &scope)?;
    check_documents(&request, &pipeline)?;
    let write_stage = split.as_ref().map(|split| split.stage.shown());
    let disk_use = request.disk_use;
    match planning.collection {
        Some(collection) => {
            let held = planning.reader.hold()?;
            let planned = PlannedPipeline::new(&request, pipeline, &scope, collection, held.transaction())?;
            let choice = choice_of(command.get("hint")?);
            let pushed = pushed_projection(&planned.rest);
            let is_first_in_plan = pushed.is_some();
            let projection = pushed.or_else(|| projection_of(&planned.rest.needs()));
            let stages = planned.rest;
            let plain = Explained::of(planned.filter, planned.plan);
            let (rejected, index_filter) = (planned.rejected, planned.index_filter);
            let plain = Explained { rejected, index_filter, is_first_in_plan, ..plain };
            Ok(Explained { stages, write_stage, disk_use, projection, choice, order, ..plain })
        }
        None => Ok(Explained {
            stages: pipeline,
            write_stage,
            disk_use,
            order,
            ..Explained::of(Filter::everything(), no_documents())
        }),
    }
}

/// The fields that a pipeline looks at as a projection, where they are some and not all.
fn projection_of(needs: &Needs) -> Option<(RawDocumentBuf, Shape)> {
    let Needs::Paths(paths) = needs else { return None };
    if paths.is_empty() {
        return None;
    }
    let mut shown = Document::new();
    paths.iter().for_each(|path| shown.push(path.as_str(), 1));
    if !paths.contains("_id") {
        shown.push("_id", 0);
    }
    let is_simple = paths.iter().all(|path| !path.contains('.'));
    Some((shown.to_raw(), if is_simple { Shape::Simple } else { Shape::General }))
}

fn explained_search(
    sought: &Sought<'_>,
    scope: &ParseScope,
    planning: Planning<'_>,
) -> Result<Explained, CommandError> {
    let filter = Filter::parse_for_plan(sought.filter, scope)?;
    let hint = sought.hint.map_or(Ok(None), Hint::parse)?;
    let sort = Sort::parse(sought.sort.unwrap_or(RawDocument::empty()))?.collated_by(scope.text_order());
    let values: Vec<String> = sought.values.iter().map(|path| (*path).to_owned()).collect();
    let (needs, consumer) = match (sought.purpose, sought.values) {
        (Purpose::Count, _) => (ProjectionNeeds::Nothing, Consumer::Groups),
        (Purpose::Find, Some(path)) => (ProjectionNeeds::Paths(&values), Consumer::Values(path)),
        _ => (ProjectionNeeds::Everything, Consumer::Documents),
    };
    let specification = FindSpecification {
        hint: hint.as_ref(),
        needs,
        consumer,
        sort: &sort,
        ..FindSpecification::matching(&filter)
    };
    let PlanChoice { plan, rejected, index_filter } = planning.choose(&specification)?;
    Ok(Explained {
        rejected,
        index_filter,
        purpose: sought.purpose,
        choice: choice_of(sought.hint),
        reach: sought.reach,
        answer: sought.answer,
        order: scope.text_order().clone(),
        ..Explained::of(filter, plan)
    })
}

fn choice_of(hint: Option<RawValue<'_>>) -> Choice {
    if hint.is_some() { Choice::Hinted } else { Choice::Free }
}

impl Explained {
    /// A plan that gives documents.
    fn of(filter: Filter, plan: Plan) -> Explained {
        Explained {
            filter,
            plan,
            rejected: Vec::new(),
            index_filter: IndexFilterUse::Absent,
            projection: None,
            stages: Pipeline::default(),
            is_first_in_plan: false,
            write_stage: None,
            disk_use: DiskUse::Allowed,
            purpose: Purpose::Find,
            choice: Choice::Free,
            reach: (0, None),
            answer: Answer::Documents,
            order: TextOrder::SIMPLE,
        }
    }

    /// The plan as it is carried out.
    fn carried_out(&self) -> Plan {
        let (skip, limit) = self.reach;
        Plan { skip: self.plan.skip + skip, limit: limit.or(self.plan.limit), ..self.plan.clone() }
    }
}

/// The plan of a command, with its figures or without, and the stages behind it.
struct Shown {
    sections: Document,
    stages: Vec<Document>,
}

fn write(
    reply: &mut DocumentWriter<'_>,
    (command, database): (&RawDocument, &str),
    shown: Shown,
    address: &str,
) {
    let Shown { sections, stages } = shown;
    reply.append_str("explainVersion", "1");
    if stages.is_empty() {
        for (name, section) in sections.iter() {
            reply.append_value(name, section);
        }
    } else {
        let number = |document: &Document, name: &str| document.get(name).and_then(Value::as_i64_exact);
        let figures = sections.get("executionStats").and_then(Value::as_document);
        let returned = figures.and_then(|figures| number(figures, "nReturned"));
        let whole = figures.and_then(|figures| number(figures, "executionTimeMillis"));
        let behind: i64 =
            stages.iter().filter_map(|stage| number(stage, "executionTimeMillisEstimate")).sum();
        let mut list = reply.array("stages");
        // Documents that the first stage makes come of no plan.
        if stages.first().is_none_or(|stage| stage.get("$documents").is_none()) {
            let mut cursor = Document::new();
            cursor.push("$cursor", Value::Document(sections));
            if let Some(returned) = returned {
                cursor.push("nReturned", Value::Int64(returned));
            }
            if let Some(whole) = whole {
                cursor.push("executionTimeMillisEstimate", Value::Int64(whole.saturating_sub(behind).max(0)));
            }
            list.push_value(&Value::Document(cursor));
        }
        stages.into_iter().for_each(|stage| list.push_value(&Value::Document(stage)));
        list.finish();
    }
    let mut explained = reply.document("command");
    for (name, value) in command.iter().map_while(Result::ok).filter(|(name, _)| *name != "$db") {
        explained.append(name, value);
    }
    explained.append_str("$db", database);
    explained.finish();
    let mut server = reply.document("serverInfo");
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    server.append_str("host", host);
    if let Ok(port) = port.parse() {
        server.append_i32("port", port);
    }
    server.append_str("version", MONGODB_VERSION);
    server.append_str("gitVersion", "unknown");
    server.finish();
}
