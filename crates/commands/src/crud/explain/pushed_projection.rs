//! The `$project` at the front of a pipeline, which MongoDB makes part of the plan: its explain shows it as
//! the projection of the winning plan, and a pipeline of nothing else has no `stages`.
//!
//! Here it is carried out as a stage, with the same documents. An exclusion is not meant: it is a stage in
//! MongoDB as well.

use pando_document::{Document, RawDocumentBuf, Value};
use pando_query::pipeline::Pipeline;

use super::Shape;

/// The projection as MongoDB writes it, if the first stage is one that includes fields.
pub(super) fn pushed_projection(stages: &Pipeline) -> Option<(RawDocumentBuf, Shape)> {
    let first = stages.explain(None).into_iter().next()?;
    let written = first.get("$project").and_then(Value::as_document)?;
    if !includes(written) {
        return None;
    }
    let has_id = written.get("_id").is_none_or(|id| !is_exclusion(id));
    let mut shown = Document::new();
    if has_id {
        shown.push("_id", written.get("_id").map_or(Value::Boolean(true), shown_value));
    }
    for (path, value) in written.iter().filter(|(path, _)| *path != "_id") {
        place(&mut shown, path, shown_value(value));
    }
    if !has_id {
        shown.push("_id", false);
    }
    let is_simple = shown.iter().all(|(_, value)| matches!(value, Value::Boolean(_)));
    Some((shown.to_raw(), if is_simple { Shape::Simple } else { Shape::General }))
}

/// Whether a specification includes fields: one beside `_id` does, as all do then.
fn includes(written: &Document) -> bool {
    let mut others = written.iter().filter(|(path, _)| *path != "_id").peekable();
    match others.peek() {
        None => written.get("_id").is_some_and(|id| !is_exclusion(id)),
        Some(_) => others.all(|(_, value)| includes_value(value)),
    }
}

fn includes_value(value: &Value) -> bool {
    match value {
        Value::Document(inner) if is_nested(inner) => inner.iter().all(|(_, value)| includes_value(value)),
        value => !is_exclusion(value),
    }
}

/// Fields below one, and not an expression.
fn is_nested(document: &Document) -> bool {
    document.iter().next().is_some_and(|(name, _)| !name.starts_with('$'))
}

fn is_exclusion(value: &Value) -> bool {
    is_flag(value) && value.as_scalar().is_some_and(|value| !value.to_bool())
}

/// Whether it says yes or no, and computes nothing.
fn is_flag(value: &Value) -> bool {
    matches!(
        value,
        Value::Boolean(_) | Value::Double(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal128(_)
    )
}

fn shown_value(value: &Value) -> Value {
    match value {
        value if is_flag(value) => Value::Boolean(true),
        Value::Document(inner) if is_nested(inner) => {
            let mut shown = Document::new();
            inner.iter().for_each(|(path, value)| place(&mut shown, path, shown_value(value)));
            Value::Document(shown)
        }
        other => other.clone(),
    }
}

/// Puts a value at a path, with a document for each part before the last.
fn place(shown: &mut Document, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        shown.push(path, value);
        return;
    };
    let mut inner = match shown.remove(first) {
        Some(Value::Document(inner)) => inner,
        _ => Document::new(),
    };
    place(&mut inner, rest, value);
    shown.push(first, Value::Document(inner));
}
