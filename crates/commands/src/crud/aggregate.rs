//! `aggregate`: a pipeline over one collection.
//!
//! # Steps
//! 1. All stages are parsed. The leading filter, sort, skip and limit are taken off the front and planned.
//! 2. A `$sample` of few of many documents begins with random ones, in the place of all that the plan finds
//!    (`random_documents`).
//! 3. The rest draws documents through its stages; the cursor owns the run, the executor and the transaction.

mod answer_size;
mod geo_near;
mod input;
mod random_documents;
pub(in crate::crud) mod ranged_scan;
mod source;

use std::sync::Arc;

use pando_catalog::{Collection, QueryAccount, SnapshotTimestamp, Transaction};
use pando_document::{DocumentWriter, RawArray, RawDocument, RawValue};
use pando_query::QueryError;
use pando_query::execute::EntryEstimates;
use pando_query::explain::{Choice, Display, ExplainedProjection, PlanSummary, Purpose};
use pando_query::expression::{EvaluationWatch, Optimisation, ParseScope};
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::needs::Needs;
use pando_query::pipeline::{Pipeline, PipelineFault, Pushdown, RunOptions};
use pando_query::plan::{
    Consumer, FindSpecification, Hint, IndexFilterUse, Plan, PlanChoice, ProjectionNeeds, choose_at,
};
use pando_query::sort::Sort;

use self::input::Input;
use self::random_documents::{DrawnFrom, RandomDocuments};
use self::ranged_scan::RangedScan;
use self::source::AggregateSource;
pub(super) use self::source::{MeasuredPipeline, Subject, foreign_access, measure};
use super::coll_stats_stage::{self, first_stage};
use super::current_op_stage::{self, COLLECTIONLESS, has_current_op};
use super::given_stages;
use super::inner_figures;
use super::list_sessions_stage;
use super::ranged_filter::RangedFilter;
use super::row_metadata::RowMetadata;
use super::table_scan;
use super::write_stage::{self, SplitPipeline};
use crate::arguments::{Arguments, missing};
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::cursor_reply::{self, NewCursor, cursor_batch_size};
use crate::error::Execution;
use crate::generic_arguments::{ReadLevel, unsupported_read_concern};
use crate::write_gate::WriterKind;
use crate::{CommandError, ErrorCode, Request};

/// An `aggregate` as the client sent it: checked, not yet parsed.
#[derive(Clone, Copy)]
pub(crate) struct AggregateRequest<'a> {
    pub collection: &'a str,
    pub pipeline: &'a RawArray,
    pub hint: Option<RawValue<'a>>,
    pub variables: &'a RawDocument,
    pub collation: CollationChoice<'a>,
    pub batch_size: Option<u64>,
    pub disk_use: DiskUse,
}

impl<'a> AggregateRequest<'a> {
    /// A pipeline without options.
    pub fn of(collection: &'a str, pipeline: &'a RawArray) -> AggregateRequest<'a> {
        AggregateRequest {
            collection,
            pipeline,
            hint: None,
            variables: RawDocument::empty(),
            collation: CollationChoice::Inherited,
            batch_size: None,
            disk_use: DiskUse::Allowed,
        }
    }

    /// Reads the fields of a command document.
    pub fn read(
        body: &'a RawDocument,
        cursor_needed: CursorField,
    ) -> Result<AggregateRequest<'a>, CommandError> {
        let collection = collection_of(body)?;
        let mut pipeline = None;
        let mut cursor = None;
        let nothing = RawArray::from_document(RawDocument::empty());
        let mut request = AggregateRequest::of(collection, nothing);
        for argument in Arguments::of_command("aggregate", body) {
            let argument = argument?;
            match argument.name {
                "pipeline" => pipeline = Some(array_of_stages(argument.value)?),
                "cursor" => cursor = Some(cursor_of(argument.value)?),
                "hint" => request.hint = Some(argument.value),
                "let" => request.variables = argument.document()?.unwrap_or(request.variables),
                "allowDiskUse" if !argument.flag()? => request.disk_use = DiskUse::Forbidden,
                "collation" => request.collation = CollationChoice::of(argument.document()?),
                "bypassDocumentValidation" => {
                    argument.lenient_boolean()?;
                }
                "explain" => check_explain(argument.value)?,
                "allowDiskUse" | "fromMongos" | "needsMerge" => {}
                _ => argument.refuse_unless_generic()?,
            }
        }
        request.pipeline = pipeline.ok_or_else(|| missing("aggregate", "pipeline"))?;
        match (cursor, cursor_needed) {
            (Some(cursor), _) => request.batch_size = cursor_batch_size("cursor", cursor)?,
            (None, CursorField::Optional) => {}
            (None, CursorField::Required) => {
                return Err(CommandError::failed(
                    ErrorCode::FailedToParse,
                    "The 'cursor' option is required, except for aggregate with the explain argument",
                ));
            }
        }
        Ok(request)
    }
}

