//! The fields that a wildcard index has: those below one path, or those of its `wildcardProjection`.
//!
//! # Rules (observed on MongoDB 6.0)
//! - `{"$**": 1}` has all fields but `_id`, and `{"a.$**": 1}` has `a` and all below.
//! - A projection includes fields or excludes them. `_id` stands apart: it is left out unless it is included.
//! - Dotted names and nested documents mean the same.

use std::collections::BTreeMap;

use pando_catalog::{WILDCARD, is_wildcard};
use pando_document::{RawDocument, RawValue};

use crate::path::is_reference_name;
use crate::{ErrorCode, QueryError};

/// The option that chooses the fields.
pub const WILDCARD_PROJECTION: &str = "wildcardProjection";
/// Levels of nested documents in a projection.
const DEPTH_MAX: usize = 100;

/// The fields of a wildcard index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WildcardPaths {
    mode: Mode,
    listed: BTreeMap<String, Listed>,
}

/// The meaning of the listed fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Included,
    Excluded,
}

/// A field that is listed itself, or some of the fields below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    Whole,
    Below(BTreeMap<String, Listed>),
}

/// Why a projection is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectionRefusal {
    /// MongoDB's code.
    pub code: ErrorCode,
    /// The reason.
    pub reason: String,
}

/// The covered fields below some place of a document.
#[derive(Clone, Copy, Debug)]
pub(super) enum Below<'p> {
    /// All.
    All,
    /// Those that are listed.
    Only(&'p BTreeMap<String, Listed>),
    /// Those that are not.
    AllBut(&'p BTreeMap<String, Listed>),
}

impl<'p> Below<'p> {
    /// The covered fields below a field; `None` if neither it nor any below is covered.
    pub fn at(self, name: &str) -> Option<Below<'p>> {
        match self {
            Below::All => Some(Below::All),
            Below::Only(listed) => match listed.get(name)? {
                Listed::Whole => Some(Below::All),
                Listed::Below(inner) => Some(Below::Only(inner)),
            },
            Below::AllBut(listed) => match listed.get(name) {
                None => Some(Below::All),
                Some(Listed::Whole) => None,
                Some(Listed::Below(inner)) => Some(Below::AllBut(inner)),
            },
        }
    }

    /// Whether the place itself is covered, and not only fields below it.
    pub fn has_place(self) -> bool {
        !matches!(self, Below::Only(_))
    }
}

impl WildcardPaths {
    /// Those of an index by its specification.
    pub fn of_specification(specification: &RawDocument) -> Result<WildcardPaths, ProjectionRefusal> {
        match specification.get(WILDCARD_PROJECTION) {
            Ok(Some(RawValue::Document(projection))) => WildcardPaths::parse(projection),
            _ => {
                let name = match specification.get("key") {
                    Ok(Some(RawValue::Document(key))) => {
                        key.iter().filter_map(Result::ok).map(|(name, _)| name).find(|name| is_wildcard(name))
                    }
                    _ => None,
                };
                Ok(WildcardPaths::of_field(name.unwrap_or(WILDCARD)))
            }
        }
    }

    /// Those of the field of an index without a projection.
    fn of_field(field: &str) -> WildcardPaths {
        let mut listed = BTreeMap::new();
        match field.strip_suffix(WILDCARD).and_then(|above| above.strip_suffix('.')) {
            None => {
                listed.insert("_id".to_owned(), Listed::Whole);
                WildcardPaths { mode: Mode::Excluded, listed }
            }
            Some(above) => {
                let names: Vec<&str> = above.split('.').collect();
                // One path collides with nothing.
                let _ = add(&mut listed, &names, above);
                WildcardPaths { mode: Mode::Included, listed }
            }
        }
    }

