//! Plans as `explain` prints them, in the shape that MongoDB's shell, drivers and Compass know.
//!
//! The stages are MongoDB's: IDHACK, COLLSCAN, IXSCAN, FETCH, OR, SORT, SKIP, LIMIT, PROJECTION_…, EOF. `_id_` is shown as the
//! index that it is to users, though its entries are the documents themselves.
//!
//! Bounds are decoded from key bytes, so a number is shown as the commonest type that has its value.

use pando_catalog::{Multikey, Sparseness, Uniqueness};
use pando_document::{Document, RawDocument, RawValue, Value};
use pando_keyorder::Direction;

use super::interval::{self, Interval, Side};
use super::{Access, Coverage, IndexAccess, Plan, ScanBounds, ScanDirection};
use crate::execute::Counters;
use crate::filter::Filter;
use crate::shell_text::owned_value_text;
use crate::sort::MEMORY_BYTES_MAX;

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

/// What an execution has come to.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionStatistics {
    /// What was examined and returned.
    pub counters: Counters,
    /// Milliseconds that it took.
    pub milliseconds: i64,
}

/// The `queryPlanner` section.
pub fn query_planner(
    namespace: &str,
    filter: &Filter,
    plan: &Plan,
    projection: ExplainedProjection<'_>,
) -> Document {
    let mut section = Document::new();
    section.push("namespace", namespace);
    section.push("indexFilterSet", false);
    section.push("parsedQuery", filter.to_document());
    section.push("maxIndexedOrSolutionsReached", false);
    section.push("maxIndexedAndSolutionsReached", false);
    section.push("maxScansToExplodeReached", false);
    section.push("winningPlan", winning_plan(plan, projection));
    section.push("rejectedPlans", Value::Array(Vec::new()));
    section
}

/// The `executionStats` section.
pub fn execution_stats(
    plan: &Plan,
    projection: ExplainedProjection<'_>,
    statistics: ExecutionStatistics,
) -> Document {
    let ExecutionStatistics { counters, milliseconds } = statistics;
    let mut section = Document::new();
    section.push("executionSuccess", true);
    section.push("nReturned", number(counters.returned));
    section.push("executionTimeMillis", Value::Int64(milliseconds));
    section.push("totalKeysExamined", number(counters.keys_examined));
    section.push("totalDocsExamined", number(counters.documents_examined));
    let mut stages = winning_plan(plan, projection);
    stages.insert("nReturned", number(counters.returned));
    section.push("executionStages", stages);
    section
}

