//! Wildcard indexes in plans: a description for each path that a filter asks for, and the bounds of paths.
//!
//! # Steps
//! 1. [`described`] replaces the description of a wildcard index by descriptions for the paths of the filter
//!    that the index covers. Such a description has the fields `$_path` and the path itself, as MongoDB shows
//!    them, and is planned as any other.
//! 2. [`bound_path`] bounds `$_path` when the bounds of the value are known. A document at the path has its
//!    keys below the path. So where a document may pass, all paths below are scanned, with all values.
//!
//! A compound index has a description without a path besides, for filters on its regular fields.
//!
//! # Invariants
//! - Such a description is used only if a test demands that the path exists: the index has no other
//!   documents ([`has_all_matches`]).
//! - An entry that says `{}` does not tell the value. Its document is fetched.

use std::borrow::Cow;
use std::collections::HashSet;

use pando_catalog::{FieldKind, IndexDescription, IndexField, Multikey, Truncation, WILDCARD, is_wildcard};
use pando_collation::TextOrder;
use pando_document::{CanonicalType, RawDocument, RawValue};
use pando_keyorder::Direction;

use super::index_bounds::IndexBounds;
use super::interval::{Cut, Intervals};
use super::predicates::{self, Predicate, PredicateTest, Sense};
use super::{brackets, predicate_bounds};
use crate::filter::{Node, Test};
use crate::wildcard_index::WildcardPaths;

/// The field of a key that has the path.
pub(crate) const PATH_FIELD: &str = "$_path";

/// Most paths of a filter for which indexes are described. Further ones are tested on documents.
const PATHS_MAX: usize = 64;
/// The longest path that is looked for in an index.
const PATH_BYTES_MAX: usize = 1_000;

/// The indexes, with descriptions for the paths of a filter in the place of wildcard indexes.
pub(super) fn described<'i>(indexes: &'i [IndexDescription], nodes: &[Node]) -> Cow<'i, [IndexDescription]> {
    if !indexes.iter().any(IndexDescription::is_wildcard) {
        return Cow::Borrowed(indexes);
    }
    let paths = paths_of(nodes);
    let (wildcards, others): (Vec<_>, Vec<_>) = indexes.iter().partition(|index| index.is_wildcard());
    // The others come first, so that they win where the cost is the same.
    let mut described: Vec<IndexDescription> = others.into_iter().cloned().collect();
    described.extend(wildcards.into_iter().flat_map(|index| for_paths(index, &paths)));
    Cow::Owned(described)
}

/// The paths that the tests of a conjunction and of the branches of its disjunctions ask for.
fn paths_of(nodes: &[Node]) -> Vec<String> {
    let mut paths = Paths { seen: HashSet::new(), list: Vec::new() };
    paths.add(nodes);
    for node in nodes {
        let Node::Or(branches) = node else { continue };
        for branch in branches {
            match branch {
                Node::And(nodes) => paths.add(nodes),
                single => paths.add(std::slice::from_ref(single)),
            }
        }
    }
    paths.list
}

struct Paths {
    seen: HashSet<String>,
    list: Vec<String>,
}

impl Paths {
    fn add(&mut self, nodes: &[Node]) {
        for predicate in predicates::of_conjunction(nodes) {
            if self.list.len() == PATHS_MAX {
                return;
            }
            let Some(path) = predicate.path.spelled(PATH_BYTES_MAX) else { continue };
            // A path with an empty component also finds values that stand before it.
            if path.split('.').all(|name| !name.is_empty()) && self.seen.insert(path.clone()) {
                self.list.push(path);
            }
        }
    }
}

/// The descriptions of a wildcard index for some paths.
fn for_paths(index: &IndexDescription, paths: &[String]) -> Vec<IndexDescription> {
    let Ok(covered) = WildcardPaths::of_specification(&index.specification) else { return Vec::new() };
    let mut described: Vec<IndexDescription> =
        paths.iter().filter(|path| covered.covers(path)).map(|path| for_path(index, Some(path))).collect();
    let first = &index.fields[0];
    if first.kind == FieldKind::Value && paths.contains(&first.path) {
        described.push(for_path(index, None));
    }
    described
}

