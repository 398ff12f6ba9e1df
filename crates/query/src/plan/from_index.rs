//! Two gains of an index besides its bounds: the order of a sort, and entries that stand for documents.

use pando_catalog::{FieldKind, IndexDescription, Truncation};
use pando_document::CanonicalType;
use pando_keyorder::Direction;

use super::interval::Intervals;
use super::specification::ProjectionNeeds;
use super::{ScanDirection, brackets};
use crate::filter::{ElementTest, FieldTest, Node, Test};
use crate::sort::SortPattern;

/// The direction in which a scan of the index gives the order of a pattern, if either does.
///
/// A field with a single value does not matter for the order. The others of the pattern must be the index's
/// next ones, all in the index's directions or all against them. A field with arrays gives the right order
/// only if no array field is bounded: the key by which a document sorts might be out of bounds. An index with
/// another order of strings than the pattern's gives the order of a field only if its bounds hold no strings.
pub(super) fn sort_direction(
    pattern: &SortPattern,
    index: &IndexDescription,
    bounds: &[Intervals],
) -> Option<ScanDirection> {
    if index.truncated == Truncation::Truncated {
        return None;
    }
    let is_single = |at: usize| {
        !index.multikey[at].has_arrays() && bounds[at].is_points() && bounds[at].list().len() == 1
    };
    let bounded_array =
        (0..index.fields.len()).any(|at| index.multikey[at].has_arrays() && !bounds[at].is_all());
    let mut direction: Option<ScanDirection> = None;
    let mut at = 0;
    for part in pattern.parts() {
        let of_part = |at: usize| {
            let field = &index.fields[at];
            field.kind == FieldKind::Value && field.path == part.path.as_str()
        };
        if (0..index.fields.len()).any(|at| of_part(at) && is_single(at)) {
            continue;
        }
        while at < index.fields.len() && !of_part(at) && (is_single(at) || is_array_point(index, bounds, at))
        {
            at += 1;
        }
        if at == index.fields.len() || !of_part(at) || (index.multikey[at].has_arrays() && bounded_array) {
            return None;
        }
        let is_same_order = index.text_order == *pattern.text_order();
        if !is_same_order && may_have_text(&bounds[at], index.fields[at].direction) {
            return None;
        }
        let this = match index.fields[at].direction == part.direction {
            true => ScanDirection::Forward,
            false => ScanDirection::Backward,
        };
        if direction.is_some_and(|have| have != this) {
            return None;
        }
        direction = Some(this);
        at += 1;
    }
    Some(direction.unwrap_or(ScanDirection::Forward))
}

/// Whether values within bounds may have strings in them.
fn may_have_text(bounds: &Intervals, direction: Direction) -> bool {
    let texts =
        Intervals::between(brackets::lower(CanonicalType::String), brackets::lower(CanonicalType::Binary));
    !texts.directed(direction).intersection(bounds).is_empty()
}

/// Whether every entry within bounds has the same value here, though documents have others besides.
fn is_array_point(index: &IndexDescription, bounds: &[Intervals], at: usize) -> bool {
    index.multikey[at].has_arrays() && bounds[at].is_points() && bounds[at].list().len() == 1
}

/// Whether entries hold all that is needed of a document: by the projection, by the filter that is left, and
/// by a sort.
pub(super) fn covers(
    index: &IndexDescription,
    needs: ProjectionNeeds<'_>,
    residual: &[&Node],
    sort: Option<&SortPattern>,
) -> bool {
    let paths = match needs {
        ProjectionNeeds::Everything => return false,
        ProjectionNeeds::Paths(paths) => paths,
        ProjectionNeeds::Nothing => &[],
    };
    if index.truncated == Truncation::Truncated {
        return false;
    }
    // Sort keys do not tell their strings.
    let asks_nothing = paths.is_empty() && residual.is_empty() && sort.is_none();
    if !asks_nothing && !index.text_order.is_simple() {
        return false;
    }
    // An entry has one element of each array, and all of a field that met none.
    let fields = || index.fields.iter().zip(&index.multikey);
    let has = |path: &str| {
        fields().any(|(field, multikey)| {
            field.kind == FieldKind::Value && field.path == path && !multikey.has_arrays()
        })
    };
    paths.iter().all(|path| has(path))
        && residual.iter().all(|node| reads_only(node, &has))
        && sort.is_none_or(|sort| sort.parts().iter().all(|part| has(part.path.as_str())))
}

fn reads_only(node: &Node, has: &impl Fn(&str) -> bool) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
            nodes.iter().all(|node| reads_only(node, has))
        }
        Node::Not(node) => reads_only(node, has),
        Node::Field(FieldTest { path, test }) => {
            has(path.as_str()) && !matches!(test, Test::Element(ElementTest::Document(_)))
        }
        Node::Expression(_) | Node::Schema(_) | Node::Text(_) => false,
        Node::Never => true,
    }
}
