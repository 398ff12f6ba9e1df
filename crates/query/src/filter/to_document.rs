//! A filter as `explain` prints it: `{ a: 1, b: 2 }` is `{ $and: [ { a: { $eq: 1 } }, { b: { $eq: 2 } } ] }`.

use pando_document::{Document, Regex, Value};

use super::{BitsWanted, ElementTest, FieldTest, Node, Operator, Test};
use crate::regular_expression::RegularExpression;

/// A document of one field.
fn single(name: &str, value: impl Into<Value>) -> Document {
    let mut document = Document::new();
    document.push(name, value);
    document
}

/// A part of a filter.
pub(super) fn of_node(node: &Node) -> Document {
    match node {
        Node::And(nodes) if nodes.is_empty() => Document::new(),
        Node::And(nodes) => single("$and", list(nodes)),
        Node::Or(nodes) => single("$or", list(nodes)),
        Node::Nor(nodes) => single("$nor", list(nodes)),
        Node::Not(inner) => of_negation(inner),
        Node::Field(FieldTest { path, test }) => single(path.as_str(), of_test(test)),
        Node::Expression(test) => Document::from_raw(test.written()).unwrap_or_default(),
        Node::Schema(schema) => single("$jsonSchema", Document::from_raw(schema.text()).unwrap_or_default()),
        Node::Text(test) => test.shown(),
        Node::Never => single("$alwaysFalse", Value::Int32(1)),
    }
}

fn list(nodes: &[Node]) -> Value {
    Value::Array(nodes.iter().map(|node| Value::Document(of_node(node))).collect())
}

fn of_negation(inner: &Node) -> Document {
    match inner {
        Node::Field(FieldTest { path, test }) => single(path.as_str(), single("$not", of_test(test))),
        Node::And(nodes) => match nodes.first() {
            Some(Node::Field(FieldTest { path, .. })) => {
                single(path.as_str(), single("$not", operators(nodes)))
            }
            _ => single("$nor", list(std::slice::from_ref(inner))),
        },
        _ => single("$nor", list(std::slice::from_ref(inner))),
    }
}

/// The tests of one field side by side.
fn operators(nodes: &[Node]) -> Document {
    let mut document = Document::new();
    for node in nodes {
        match node {
            Node::Field(FieldTest { test, .. }) => {
                for (name, value) in of_test(test).iter() {
                    document.push(name, value.clone());
                }
            }
            Node::Not(inner) => {
                let inner = match &**inner {
                    Node::And(nodes) => operators(nodes),
                    single => operators(std::slice::from_ref(single)),
                };
                document.push("$not", inner);
            }
            Node::And(nodes) => {
                for (name, value) in operators(nodes).iter() {
                    document.push(name, value.clone());
                }
            }
            Node::Or(_)
            | Node::Nor(_)
            | Node::Expression(_)
            | Node::Schema(_)
            | Node::Text(_)
            | Node::Never => {}
        }
    }
    document
}

fn of_test(test: &Test) -> Document {
    match test {
        Test::Comparison(comparison) => {
            let name = match comparison.operator {
                Operator::Equal => "$eq",
                Operator::Greater => "$gt",
                Operator::GreaterOrEqual => "$gte",
                Operator::Less => "$lt",
                Operator::LessOrEqual => "$lte",
            };
            single(name, comparison.literal.raw().to_owned())
        }
        Test::In(list) => {
            let plain = list.values().iter().map(|value| value.raw().to_owned());
            let patterns = list.regexes().iter().map(pattern);
            single("$in", Value::Array(plain.chain(patterns).collect()))
        }
        Test::Regex(regex) => {
            let mut document = single("$regex", regex.pattern());
            if !regex.options().is_empty() {
                document.push("$options", regex.options());
            }
            document
        }
        Test::Exists => single("$exists", true),
        Test::Type(types) => {
            let numbers = types.iter().map(|kind| Value::Int32(kind.number()));
            single("$type", Value::Array(numbers.collect()))
        }
        Test::Modulo(modulo) => {
            let (divisor, remainder) = modulo.parts();
            single("$mod", Value::Array(vec![Value::Int64(divisor), Value::Int64(remainder)]))
        }
        Test::Size(size) => {
            single("$size", Value::Int32(size.and_then(|size| i32::try_from(size).ok()).unwrap_or(-1)))
        }
        Test::Bits(bits) => {
            let name = match bits.wanted() {
                BitsWanted::AllSet => "$bitsAllSet",
                BitsWanted::AnySet => "$bitsAnySet",
                BitsWanted::AllClear => "$bitsAllClear",
                BitsWanted::AnyClear => "$bitsAnyClear",
            };
            let positions = bits.positions().iter().map(|position| Value::Int64(i64::from(*position)));
            single(name, Value::Array(positions.collect()))
        }
        Test::Element(ElementTest::Value(node)) => {
            single("$elemMatch", operators(std::slice::from_ref(&**node)))
        }
        Test::Element(ElementTest::Document(node)) => single("$elemMatch", of_node(node)),
        Test::Geo(test) => test.to_document(),
        Test::Near(test) => test.to_document(),
    }
}

fn pattern(regex: &RegularExpression) -> Value {
    Value::Regex(Regex { pattern: regex.pattern().to_owned(), options: regex.options().to_owned() })
}
