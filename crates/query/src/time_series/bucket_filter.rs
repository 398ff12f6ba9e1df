//! The filter of the buckets in which a measurement may match: it comes before the buckets are unpacked.
//!
//! | test of a measurement | test of its bucket |
//! |---|---|
//! | of the meta value, or of a field in it | the same of `meta` |
//! | the time is not before a date | `control.max` is not, and `_id` is not too far before it |
//! | the time is not behind a date | `control.min` is not, nor is `_id` |
//! | another | none |
//!
//! A bucket passes if any of its measurements may match. The measurements are tested again.

use pando_document::{Document, ObjectId, RawDocument, RawDocumentBuf, RawValue, Value};

use super::bucket::Series;
use crate::QueryError;

/// The filter of buckets for a filter of measurements; `None` where it says nothing about buckets.
pub fn bucket_filter(series: &Series, filter: &RawDocument) -> Result<Option<RawDocumentBuf>, QueryError> {
    let mut tests = Vec::new();
    add_tests(series, filter, &mut tests)?;
    if tests.is_empty() {
        return Ok(None);
    }
    let mut all = Document::new();
    all.push("$and", Value::Array(tests));
    Ok(Some(all.to_raw()))
}

/// The nesting of `$and` is bounded by that of documents.
fn add_tests(series: &Series, filter: &RawDocument, tests: &mut Vec<Value>) -> Result<(), QueryError> {
    for field in filter.iter() {
        let (path, value) = field?;
        if let ("$and", RawValue::Array(parts)) = (path, value) {
            for part in parts.iter() {
                if let RawValue::Document(part) = part? {
                    add_tests(series, part, tests)?;
                }
            }
        } else if let Some(below) = series.meta_field.as_deref().and_then(|meta| path_below(path, meta)) {
            tests.push(test(&format!("meta{below}"), value.to_owned()));
        } else if path == series.time_field {
            add_time_tests(series, value, tests)?;
        }
    }
    Ok(())
}

/// The rest of a path that is a field or lies in it.
pub(super) fn path_below<'p>(path: &'p str, field: &str) -> Option<&'p str> {
    path.strip_prefix(field).filter(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn test(path: &str, value: Value) -> Value {
    let mut test = Document::new();
    test.push(path, value);
    Value::Document(test)
}

fn comparison(path: &str, operator: &str, value: Value) -> Value {
    let mut comparison = Document::new();
    comparison.push(operator, value);
    test(path, Value::Document(comparison))
}

fn add_time_tests(series: &Series, value: RawValue<'_>, tests: &mut Vec<Value>) -> Result<(), QueryError> {
    match value {
        RawValue::DateTime(date) => {
            add_lower(series, "$gte", date, tests);
            add_upper(series, "$lte", date, tests);
        }
        RawValue::Document(operators) => {
            for operator in operators.iter() {
                match operator? {
                    ("$eq", RawValue::DateTime(date)) => {
                        add_lower(series, "$gte", date, tests);
                        add_upper(series, "$lte", date, tests);
                    }
                    (operator @ ("$gt" | "$gte"), RawValue::DateTime(date)) => {
                        add_lower(series, operator, date, tests);
                    }
                    (operator @ ("$lt" | "$lte"), RawValue::DateTime(date)) => {
                        add_upper(series, operator, date, tests);
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn add_lower(series: &Series, operator: &str, date: i64, tests: &mut Vec<Value>) {
    tests.push(comparison(&format!("control.max.{}", series.time_field), operator, Value::DateTime(date)));
    let first = date.div_euclid(1000).saturating_sub(series.span_seconds);
    let id = RawValue::ObjectId(id_at(first, 0)).to_owned();
    tests.push(comparison("_id", "$gte", id));
}

fn add_upper(series: &Series, operator: &str, date: i64, tests: &mut Vec<Value>) {
    tests.push(comparison(&format!("control.min.{}", series.time_field), operator, Value::DateTime(date)));
    let id = RawValue::ObjectId(id_at(date.div_euclid(1000), u8::MAX)).to_owned();
    tests.push(comparison("_id", "$lte", id));
}

/// The first or the last id of a second, which is bounded as those of buckets are.
fn id_at(second: i64, fill: u8) -> ObjectId {
    let mut bytes = [fill; 12];
    bytes[..4].copy_from_slice(&bounded_second(second).to_be_bytes());
    ObjectId::from_bytes(bytes)
}

/// A second as an id holds it.
pub(super) fn bounded_second(second: i64) -> u32 {
    u32::try_from(second.max(0)).unwrap_or(u32::MAX)
}

impl Series {
    /// The last id of a bucket that begins at a time in milliseconds or before.
    pub fn last_id_at(&self, time: i64) -> ObjectId {
        id_at(time.div_euclid(1000), u8::MAX)
    }

    /// The id of a bucket of a window; `unique` makes it different from others.
    pub fn bucket_id(&self, window: i64, unique: ObjectId) -> ObjectId {
        let mut bytes = *unique.bytes();
        bytes[..4].copy_from_slice(&bounded_second(window).to_be_bytes());
        ObjectId::from_bytes(bytes)
    }
}