/// Whether a request must have a `cursor` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CursorField {
    /// It must.
    Required,
    /// It need not: it is to be explained.
    Optional,
}

fn array_of_stages(value: RawValue<'_>) -> Result<&RawArray, CommandError> {
    match value {
        RawValue::Array(stages) => Ok(stages),
        _ => Err(CommandError::failed(
            ErrorCode::TypeMismatch,
            "'pipeline' option must be specified as an array",
        )),
    }
}

/// The collection that a pipeline begins with.
pub(super) fn collection_of(body: &RawDocument) -> Result<&str, CommandError> {
    match body.get("aggregate")? {
        Some(RawValue::String(name)) => Ok(name),
        Some(value) if value.is_number() && makes_documents(body)? => Ok(COLLECTIONLESS),
        Some(value) if value.is_number() => Err(without_collection(value, body)?),
        other => {
            let found = other.unwrap_or(RawValue::Null).element_type().alias();
            Err(CommandError::failed(
                ErrorCode::TypeMismatch,
                format!("collection name has invalid type: {found}"),
            ))
        }
    }
}

/// Whether the request is `{aggregate: 1}` with a pipeline whose first stage reads no collection.
fn makes_documents(body: &RawDocument) -> Result<bool, CommandError> {
    let is_one = body.get("aggregate")?.is_some_and(|value| value.as_i64_exact() == Some(1));
    let Some(RawValue::Array(stages)) = body.get("pipeline")?.filter(|_| is_one) else { return Ok(false) };
    Ok(current_op_stage::begins(stages)?
        || first_stage(stages, "$documents")?.is_some()
        || first_stage(stages, list_sessions_stage::LOCAL)?.is_some())
}

/// The error of a pipeline without a collection: `{aggregate: 1}` is for stages that find their documents
/// elsewhere.
fn without_collection(number: RawValue<'_>, body: &RawDocument) -> Result<CommandError, CommandError> {
    if number.as_i64_exact() != Some(1) {
        return Ok(CommandError::failed(
            ErrorCode::FailedToParse,
            "Invalid command format: the 'aggregate' field must specify a collection name or 1",
        ));
    }
    let pipeline = match body.get("pipeline")? {
        Some(RawValue::Array(stages)) => stages,
        _ => RawArray::from_document(RawDocument::empty()),
    };
    let first = pipeline.iter().next().transpose()?;
    let Some(RawValue::Document(stage)) = first else {
        return Ok(CommandError::failed(
            ErrorCode::InvalidNamespace,
            "{aggregate: 1} is not valid for an empty pipeline.",
        ));
    };
    let name = stage.iter().next().transpose()?.map_or("", |(name, _)| name);
    let is_on_admin = body.get("$db")?.and_then(|database| database.as_str()) == Some("admin");
    Ok(match name {
        "$facet" if is_on_admin && has_current_op(pipeline)? => PipelineFault::NotInFacet
            .error("$currentOp is not allowed to be used within a $facet stage")
            .into(),
        list_sessions_stage::STORED => list_sessions_stage::misplaced(),
        "$changeStream" => QueryError::no_change_streams().into(),
        _ => CommandError::failed(
            ErrorCode::InvalidNamespace,
            format!("{{aggregate: 1}} is not valid for '{name}'; a collection is required."),
        ),
    })
}

