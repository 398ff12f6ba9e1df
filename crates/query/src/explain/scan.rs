//! Scans of indexes as `explain` prints them: IXSCAN, and COUNT_SCAN where only the
//! number of entries is wanted.
//!
//! Bounds are decoded from key bytes, so a number is shown as the commonest type that has its value.

use pando_catalog::{ID_INDEX, IndexDescription, Sparseness, Uniqueness};
use pando_collation::TextOrder;
use pando_document::{Document, RawValue, Value};
use pando_keyorder::Direction;

use super::{named, number, owned};
use crate::geo_index::GeoCells;
use crate::plan::interval::{self, Interval, Intervals, Side};
use crate::plan::wildcard::shown_pattern;
use crate::plan::{IndexAccess, NearAccess, ScanBounds, ScanDirection};
use crate::shell_text::owned_value_text;

pub(super) fn id_point(id: RawValue<'_>) -> Document {
    let mut stage = named("IXSCAN");
    let mut pattern = Document::new();
    pattern.push("_id", Value::Int32(1));
    stage.push("keyPattern", pattern);
    stage.push("indexName", ID_INDEX);
    stage.push("isMultiKey", false);
    stage.push("isUnique", true);
    stage.push("direction", "forward");
    let text = crate::shell_text::value_text(id);
    let mut bounds = Document::new();
    bounds.push("_id", Value::Array(vec![Value::String(format!("[{text}, {text}]"))]));
    stage.push("indexBounds", bounds);
    stage
}

pub(super) fn index_scan(scan: &IndexAccess) -> Document {
    within_partitions(scan, entry_scan(stage_name(scan), scan))
}

/// The name of a scan: one that steps from value to value has its own.
pub(super) fn stage_name(scan: &IndexAccess) -> &'static str {
    if scan.is_distinct() { "DISTINCT_SCAN" } else { "IXSCAN" }
}

/// A scan of a collection with partitions is one of those that may have matches.
fn within_partitions(scan: &IndexAccess, stage: Document) -> Document {
    let Some(scope) = &scan.partitions else { return stage };
    let mut outer = named("PARTITIONS");
    outer.push("kept", number(scope.kept as u64));
    outer.push("total", number(scope.total as u64));
    outer.push("inputStage", stage);
    outer
}

fn entry_scan(name: &str, scan: &IndexAccess) -> Document {
    let index = &scan.index;
    let mut stage = named(name);
    push_index(&mut stage, index);
    stage.push("direction", direction_name(scan.direction));
    let mut bounds = Document::new();
    if let ScanBounds::Fields(fields) = &scan.bounds {
        for (field, intervals) in index.fields.iter().zip(fields) {
            let mut texts: Vec<Value> = intervals
                .list()
                .iter()
                .map(|interval| {
                    Value::String(interval_text(interval, field.direction, scan.direction, &index.text_order))
                })
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

/// The name of the stage of a search in the order of distances.
pub(super) fn near_name(near: &NearAccess) -> &'static str {
    match near.cells {
        GeoCells::Sphere(_) => "GEO_NEAR_2DSPHERE",
        GeoCells::Plane(_) => "GEO_NEAR_2D",
    }
}

/// A search in the order of distances. Its scans are made as it goes on.
pub(super) fn near_search(near: &NearAccess) -> Document {
    let mut stage = named(near_name(near));
    if let Ok(Some(RawValue::Document(pattern))) = near.index.specification.get("key") {
        stage.push("keyPattern", owned(pattern));
    }
    stage.push("indexName", near.index.name.as_str());
    stage.push("indexVersion", Value::Int32(2));
    stage
}

fn push_index(stage: &mut Document, index: &IndexDescription) {
    if let Some(pattern) = shown_pattern(index) {
        stage.push("keyPattern", pattern);
    } else if let Ok(Some(RawValue::Document(pattern))) = index.specification.get("key") {
        stage.push("keyPattern", owned(pattern));
    }
    stage.push("indexName", index.name.as_str());
    if let Some(collation) = index.text_order.document() {
        stage.push("collation", owned(collation));
    }
    stage.push("isMultiKey", index.is_multikey());
    let mut paths = Document::new();
    for (field, multikey) in index.fields.iter().zip(&index.multikey) {
        let arrays = multikey.array_paths(&field.path).map(|path| Value::String(path.to_owned()));
        paths.push(field.path.as_str(), Value::Array(arrays.collect()));
    }
    stage.push("multiKeyPaths", paths);
    stage.push("isUnique", index.unique == Uniqueness::Unique);
    stage.push("isSparse", index.sparse == Sparseness::Sparse);
    stage.push("isPartial", matches!(index.specification.get("partialFilterExpression"), Ok(Some(_))));
    if index.shows_documents() {
        stage.push("clustering", true);
    }
    stage.push("indexVersion", Value::Int32(2));
}

/// The scan as one that only counts; none where its entries do not lie side by side.
pub(super) fn count_scan(scan: &IndexAccess) -> Option<Document> {
    let ScanBounds::Fields(fields) = &scan.bounds else { return None };
    let intervals = side_by_side(fields)?;
    let mut stage = named("COUNT_SCAN");
    push_index(&mut stage, &scan.index);
    let (mut start, mut end) = (Document::new(), Document::new());
    let mut bounds = Document::new();
    for (field, interval) in scan.index.fields.iter().zip(&intervals) {
        let value =
            |cut| interval::value_of(cut, field.direction, &scan.index.text_order).unwrap_or(Value::Null);
        start.push(field.path.as_str(), value(&interval.lower));
        end.push(field.path.as_str(), value(&interval.upper));
    }
    let has_lower = intervals.iter().all(|interval| interval.lower.side == Side::Before);
    let has_upper = intervals.iter().all(|interval| interval.upper.side == Side::After);
    bounds.push("startKey", start);
    bounds.push("startKeyInclusive", has_lower);
    bounds.push("endKey", end);
    bounds.push("endKeyInclusive", has_upper);
    stage.push("indexBounds", bounds);
    Some(within_partitions(scan, stage))
}

/// One interval of each field, if together they are one run of keys: single values, then
/// a range, then everything.
fn side_by_side(fields: &[Intervals]) -> Option<Vec<Interval>> {
    let mut is_range_over = false;
    let mut intervals = Vec::with_capacity(fields.len());
    for field in fields {
        let [interval] = field.list() else { return None };
        if is_range_over && !field.is_all() {
            return None;
        }
        is_range_over |= !interval.is_point();
        intervals.push(interval.clone());
    }
    Some(intervals)
}

/// An interval as it is met by the scan: `[5, inf.0]`, `("b", "a"]`.
fn interval_text(
    interval: &Interval,
    direction: Direction,
    scan: ScanDirection,
    order: &TextOrder,
) -> String {
    let text = |cut: &interval::Cut| match interval::value_of(cut, direction, order) {
        Some(Value::String(digits)) if !order.is_simple() && !digits.is_empty() => {
            format!("CollationKey(0x{digits})")
        }
        Some(value) => owned_value_text(&value),
        None => "?".to_owned(),
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

pub(super) fn direction_name(direction: ScanDirection) -> &'static str {
    match direction {
        ScanDirection::Forward => "forward",
        ScanDirection::Backward => "backward",
    }
}
