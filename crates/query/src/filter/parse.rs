//! The parser of filters: from the document to the tree.
//!
//! 1. [`tree`] reads a whole filter: `$`-names at the top are logical operators, all others are paths.
//! 2. A path's value is a document of operators ([`operators`]), or a value to be equal to.
//! 3. Each operator's own file parses its argument.
//!
//! Nesting is bounded by [`DEPTH_MAX`], so that neither parsing nor matching can exhaust the stack.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;

use pando_collation::TextOrder;
use pando_document::{RawDocument, RawValue};

use super::bits::{self, BitsWanted};
use super::comparison::{self, Operator, is_operator_document};
use super::{
    FilterFault, GeoRelation, Node, all, elem_match, exists, expression, geo, in_list, logical, modulo, near,
    number_argument, regex, sample_rate, schema, size, text, type_set,
};
use crate::QueryError;
use crate::expression::ParseScope;
use crate::path::Path;

/// Deepest nesting of operators.
const DEPTH_MAX: usize = 100;

/// Where a part of a filter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It speaks of the whole document.
    Document,
    /// It speaks of an array's element: `$expr` and the like have no meaning.
    Element,
}

/// The surroundings of a parser.
#[derive(Clone, Copy)]
pub(super) struct Context<'s> {
    pub scope: &'s ParseScope,
    place: Place,
    depth: usize,
    paths: &'s PathPool,
}

/// Names that a path may have, as in MongoDB.
const PATH_NAMES_MAX: usize = 180;

/// The paths of one filter, each once: tests of one path share it, and are known by that. Counts `$near`,
/// too.
#[derive(Default)]
struct PathPool {
    paths: RefCell<HashSet<Path>>,
    /// The number of `$near` and its kin.
    nears: Cell<usize>,
}

impl PathPool {
    fn path(&self, text: &str) -> Result<Path, QueryError> {
        let mut paths = self.paths.borrow_mut();
        if let Some(path) = paths.get(text) {
            return Ok(path.clone());
        }
        let path = Path::new(text);
        if path.len() > PATH_NAMES_MAX {
            return Err(FilterFault::PathTooLong.error("FieldPath is too long"));
        }
        paths.insert(path.clone());
        Ok(path)
    }
}

impl Context<'_> {
    /// One level further down.
    pub fn deeper(self) -> Result<Self, QueryError> {
        if self.depth == DEPTH_MAX {
            let message = format!("exceeded maximum query tree depth of {DEPTH_MAX}");
            return Err(QueryError::bad_value(message));
        }
        Ok(Context { depth: self.depth + 1, ..self })
    }

    /// One level further down, inside an array's element.
    pub fn into_element(self) -> Result<Self, QueryError> {
        Ok(Context { place: Place::Element, ..self.deeper()? })
    }
}

/// Parses a whole filter. Gives besides how many `$near` and the like it has.
pub(super) fn filter(document: &RawDocument, scope: &ParseScope) -> Result<(Node, usize), QueryError> {
    let paths = PathPool::default();
    let root = tree(document, Context { scope, place: Place::Document, depth: 0, paths: &paths })?;
    text::check(&root)?;
    Ok((root, paths.nears.get()))
}

/// Parses a filter or a part of one.
pub(super) fn tree(document: &RawDocument, context: Context<'_>) -> Result<Node, QueryError> {
    let mut nodes = Vec::new();
    for field in document {
        let (name, value) = field?;
        match name.strip_prefix('$') {
            Some(operator) => top_level(operator, value, context, &mut nodes)?,
            None => field_condition(&context.paths.path(name)?, value, context, &mut nodes)?,
        }
    }
    Ok(Node::all_of(nodes))
}

fn top_level(
    operator: &str,
    value: RawValue<'_>,
    context: Context<'_>,
    nodes: &mut Vec<Node>,
) -> Result<(), QueryError> {
    match operator {
        "and" => nodes.push(Node::all_of(logical::parse_list("$and", value, context)?)),
        "or" => nodes
            .push(logical::any_of(logical::parse_list("$or", value, context)?, context.scope.text_order())),
        "nor" => nodes.push(Node::Nor(logical::parse_list("$nor", value, context)?)),
        "comment" => {}
        "expr" => {
            require_top_level(context, "$expr")?;
            nodes.push(expression::parse(value, context.scope)?);
        }
        "alwaysTrue" => require_one("$alwaysTrue", value)?,
        "alwaysFalse" => {
            require_one("$alwaysFalse", value)?;
            nodes.push(Node::Never);
        }
        "where" => {
            require_top_level(context, "$where")?;
            return Err(QueryError::no_javascript("$where", "$expr"));
        }
        "jsonSchema" => nodes.push(Node::Schema(Arc::new(schema::parse(value, context)?))),
        "text" => {
            require_top_level(context, "$text")?;
            nodes.push(text::parse(value)?);
        }
        // The fields of a reference to a document: the value is literal, and only the id knows a collation.
        "id" => nodes.push(reference_field("$id", value, context, context.scope.text_order())?),
        "ref" => nodes.push(reference_field("$ref", value, context, &TextOrder::SIMPLE)?),
        "db" => nodes.push(reference_field("$db", value, context, &TextOrder::SIMPLE)?),
        "sampleRate" => {
            require_top_level(context, "$sampleRate")?;
            nodes.extend(sample_rate::parse(value, context.scope)?);
        }
        _ => {
            return Err(QueryError::bad_value(format!(
                "unknown top level operator: ${operator}. If you have a field name that starts with a '$' symbol, \
                 consider using $getField or $setField."
            )));
        }
    }
    Ok(())
}