    /// Parses a projection.
    ///
    /// # Errors
    /// It is no list of fields to include or to exclude.
    pub fn parse(projection: &RawDocument) -> Result<WildcardPaths, ProjectionRefusal> {
        let mut parsing = Parsing { mode: None, id: None, listed: BTreeMap::new() };
        parsing.level(projection, "", 0)?;
        let Parsing { mode, id, mut listed } = parsing;
        let mode = match (mode, id) {
            (Some(mode), _) => mode,
            (None, Some(Mode::Included)) => Mode::Included,
            (None, _) => Mode::Excluded,
        };
        if mode == id.unwrap_or(Mode::Excluded) {
            listed.insert("_id".to_owned(), Listed::Whole);
        }
        Ok(WildcardPaths { mode, listed })
    }

    pub(super) fn root(&self) -> Below<'_> {
        match self.mode {
            Mode::Included => Below::Only(&self.listed),
            Mode::Excluded => Below::AllBut(&self.listed),
        }
    }

    /// Whether it excludes fields and has all others.
    pub fn is_exclusion(&self) -> bool {
        self.mode == Mode::Excluded
    }

    /// Whether the index has the field at a path or fields below it.
    pub fn has_part_of(&self, path: &str) -> bool {
        let mut place = Some(self.root());
        for name in path.split('.') {
            place = place.and_then(|place| place.at(name));
        }
        place.is_some()
    }

    /// Whether the index has all values at a path: they have keys at the path or below it.
    pub fn covers(&self, path: &str) -> bool {
        let mut place = Some(self.root());
        for name in path.split('.') {
            place = place.and_then(|place| place.at(name));
        }
        place.is_some_and(Below::has_place)
    }
}

struct Parsing {
    mode: Option<Mode>,
    id: Option<Mode>,
    listed: BTreeMap<String, Listed>,
}

fn refused<T>(code: i32, reason: &str) -> Result<T, ProjectionRefusal> {
    let reason = format!("Failed to parse: {WILDCARD_PROJECTION} :: caused by :: {reason}");
    Err(ProjectionRefusal { code: ErrorCode::of(code), reason })
}

impl From<QueryError> for ProjectionRefusal {
    fn from(error: QueryError) -> ProjectionRefusal {
        ProjectionRefusal { code: ErrorCode::InvalidBson, reason: error.to_string() }
    }
}

impl Parsing {
    fn level(&mut self, fields: &RawDocument, above: &str, depth: usize) -> Result<(), ProjectionRefusal> {
        if depth > DEPTH_MAX {
            return refused(ErrorCode::Overflow.code(), "the projection is nested too deeply");
        }
        for field in fields {
            let (name, value) = field.map_err(QueryError::from)?;
            check_name(name, value)?;
            let path = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
            match value {
                RawValue::Document(inner) if inner.is_empty() => {
                    return refused(
                        51_270,
                        "An empty sub-projection is not a valid value. Found empty object at path",
                    );
                }
                RawValue::Document(inner) => self.nested(inner, &path, depth)?,
                value if value.is_number() || value.as_bool().is_some() => {
                    self.field(&path, if value.to_bool() { Mode::Included } else { Mode::Excluded })?;
                }
                _ => return computed(),
            }
        }
        Ok(())
    }

    fn nested(&mut self, inner: &RawDocument, path: &str, depth: usize) -> Result<(), ProjectionRefusal> {
        match inner.iter().next() {
            Some(Ok(("$elemMatch", _))) => {
                refused(ErrorCode::InvalidPipelineOperator.code(), "Cannot use $elemMatch in this context")
            }
            Some(Ok((operator, _))) if operator.starts_with('$') => computed(),
            _ => self.level(inner, path, depth + 1),
        }
    }

