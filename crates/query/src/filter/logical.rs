//! `$and`, `$or`, `$nor` over whole filters, and `$not` over a field's operators.

use std::collections::HashMap;

use pando_collation::TextOrder;
use pando_document::RawValue;

use super::parse::{self, Context};
use super::{FieldTest, InList, Node, Operator, Test};
use crate::QueryError;
use crate::literal::Literal;
use crate::path::Path;
use crate::regular_expression::RegularExpression;

/// Parses the array of filters behind `$and`, `$or` or `$nor`.
pub(super) fn parse_list(
    name: &str,
    argument: RawValue<'_>,
    context: Context<'_>,
) -> Result<Vec<Node>, QueryError> {
    let RawValue::Array(array) = argument else {
        return Err(QueryError::bad_value(format!("{name} must be an array")));
    };
    if array.is_empty() {
        return Err(QueryError::bad_value("$and/$or/$nor must be a nonempty array"));
    }
    array
        .iter()
        .map(|entry| match entry? {
            RawValue::Document(document) => parse::tree(document, context.deeper()?),
            _ => Err(QueryError::bad_value("$or/$and/$nor entries need to be full objects")),
        })
        .collect()
}

/// The equalities and patterns of one path in a disjunction.
struct Alternatives {
    path: Path,
    values: Vec<Literal>,
    patterns: Vec<RegularExpression>,
}

/// The disjunction of some nodes. Equalities and patterns of one path become an `$in`, as in MongoDB: a
/// lookup answers all of them, and one scan of an index finds them.
pub(super) fn any_of(nodes: Vec<Node>, order: &TextOrder) -> Node {
    let mut counts: HashMap<Path, usize> = HashMap::new();
    for node in &nodes {
        if let Some(path) = listable_path(node) {
            *counts.entry(path.clone()).or_default() += 1;
        }
    }
    let mut branches = Vec::with_capacity(nodes.len());
    // In the order of their first equalities.
    let mut lists: Vec<Alternatives> = Vec::new();
    let mut places: HashMap<Path, usize> = HashMap::new();
    for node in nodes {
        match node {
            Node::Field(FieldTest { path, test }) if is_listable(&test) && counts[&path] > 1 => {
                let place = *places.entry(path.clone()).or_insert_with(|| {
                    lists.push(Alternatives { path, values: Vec::new(), patterns: Vec::new() });
                    lists.len() - 1
                });
                match test {
                    Test::Comparison(comparison) => lists[place].values.push(comparison.literal),
                    Test::Regex(regex) => lists[place].patterns.push(regex),
                    _ => unreachable!("only equalities and patterns are listable"),
                }
            }
            other => branches.push(other),
        }
    }
    for Alternatives { path, values, patterns } in lists {
        branches.push(Node::field(&path, Test::In(InList::new(values, patterns, order))));
    }
    if branches.len() == 1 { branches.swap_remove(0) } else { Node::Or(branches) }
}

/// The path of a test that may stand in an `$in`.
fn listable_path(node: &Node) -> Option<&Path> {
    match node {
        Node::Field(FieldTest { path, test }) if is_listable(test) => Some(path),
        _ => None,
    }
}

fn is_listable(test: &Test) -> bool {
    match test {
        // In a list a pattern matches. To be equal to one is something else.
        Test::Comparison(comparison) => {
            comparison.operator == Operator::Equal && !matches!(comparison.literal.raw(), RawValue::Regex(_))
        }
        Test::Regex(_) => true,
        _ => false,
    }
}

/// Parses `$not`: a regular expression, or a document of operators.
pub(super) fn parse_not(
    path: &Path,
    argument: RawValue<'_>,
    context: Context<'_>,
) -> Result<Node, QueryError> {
    match argument {
        RawValue::Regex(regex) => {
            let test = RegularExpression::new(regex.pattern, regex.options)?;
            Ok(Node::field(path, Test::Regex(test)).negated())
        }
        RawValue::Document(document) if document.is_empty() => {
            Err(QueryError::bad_value("$not cannot be empty"))
        }
        RawValue::Document(document) => {
            parse::operators(path, document, context.deeper()?).map(|nodes| Node::all_of(nodes).negated())
        }
        _ => Err(QueryError::bad_value("$not needs a regex or a document")),
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, doc};

    use crate::expression::ParseScope;
    use crate::filter::Filter;
    use crate::shell_text::document_text;

    fn parsed(filter: Document) -> String {
        let filter = Filter::parse(&filter.to_raw(), &ParseScope::default()).expect("a sound filter");
        document_text(&filter.to_document().to_raw())
    }

    #[test]
    fn equalities_of_one_path_in_a_disjunction_become_a_list() {
        assert_eq!(parsed(doc! { "$or": [{ "a": 2 }, { "a": 1 }, { "a": 2 }] }), "{ a: { $in: [ 1, 2 ] } }");
        assert_eq!(
            parsed(doc! { "$or": [{ "a": 1 }, { "b": 3 }, { "a": 2 }] }),
            "{ $or: [ { b: { $eq: 3 } }, { a: { $in: [ 1, 2 ] } } ] }"
        );
    }

    #[test]
    fn other_tests_in_a_disjunction_stay_as_they_are() {
        assert_eq!(
            parsed(doc! { "$or": [{ "a": 1 }, { "a": { "$gt": 2 } }, { "b": 1 }] }),
            "{ $or: [ { a: { $eq: 1 } }, { a: { $gt: 2 } }, { b: { $eq: 1 } } ] }"
        );
    }
}