/// The winning plan: stages, the last on the outside.
pub fn winning_plan(plan: &Plan, projection: ExplainedProjection<'_>) -> Document {
    let mut stage = access(plan);
    if let Some(pattern) = &plan.sort {
        let mut sort = named("SORT");
        sort.push("sortPattern", owned(&pattern.to_document()));
        sort.push("memLimit", number(MEMORY_BYTES_MAX as u64));
        if let Some(limit) = plan.sort_limit() {
            sort.push("limitAmount", number(limit));
        }
        sort.push("type", "simple");
        stage = around(sort, stage);
    }
    if plan.skip > 0 {
        let mut skip = named("SKIP");
        skip.push("skipAmount", number(plan.skip));
        stage = around(skip, stage);
    }
    // A sort that keeps only what is wanted is its own limit, where nothing is skipped.
    if let Some(limit) = plan.limit
        && plan.sort.is_none()
    {
        let mut outer = named("LIMIT");
        outer.push("limitAmount", number(limit));
        stage = around(outer, stage);
    }
    let (name, shown) = match (projection, plan.coverage) {
        (ExplainedProjection::Whole, _) => return stage,
        (ExplainedProjection::Simple(shown), Coverage::Document) => ("PROJECTION_SIMPLE", shown),
        (ExplainedProjection::General(shown), Coverage::Document) => ("PROJECTION_DEFAULT", shown),
        (ExplainedProjection::Simple(shown) | ExplainedProjection::General(shown), _) => {
            ("PROJECTION_COVERED", shown)
        }
    };
    let mut outer = named(name);
    outer.push("transformBy", owned(shown));
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

fn access(plan: &Plan) -> Document {
    match &plan.access {
        Access::Nothing => named("EOF"),
        Access::PrimaryKey(id) => match &plan.residual {
            None => named("IDHACK"),
            Some(_) => fetch(plan, primary_point(id.raw())),
        },
        Access::Collection(direction) => {
            let mut stage = named("COLLSCAN");
            push_filter(&mut stage, plan);
            stage.push("direction", direction_name(*direction));
            stage
        }
        Access::Index(scan) => match plan.coverage {
            Coverage::Entry | Coverage::Nothing => {
                let mut stage = index_scan(scan);
                push_filter(&mut stage, plan);
                stage
            }
            Coverage::Document => fetch(plan, index_scan(scan)),
        },
        Access::Union(scans) => {
            let mut union = named("OR");
            union.push(
                "inputStages",
                Value::Array(scans.iter().map(|scan| Value::Document(index_scan(scan))).collect()),
            );
            around(named("SUBPLAN"), fetch(plan, union))
        }
    }
}

fn fetch(plan: &Plan, inner: Document) -> Document {
    let mut stage = named("FETCH");
    push_filter(&mut stage, plan);
    around(stage, inner)
}

fn push_filter(stage: &mut Document, plan: &Plan) {
    if let Some(filter) = &plan.residual {
        stage.push("filter", filter.to_document());
    }
}

fn primary_point(id: RawValue<'_>) -> Document {
    let mut stage = named("IXSCAN");
    let mut pattern = Document::new();
    pattern.push("_id", Value::Int32(1));
    stage.push("keyPattern", pattern);
    stage.push("indexName", super::PRIMARY_INDEX);
    stage.push("isMultiKey", false);
    stage.push("isUnique", true);
    stage.push("direction", "forward");
    let text = crate::shell_text::value_text(id);
    let mut bounds = Document::new();
    bounds.push("_id", Value::Array(vec![Value::String(format!("[{text}, {text}]"))]));
    stage.push("indexBounds", bounds);
    stage
}

fn index_scan(scan: &IndexAccess) -> Document {
    let index = &scan.index;
    let mut stage = named("IXSCAN");
    if let Ok(Some(RawValue::Document(pattern))) = index.specification.get("key") {
        stage.push("keyPattern", owned(pattern));
    }
    stage.push("indexName", index.name.as_str());
    stage.push("isMultiKey", index.is_multikey());
    let mut paths = Document::new();
    for (field, multikey) in index.fields.iter().zip(&index.multikey) {
        let arrays = match multikey {
            Multikey::Yes => vec![Value::String(field.path.clone())],
            Multikey::No => Vec::new(),
        };
        paths.push(field.path.as_str(), Value::Array(arrays));
    }
    stage.push("multiKeyPaths", paths);
    stage.push("isUnique", index.unique == Uniqueness::Unique);
    stage.push("isSparse", index.sparse == Sparseness::Sparse);
    stage.push("isPartial", false);
    stage.push("indexVersion", Value::Int32(2));
    stage.push("direction", direction_name(scan.direction));
    let mut bounds = Document::new();
    if let ScanBounds::Fields(fields) = &scan.bounds {
        for (field, intervals) in index.fields.iter().zip(fields) {
            let mut texts: Vec<Value> = intervals
                .list()
                .iter()
                .map(|interval| Value::String(interval_text(interval, field.direction, scan.direction)))
                .collect();
            if scan.direction == ScanDirection::Backward {
                texts.reverse();
            }
            bounds.push(field.path.as_str(), Value::Array(texts));
        }
    }
    stage.push("indexBounds", bounds);
    stage
}

/// An interval as it is met by the scan: `[5, inf.0]`, `("b", "a"]`.
fn interval_text(interval: &Interval, direction: Direction, scan: ScanDirection) -> String {
    let text = |cut: &interval::Cut| {
        interval::value_of(cut, direction).map_or("?".to_owned(), |value| owned_value_text(&value))
    };
    let has_lower = interval.lower.side == Side::Before;
    let has_upper = interval.upper.side == Side::After;
    let (first, has_first, last, has_last) = match scan {
        ScanDirection::Forward => (&interval.lower, has_lower, &interval.upper, has_upper),
        ScanDirection::Backward => (&interval.upper, has_upper, &interval.lower, has_lower),
    };
    let open = if has_first { '[' } else { '(' };
    let close = if has_last { ']' } else { ')' };
    format!("{open}{}, {}{close}", text(first), text(last))
}

fn direction_name(direction: ScanDirection) -> &'static str {
    match direction {
        ScanDirection::Forward => "forward",
        ScanDirection::Backward => "backward",
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