fn cursor_of(value: RawValue<'_>) -> Result<&RawDocument, CommandError> {
    match value {
        RawValue::Document(cursor) => Ok(cursor),
        _ => Err(CommandError::failed(ErrorCode::TypeMismatch, "cursor field must be missing or an object")),
    }
}

fn check_explain(value: RawValue<'_>) -> Result<(), CommandError> {
    match value {
        RawValue::Boolean(_) => Ok(()),
        _ => Err(CommandError::failed(ErrorCode::TypeMismatch, "explain must be a boolean")),
    }
}

/// The front of a pipeline, planned, and what is left of it.
pub(crate) struct PlannedPipeline {
    pub filter: Filter,
    pub plan: Plan,
    /// The plans that lost against it.
    pub rejected: Vec<Plan>,
    pub index_filter: IndexFilterUse,
    pub rest: Pipeline,
    /// The metadata of the documents for it.
    pub metadata: Option<RowMetadata>,
}

impl PlannedPipeline {
    /// Plans the front against the indexes that this transaction may use.
    pub fn new(
        request: &AggregateRequest<'_>,
        pipeline: Pipeline,
        scope: &ParseScope,
        collection: &Collection,
        transaction: &dyn Transaction,
    ) -> Result<PlannedPipeline, CommandError> {
        let Pushdown { near, filter, sort, skip, limit, rest, rest_unsorted } = pipeline.split_pushdown();
        let snapshot = transaction.snapshot();
        let filter = match &near {
            Some(near) => geo_near::filter(near, &collection.describe_indexes_at(snapshot))?,
            None => Filter::parse(&filter, scope)?,
        };
        let sort = sort.as_deref().map_or(Ok(Sort::Unordered), Sort::parse)?;
        let sort = sort.collated_by(scope.text_order());
        let hint = request.hint.map_or(Ok(None), Hint::parse)?;
        let planner = Planner {
            collection,
            snapshot,
            estimates: EntryEstimates::new(collection, transaction),
            optimisation: scope.optimisation(),
        };
        let choose = |sort: &Sort, rest: &Pipeline| {
            let specification = FindSpecification {
                sort,
                skip,
                limit,
                hint: hint.as_ref(),
                ..FindSpecification::matching(&filter)
            };
            planner.choose(specification, rest)
        };
        let (mut choice, mut rest) = (choose(&sort, &rest)?, rest);
        if let Some(unsorted) = rest_unsorted.filter(|_| choice.plan.sort.is_some()) {
            choice = choose(&Sort::Unordered, &unsorted)?;
            rest = unsorted;
        }
        let PlanChoice { mut plan, rejected, index_filter } = choice;
        // A sort behind a search is none of the plan in MongoDB: it shows no key.
        let shown = if near.is_some() { &Sort::Unordered } else { &sort };
        let order = (shown, scope.text_order());
        let metadata = RowMetadata::of_pipeline(rest.metadata(), collection.layout(), order, &plan)?;
        if let Some(near) = &near {
            geo_near::give_distances(near, &mut plan);
        }
        Ok(PlannedPipeline { filter, plan, rejected, index_filter, rest, metadata })
    }

    /// How the plan is displayed where there is nothing behind it.
    fn display(&self) -> Display<'static> {
        Display { projection: ExplainedProjection::Whole, purpose: Purpose::Find, choice: Choice::Free }
    }
}

/// The planner of a pipeline's front.
struct Planner<'p> {
    collection: &'p Collection,
    snapshot: SnapshotTimestamp,
    estimates: EntryEstimates<'p>,
    optimisation: Optimisation,
}