fn reference_field(
    name: &str,
    value: RawValue<'_>,
    context: Context<'_>,
    order: &TextOrder,
) -> Result<Node, QueryError> {
    comparison::parse(&context.paths.path(name)?, Operator::Equal, value, order)
}

fn require_top_level(context: Context<'_>, name: &str) -> Result<(), QueryError> {
    match context.place {
        Place::Document => Ok(()),
        Place::Element => {
            Err(QueryError::bad_value(format!("{name} can only be applied to the top-level document")))
        }
    }
}

fn require_one(name: &str, value: RawValue<'_>) -> Result<(), QueryError> {
    match number_argument::integer(value) {
        Ok(1) => Ok(()),
        Ok(_) => Err(QueryError::failed_to_parse(format!("{name} must be an integer value of 1"))),
        Err(fault) => Err(QueryError::failed_to_parse(fault.text(name, value))),
    }
}

fn field_condition(
    path: &Path,
    value: RawValue<'_>,
    context: Context<'_>,
    nodes: &mut Vec<Node>,
) -> Result<(), QueryError> {
    match value {
        RawValue::Document(document) if is_operator_document(document)? => {
            nodes.extend(operators(path, document, context)?);
        }
        value => nodes.push(comparison::parse_equality(path, value, context.scope.text_order())?),
    }
    Ok(())
}

/// Parses the operators behind a path: each is a condition of its own, but for `$regex` and `$options`, which
/// are one.
pub(super) fn operators(
    path: &Path,
    document: &RawDocument,
    context: Context<'_>,
) -> Result<Vec<Node>, QueryError> {
    if geo::is_near(document) {
        context.paths.nears.set(context.paths.nears.get() + 1);
        return Ok(vec![near::parse(path, document)?]);
    }
    geo::refuse_siblings(document)?;
    let mut nodes = Vec::new();
    let mut regex_seen = false;
    for field in document {
        let (name, argument) = field?;
        match name {
            "$regex" | "$options" if regex_seen => {}
            "$regex" | "$options" => {
                regex_seen = true;
                nodes.push(regex::parse(path, document)?);
            }
            _ => nodes.push(operator(path, name, argument, context)?),
        }
    }
    Ok(nodes)
}

fn operator(
    path: &Path,
    name: &str,
    argument: RawValue<'_>,
    context: Context<'_>,
) -> Result<Node, QueryError> {
    let order = context.scope.text_order();
    match name {
        "$eq" => comparison::parse(path, Operator::Equal, argument, order),
        "$gt" => comparison::parse(path, Operator::Greater, argument, order),
        "$gte" => comparison::parse(path, Operator::GreaterOrEqual, argument, order),
        "$lt" => comparison::parse(path, Operator::Less, argument, order),
        "$lte" => comparison::parse(path, Operator::LessOrEqual, argument, order),
        "$ne" => comparison::parse_not_equal(path, argument, order),
        "$in" => in_list::parse(path, argument, order),
        "$nin" => in_list::parse_not_in(path, argument, order),
        "$not" => logical::parse_not(path, argument, context),
        "$exists" => Ok(exists::parse(path, argument)),
        "$type" => type_set::parse(path, argument),
        "$mod" => modulo::parse(path, argument),
        "$size" => size::parse(path, argument),
        "$all" => all::parse(path, argument, context),
        "$elemMatch" => elem_match::parse(path, argument, context),
        "$bitsAllSet" => bits::parse(path, name, BitsWanted::AllSet, argument),
        "$bitsAnySet" => bits::parse(path, name, BitsWanted::AnySet, argument),
        "$bitsAllClear" => bits::parse(path, name, BitsWanted::AllClear, argument),
        "$bitsAnyClear" => bits::parse(path, name, BitsWanted::AnyClear, argument),
        "$where" => Err(QueryError::bad_value("$where cannot be applied to a field")),
        "$geoWithin" | "$within" => geo::parse(path, GeoRelation::Within, argument),
        "$geoIntersects" => geo::parse(path, GeoRelation::Intersects, argument),
        _ => Err(QueryError::bad_value(format!("unknown operator: {name}"))),
    }
}
