//! Filters: which documents a query is about.
//!
//! A filter document is parsed once into a tree of tests ([`Filter::parse`]) and then asked of each document
//! ([`Filter::matches`]). The planner reads the same tree to build index bounds.
//!
//! # Terms
//! - *Node*: a part of the tree: and, or, nor, not, an expression, or a test of one field.
//! - *Field test*: a path and an operator. It holds if it holds for any leaf of the path (see
//!   [`path`](crate::path)), so two tests of one field may be met by two elements of an array; only
//!   `$elemMatch` wants one element for both.
//! - *Negations* (`$ne`, `$nin`, `$not`, `$exists: false`) negate the whole field test, so they hold for
//!   missing fields.
//!
//! # Worked example
//! `{ a: { $gte: 2, $ne: 7 }, $or: [ { b: null }, { c: /^x/ } ] }` is
//! `And[ a ≥ 2, Not(a = 7), Or[ b = null, c ~ ^x ] ]`.
//!
//! # Cost
//! Matching allocates nothing, but for `$expr`, for patterns that need the backtracking matcher, and for
//! filters of more than a few tests. Those look things up in tables (`subject`): n tests of a document of n
//! fields or elements take n·log n steps.
//!
//! # Not here
//! Projections that look like filters (`$elemMatch` in a projection parses its condition by
//! [`Filter::parse`]).

mod all;
mod bits;
mod comparison;
mod elem_match;
mod exists;
mod expression;
mod failure;
mod fault;
mod geo;
mod in_list;
mod leaf_table;
mod logical;
mod modulo;
mod near;
mod node;
mod number_argument;
mod parse;
mod regex;
mod sample_rate;
mod schema;
mod size;
mod subject;
mod text;
mod to_document;
mod type_set;

pub use bits::{BitsTest, BitsWanted};
pub use comparison::{Comparison, Operator};
pub(crate) use comparison::{is_nan, is_operator_document};
pub use elem_match::ElementTest;
pub use expression::{ExpressionTest, ImpliedComparison};
pub use failure::failure_details;
pub use fault::FilterFault;
pub use geo::{GeoRelation, GeoTest};
pub use in_list::InList;
pub use modulo::Modulo;
pub use near::NearTest;
pub use node::{FieldTest, Node, Test};
pub use schema::Schema;
pub use text::TextTest;
pub(crate) use text::{index_required as text_index_required, is_in as has_text};
pub use type_set::TypeSet;

use pando_collation::TextOrder;
use pando_document::{Document, RawDocument, RawDocumentBuf};

use self::subject::{Subject, TestCount};
use crate::QueryError;
use crate::expression::ParseScope;
use crate::needs::Needs;
use crate::path::Path;

/// A parsed filter.
#[derive(Clone, Debug)]
pub struct Filter {
    root: Node,
    tests: TestCount,
    /// The order of strings of its request.
    order: TextOrder,
}

impl Filter {
    /// The explained form of the filter without its search for words.
    pub(crate) fn without_search(&self) -> Document {
        let rest = match &self.root {
            Node::Text(_) => Vec::new(),
            Node::And(nodes) => nodes.iter().filter(|node| !matches!(node, Node::Text(_))).cloned().collect(),
            single => vec![single.clone()],
        };
        Filter::all_of(rest).to_document()
    }

    /// Whether it has a search for words.
    pub fn has_text(&self) -> bool {
        self.root.has_search()
    }

    /// Parses a filter document. `scope` knows the variables that `$expr` may use.
    ///
    /// # Errors
    /// In MongoDB's words; mostly [`BadValue`](crate::ErrorCode::BadValue).
    pub fn parse(document: &RawDocument, scope: &ParseScope) -> Result<Filter, QueryError> {
        let (root, nears) = parse::filter(document, scope)?;
        if nears > 0 {
            let reason = "$geoNear, $near, and $nearSphere are not allowed in this context";
            return Err(FilterFault::NearOutOfPlace.error(reason));
        }
        Ok(Filter { order: scope.text_order().clone(), ..Filter::new(root) })
    }

    /// Parses the filter of a request that finds documents by a plan: it may have one `$near`.
    ///
    /// # Errors
    /// As for [`parse`](Filter::parse).
    pub fn parse_for_plan(document: &RawDocument, scope: &ParseScope) -> Result<Filter, QueryError> {
        let (root, nears) = parse::filter(document, scope)?;
        let filter = Filter { order: scope.text_order().clone(), ..Filter::new(root) };
        match (nears, filter.near()) {
            (0, _) | (1, Some(_)) => Ok(filter),
            (1, None) => Err(QueryError::bad_value("geo $near must be top-level expr")),
            _ => Err(QueryError::bad_value("Too many geoNear expressions")),
        }
    }

    /// The `$near` among the parts that must all hold, and its path.
    pub fn near(&self) -> Option<(&Path, &NearTest)> {
        let nodes = match &self.root {
            Node::And(nodes) => nodes.as_slice(),
            single => std::slice::from_ref(single),
        };
        nodes.iter().find_map(|node| match node {
            Node::Field(FieldTest { path, test: Test::Near(near) }) => Some((path, near)),
            _ => None,
        })
    }

    fn new(root: Node) -> Filter {
        let tests = TestCount::of(&root);
        Filter { root, tests, order: TextOrder::SIMPLE }
    }

    /// The order of strings of the request that it was parsed for.
    pub(crate) fn text_order(&self) -> &TextOrder {
        &self.order
    }

    /// The filter that holds where all of these do.
    pub(crate) fn all_of(nodes: Vec<Node>) -> Filter {
        Filter::new(Node::all_of(nodes))
    }

    /// The filter that holds for every document.
    pub fn everything() -> Filter {
        Filter::new(Node::And(Vec::new()))
    }

    /// Whether it holds for every document, as an empty filter does.
    pub fn is_everything(&self) -> bool {
        self.root.is_trivial()
    }

    /// Whether a document matches.
    ///
    /// # Errors
    /// Malformed documents, expressions that fail, patterns that give up.
    pub fn matches(&self, document: &RawDocument) -> Result<bool, QueryError> {
        self.root.matches(&Subject::new(document, self.tests), &mut None)
    }

    /// Whether a document matches, and the array index that the positional `$` stands for: that of the
    /// element, in the first array on the path, by which the last test to match did so.
    pub fn matches_with_position(&self, document: &RawDocument) -> Result<(bool, Option<usize>), QueryError> {
        let mut position = None;
        let matched = self.root.matches(&Subject::new(document, self.tests), &mut position)?;
        Ok((matched, if matched { position } else { None }))
    }

    /// Adds the fields that are asked about.
    pub(crate) fn add_needs(&self, needs: &mut Needs) {
        self.root.add_needs(needs);
    }

    /// The filter as `explain` prints it: every operator spelled out.
    pub fn to_document(&self) -> Document {
        to_document::of_node(&self.root)
    }

    /// The filter as an array of one `$match`; an empty array where its text does not tell all of it, as that
    /// of `$expr`.
    pub fn to_match_stages(&self) -> RawDocumentBuf {
        let mut stages = Document::new();
        if !self.is_everything() && self.root.is_plain() {
            let mut stage = Document::new();
            stage.push("$match", self.to_document());
            stages.push("0", stage);
        }
        stages.to_raw()
    }

    /// The tree.
    pub fn root(&self) -> &Node {
        &self.root
    }
}
