//! A filter's conjunction as a list of tests that could bound an index.

use crate::filter::{ElementTest, FieldTest, Filter, Node, Test};
use crate::path::Path;

/// How a test stands in its filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    /// It must hold.
    Wanted,
    /// It must not.
    Unwanted,
}

/// A test of the conjunction.
#[derive(Clone, Debug)]
pub(super) struct Predicate<'f> {
    /// Which node of the conjunction it is, or is a part of.
    pub node: usize,
    /// The path as an index would spell it.
    pub path: String,
    pub test: &'f Test,
    pub sense: Sense,
    /// Parts of one `$elemMatch` on documents speak of one element, and are no whole node.
    pub part_of_element: bool,
}

/// The nodes of a filter that must all hold.
pub(super) fn conjunction(filter: &Filter) -> &[Node] {
    match filter.root() {
        Node::And(nodes) => nodes,
        single => std::slice::from_ref(single),
    }
}

/// The tests among the nodes of a conjunction, those within `$elemMatch` included.
pub(super) fn of_conjunction(nodes: &[Node]) -> Vec<Predicate<'_>> {
    let mut predicates = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        match node {
            Node::Field(field) => add(at, field, Sense::Wanted, &mut predicates),
            Node::Not(inner) => {
                if let Node::Field(field) = &**inner {
                    add(at, field, Sense::Unwanted, &mut predicates);
                }
            }
            Node::Nor(inner) => {
                if let [Node::Field(field)] = inner.as_slice() {
                    add(at, field, Sense::Unwanted, &mut predicates);
                }
            }
            Node::And(_) | Node::Or(_) | Node::Expression(_) | Node::Never => {}
        }
    }
    predicates
}

fn add<'f>(node: usize, field: &'f FieldTest, sense: Sense, predicates: &mut Vec<Predicate<'f>>) {
    if field.path.has_index() {
        // In a filter a number is an index or a name; in an index it is what it was for each document.
        return;
    }
    let path = field.path.as_str();
    let plain = Predicate { node, path: path.to_owned(), test: &field.test, sense, part_of_element: false };
    match (&field.test, sense) {
        (Test::Element(ElementTest::Document(inner)), Sense::Wanted) => {
            add_parts(node, path, inner, predicates);
        }
        _ => predicates.push(plain),
    }
}

fn add_parts<'f>(node: usize, array: &str, inner: &'f Node, predicates: &mut Vec<Predicate<'f>>) {
    let nodes = match inner {
        Node::And(nodes) => nodes.as_slice(),
        single => std::slice::from_ref(single),
    };
    for part in nodes {
        let Node::Field(FieldTest { path, test }) = part else { continue };
        if !path.has_index() && !matches!(test, Test::Element(_)) {
            let path = joined(array, path);
            predicates.push(Predicate { node, path, test, sense: Sense::Wanted, part_of_element: true });
        }
    }
}

fn joined(array: &str, path: &Path) -> String {
    format!("{array}.{path}")
}
