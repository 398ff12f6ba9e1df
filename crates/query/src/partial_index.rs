//! Partial indexes: the filters that an index may have, and the predicate that keeps it up.
//!
//! # Rules (observed on MongoDB 6.0)
//! - Comparisons, `$in`, `$exists: true`, `$type`, geometry, `$and`, `$or` and `$all` are permitted.
//!   Negations and all others are not.
//! - Conjunctions and disjunctions nest up to [`DEPTH_MAX`] deep. A filter of one part counts as that part.
//!
//! # Not here
//! Whether a query implies the filter (`plan::implication`).

use std::sync::Arc;

use pando_catalog::index_kind::{
    IndexDefinition, IndexFactory, IndexMethods, IndexPredicate, KeyGenerator, OrdinaryIndexes,
};
use pando_catalog::{IndexDescription, WriteError};
use pando_collation::TextOrder;
use pando_document::{Document, RawDocument, RawValue, Value, compare_documents};

use crate::expression::ParseScope;
use crate::filter::{Filter, Node, Test};
use crate::geo_index::{GeoCells, GeoKeys};
use crate::hashed_index::HashedKeys;
use crate::shell_text::document_text;
use crate::text_index::TextKeys;
use crate::wildcard_index::WildcardKeys;
use crate::{ErrorCode, QueryError};

/// The option of an index that has its filter.
pub const PARTIAL_FILTER: &str = "partialFilterExpression";
/// The deepest level of conjunctions and disjunctions.
const DEPTH_MAX: usize = 4;
/// Operators whose filters cannot be parsed where an index is described, with MongoDB's code.
const NOT_IN_THIS_CONTEXT: [(&str, ErrorCode); 4] = [
    ("$expr", ErrorCode::QueryFeatureNotAllowed),
    ("$jsonSchema", ErrorCode::QueryFeatureNotAllowed),
    ("$where", ErrorCode::BadValue),
    ("$text", ErrorCode::BadValue),
];

/// Parses the filter of an index with this order of strings.
///
/// # Errors
/// It does not parse, or has an operator that needs more than a document.
pub fn parse(filter: &RawDocument, order: &TextOrder) -> Result<Filter, QueryError> {
    refuse_context(filter, 0)?;
    Filter::parse(filter, &ParseScope::at(0).collated_by(order))
}

fn refuse_context(filter: &RawDocument, depth: usize) -> Result<(), QueryError> {
    for field in filter {
        let (name, value) = field?;
        if let Some((operator, code)) = NOT_IN_THIS_CONTEXT.iter().find(|(operator, _)| *operator == name) {
            return Err(QueryError::new(*code, format!("{operator} is not allowed in this context")));
        }
        // Deeper ones are refused by the parser.
        if let (RawValue::Array(parts), true) = (value, name.starts_with('$') && depth <= DEPTH_MAX) {
            for part in parts {
                if let RawValue::Document(part) = part? {
                    refuse_context(part, depth + 1)?;
                }
            }
        }
    }
    Ok(())
}

/// Checks that an index may have a parsed filter; `Err` is a reason. `given` is the filter before parsing.
pub fn check(filter: &Filter, given: &RawDocument) -> Result<(), String> {
    if depth_of(given) > DEPTH_MAX {
        return Err(format!("{PARTIAL_FILTER} depth may not exceed {DEPTH_MAX}"));
    }
    check_node(filter.root())
}

/// The levels of a filter, its tests included. The parser has bounded its nesting.
fn depth_of(filter: &RawDocument) -> usize {
    let (mut deepest, mut parts) = (0, 0);
    for (name, value) in filter.iter().filter_map(Result::ok) {
        let (levels, tests) = match (name, value) {
            ("$and" | "$or", RawValue::Array(inner)) => {
                let inner = inner.iter().filter_map(|part| part.ok()?.as_document());
                (1 + inner.map(depth_of).max().unwrap_or(0), 1)
            }
            (_, RawValue::Document(operators)) if is_of_operators(operators) => (1, operators.iter().count()),
            _ => (1, 1),
        };
        deepest = deepest.max(levels);
        parts += tests;
    }
    if parts > 1 { deepest + 1 } else { deepest }
}