impl Planner<'_> {
    /// Chooses a plan for what the stages behind it look at.
    fn choose(
        &self,
        specification: FindSpecification<'_>,
        rest: &Pipeline,
    ) -> Result<PlanChoice, CommandError> {
        // Keys are made of whole documents.
        let needs = if rest.metadata().is_empty() { rest.needs() } else { Needs::Everything };
        let paths: Option<Vec<String>> = match &needs {
            Needs::Everything => None,
            Needs::Paths(paths) => Some(paths.iter().cloned().collect()),
        };
        let is_uncut = specification.skip == 0 && specification.limit.is_none();
        let is_optimised = self.optimisation == Optimisation::On;
        let ends = match is_uncut && is_optimised && rest.metadata().is_empty() {
            true => rest.group_ends(specification.sort.pattern()),
            false => None,
        };
        let specification = FindSpecification {
            needs: match &paths {
                None => ProjectionNeeds::Everything,
                Some(paths) if paths.is_empty() => ProjectionNeeds::Nothing,
                Some(paths) => ProjectionNeeds::Paths(paths),
            },
            consumer: match &ends {
                Some(ends) => Consumer::Ends(ends),
                None if rest.sees_values_only() => Consumer::Groups,
                None => Consumer::Documents,
            },
            metadata: rest.metadata(),
            ..specification
        };
        Ok(choose_at(&specification, self.collection, self.snapshot, &self.estimates)?)
    }
}

/// Runs a pipeline.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    if matches!(request.body.get("explain")?, Some(RawValue::Boolean(true))) {
        if context.read.level != ReadLevel::Local {
            let level = context.read.level;
            let reason = format!(
                "Explain for the aggregate command cannot run with a readConcern other than 'local'. Current readConcern level: {}",
                level.name()
            );
            return Err(unsupported_read_concern("aggregate", level, &reason));
        }
        return super::explain::explain(context, request.body, "queryPlanner", reply);
    }
    context.require_may_block()?;
    check_stages_in_transaction(context, request.body)?;
    check_stages_at_level(context, request.body)?;
    let aggregate = AggregateRequest::read(request.body, CursorField::Required)?;
    context.read_bypasses(request.body)?;
    let namespace = context.namespace(aggregate.collection)?;
    let scope = collated_scope(context, aggregate.collection, aggregate.collation, context.parse_scope())?;
    let scope = scope.with_let(aggregate.variables)?;
    let split = write_stage::split(context.database, aggregate.pipeline, &scope)?;
    if let Some(SplitPipeline { rest, stage }) = split {
        let pipeline = RawArray::from_document(&rest);
        let aggregate = AggregateRequest { pipeline, batch_size: None, ..aggregate };
        // The gate of the command itself is open to readers.
        let clock = context.shared.environment.clock();
        let _pass = context.shared.write_gate.enter(WriterKind::Alone, context.caller(), &**clock)?;
        let account = context.query_account();
        let mut source = source_of(context, &aggregate, &scope, &account)?;
        let writer = stage.begin(context, &scope)?;
        writer.write_all(context, &mut source)?;
        let nothing = Box::new(write_stage::Nothing);
        let cursor = NewCursor::new(request.body, namespace.to_string(), nothing, account);
        return cursor_reply::open(context, cursor, reply);
    }
    open(context, request.body, &aggregate, reply)
}

/// Answers a cursor over a pipeline that does not write.
pub(super) fn open(
    context: &Context<'_>,
    command: &RawDocument,
    aggregate: &AggregateRequest<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let namespace = context.namespace(aggregate.collection)?;
    let account = context.query_account();
    let watch = EvaluationWatch::of(context.record.operation());
    let scope = context.watched_scope(&watch);
    let scope = collated_scope(context, aggregate.collection, aggregate.collation, scope)?;
    let scope = scope.with_let(aggregate.variables)?;
    let source = source_of(context, aggregate, &scope, &account)?;
    let cursor = NewCursor {
        execution: Some(Execution::Aggregate),
        watch: Some(watch),
        read_time: context.read_time(),
        snapshot: Some(source.reader.snapshot()?),
        first_batch: aggregate.batch_size,
        ..NewCursor::new(command, namespace.to_string(), Box::new(source), account)
    };
    cursor_reply::open(context, cursor, reply)
}