    fn field(&mut self, path: &str, mode: Mode) -> Result<(), ProjectionRefusal> {
        if path == "_id" {
            self.id = Some(mode);
            return Ok(());
        }
        match (self.mode, mode) {
            (Some(Mode::Included), Mode::Excluded) => {
                return refused(
                    31_254,
                    &format!("Cannot do exclusion on field {} in inclusion projection", last(path)),
                );
            }
            (Some(Mode::Excluded), Mode::Included) => {
                return refused(
                    31_253,
                    &format!("Cannot do inclusion on field {} in exclusion projection", last(path)),
                );
            }
            (Some(_) | None, _) => self.mode = Some(mode),
        }
        let names: Vec<&str> = path.split('.').collect();
        add(&mut self.listed, &names, path)
    }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn computed<T>() -> Result<T, ProjectionRefusal> {
    refused(
        51_271,
        "Bad projection specification, cannot use computed fields when parsing a spec in kBanComputedFields mode",
    )
}

fn check_name(name: &str, value: RawValue<'_>) -> Result<(), ProjectionRefusal> {
    if name.is_empty() {
        return refused(40_352, "FieldPath cannot be constructed with empty string");
    }
    if name.ends_with(".$") && value.is_number() {
        return refused(31_324, "Cannot use positional projection in aggregation projection");
    }
    if name.split('.').any(str::is_empty) {
        return refused(15_998, "FieldPath field names may not be empty strings.");
    }
    if name.split('.').any(|part| part.starts_with('$') && !is_reference_name(part)) {
        return refused(
            16_410,
            "FieldPath field names may not start with '$'. Consider using $getField or $setField.",
        );
    }
    Ok(())
}

/// Adds a path to the listed ones.
fn add(listed: &mut BTreeMap<String, Listed>, names: &[&str], path: &str) -> Result<(), ProjectionRefusal> {
    let Some((first, rest)) = names.split_first() else { return Ok(()) };
    if rest.is_empty() {
        return match listed.insert((*first).to_owned(), Listed::Whole) {
            None => Ok(()),
            Some(_) => refused(31_250, &format!("Path collision at {path}")),
        };
    }
    match listed.entry((*first).to_owned()).or_insert_with(|| Listed::Below(BTreeMap::new())) {
        Listed::Below(inner) => add(inner, rest, path),
        Listed::Whole => {
            refused(31_249, &format!("Path collision at {path} remaining portion {}", rest.join(".")))
        }
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, doc};

    use super::*;

    fn paths(projection: &Document) -> WildcardPaths {
        WildcardPaths::parse(&projection.to_raw()).unwrap()
    }

    fn code(projection: &Document) -> i32 {
        WildcardPaths::parse(&projection.to_raw()).unwrap_err().code.code()
    }

    #[test]
    fn fields_are_included_or_excluded_and_the_id_stands_apart() {
        let covered =
            |paths: &WildcardPaths| ["a", "a.b", "a.b.c", "a.x", "_id", "z"].map(|path| paths.covers(path));
        let all = WildcardPaths::of_field("$**");
        assert_eq!(covered(&all), [true, true, true, true, false, true]);
        let below = WildcardPaths::of_field("a.b.$**");
        assert_eq!(covered(&below), [false, true, true, false, false, false]);
        assert_eq!(covered(&paths(&doc! { "a.b": 1 })), [false, true, true, false, false, false]);
        assert_eq!(covered(&paths(&doc! { "a": { "b": 0 } })), [true, false, false, true, false, true]);
        assert_eq!(covered(&paths(&doc! { "_id": 1 })), [false, false, false, false, true, false]);
        assert_eq!(covered(&paths(&doc! { "_id": 1, "a": 0 })), [false, false, false, false, true, true]);
        assert_eq!(covered(&paths(&doc! { "_id": 0 })), covered(&all));
        assert_eq!(covered(&paths(&doc! { "_id": 0, "z": true })), [false, false, false, false, false, true]);
    }

    #[test]
    fn faults_have_the_codes_of_projections() {
        for (projection, wanted) in [
            (doc! { "a": 1, "b": 0 }, 31_254),
            (doc! { "a": 0, "b": 1 }, 31_253),
            (doc! { "a": 1, "a.b": 1 }, 31_249),
            (doc! { "a.b": 1, "a": 1 }, 31_250),
            (doc! { "a": "x" }, 51_271),
            (doc! { "a": { "$elemMatch": { "b": 1 } } }, 168),
            (doc! { "a": {} }, 51_270),
            (doc! { "a..b": 1 }, 15_998),
            (doc! { "": 1 }, 40_352),
            (doc! { "$a": 1 }, 16_410),
            (doc! { "a.$": 1 }, 31_324),
        ] {
            assert_eq!(code(&projection), wanted, "{projection:?}");
        }
    }
}