fn is_of_operators(document: &RawDocument) -> bool {
    document.iter().next().is_some_and(|field| field.is_ok_and(|(name, _)| name.starts_with('$')))
}

fn check_node(node: &Node) -> Result<(), String> {
    let is_permitted = match node {
        Node::And(parts) | Node::Or(parts) => return parts.iter().try_for_each(check_node),
        Node::Field(field) => {
            matches!(
                field.test,
                Test::Comparison(_) | Test::In(_) | Test::Exists | Test::Type(_) | Test::Geo(_)
            )
        }
        Node::Nor(_) | Node::Not(_) | Node::Expression(_) | Node::Schema(_) | Node::Text(_) | Node::Never => {
            false
        }
    };
    if is_permitted {
        return Ok(());
    }
    let shown = document_text(&Filter::all_of(vec![node.clone()]).to_document().to_raw());
    Err(format!("Expression not supported in partial index: {shown}"))
}

/// Whether two filters are the same, in whatever order and spelling.
pub fn same(a: &RawDocument, b: &RawDocument) -> bool {
    match (parse(a, &TextOrder::SIMPLE), parse(b, &TextOrder::SIMPLE)) {
        (Ok(a), Ok(b)) => {
            compare_documents(&in_order(a.to_document()).to_raw(), &in_order(b.to_document()).to_raw())
                .is_eq()
        }
        _ => false,
    }
}

/// The explained form of a filter with the parts of each conjunction and disjunction in one order.
fn in_order(filter: Document) -> Document {
    let mut ordered = Document::new();
    for (name, value) in filter.iter() {
        match value {
            Value::Array(parts) if matches!(name, "$and" | "$or") => {
                let mut parts: Vec<Document> = parts
                    .iter()
                    .filter_map(|part| match part {
                        Value::Document(part) => Some(in_order(part.clone())),
                        _ => None,
                    })
                    .collect();
                parts.sort_by(|a, b| compare_documents(&a.to_raw(), &b.to_raw()));
                ordered.push(name, Value::Array(parts.into_iter().map(Value::Document).collect()));
            }
            value => ordered.push(name, value.clone()),
        }
    }
    ordered
}

/// The filter of an index, from its specification; `None` for an index of all documents.
pub fn filter_of(specification: &RawDocument, order: &TextOrder) -> Option<Result<Filter, QueryError>> {
    match specification.get(PARTIAL_FILTER) {
        Ok(None) => None,
        Ok(Some(RawValue::Document(filter))) => Some(parse(filter, order)),
        Ok(Some(_)) => Some(Err(QueryError::bad_value(format!("{PARTIAL_FILTER} is no document")))),
        Err(error) => Some(Err(error.into())),
    }
}

/// The kinds of index of the store: ordinary, hashed, wildcard, text and partial ones, and geometry.
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexKinds;

/// The documents that a partial index has.
#[derive(Debug)]
struct PartialPredicate {
    index: String,
    filter: Filter,
}

impl IndexPredicate for PartialPredicate {
    fn has(&self, document: &RawDocument) -> Result<bool, WriteError> {
        self.filter.matches(document).map_err(|error| match error {
            QueryError::Storage(error) => WriteError::Storage(error),
            QueryError::Refused { message, .. } => {
                WriteError::PartialFilter { index: self.index.clone(), reason: message }
            }
        })
    }
}