/// The scope of a read of a collection or view, with the collation that it has.
pub(super) fn collated_scope(
    context: &Context<'_>,
    name: &str,
    collation: CollationChoice<'_>,
    scope: ParseScope,
) -> Result<ParseScope, CommandError> {
    let given = collation.given()?;
    if name == COLLECTIONLESS {
        return Ok(scope.collated_by(&given.unwrap_or_default()));
    }
    let of_name = match context.collection(name)? {
        Some(collection) => match given {
            None => collection.text_order().clone(),
            Some(given) => given,
        },
        None => match context.view_to_read(name)? {
            Some(view) => view.order(given.as_ref())?,
            None => given.unwrap_or_default(),
        },
    };
    Ok(scope.collated_by(&of_name))
}

/// Stages that a transaction may not have.
const NOT_IN_TRANSACTIONS: [&str; 9] = [
    "$changeStream",
    "$collStats",
    "$currentOp",
    "$indexStats",
    "$listLocalSessions",
    "$listSessions",
    "$merge",
    "$out",
    "$planCacheStats",
];

/// Refuses a pipeline that a transaction may not have.
fn check_stages_in_transaction(context: &Context<'_>, body: &RawDocument) -> Result<(), CommandError> {
    if context.open_transaction().is_none() {
        return Ok(());
    }
    let Some(RawValue::Array(stages)) = body.get("pipeline")? else { return Ok(()) };
    for stage in stages.iter() {
        let Some(Ok((name, _))) = stage?.as_document().and_then(|stage| stage.iter().next()) else {
            continue;
        };
        if !NOT_IN_TRANSACTIONS.contains(&name) {
            continue;
        }
        let message = match name {
            "$out" | "$merge" => format!("{name} cannot be used in a transaction"),
            "$currentOp" => format!(
                "Operation not permitted in transaction :: caused by :: Aggregation stage {name} cannot run within a multi-document transaction."
            ),
            _ => format!("Stage not supported inside of a multi-document transaction: {name}"),
        };
        return Err(CommandError::failed(ErrorCode::OperationNotSupportedInTransaction, message));
    }
    Ok(())
}

/// Refuses a pipeline that does not go with the level of its read concern.
fn check_stages_at_level(context: &Context<'_>, body: &RawDocument) -> Result<(), CommandError> {
    let level = context.read.level;
    if level == ReadLevel::Local {
        return Ok(());
    }
    let Some(RawValue::Array(stages)) = body.get("pipeline")? else { return Ok(()) };
    for stage in stages.iter() {
        let Some(Ok((name, _))) = stage?.as_document().and_then(|stage| stage.iter().next()) else {
            continue;
        };
        let reason = match name {
            "$out" | "$merge" if level == ReadLevel::Linearizable => {
                format!("{name} cannot be used with a 'linearizable' read concern level")
            }
            "$currentOp" => format!(
                "Aggregation stage {name} cannot run with a readConcern other than 'local'. Current readConcern: {}",
                level.name()
            ),
            _ => continue,
        };
        return Err(unsupported_read_concern("aggregate", level, &reason));
    }
    Ok(())
}

/// Parses, plans and starts the pipeline. That of a view stands before it.
pub(super) fn source_of(
    context: &Context<'_>,
    request: &AggregateRequest<'_>,
    scope: &ParseScope,
    account: &QueryAccount,
) -> Result<AggregateSource, CommandError> {
    let is_of_figures = coll_stats_stage::split(request.pipeline)?.is_some()
        || given_stages::are_of_series(context, request)?;
    if request.collection != COLLECTIONLESS
        && !is_of_figures
        && context.collection(request.collection)?.is_none()
        && let Some(view) = context.resolve_view(request.collection)?
    {
        let stages = view.followed_by(request.pipeline)?;
        let pipeline = RawArray::from_document(&stages);
        let of_buckets = request.hint.map_or(Ok(None), |hint| view.hint_below(hint))?;
        let hint = of_buckets.as_deref().map(RawValue::Document).or(request.hint);
        let below = AggregateRequest { collection: &view.collection, pipeline, hint, ..*request };
        return source_of_collection(context, &below, scope, account);
    }
    source_of_collection(context, request, scope, account)
}

