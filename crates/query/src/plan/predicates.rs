//! A filter's conjunction as a list of tests that could bound an index.

use crate::filter::{Comparison, ElementTest, FieldTest, Filter, Node, Test};

/// How a test stands in its filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    /// It must hold.
    Wanted,
    /// It must not.
    Unwanted,
}

/// A path as an index would spell it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PredicatePath<'f> {
    /// The array of an `$elemMatch` on documents.
    array: Option<&'f str>,
    rest: &'f str,
}

impl PredicatePath<'_> {
    /// The components that lead to the array of its `$elemMatch`; 0 without one.
    pub fn array_components(&self) -> usize {
        self.array.map_or(0, |array| array.split('.').count())
    }

    /// The path, unless it is longer than so many bytes.
    pub fn spelled(&self, bytes_max: usize) -> Option<String> {
        if self.array.map_or(0, str::len) + self.rest.len() > bytes_max {
            return None;
        }
        Some(match self.array {
            Some(array) => format!("{array}.{}", self.rest),
            None => self.rest.to_owned(),
        })
    }

    /// Whether it has several components.
    pub fn has_dot(&self) -> bool {
        self.array.is_some() || self.rest.contains('.')
    }

    /// Whether it is this path. It is never put together: many tests may share one long path.
    pub fn is(&self, path: &str) -> bool {
        match self.array {
            None => path == self.rest,
            Some(array) => path
                .strip_prefix(array)
                .and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|rest| rest == self.rest),
        }
    }
}

/// The test of a predicate.
#[derive(Clone, Copy, Debug)]
pub(super) enum PredicateTest<'f> {
    /// That of a field.
    Field(&'f Test),
    /// One that follows from an `$expr`: of the whole value, in the order of all types.
    Implied(&'f Comparison),
}

/// A test of the conjunction.
#[derive(Clone, Debug)]
pub(super) struct Predicate<'f> {
    /// Which node of the conjunction it is, or is a part of.
    pub node: usize,
    pub path: PredicatePath<'f>,
    pub test: PredicateTest<'f>,
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

/// The tests among the nodes of a conjunction, those within `$elemMatch` included, and those that follow from
/// expressions.
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
            Node::Expression(test) => {
                let named = test.implied().iter().filter(|implied| !implied.path.has_index());
                predicates.extend(named.map(|implied| Predicate {
                    node: at,
                    path: PredicatePath { array: None, rest: implied.path.as_str() },
                    test: PredicateTest::Implied(&implied.comparison),
                    sense: Sense::Wanted,
                    part_of_element: false,
                }));
            }
            Node::And(_) | Node::Or(_) | Node::Schema(_) | Node::Text(_) | Node::Never => {}
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
    let plain = Predicate {
        node,
        path: PredicatePath { array: None, rest: path },
        test: PredicateTest::Field(&field.test),
        sense,
        part_of_element: false,
    };
    match (&field.test, sense) {
        (Test::Element(ElementTest::Document(inner)), Sense::Wanted) => {
            add_parts(node, path, inner, predicates);
        }
        _ => predicates.push(plain),
    }
}

fn add_parts<'f>(node: usize, array: &'f str, inner: &'f Node, predicates: &mut Vec<Predicate<'f>>) {
    let nodes = match inner {
        Node::And(nodes) => nodes.as_slice(),
        single => std::slice::from_ref(single),
    };
    for part in nodes {
        let Node::Field(FieldTest { path, test }) = part else { continue };
        if !path.has_index() && !matches!(test, Test::Element(_)) {
            let path = PredicatePath { array: Some(array), rest: path.as_str() };
            let test = PredicateTest::Field(test);
            predicates.push(Predicate { node, path, test, sense: Sense::Wanted, part_of_element: true });
        }
    }
}