/// The description of a wildcard index for a path, or for all of them.
fn for_path(index: &IndexDescription, path: Option<&str>) -> IndexDescription {
    let (mut fields, mut multikey) = (Vec::new(), Vec::new());
    for (field, arrays) in index.fields.iter().zip(&index.multikey) {
        if field.kind != FieldKind::Wildcard {
            fields.push(field.clone());
            multikey.push(*arrays);
            continue;
        }
        fields.push(IndexField {
            path: PATH_FIELD.to_owned(),
            direction: Direction::Ascending,
            kind: FieldKind::WildcardPath,
        });
        multikey.push(Multikey::NO);
        let named = path.unwrap_or(WILDCARD).to_owned();
        multikey.push(match path {
            Some(path) => arrays.of_path(path),
            // A document has any number of keys.
            None => Multikey::anywhere(&named),
        });
        fields.push(IndexField { path: named, direction: field.direction, kind: FieldKind::Value });
    }
    IndexDescription { fields, multikey, ..index.clone() }
}

/// The key pattern of a description for a path, as it is shown; `None` for any other index.
pub(crate) fn shown_pattern(index: &IndexDescription) -> Option<pando_document::Document> {
    let at = index.wildcard_path()?;
    let Ok(Some(RawValue::Document(pattern))) = index.specification.get("key") else { return None };
    let mut shown = pando_document::Document::new();
    for (name, order) in pattern.iter().filter_map(Result::ok) {
        if is_wildcard(name) {
            shown.push(PATH_FIELD, 1);
            shown.push(index.fields[at + 1].path.as_str(), order.to_owned());
        } else {
            shown.push(name, order.to_owned());
        }
    }
    Some(shown)
}

/// Whether the index has every document that a conjunction with these tests matches: one of them demands that
/// the path exists. `at` is the place of the path.
pub(super) fn has_all_matches(index: &IndexDescription, at: usize, predicates: &[Predicate<'_>]) -> bool {
    let path = &index.fields[at + 1].path;
    path == WILDCARD
        || predicates.iter().any(|predicate| {
            predicate.sense == Sense::Wanted
                && predicate.path.is(path)
                && predicate_bounds::needs_field(predicate)
        })
}

/// Bounds the path of a description for one, by the bounds of its value. `at` is the place of the path.
pub(super) fn bound_path(
    index: &IndexDescription,
    at: usize,
    predicates: &[Predicate<'_>],
    bounds: &mut IndexBounds,
) {
    let field = &index.fields[at + 1];
    if field.path == WILDCARD {
        return;
    }
    let mut paths = Intervals::point(RawValue::String(&field.path), &TextOrder::SIMPLE);
    if let Some(documents) = documents_within(index, at, &bounds.fields) {
        for predicate in predicates.iter().filter(|predicate| predicate.path.is(&field.path)) {
            bounds.settled.remove(&predicate.node);
        }
        if documents == Documents::Any {
            let (first, last) = (format!("{}.", field.path), format!("{}/", field.path));
            let below = Intervals::between(
                Cut::before(RawValue::String(&first), &TextOrder::SIMPLE),
                Cut::before(RawValue::String(&last), &TextOrder::SIMPLE),
            );
            paths = paths.union(below);
            bounds.fields[at + 1] = Intervals::all().directed(field.direction);
        }
        // An entry at the path or below it proves that it exists.
        let exists = |predicate: &&Predicate<'_>| {
            predicate.sense == Sense::Wanted
                && !predicate.part_of_element
                && predicate.path.is(&field.path)
                && matches!(predicate.test, PredicateTest::Field(Test::Exists))
        };
        if index.truncated == Truncation::Whole {
            bounds.settled.extend(predicates.iter().filter(exists).map(|predicate| predicate.node));
        }
    }
    bounds.fields[at] = paths;
}

/// The documents that lie within the bounds of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Documents {
    Empty,
    Any,
}

fn documents_within(index: &IndexDescription, at: usize, bounds: &[Intervals]) -> Option<Documents> {
    let direction = index.fields[at + 1].direction;
    let all = Intervals::between(
        brackets::lower(CanonicalType::Document),
        brackets::upper(CanonicalType::Document),
    );
    let within = bounds[at + 1].clone().intersection(&all.directed(direction));
    let empty =
        Intervals::point(RawValue::Document(RawDocument::empty()), &TextOrder::SIMPLE).directed(direction);
    match within {
        none if none.is_empty() => None,
        point if point == empty => Some(Documents::Empty),
        _ => Some(Documents::Any),
    }
}

/// Whether entries within bounds tell the value at their path: they are of one path, and none is a document.
pub(super) fn entries_tell_values(index: &IndexDescription, bounds: &[Intervals]) -> bool {
    index
        .wildcard_path()
        .is_none_or(|at| is_one_path(&bounds[at]) && documents_within(index, at, bounds).is_none())
}

/// Whether bounds of a path hold one only.
pub(super) fn is_one_path(bounds: &Intervals) -> bool {
    bounds.is_points() && bounds.list().len() == 1
}
