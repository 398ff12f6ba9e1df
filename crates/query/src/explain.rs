//! Plans as `explain` prints them, in the shape that MongoDB's shell, drivers and Compass know.
//!
//! The stages are MongoDB's: IDHACK, COLLSCAN, IXSCAN, DISTINCT_SCAN, FETCH, OR, AND_SORTED, SORT_MERGE,
//! SORT, SKIP, LIMIT, PROJECTION_…, EOF, and around them SUBPLAN, COUNT, UPDATE, DELETE;
//! RECORD_STORE_FAST_COUNT is
//! that of counters. `_id_` is shown as the index that it is to users, though its entries are the documents
//! themselves. A primary key of the user's choice and a clustering index are shown without a FETCH, with
//! `clustering: true`. The order of SKIP, LIMIT and PROJECTION_… is that of MongoDB 6.0; scans are printed by
//! `scan`.

mod executed;
mod scan;
mod summary;
mod text;

use pando_catalog::DeviceReads;
use pando_collation::TextOrder;
use pando_document::{Document, RawDocument, RawValue, Value};

pub use self::executed::{Effect, executed};
pub use self::summary::PlanSummary;
use crate::execute::ExecutionFigures;
use crate::filter::{FieldTest, Filter, Node, Operator, Test};
use crate::memory::MEMORY_BYTES_MAX;
use crate::plan::{Access, Coverage, IndexAccess, IndexFilterUse, Plan, Scores};
use crate::sort::SortPattern;

/// The stage that takes the number of all documents from the collection's counter.
pub(crate) const FAST_COUNT: &str = "RECORD_STORE_FAST_COUNT";

/// How the projection of a find is shown.
#[derive(Clone, Copy, Debug)]
pub enum ExplainedProjection<'a> {
    /// There is none.
    Whole,
    /// As the request spells it, with nothing but whole top-level fields included.
    Simple(&'a RawDocument),
    /// As the request spells it.
    General(&'a RawDocument),
}

/// The use of the documents that a plan finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// They are the answer.
    Find,
    /// Their number is.
    Count,
    /// They are updated.
    Update,
    /// They are deleted.
    Delete,
}

/// How a plan is shown.
#[derive(Clone, Copy, Debug)]
pub struct Display<'a> {
    /// How its documents are.
    pub projection: ExplainedProjection<'a>,
    /// The use of its documents.
    pub purpose: Purpose,
    /// Whether a hint left no choice.
    pub choice: Choice,
}

/// Whether the planner could choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Among all indexes; the branches of an `$or` one by one.
    Free,
    /// A hint has chosen.
    Hinted,
}

/// The error that ended an execution.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionFault<'a> {
    /// Its code on the wire.
    pub code: i32,
    /// Its text.
    pub message: &'a str,
}

/// The result of an execution.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionStatistics<'a> {
    /// `None`: it came to its end.
    pub fault: Option<ExecutionFault<'a>>,
    /// The figures of the executor. Those of a count, an update or a delete count its documents as returned.
    pub figures: ExecutionFigures,
    /// Whether documents are returned, and not only an effect.
    pub answer: Answer,
    /// Milliseconds that it took.
    pub milliseconds: i64,
    /// Pages and bytes read from the device.
    pub reads: DeviceReads,
}

/// The answer of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The documents that were found.
    Documents,
    /// Only the effect.
    Effect,
}

/// The plans of a command, as they are shown.
#[derive(Clone, Copy, Debug)]
pub struct ShownPlans<'a> {
    /// The plan that is carried out.
    pub winner: &'a Plan,
    /// The plans that lost against it.
    pub rejected: &'a [Plan],
    /// Whether an index filter restricted the choice.
    pub index_filter: IndexFilterUse,
}

