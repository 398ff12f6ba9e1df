//! The plan of a search for words: its terms in a text index.
//!
//! # Rules (observed on MongoDB 6.0)
//! - A filter has one search at most, as a part of its conjunction or of a branch of an `$or`. All other
//!   branches need an index, too.
//! - The fields before the text in the index need single values.
//! - A hint and the order `$natural` are refused.

use std::sync::Arc;

use pando_catalog::{FieldKind, IndexDescription};

use super::interval::Intervals;
use super::predicates::{self, Predicate};
use super::usable_index::UsableIndex;
use super::{
    Access, AssumedShares, Coverage, FindSpecification, Plan, TextAccess, candidate, forced, index_bounds,
    union,
};
use crate::filter::{Node, TextTest, text_index_required};
use crate::metadata::{Metadata, MetadataSet};
use crate::sort::Sort;
use crate::text_index::{TextSearch, TextSpecification};
use crate::{ErrorCode, QueryError};

/// The plan of a find whose filter has a search; `None` where it has none.
pub(super) fn plan(
    find: &FindSpecification<'_>,
    indexes: &[IndexDescription],
) -> Result<Option<Plan>, QueryError> {
    let nodes = predicates::conjunction(find.filter);
    let Some(place) = Place::of(nodes) else {
        return match missing_metadata(find) {
            None => Ok(None),
            Some(kind) => Err(kind.not_available()),
        };
    };
    if find.metadata.has_any(&[Metadata::GeoDistance, Metadata::GeoPoint]) {
        return Err(Metadata::GeoDistance.not_available());
    }
    if find.hint.is_some() {
        return Err(QueryError::bad_value("text and hint not allowed in same query"));
    }
    if matches!(find.sort, Sort::Natural(_)) {
        return Err(QueryError::bad_value("text expression not allowed with $natural sort order"));
    }
    if find.min.is_some() || find.max.is_some() {
        return forced::plan(find, indexes);
    }
    if !indexes.iter().any(IndexDescription::is_text) {
        return Err(text_index_required());
    }
    let mut refusal = None;
    for index in indexes.iter().filter(|index| index.is_text()).filter_map(UsableIndex::of) {
        match place.through(find, nodes, &index, indexes) {
            Ok(plan) => return Ok(Some(plan)),
            Err(error) => refusal = Some(error),
        }
    }
    Err(refusal.unwrap_or_else(text_index_required))
}

/// The metadata that only a search gives.
fn missing_metadata(find: &FindSpecification<'_>) -> Option<Metadata> {
    let of_searches = MetadataSet::of(&[Metadata::TextScore, Metadata::GeoDistance, Metadata::GeoPoint]);
    find.metadata.and(of_searches).iter().next()
}

/// The place of the search in a conjunction.
enum Place<'f> {
    /// It is one of the tests.
    Test(&'f Arc<TextTest>),
    /// It is in a branch of a disjunction.
    Branch { branches: &'f [Node], at: usize, test: &'f Arc<TextTest> },
    /// It is deeper.
    Elsewhere,
}

fn branch_nodes(branch: &Node) -> &[Node] {
    match branch {
        Node::And(nodes) => nodes,
        single => std::slice::from_ref(single),
    }
}

fn search_of(nodes: &[Node]) -> Option<&Arc<TextTest>> {
    nodes.iter().find_map(|node| match node {
        Node::Text(test) => Some(test),
        _ => None,
    })
}

