//! The document that an upsert starts from: the values that the filter demands of a matching document.
//!
//! 1. Collect the *equalities* of the filter: `a: 1`, `a: {$eq: 1}`, `a: {$in: [1]}` and `a: {$all: [1]}`
//!    with one value, also inside `$and`, and inside an `$or` of one clause. Ranges, `$ne`, regular
//!    expressions and the like say nothing. A filter that nothing can match (`$all: []`) says nothing at all,
//!    and such clauses of an `$or` do not count ([`Fate`]).
//! 2. Two equalities on one path, or on a path and one above it, contradict each other
//!    (`NotSingleValueField`).
//! 3. Make a document of them, ordered by path, with nested documents for dotted paths.
//!
//! For a replacement only `_id` counts.

use std::collections::HashMap;

use pando_document::{
    Document, DocumentWriter, ObjectId, RawArray, RawDocument, RawDocumentBuf, RawValue, Value,
    compare_values,
};

use super::path::NESTING_MAX;
use crate::error::{ErrorCode, QueryError};
use crate::filter::is_operator_document;

/// Equalities by path.
struct Equalities<'f> {
    found: Vec<(&'f str, RawValue<'f>)>,
}

/// The seed for operators and pipelines.
pub(super) fn seed(filter: &RawDocument) -> Result<RawDocumentBuf, QueryError> {
    let mut equalities = Equalities { found: Vec::new() };
    if Fate::of(filter)? != Fate::Never {
        equalities.collect(filter)?;
    }
    equalities.found.sort_by(|a, b| a.0.cmp(b.0));
    equalities.check_distinct()?;
    let mut document = Document::new();
    for (path, value) in &equalities.found {
        put(&mut document, path, value.to_owned())?;
    }
    Ok(document.to_raw())
}