/// The `queryPlanner` section.
pub fn query_planner(
    namespace: &str,
    filter: &Filter,
    plans: ShownPlans<'_>,
    display: Display<'_>,
    order: &TextOrder,
) -> Document {
    let plan = plans.winner;
    let mut section = Document::new();
    section.push("namespace", namespace);
    section.push("indexFilterSet", plans.index_filter == IndexFilterUse::Applied);
    section.push("parsedQuery", filter.to_document());
    if let Some(collation) = order.document() {
        section.push("collation", RawValue::Document(collation).to_owned());
    }
    section.push("maxIndexedOrSolutionsReached", false);
    section.push("maxIndexedAndSolutionsReached", false);
    section.push("maxScansToExplodeReached", false);
    section.push("winningPlan", displayed(filter, plan, display));
    let rejected = if shows_rejected(filter, plan, display) { plans.rejected } else { &[] };
    let rejected = rejected.iter().map(|plan| Value::Document(displayed(filter, plan, display)));
    section.push("rejectedPlans", Value::Array(rejected.collect()));
    section
}

/// Whether MongoDB weighs plans against each other here. It plans the branches of an `$or` one by one, and
/// takes a scan that only counts entries, or only steps from value to value, without a look at others.
fn shows_rejected(filter: &Filter, plan: &Plan, display: Display<'_>) -> bool {
    let is_subplan = display.choice == Choice::Free && has_branches(filter);
    let is_count = display.purpose == Purpose::Count && count_scan(plan).is_some();
    !is_subplan && !is_count && !plan.is_distinct()
}

/// The `executionStats` section.
pub fn execution_stats(
    filter: &Filter,
    plan: &Plan,
    display: Display<'_>,
    statistics: ExecutionStatistics<'_>,
) -> Document {
    let ExecutionStatistics { fault, figures, answer, milliseconds, reads } = statistics;
    let counters = figures.counters;
    let returned = if answer == Answer::Documents { counters.returned } else { 0 };
    let mut section = Document::new();
    section.push("executionSuccess", fault.is_none());
    if let Some(ExecutionFault { code, message }) = fault {
        section.push("errorMessage", message);
        section.push("errorCode", code);
    }
    section.push("nReturned", number(returned));
    section.push("executionTimeMillis", Value::Int64(milliseconds));
    section.push("totalKeysExamined", number(counters.keys_examined));
    section.push("totalDocsExamined", number(counters.documents_examined));
    if fault.is_some() {
        section.push("failed", true);
    }
    if reads.bytes > 0 {
        let mut data = Document::new();
        data.push("bytesRead", number(reads.bytes));
        data.push("pagesRead", number(reads.pages));
        let micros = u64::try_from(reads.time.as_micros()).unwrap_or(u64::MAX);
        data.push("timeReadingMicros", number(micros));
        let mut storage = Document::new();
        storage.push("data", data);
        section.push("storage", storage);
    }
    let mut stages = executed(&displayed(filter, plan, display), &figures, Effect::default());
    stages.insert("nReturned", number(returned));
    section.push("executionStages", stages);
    section
}

/// The plan within the stages that tell what it serves: the winning plan of a command.
pub fn displayed(filter: &Filter, plan: &Plan, display: Display<'_>) -> Document {
    let mut stage = match display.purpose {
        Purpose::Count => count_scan(plan).unwrap_or_else(|| access(plan).0),
        // A pipeline that counts.
        Purpose::Find if plan.limit.is_none() && plan.skip == 0 => {
            count_scan(plan).unwrap_or_else(|| winning_plan(plan, display.projection))
        }
        Purpose::Find | Purpose::Update | Purpose::Delete => winning_plan(plan, display.projection),
    };
    let is_found = !matches!(plan.access, Access::Nothing);
    if is_found && display.choice == Choice::Free && has_branches(filter) {
        stage = around(named("SUBPLAN"), stage);
    }
    match display.purpose {
        Purpose::Count if plan.coverage == Coverage::Counter => stage,
        Purpose::Count => around(named("COUNT"), stage),
        Purpose::Update if is_found => around(named("UPDATE"), stage),
        Purpose::Delete if is_found => around(named("DELETE"), stage),
        Purpose::Find | Purpose::Update | Purpose::Delete => stage,
    }
}

/// Whether the filter is an `$or`, but for equalities of one field, which are an `$in`.
fn has_branches(filter: &Filter) -> bool {
    let Node::Or(branches) = filter.root() else { return false };
    let mut paths = branches.iter().map(|branch| match branch {
        Node::Field(FieldTest { path, test: Test::Comparison(comparison) })
            if comparison.operator == Operator::Equal =>
        {
            Some(path.as_str())
        }
        Node::Field(FieldTest { path, test: Test::In(_) }) => Some(path.as_str()),
        _ => None,
    });
    let first = paths.next().flatten();
    branches.len() > 1 && (first.is_none() || paths.any(|path| path != first))
}