impl IndexFactory for IndexKinds {
    fn define(&self, specification: &RawDocument) -> Result<IndexDefinition, String> {
        let description = IndexDescription::from_specification(specification)?;
        let cells = GeoCells::of_specification(specification)?;
        let generator: Option<Arc<dyn KeyGenerator>> = match WildcardKeys::of(&description) {
            Some(keys) => Some(Arc::new(keys?)),
            None if let Some(cells) = cells => Some(Arc::new(GeoKeys::new(&description, cells))),
            None if description.is_text() => {
                let keys = TextKeys::of(&description).ok_or("the index is no text index")?;
                Some(Arc::new(keys?))
            }
            None if description.hashed_field().is_some() => Some(Arc::new(HashedKeys::new(&description))),
            None => None,
        };
        let IndexDefinition { description, mut methods } = match generator {
            Some(generator) => {
                IndexDefinition { description, methods: IndexMethods { predicate: None, generator } }
            }
            None => OrdinaryIndexes.define(specification)?,
        };
        if let Some(filter) = filter_of(specification, &description.text_order) {
            let filter = filter.map_err(|error| error.to_string())?;
            methods.predicate = Some(Arc::new(PartialPredicate { index: description.name.clone(), filter }));
        }
        Ok(IndexDefinition { description, methods })
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    fn refusal(filter: &Document) -> Option<String> {
        let given = filter.to_raw();
        check(&parse(&given, &TextOrder::SIMPLE).unwrap(), &given).err()
    }

    fn list(documents: Vec<Document>) -> Value {
        Value::Array(documents.into_iter().map(Value::Document).collect())
    }

    #[test]
    fn negations_and_deep_filters_are_refused() {
        for filter in [
            doc! {},
            doc! { "a": 1, "b": { "$gt": 1, "$lte": 5 } },
            doc! { "$and": (list(vec![doc! { "$or": (list(vec![doc! { "a": 1 }])) }])) },
            doc! { "a": { "$exists": true }, "b": { "$type": "int" }, "c": (Value::Null) },
        ] {
            assert_eq!(refusal(&filter), None, "{filter:?}");
        }
        for filter in [
            doc! { "a": { "$ne": 1 } },
            doc! { "a": { "$exists": false } },
            doc! { "$nor": (list(vec![doc! { "a": 1 }])) },
            doc! { "a": { "$size": 1 } },
        ] {
            assert!(refusal(&filter).unwrap().contains("not supported"), "{filter:?}");
        }
        let three = |inner: Document| {
            let and = |inner| doc! { "$and": (list(vec![inner])) };
            and(and(and(inner)))
        };
        assert_eq!(refusal(&three(doc! { "a": 1 })), None);
        assert!(refusal(&three(doc! { "a": { "$gt": 1, "$lt": 3 } })).unwrap().contains("depth"));
    }

    #[test]
    fn operators_that_need_more_than_a_document_do_not_parse() {
        let inner = doc! { "$expr": true };
        assert!(parse(&doc! { "$or": (list(vec![inner])) }.to_raw(), &TextOrder::SIMPLE).is_err());
        assert!(parse(&doc! { "$where": "1" }.to_raw(), &TextOrder::SIMPLE).is_err());
    }

    #[test]
    fn filters_are_the_same_in_any_order_and_spelling() {
        let same = |a: Document, b: Document| same(&a.to_raw(), &b.to_raw());
        assert!(same(doc! { "a": 1, "b": 2 }, doc! { "b": { "$eq": 2.0 }, "a": 1 }));
        assert!(!same(doc! { "a": 1 }, doc! { "a": 2 }) && !same(doc! { "a": 1 }, doc! {}));
    }

    #[test]
    fn an_index_has_the_documents_of_its_filter() {
        let specification =
            doc! { "v": 2, "key": { "a": 1 }, "name": "p", "partialFilterExpression": { "x": { "$gt": 5 } } };
        let methods = IndexKinds.define(&specification.to_raw()).unwrap().methods;
        let keys = |document: Document| methods.keys_of(&document.to_raw()).unwrap().keys.len();
        assert_eq!((keys(doc! { "a": 1, "x": 6 }), keys(doc! { "a": 1 })), (1, 0));
        assert!(
            IndexKinds
                .define(&doc! { "key": { "a": 1 }, "name": "p", "partialFilterExpression": 5 }.to_raw())
                .is_err()
        );
    }
}