/// The seed for a replacement: `_id` if the filter gives it.
pub(super) fn seed_id(filter: &RawDocument) -> Result<RawDocumentBuf, QueryError> {
    let mut equalities = Equalities { found: Vec::new() };
    if Fate::of(filter)? != Fate::Never {
        equalities.collect(filter)?;
    }
    if let Some((path, _)) = equalities.found.iter().find(|(path, _)| path.starts_with("_id.")) {
        return Err(QueryError::new(
            ErrorCode::NotExactValueField,
            format!("field at '_id' must be exactly specified, field at sub-path '{path}'found"),
        ));
    }
    equalities.found.retain(|(path, _)| *path == "_id");
    equalities.check_distinct()?;
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    for (name, value) in equalities.found {
        writer.append(name, value);
    }
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

/// The document with `_id` in front, `new_id` if it has none.
pub(super) fn with_id_first(document: &RawDocument, new_id: ObjectId) -> Result<RawDocumentBuf, QueryError> {
    if let Some(id) = document.get("_id")? {
        check_id_type(id)?;
        return super::replacement::with_own_id_first(document);
    }
    let mut bytes = Vec::with_capacity(document.as_bytes().len() + 17);
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append_object_id("_id", new_id);
    let fields = document.as_bytes();
    writer.append_raw_fields(&fields[4..fields.len() - 1]);
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

pub(super) fn check_id_type(id: RawValue<'_>) -> Result<(), QueryError> {
    let kind = match id {
        RawValue::Array(_) => "array",
        RawValue::Regex(_) => "regex",
        RawValue::Undefined => "undefined",
        _ => return Ok(()),
    };
    Err(QueryError::new(ErrorCode::InvalidIdField, format!("The '_id' value cannot be of type {kind}")))
}

/// The outcome of a filter as far as it is known before any document is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Always,
    Never,
    Open,
}

impl Fate {
    fn of(filter: &RawDocument) -> Result<Fate, QueryError> {
        let mut fate = Fate::Always;
        for element in filter.iter() {
            let (name, value) = element?;
            fate = fate.and(Fate::of_element(name, value)?);
        }
        Ok(fate)
    }

    fn of_element(name: &str, value: RawValue<'_>) -> Result<Fate, QueryError> {
        Ok(match (name, value) {
            ("$alwaysFalse", _) => Fate::Never,
            ("$alwaysTrue", _) => Fate::Always,
            ("$and", RawValue::Array(clauses)) => {
                let mut fate = Fate::Always;
                for clause in clauses {
                    if let RawValue::Document(clause) = clause? {
                        fate = fate.and(Fate::of(clause)?);
                    }
                }
                fate
            }
            ("$or", RawValue::Array(clauses)) => match open_clauses(clauses)? {
                None => Fate::Always,
                Some(open) if open.is_empty() => Fate::Never,
                Some(_) => Fate::Open,
            },
            ("$nor", RawValue::Array(clauses)) => match open_clauses(clauses)? {
                // Observed: of a single clause that always holds nothing is concluded.
                None if clauses.iter().count() > 1 => Fate::Never,
                Some(open) if open.is_empty() => Fate::Always,
                _ => Fate::Open,
            },
            (_, RawValue::Document(condition)) => match condition.get("$all")? {
                Some(RawValue::Array(values)) if values.is_empty() => Fate::Never,
                _ => Fate::Open,
            },
            _ => Fate::Open,
        })
    }

    fn and(self, other: Fate) -> Fate {
        match (self, other) {
            (Fate::Never, _) | (_, Fate::Never) => Fate::Never,
            (Fate::Always, Fate::Always) => Fate::Always,
            _ => Fate::Open,
        }
    }
}

/// The clauses of an `$or` or `$nor` that documents decide about; `None` if one of the clauses always holds.
fn open_clauses(clauses: &RawArray) -> Result<Option<Vec<&RawDocument>>, QueryError> {
    let mut open = Vec::new();
    for clause in clauses {
        let RawValue::Document(clause) = clause? else { continue };
        match Fate::of(clause)? {
            Fate::Always => return Ok(None),
            Fate::Never => {}
            Fate::Open => open.push(clause),
        }
    }
    Ok(Some(open))
}

impl<'f> Equalities<'f> {
    fn collect(&mut self, filter: &'f RawDocument) -> Result<(), QueryError> {
        for element in filter.iter() {
            let (name, value) = element?;
            match (name, value) {
                ("$and", RawValue::Array(clauses)) => {
                    for clause in clauses.iter() {
                        if let RawValue::Document(clause) = clause? {
                            self.collect(clause)?;
                        }
                    }
                }
                ("$or", RawValue::Array(clauses)) => {
                    let open = open_clauses(clauses)?;
                    if let Some([only]) = open.as_deref() {
                        self.collect(only)?;
                    }
                }
                ("$expr", _) => {
                    return Err(QueryError::new(
                        ErrorCode::QueryFeatureNotAllowed,
                        "$expr is not allowed in the query predicate for an upsert",
                    ));
                }
                (operator, _) if operator.starts_with('$') => {}
                (path, value) => self.collect_field(path, value)?,
            }
        }
        Ok(())
    }

    fn collect_field(&mut self, path: &'f str, value: RawValue<'f>) -> Result<(), QueryError> {
        let RawValue::Document(condition) = value else {
            if !matches!(value, RawValue::Regex(_)) {
                self.found.push((path, value));
            }
            return Ok(());
        };
        if !is_operator_document(condition)? {
            self.found.push((path, value));
            return Ok(());
        }
        for operator in condition.iter() {
            match operator? {
                ("$eq", value) => self.found.push((path, value)),
                ("$in", RawValue::Array(values)) => {
                    let values = values.iter().collect::<Result<Vec<_>, _>>()?;
                    let Some((only, others)) = values.split_first() else { continue };
                    let is_one = others.iter().all(|other| compare_values(*only, *other).is_eq());
                    if is_one && !matches!(only, RawValue::Regex(_)) {
                        self.found.push((path, *only));
                    }
                }
                ("$all", RawValue::Array(values)) => {
                    for value in values.iter() {
                        let value = value?;
                        let is_condition = match value {
                            RawValue::Regex(_) => true,
                            RawValue::Document(condition) => super::is_operators(condition)?,
                            _ => false,
                        };
                        if !is_condition {
                            self.found.push((path, value));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The equalities are sorted by path.
    fn check_distinct(&self) -> Result<(), QueryError> {
        // The least path that another one contradicts is named, with the first of the others.
        let mut places: HashMap<&str, usize> = HashMap::with_capacity(self.found.len());
        let mut contradiction: Option<(usize, usize)> = None;
        for (place, (path, _)) in self.found.iter().enumerate() {
            // A path of more names is refused in any case.
            let ends = path.match_indices('.').map(|(end, _)| end).take(NESTING_MAX);
            let above = ends.chain([path.len()]).find_map(|end| places.get(&path[..end]).copied());
            if let Some(above) = above
                && contradiction.is_none_or(|(least, _)| above < least)
            {
                contradiction = Some((above, place));
            }
            places.entry(path).or_insert(place);
        }
        let Some((above, place)) = contradiction else { return Ok(()) };
        let (path, other) = (self.found[above].0, self.found[place].0);
        let message = match path == other {
            true => format!("cannot infer query fields to set, path '{path}' is matched twice"),
            false => {
                format!("cannot infer query fields to set, both paths '{other}' and '{path}' are matched")
            }
        };
        Err(QueryError::new(ErrorCode::NotSingleValueField, message))
    }
}

/// Puts a value at a dotted path, making documents on the way. Paths come in their order and do not
/// contradict each other, so paths through one document stand side by side: only the last field may be on the
/// way.
fn put(document: &mut Document, path: &str, value: Value) -> Result<(), QueryError> {
    let mut here = document;
    let mut names = path.split('.').enumerate().peekable();
    while let Some((depth, name)) = names.next() {
        if depth == NESTING_MAX {
            return Err(QueryError::new(
                ErrorCode::Overflow,
                format!("Document exceeds maximum nesting depth of {NESTING_MAX}"),
            ));
        }
        if names.peek().is_none() {
            here.push(name, value);
            break;
        }
        if here.last_mut().is_none_or(|(last, _)| last != name) {
            here.push(name, Document::new());
        }
        match here.last_mut().and_then(|(_, last)| last.as_document_mut()) {
            Some(nested) => here = nested,
            None => unreachable!("a value above this path would contradict it"),
        }
    }
    Ok(())
}
