//! `$in` and `$nin`: equal to any value of a list, or matched by any of its regular expressions.

use pando_collation::TextOrder;
use pando_document::RawValue;

use super::comparison::is_operator_document;
use super::{Node, Test};
use crate::QueryError;
use crate::literal::Literal;
use crate::path::Path;
use crate::regular_expression::RegularExpression;

/// The argument of `$in`.
#[derive(Clone, Debug)]
pub struct InList {
    /// Sorted in the order of values, each once.
    values: Vec<Literal>,
    regexes: Vec<RegularExpression>,
    /// The order of strings.
    order: TextOrder,
}

/// Parses `$in`.
pub(super) fn parse(path: &Path, argument: RawValue<'_>, order: &TextOrder) -> Result<Node, QueryError> {
    let RawValue::Array(array) = argument else { return Err(QueryError::bad_value("$in needs an array")) };
    let (mut values, mut regexes) = (Vec::new(), Vec::new());
    for value in array {
        match value? {
            RawValue::Regex(regex) => regexes.push(RegularExpression::new(regex.pattern, regex.options)?),
            RawValue::Undefined => {
                return Err(QueryError::bad_value("InMatchExpression equality cannot be undefined"));
            }
            RawValue::Document(document) if is_operator_document(document)? => {
                return Err(QueryError::bad_value("cannot nest $ under $in"));
            }
            value => values.push(Literal::new(value)),
        }
    }
    Ok(Node::field(path, Test::In(InList::new(values, regexes, order))))
}

/// Parses `$nin`.
pub(super) fn parse_not_in(
    path: &Path,
    argument: RawValue<'_>,
    order: &TextOrder,
) -> Result<Node, QueryError> {
    if !matches!(argument, RawValue::Array(_)) {
        return Err(QueryError::bad_value("$nin needs an array"));
    }
    parse(path, argument, order).map(Node::negated)
}

impl InList {
    /// The list of these values and patterns, in any order.
    pub(super) fn new(
        mut values: Vec<Literal>,
        regexes: Vec<RegularExpression>,
        order: &TextOrder,
    ) -> InList {
        values.sort_by(|a, b| order.compare(a.raw(), b.raw()));
        values.dedup_by(|later, first| order.is_equal(later.raw(), first.raw()));
        InList { values, regexes, order: order.clone() }
    }

    /// The order of strings.
    pub fn order(&self) -> &TextOrder {
        &self.order
    }

    /// The plain values, sorted, each once.
    pub fn values(&self) -> &[Literal] {
        &self.values
    }

    /// The regular expressions.
    pub fn regexes(&self) -> &[RegularExpression] {
        &self.regexes
    }

    /// Whether one of the values is equal to this one.
    pub(crate) fn has(&self, value: RawValue<'_>) -> bool {
        self.values.binary_search_by(|have| self.order.compare(have.raw(), value)).is_ok()
    }

    /// Whether a leaf is equal to one of the values or matched by one of the patterns. A missing leaf counts
    /// as null.
    pub(crate) fn holds(&self, value: Option<RawValue<'_>>) -> Result<bool, QueryError> {
        let compared = match value {
            None | Some(RawValue::Undefined) => RawValue::Null,
            Some(value) => value,
        };
        if self.has(compared) {
            return Ok(true);
        }
        for regex in &self.regexes {
            if regex.holds(value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
