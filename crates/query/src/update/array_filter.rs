//! `arrayFilters`: named conditions that `$[name]` in a path refers to.
//!
//! Each is a filter whose fields all begin with one name (`{"low.score": {$lt: 5}, "low.kind": 1}` is `low`).
//! Every one must be used by a path, and every name in a path must be given.

use std::collections::{HashMap, HashSet};

use pando_document::{RawArray, RawDocument, RawValue};

use super::path::{Step, UpdatePath};
use super::value_match::ValueMatch;
use crate::error::{ErrorCode, QueryError};
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::shell_text;

/// The filters of one update, by name.
#[derive(Debug, Default)]
pub(super) struct ArrayFilters {
    filters: HashMap<String, NamedFilter>,
}

#[derive(Debug)]
struct NamedFilter {
    condition: ValueMatch,
    /// Its place in `arrayFilters`.
    place: usize,
}

impl ArrayFilters {
    pub(super) fn parse(filters: &RawArray, scope: &ParseScope) -> Result<ArrayFilters, QueryError> {
        let mut parsed = ArrayFilters::default();
        for (index, filter) in filters.iter().enumerate() {
            let filter = filter?;
            let RawValue::Document(filter) = filter else {
                return Err(QueryError::type_mismatch(format!(
                    "BSON field 'update.updates.arrayFilters.{index}' is the wrong type '{}', expected type 'object'",
                    filter.element_type().alias()
                )));
            };
            let name = name_of(filter)?;
            if parsed.filters.contains_key(&name) {
                return Err(QueryError::failed_to_parse(format!(
                    "Found multiple array filters with the same top-level field name {name}"
                )));
            }
            let condition = Filter::parse(filter, scope).map_err(in_array_filter)?;
            let condition = ValueMatch::new(condition, &name);
            parsed.filters.insert(name, NamedFilter { condition, place: index });
        }
        Ok(parsed)
    }

    /// Whether `$[identifier]` names this element; `$[]` names every one.
    pub(super) fn accepts(&self, identifier: &str, element: RawValue<'_>) -> Result<bool, QueryError> {
        if identifier.is_empty() {
            return Ok(true);
        }
        match self.filters.get(identifier) {
            Some(filter) => filter.condition.accepts(element),
            None => unreachable!("paths with unknown identifiers are refused when the update is parsed"),
        }
    }

    /// Every identifier of the paths is given, and every filter is used.
    pub(super) fn check_use(&self, paths: &[UpdatePath], update: &RawDocument) -> Result<(), QueryError> {
        let mut used: HashSet<&str> = HashSet::new();
        for path in paths {
            for step in path.steps() {
                let Step::Elements(identifier) = step else { continue };
                if !identifier.is_empty() && !self.filters.contains_key(identifier) {
                    return Err(QueryError::bad_value(format!(
                        "No array filter found for identifier '{identifier}' in path '{}'",
                        path.text()
                    )));
                }
                used.insert(identifier);
            }
        }
        let unused = self.filters.iter().filter(|(name, _)| !used.contains(name.as_str()));
        match unused.min_by_key(|(_, filter)| filter.place) {
            None => Ok(()),
            Some((name, _)) => Err(QueryError::failed_to_parse(format!(
                "The array filter for identifier '{name}' was not used in the update {}",
                shell_text::document_text(update)
            ))),
        }
    }
}

/// The one name that all fields of a filter begin with.
fn name_of(filter: &RawDocument) -> Result<String, QueryError> {
    let mut names: Vec<String> = Vec::new();
    collect_names(filter, &mut names)?;
    let Some(first) = names.first() else {
        return Err(QueryError::failed_to_parse(
            "Cannot use an expression without a top-level field name in arrayFilters",
        ));
    };
    if let Some(other) = names.iter().find(|name| *name != first) {
        return Err(QueryError::failed_to_parse(format!(
            "Error parsing array filter :: caused by :: Expected a single top-level field name, found '{first}' and \
             '{other}'"
        )));
    }
    let is_sound = first.starts_with(|c: char| c.is_ascii_lowercase())
        && first.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_sound {
        return Err(QueryError::bad_value(format!(
            "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string \
             beginning with a lowercase letter, found '{first}'"
        )));
    }
    Ok(first.clone())
}

fn collect_names(filter: &RawDocument, names: &mut Vec<String>) -> Result<(), QueryError> {
    for element in filter.iter() {
        let (name, value) = element?;
        match (name, value) {
            ("$and" | "$or" | "$nor", RawValue::Array(clauses)) => {
                for clause in clauses.iter() {
                    if let RawValue::Document(clause) = clause? {
                        collect_names(clause, names)?;
                    }
                }
            }
            ("$expr", _) => {
                return Err(QueryError::new(
                    ErrorCode::QueryFeatureNotAllowed,
                    "Error parsing array filter :: caused by :: $expr is not allowed in this context",
                ));
            }
            (operator, _) if operator.starts_with('$') => {}
            (path, _) => names.push(path.split('.').next().unwrap_or(path).to_owned()),
        }
    }
    Ok(())
}

fn in_array_filter(error: QueryError) -> QueryError {
    error.prefixed("Error parsing array filter :: caused by :: ")
}
