//! The shape of a query: its tests, sort, fields and collation without the values. Queries of one shape share
//! an index filter.
//!
//! # Rules
//! - The parts of a conjunction or disjunction count in any order. A list of one value is an equality.
//! - A sort by `$natural` is none. Fields count where nothing but fields is shown.
//! - The collation counts that is not the collection's own.

use std::collections::BTreeSet;

use pando_collation::TextOrder;
use pando_keyorder::Direction;

use super::{FindSpecification, ProjectionNeeds};
use crate::filter::{BitsWanted, ElementTest, FieldTest, Filter, GeoRelation, InList, Node, Operator, Test};
use crate::needs::Needs;
use crate::regular_expression::RegularExpression;
use crate::sort::Sort;

/// The shape of a find on a collection with this order of strings.
#[must_use]
pub fn query_shape(find: &FindSpecification<'_>, of_collection: &TextOrder) -> Vec<u8> {
    let mut out = of_node(find.filter.root());
    if let Sort::By(pattern) = find.sort {
        out.push(b'~');
        for part in pattern.parts() {
            out.push(if part.direction == Direction::Ascending { b'a' } else { b'd' });
            push_text(&mut out, part.path.as_str());
        }
    }
    if let ProjectionNeeds::Paths(paths) = find.needs {
        out.push(b'|');
        let paths: BTreeSet<&String> = paths.iter().collect();
        paths.into_iter().for_each(|path| push_text(&mut out, path));
    }
    let order = find.filter.text_order();
    if order != of_collection
        && let Some(collation) = order.document()
    {
        out.push(b'#');
        out.extend_from_slice(collation.as_bytes());
    }
    out
}

/// Whether a find is a lookup by `_id` and nothing else, which index filters leave as it is.
pub(super) fn is_lookup_by_id(find: &FindSpecification<'_>) -> bool {
    let is_equality = |filter: &Filter| match filter.root() {
        Node::Field(FieldTest { path, test: Test::Comparison(comparison) }) => {
            path.as_str() == "_id" && comparison.operator == Operator::Equal
        }
        _ => false,
    };
    find.hint.is_none()
        && find.min.is_none()
        && find.max.is_none()
        && find.skip == 0
        && is_equality(find.filter)
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn of_node(node: &Node) -> Vec<u8> {
    match node {
        Node::And(nodes) => of_list(b"an", nodes),
        Node::Or(nodes) => of_list(b"or", nodes),
        Node::Nor(nodes) => of_list(b"nr", nodes),
        Node::Not(inner) => [b"nt[".as_slice(), &of_node(inner), b"]"].concat(),
        Node::Field(field) => of_field(field),
        Node::Expression(test) => {
            let mut needs = Needs::nothing();
            test.expression().add_needs(&mut needs);
            let mut out = b"ex".to_vec();
            for implied in test.implied() {
                out.extend_from_slice(of_operator(implied.comparison.operator));
                push_text(&mut out, implied.path.as_str());
            }
            if let Needs::Paths(paths) = needs {
                paths.iter().for_each(|path| push_text(&mut out, path));
            }
            out
        }
        Node::Schema(_) => b"js".to_vec(),
        Node::Text(_) => b"te".to_vec(),
        Node::Never => b"no".to_vec(),
    }
}

fn of_list(name: &[u8], nodes: &[Node]) -> Vec<u8> {
    let mut parts: Vec<Vec<u8>> = nodes.iter().map(of_node).collect();
    parts.sort_unstable();
    [name, b"[", &parts.join(b",".as_slice()), b"]"].concat()
}

fn of_field(field: &FieldTest) -> Vec<u8> {
    let (name, details): (&[u8], Vec<u8>) = match &field.test {
        Test::Comparison(comparison) => (of_operator(comparison.operator), Vec::new()),
        Test::In(list) => of_in_list(list),
        Test::Regex(regex) => (b"re", flags([regex])),
        Test::Exists => (b"xs", Vec::new()),
        Test::Type(_) => (b"ty", Vec::new()),
        Test::Modulo(_) => (b"mo", Vec::new()),
        Test::Size(_) => (b"sz", Vec::new()),
        Test::Bits(bits) => match bits.wanted() {
            BitsWanted::AllSet => (b"ls", Vec::new()),
            BitsWanted::AnySet => (b"ys", Vec::new()),
            BitsWanted::AllClear => (b"lc", Vec::new()),
            BitsWanted::AnyClear => (b"yc", Vec::new()),
        },
        Test::Element(ElementTest::Value(inner)) => (b"ev", of_node(inner)),
        Test::Element(ElementTest::Document(inner)) => (b"eo", of_node(inner)),
        Test::Geo(geo) => {
            let plane = if geo.region().is_on_sphere() { b"s" } else { b"p" };
            match geo.relation() {
                GeoRelation::Within => (b"gw", plane.to_vec()),
                GeoRelation::Intersects => (b"gi", plane.to_vec()),
            }
        }
        Test::Near(_) => (b"gn", Vec::new()),
    };
    let mut out = name.to_vec();
    push_text(&mut out, field.path.as_str());
    out.extend_from_slice(&details);
    out
}

fn of_operator(operator: Operator) -> &'static [u8] {
    match operator {
        Operator::Equal => b"eq",
        Operator::Greater => b"gt",
        Operator::GreaterOrEqual => b"ge",
        Operator::Less => b"lt",
        Operator::LessOrEqual => b"le",
    }
}