fn count_scan(plan: &Plan) -> Option<Document> {
    match (&plan.access, plan.coverage, &plan.residual) {
        (Access::Index(scan), Coverage::Nothing, None) => scan::count_scan(scan),
        _ => None,
    }
}

/// The winning plan of a find: stages, the last on the outside.
///
/// A sort in memory has its skip and its projection outside. An exception is a projection that is done before
/// it because the sort holds all documents anyway. Without one the skip comes before documents are fetched,
/// where no filter needs them.
pub fn winning_plan(plan: &Plan, projection: ExplainedProjection<'_>) -> Document {
    let Some(pattern) = &plan.sort else {
        let (stage, skipped) = access(plan);
        let stage = if skipped { stage } else { skip(plan, stage) };
        return limit(plan, projected(plan, projection, stage));
    };
    let mut sort = named("SORT");
    sort.push("sortPattern", owned(&pattern.to_document()));
    sort.push("memLimit", number(MEMORY_BYTES_MAX as u64));
    if let Some(limit) = plan.sort_limit() {
        sort.push("limitAmount", number(limit));
    }
    let has_score = matches!(&plan.access, Access::Text(search) if search.scores == Scores::Wanted);
    sort.push("type", if has_score { "default" } else { "simple" });
    let (stage, _) = access(plan);
    if plan.limit.is_none() && projection.keeps(pattern) {
        return skip(plan, around(sort, projected(plan, projection, stage)));
    }
    projected(plan, projection, skip(plan, around(sort, stage)))
}

impl ExplainedProjection<'_> {
    /// Whether the fields of a sort come through it as they are.
    fn keeps(&self, pattern: &SortPattern) -> bool {
        let named = |path: &str, shown: &RawDocument| {
            shown.iter().flatten().any(|(name, _)| {
                name == path
                    || path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
                    || name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
            })
        };
        let mut paths = pattern.parts().iter().map(|part| part.path.as_str());
        match self {
            ExplainedProjection::Whole => false,
            ExplainedProjection::Simple(shown) => paths.all(|path| {
                named(path, shown) || (path == "_id" && shown.get("_id").is_ok_and(|id| id.is_none()))
            }),
            ExplainedProjection::General(shown) => {
                let excludes = |value: RawValue<'_>| {
                    (value.is_number() || matches!(value, RawValue::Boolean(_))) && !value.to_bool()
                };
                shown.iter().flatten().all(|(_, value)| excludes(value))
                    && !paths.any(|path| named(path, shown))
            }
        }
    }
}

fn projected(plan: &Plan, projection: ExplainedProjection<'_>, stage: Document) -> Document {
    let (name, shown) = match (projection, plan.coverage) {
        // A document of each group is shown as it is fetched.
        (_, Coverage::Document) if plan.is_distinct() => return stage,
        // The values of a `distinct` come from entries.
        (ExplainedProjection::Whole, Coverage::Entry(_)) if plan.is_distinct() => {
            ("PROJECTION_COVERED", RawDocument::empty())
        }
        (ExplainedProjection::Whole, _) => return stage,
        (ExplainedProjection::Simple(shown), Coverage::Document) => ("PROJECTION_SIMPLE", shown),
        (ExplainedProjection::General(shown), Coverage::Document) => ("PROJECTION_DEFAULT", shown),
        // As MongoDB 6.0 shows it.
        (ExplainedProjection::Simple(shown) | ExplainedProjection::General(shown), _)
            if matches!(plan.access, Access::Merge(_)) =>
        {
            ("PROJECTION_DEFAULT", shown)
        }
        (ExplainedProjection::Simple(shown) | ExplainedProjection::General(shown), _) => {
            ("PROJECTION_COVERED", shown)
        }
    };
    let mut outer = named(name);
    outer.push("transformBy", owned(shown));
    around(outer, stage)
}

fn skip(plan: &Plan, stage: Document) -> Document {
    if plan.skip == 0 {
        return stage;
    }
    let mut outer = named("SKIP");
    outer.push("skipAmount", number(plan.skip));
    around(outer, stage)
}

