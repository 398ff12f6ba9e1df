//! The nodes of a filter's tree, and their meaning.

use std::sync::Arc;

use pando_document::RawValue;

use super::subject::Subject;
use super::{
    BitsTest, Comparison, ElementTest, ExpressionTest, GeoTest, InList, Modulo, NearTest, Schema, TextTest,
    TypeSet,
};
use crate::QueryError;
use crate::needs::Needs;
use crate::path::{Leaves, Path};
use crate::regular_expression::RegularExpression;

/// A part of a filter.
#[derive(Clone, Debug)]
pub enum Node {
    /// All of these; true if there are none.
    And(Vec<Node>),
    /// Any of these.
    Or(Vec<Node>),
    /// None of these.
    Nor(Vec<Node>),
    /// Not this.
    Not(Box<Node>),
    /// A test of one field.
    Field(FieldTest),
    /// `$expr`.
    Expression(Arc<ExpressionTest>),
    /// `$jsonSchema`.
    Schema(Arc<Schema>),
    /// `$text`.
    Text(Arc<TextTest>),
    /// No document matches (`$alwaysFalse`, `$all: []`).
    Never,
}

/// A path and an operator.
#[derive(Clone, Debug)]
pub struct FieldTest {
    /// Where to look.
    pub path: Path,
    /// The test that must hold there.
    pub test: Test,
}

/// An operator with its argument.
#[derive(Clone, Debug)]
pub enum Test {
    /// `$eq`, `$gt`, `$gte`, `$lt`, `$lte`.
    Comparison(Comparison),
    /// `$in`.
    In(InList),
    /// `$regex`, or a regular expression as the value.
    Regex(RegularExpression),
    /// `$exists: true`.
    Exists,
    /// `$type`.
    Type(TypeSet),
    /// `$mod`.
    Modulo(Modulo),
    /// `$size`; `None` for a size that no array can have.
    Size(Option<usize>),
    /// `$bitsAllSet` and its kin.
    Bits(BitsTest),
    /// `$elemMatch`.
    Element(ElementTest),
    /// `$geoWithin`, `$geoIntersects`.
    Geo(GeoTest),
    /// `$near` and its kin.
    Near(NearTest),
}

impl Node {
    /// A field test.
    pub(crate) fn field(path: &Path, test: Test) -> Node {
        Node::Field(FieldTest { path: path.clone(), test })
    }

    /// The negation.
    pub(crate) fn negated(self) -> Node {
        Node::Not(Box::new(self))
    }

    /// The conjunction; a single node stays itself, and conjunctions within dissolve.
    pub(crate) fn all_of(nodes: Vec<Node>) -> Node {
        let mut flat = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node {
                Node::And(inner) => flat.extend(inner),
                node => flat.push(node),
            }
        }
        if flat.len() == 1 { flat.swap_remove(0) } else { Node::And(flat) }
    }

    /// Adds the fields that are asked about.
    pub(crate) fn add_needs(&self, needs: &mut Needs) {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                nodes.iter().for_each(|node| node.add_needs(needs));
            }
            Node::Not(node) => node.add_needs(needs),
            Node::Field(field) => needs.add(field.path.as_str()),
            Node::Expression(test) => test.expression().add_needs(needs),
            Node::Schema(_) | Node::Text(_) => needs.add_everything(),
            Node::Never => {}
        }
    }

    /// Whether it consists of comparisons with values, so that its text tells all of it.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().all(Node::is_plain),
            Node::Field(FieldTest { test: Test::Comparison(_), .. }) => true,
            Node::Field(FieldTest { test: Test::In(list), .. }) => list.regexes().is_empty(),
            Node::Field(_) | Node::Nor(_) | Node::Not(_) => false,
            Node::Expression(_) | Node::Schema(_) | Node::Text(_) | Node::Never => false,
        }
    }

    /// Whether it has a search for words.
    pub(crate) fn has_search(&self) -> bool {
        match self {
            Node::Text(_) => true,
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(Node::has_search),
            _ => false,
        }
    }

    /// Whether it holds for everything.
    pub(crate) fn is_trivial(&self) -> bool {
        matches!(self, Node::And(nodes) if nodes.is_empty())
    }

    /// Whether a document matches. `position` receives what the positional `$` stands for.
    pub(crate) fn matches<'d>(
        &'d self,
        subject: &Subject<'d>,
        position: &mut Option<usize>,
    ) -> Result<bool, QueryError> {
        match self {
            Node::Field(field) => subject.meets(field, position),
            Node::And(nodes) => {
                for node in nodes {
                    if !node.matches(subject, position)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Or(nodes) => {
                for node in nodes {
                    if node.matches(subject, position)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Node::Nor(nodes) => {
                for node in nodes {
                    if node.matches(subject, &mut None)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Not(node) => Ok(!node.matches(subject, &mut None)?),
            Node::Expression(test) => test.holds(subject.document()),
            Node::Schema(schema) => schema.is_kept(RawValue::Document(subject.document())),
            Node::Text(test) => test.matches(subject.document()),
            Node::Never => Ok(false),
        }
    }

    /// Whether one value matches, each field test being asked of the value itself whatever its path.
    pub(crate) fn matches_value(&self, value: RawValue<'_>) -> Result<bool, QueryError> {
        match self {
            Node::Field(field) => field.test.holds(Some(value), &mut None),
            Node::And(nodes) => {
                for node in nodes {
                    if !node.matches_value(value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Or(nodes) => {
                for node in nodes {
                    if node.matches_value(value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Node::Nor(nodes) => {
                for node in nodes {
                    if node.matches_value(value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Not(node) => Ok(!node.matches_value(value)?),
            Node::Expression(_) | Node::Schema(_) | Node::Text(_) | Node::Never => Ok(false),
        }
    }
}

impl Test {
    /// Whether the operator looks into an array at the path's end, or at it.
    pub(crate) fn leaves(&self) -> Leaves {
        match self {
            Test::Size(_) | Test::Element(_) => Leaves::Whole,
            Test::Comparison(_)
            | Test::In(_)
            | Test::Regex(_)
            | Test::Exists
            | Test::Type(_)
            | Test::Modulo(_)
            | Test::Bits(_)
            | Test::Geo(_)
            | Test::Near(_) => Leaves::Unwound,
        }
    }

    /// Whether it holds for one leaf. `element` receives the index of the element that `$elemMatch` found.
    pub(crate) fn holds(
        &self,
        value: Option<RawValue<'_>>,
        element: &mut Option<usize>,
    ) -> Result<bool, QueryError> {
        Ok(match self {
            Test::Comparison(comparison) => comparison.holds(value),
            Test::In(list) => list.holds(value)?,
            Test::Regex(regex) => regex.holds(value)?,
            Test::Exists => value.is_some(),
            Test::Type(types) => value.is_some_and(|value| types.contains(value.element_type())),
            Test::Modulo(modulo) => value.is_some_and(|value| modulo.holds(value)),
            Test::Size(size) => super::size::holds(*size, value)?,
            Test::Bits(bits) => value.is_some_and(|value| bits.holds(value)),
            Test::Element(test) => test.holds(value, element)?,
            Test::Geo(test) => test.holds(value),
            // The plan gives the documents that are near.
            Test::Near(_) => true,
        })
    }
}