fn of_in_list(list: &InList) -> (&'static [u8], Vec<u8>) {
    match (list.values(), list.regexes()) {
        ([_], []) => (b"eq", Vec::new()),
        ([], [regex]) => (b"re", flags([regex])),
        (_, regexes) => (b"in", flags(regexes)),
    }
}

/// The flags of patterns, each once.
fn flags<'r>(patterns: impl IntoIterator<Item = &'r RegularExpression>) -> Vec<u8> {
    let flags: BTreeSet<u8> = patterns.into_iter().flat_map(|pattern| pattern.options().bytes()).collect();
    flags.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, doc};

    use super::*;
    use crate::expression::ParseScope;

    fn shape(filter: &Document, sort: &Document) -> Vec<u8> {
        let filter = Filter::parse(&filter.to_raw(), &ParseScope::default()).unwrap();
        let sort = Sort::parse(&sort.to_raw()).unwrap();
        let find = FindSpecification { sort: &sort, ..FindSpecification::matching(&filter) };
        query_shape(&find, &TextOrder::SIMPLE)
    }

    fn of(filter: Document) -> Vec<u8> {
        shape(&filter, &Document::new())
    }

    #[test]
    fn values_and_the_order_of_tests_do_not_count() {
        assert_eq!(of(doc! { "a": 1, "b": { "$gt": 2 } }), of(doc! { "b": { "$gt": "x" }, "a": null }));
        assert_eq!(of(doc! { "a": 1 }), of(doc! { "$and": [{ "a": { "$in": [7] } }] }));
        assert_eq!(of(doc! { "a": { "$in": [1, 2] } }), of(doc! { "$or": [{ "a": 1 }, { "a": 3 }] }));
        assert_eq!(of(doc! { "a": { "$not": { "$gt": 1 } } }), of(doc! { "a": { "$not": { "$gt": 5 } } }));
    }

    #[test]
    fn operators_paths_and_sorts_count() {
        let shapes = [
            of(doc! {}),
            of(doc! { "a": 1 }),
            of(doc! { "b": 1 }),
            of(doc! { "a": { "$in": [1, 2] } }),
            of(doc! { "a": { "$gt": 1 } }),
            of(doc! { "a": { "$gte": 1 } }),
            of(doc! { "a": { "$ne": 1 } }),
            of(doc! { "a": { "$exists": true } }),
            of(doc! { "a": { "$regex": "x" } }),
            of(doc! { "a": { "$regex": "x", "$options": "i" } }),
            of(doc! { "a": { "$elemMatch": { "x": 1 } } }),
            of(doc! { "a": { "$elemMatch": { "y": 1 } } }),
            of(doc! { "$or": [{ "a": 1, "b": 1 }, { "s": 1 }] }),
            of(doc! { "$or": [{ "a": 1 }, { "s": 1 }] }),
            of(doc! { "$expr": { "$eq": ["$a", 1] } }),
            of(doc! { "$expr": { "$ne": ["$a", 1] } }),
            of(doc! { "$expr": { "$gt": ["$a", 1] } }),
            shape(&doc! { "a": 1 }, &doc! { "b": 1 }),
            shape(&doc! { "a": 1 }, &doc! { "b": -1 }),
        ];
        let different: BTreeSet<&Vec<u8>> = shapes.iter().collect();
        assert_eq!(different.len(), shapes.len());
        assert_eq!(of(doc! { "a": 1 }), shape(&doc! { "a": 1 }, &doc! { "$natural": -1 }));
    }
}