fn limit(plan: &Plan, stage: Document) -> Document {
    let Some(limit) = plan.limit else { return stage };
    let mut outer = named("LIMIT");
    outer.push("limitAmount", number(limit));
    around(outer, stage)
}

fn named(stage: &str) -> Document {
    let mut document = Document::new();
    document.push("stage", stage);
    document
}

fn around(mut outer: Document, inner: Document) -> Document {
    outer.push("inputStage", inner);
    outer
}

/// How candidates are found, and whether the plan's skip is part of that.
fn access(plan: &Plan) -> (Document, bool) {
    match &plan.access {
        Access::Nothing => (named("EOF"), false),
        Access::Id(id) => match &plan.residual {
            None => (named("IDHACK"), false),
            Some(_) => fetch(plan, scan::id_point(id.raw())),
        },
        Access::Collection(_) if plan.coverage == Coverage::Counter => (named(FAST_COUNT), false),
        Access::Collection(direction) => {
            let mut stage = named("COLLSCAN");
            push_filter(&mut stage, plan);
            stage.push("direction", scan::direction_name(*direction));
            (stage, false)
        }
        Access::Index(scan) => match plan.coverage {
            Coverage::Entry(_) | Coverage::Nothing | Coverage::Counter => {
                let mut stage = scan::index_scan(scan);
                push_filter(&mut stage, plan);
                (stage, false)
            }
            Coverage::Document if scan.index.shows_documents() => {
                let mut stage = scan::index_scan(scan);
                push_filter(&mut stage, plan);
                (stage, false)
            }
            Coverage::Document => fetch(plan, scan::index_scan(scan)),
        },
        Access::Text(search) => text::search(plan, search),
        Access::Near(near) => match &plan.residual {
            None => (scan::near_search(near), false),
            Some(_) => {
                let mut stage = named("FETCH");
                push_filter(&mut stage, plan);
                (around(stage, scan::near_search(near)), false)
            }
        },
        Access::Merge(merge) => {
            let mut stage = named("SORT_MERGE");
            stage.push("sortPattern", owned(&merge.pattern.to_document()));
            let is_covered = plan.coverage != Coverage::Document;
            let scans = merge.scans.iter().map(|scan| {
                let mut shown = scan::index_scan(scan);
                if is_covered {
                    push_filter(&mut shown, plan);
                }
                Value::Document(shown)
            });
            stage.push("inputStages", Value::Array(scans.collect()));
            let shows_documents = merge.scans.iter().all(|scan| scan.index.shows_documents());
            match is_covered || (plan.residual.is_none() && shows_documents) {
                true => (stage, false),
                false => fetch(plan, stage),
            }
        }
        Access::Union(scans) => of_several(plan, named("OR"), scans),
        Access::Intersection(scans) => of_several(plan, named("AND_SORTED"), scans.as_slice()),
    }
}

/// A stage over scans of several indexes, and the fetch of their documents where it is needed.
fn of_several(plan: &Plan, mut stage: Document, scans: &[IndexAccess]) -> (Document, bool) {
    let scans = scans.iter().map(|scan| Value::Document(scan::index_scan(scan)));
    stage.push("inputStages", Value::Array(scans.collect()));
    match plan.coverage {
        Coverage::Document => fetch(plan, stage),
        Coverage::Entry(_) | Coverage::Nothing | Coverage::Counter => (stage, false),
    }
}

fn fetch(plan: &Plan, inner: Document) -> (Document, bool) {
    let mut stage = named("FETCH");
    push_filter(&mut stage, plan);
    match plan.skips_before_fetching() {
        true => (around(stage, skip(plan, inner)), true),
        false => (around(stage, inner), false),
    }
}

fn push_filter(stage: &mut Document, plan: &Plan) {
    if let Some(filter) = &plan.residual {
        stage.push("filter", filter.to_document());
    }
}

/// Counts are int32 where they fit, as MongoDB shows them.
fn number(count: u64) -> Value {
    match i32::try_from(count) {
        Ok(count) => Value::Int32(count),
        Err(_) => Value::Int64(i64::try_from(count).unwrap_or(i64::MAX)),
    }
}

fn owned(raw: &RawDocument) -> Value {
    RawValue::Document(raw).to_owned()
}