fn source_of_collection(
    context: &Context<'_>,
    request: &AggregateRequest<'_>,
    scope: &ParseScope,
    account: &QueryAccount,
) -> Result<AggregateSource, CommandError> {
    let changed = inner_figures::carried_out(context, request.pipeline)?;
    let pipeline = changed.as_deref().map_or(request.pipeline, RawArray::from_document);
    let request = &AggregateRequest { pipeline, ..*request };
    let memory = StageMemory::new(account.clone(), request.disk_use);
    let options = RunOptions::new(memory.clone(), context.shared.environment.random().next_u64());
    let reader = context.reader()?;
    let mut ranged = None;
    let (input, run) = match given_stages::documents(context, request)? {
        Some((documents, rest)) => {
            let rest = Pipeline::parse(RawArray::from_document(&rest), scope)?;
            (Input::Given(documents.into_iter()), rest.start(&options))
        }
        None => {
            let pipeline = Pipeline::parse(request.pipeline, scope)?;
            check_documents(request, &pipeline)?;
            match context.collection(request.collection)? {
                Some(collection) => {
                    let held = reader.hold()?;
                    let transaction = held.transaction();
                    let planned = PlannedPipeline::new(request, pipeline, scope, &collection, transaction)?;
                    let (plan, rest) = (&planned.plan, &planned.rest);
                    let from = DrawnFrom { collection: &collection, transaction, account };
                    let random = match planned.metadata {
                        None => RandomDocuments::draw(context, from, plan, rest)?,
                        Some(_) => None,
                    };
                    drop(held);
                    table_scan::check(context, &collection, &planned.filter, &planned.plan)?;
                    context.note_plan(&planned.plan, Purpose::Find);
                    context.note_stages(&planned.filter, &planned.plan, planned.display());
                    let run = planned.rest.start(&options);
                    let mut filter = None;
                    if planned.metadata.is_none() && random.is_none() {
                        ranged = RangedScan::of(&collection, plan, rest, &reader, &memory, &options)
                            .or_else(|| RangedScan::of_sort(&collection, plan, &reader, &memory, &options));
                        if ranged.is_none() {
                            filter = RangedFilter::of(context.shared, &collection, plan, &reader, &memory);
                        }
                    }
                    let input = Input::of(collection, planned.plan, &planned.rest, &memory)?;
                    (input.with(planned.metadata).filtered_by(filter).or_random(random), run)
                }
                None if pipeline.near().is_some() => {
                    return Err(geo_near::no_collection(context.database, request.collection).into());
                }
                // Without documents some stages still answer, `$facet` for one.
                None => {
                    context.note(|notes| notes.plan = PlanSummary::Nothing);
                    (Input::Given(Vec::new().into_iter()), pipeline.start(&options))
                }
            }
        }
    };
    let (shared, database) = (Arc::clone(context.shared), context.database.to_owned());
    let (account, view_scope) = (account.clone(), scope.of_view());
    Ok(AggregateSource { shared, database, reader, input, ranged, run, account, view_scope })
}

/// Refuses `$documents` over a collection.
pub(super) fn check_documents(
    request: &AggregateRequest<'_>,
    pipeline: &Pipeline,
) -> Result<(), CommandError> {
    if pipeline.makes_documents() && request.collection != COLLECTIONLESS {
        return Err(CommandError::failed(
            ErrorCode::InvalidNamespace,
            "'$documents' can only be run with {aggregate: 1}",
        ));
    }
    Ok(())
}