impl<'f> Place<'f> {
    fn of(nodes: &'f [Node]) -> Option<Place<'f>> {
        if let Some(test) = search_of(nodes) {
            return Some(Place::Test(test));
        }
        for node in nodes {
            let Node::Or(branches) = node else { continue };
            let found = branches
                .iter()
                .enumerate()
                .find_map(|(at, branch)| search_of(branch_nodes(branch)).map(|test| (at, test)));
            if let Some((at, test)) = found {
                return Some(Place::Branch { branches, at, test });
            }
        }
        nodes.iter().any(Node::has_search).then_some(Place::Elsewhere)
    }

    /// The plan through an index.
    fn through(
        &self,
        find: &FindSpecification<'_>,
        nodes: &[Node],
        index: &UsableIndex<'_>,
        indexes: &[IndexDescription],
    ) -> Result<Plan, QueryError> {
        let specification = TextSpecification::of(&index.description.specification)
            .map_err(|reason| QueryError::bad_value(format!("the text index cannot be used: {reason}")))?;
        match self {
            Place::Test(test) => {
                if !index.has_all_of(nodes) {
                    return Err(not_satisfied());
                }
                let search = Arc::new(TextSearch::new(test.arguments(), specification));
                let (bounds, settled) = bounds_of(index.description, nodes)?;
                let asked = |(at, node): (usize, &Node)| match node {
                    Node::Text(_) => search.asks_documents().then(|| resolved(node, &search)),
                    node => (!settled(at) && !node.is_trivial()).then(|| node.clone()),
                };
                let residual: Vec<Node> = nodes.iter().enumerate().filter_map(asked).collect();
                Ok(plan_of(find, index.description, bounds, search, residual, Vec::new()))
            }
            Place::Branch { branches, at, test } => {
                let own = branch_nodes(&branches[*at]);
                if !index.has_all_of(nodes) && !index.has_all_of(own) {
                    return Err(not_satisfied());
                }
                let search = Arc::new(TextSearch::new(test.arguments(), specification));
                let (bounds, _) = bounds_of(index.description, own)?;
                let usable: Vec<UsableIndex<'_>> =
                    indexes.iter().filter(|index| !index.is_text()).filter_map(UsableIndex::of).collect();
                let others = branches.iter().enumerate().filter(|(other, _)| other != at);
                let others =
                    others.map(|(_, branch)| union::scan_of_branch(nodes, branch, &usable, &AssumedShares));
                let others = others.collect::<Option<Vec<_>>>().ok_or_else(|| {
                    no_plan("Failed to produce a solution for TEXT under OR - other non-TEXT clauses under OR have to be indexed as well.")
                })?;
                let residual = nodes.iter().map(|node| resolved(node, &search)).collect();
                let others = others.into_iter().map(|(access, _)| access).collect();
                Ok(plan_of(find, index.description, bounds, search, residual, others))
            }
            Place::Elsewhere => Err(no_plan("Failed to produce a solution for TEXT")),
        }
    }
}

/// A node whose search is that of an index.
fn resolved(node: &Node, search: &Arc<TextSearch>) -> Node {
    match node {
        Node::Text(test) => Node::Text(Arc::new(test.in_index(search))),
        Node::And(nodes) => Node::And(nodes.iter().map(|node| resolved(node, search)).collect()),
        Node::Or(nodes) => Node::Or(nodes.iter().map(|node| resolved(node, search)).collect()),
        other => other.clone(),
    }
}

/// The bounds of the fields of an index, and which nodes they settle.
fn bounds_of(
    index: &IndexDescription,
    nodes: &[Node],
) -> Result<(Vec<Intervals>, impl Fn(usize) -> bool), QueryError> {
    let tests: Vec<Predicate<'_>> = predicates::of_conjunction(nodes);
    let bounds = index_bounds::of_index(index, &tests);
    let term = index.fields.iter().position(|field| field.kind == FieldKind::TextTerm);
    if !bounds.fields[..term.unwrap_or(0)].iter().all(Intervals::is_points) {
        return Err(not_satisfied());
    }
    let settled = bounds.settled;
    Ok((bounds.fields, move |at| settled.contains(&at)))
}

fn plan_of(
    find: &FindSpecification<'_>,
    index: &IndexDescription,
    bounds: Vec<Intervals>,
    search: Arc<TextSearch>,
    residual: Vec<Node>,
    others: Vec<super::IndexAccess>,
) -> Plan {
    let residual: Vec<&Node> = residual.iter().collect();
    Plan {
        access: Access::Text(Box::new(TextAccess {
            index: index.clone(),
            bounds,
            search,
            scores: find.scores(),
            others,
        })),
        residual: candidate::residual_of(&residual),
        coverage: Coverage::Document,
        sort: find.sort_pattern().cloned(),
        skip: find.skip,
        limit: find.limit,
    }
}

fn not_satisfied() -> QueryError {
    no_plan(
        "failed to use text index to satisfy $text query (if text index is compound, are equality predicates given for all prefix fields?)",
    )
}

fn no_plan(reason: &str) -> QueryError {
    QueryError::new(
        ErrorCode::NoQueryExecutionPlans,
        format!("error processing query: planner returned error :: caused by :: {reason}"),
    )
}
