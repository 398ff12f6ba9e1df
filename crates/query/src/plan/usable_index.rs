//! An index that the planner may take on its own, and the condition under which it has all documents that
//! match.

use pando_catalog::{IndexDescription, Visibility};

use super::predicates::Predicate;
use super::{implication, index_bounds};
use crate::filter::{Filter, Node};
use crate::partial_index;

/// See the module's head.
pub(super) struct UsableIndex<'i> {
    pub description: &'i IndexDescription,
    /// The documents that it has; `None` for all.
    partial: Option<Filter>,
}

impl<'i> UsableIndex<'i> {
    /// The index, unless it is hidden.
    pub fn of(description: &'i IndexDescription) -> Option<UsableIndex<'i>> {
        let specification = &description.specification;
        // A wildcard index is described for the paths of a filter.
        let is_whole = description.is_wildcard() && description.wildcard_path().is_none();
        if is_whole || description.hidden == Visibility::Hidden {
            return None;
        }
        let partial = partial_index::filter_of(specification, &description.text_order).transpose().ok()?;
        Some(UsableIndex { description, partial })
    }

    /// Whether it has every document that a conjunction matches. `predicates` are the tests of `nodes`.
    pub fn has_all_matches(&self, nodes: &[Node], predicates: &[Predicate<'_>]) -> bool {
        self.has_all_of(nodes) && index_bounds::has_all_matches(self.description, predicates)
    }

    /// Whether its filter has every document that a conjunction matches.
    pub fn has_all_of(&self, nodes: &[Node]) -> bool {
        self.partial.as_ref().is_none_or(|filter| implication::of_conjunction(nodes, filter.root()))
    }
}
