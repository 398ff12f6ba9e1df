//! `$eq`, `$gt`, `$gte`, `$lt`, `$lte`: one value against one literal, within one type bracket.
//!
//! # Rules (observed on MongoDB 6.0)
//! - Values of different brackets (numbers, strings, …) are neither less nor greater nor equal. Exceptions: a
//!   missing field and `undefined` count as null; MaxKey is greater and MinKey less than everything.
//! - NaN equals NaN and is neither less nor greater than a number; so `$gte: NaN` and `$lte: NaN` find NaN.

use std::cmp::Ordering;

use pando_collation::TextOrder;
use pando_document::{RawDocument, RawValue, canonical_type};

use super::{Node, Test};
use crate::QueryError;
use crate::literal::Literal;
use crate::path::Path;
use crate::regular_expression::RegularExpression;

/// Which comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `$eq`.
    Equal,
    /// `$gt`.
    Greater,
    /// `$gte`.
    GreaterOrEqual,
    /// `$lt`.
    Less,
    /// `$lte`.
    LessOrEqual,
}

/// A comparison with a literal.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Which one.
    pub operator: Operator,
    /// With what.
    pub literal: Literal,
    /// The order of strings.
    pub order: TextOrder,
}

/// Parses a comparison operator's argument.
pub(super) fn parse(
    path: &Path,
    operator: Operator,
    argument: RawValue<'_>,
    order: &TextOrder,
) -> Result<Node, QueryError> {
    match argument {
        RawValue::Undefined => return Err(QueryError::bad_value("cannot compare to undefined")),
        RawValue::Regex(_) if operator != Operator::Equal => {
            let message = format!("Can't have RegEx as arg to predicate over field '{path}'.");
            return Err(QueryError::bad_value(message));
        }
        _ => {}
    }
    let comparison = Comparison { operator, literal: Literal::new(argument), order: order.clone() };
    Ok(Node::field(path, Test::Comparison(comparison)))
}

/// Parses `$ne`.
pub(super) fn parse_not_equal(
    path: &Path,
    argument: RawValue<'_>,
    order: &TextOrder,
) -> Result<Node, QueryError> {
    if matches!(argument, RawValue::Regex(_)) {
        return Err(QueryError::bad_value("Can't have regex as arg to $ne."));
    }
    parse(path, Operator::Equal, argument, order).map(Node::negated)
}

/// Parses `{ path: value }`, where the value is no document of operators: equality, or a regular expression
/// to match.
pub(super) fn parse_equality(
    path: &Path,
    value: RawValue<'_>,
    order: &TextOrder,
) -> Result<Node, QueryError> {
    match value {
        RawValue::Regex(regex) => {
            let test = RegularExpression::new(regex.pattern, regex.options)?;
            Ok(Node::field(path, Test::Regex(test)))
        }
        value => parse(path, Operator::Equal, value, order),
    }
}

impl Comparison {
    /// Whether a leaf compares so with the literal.
    pub(crate) fn holds(&self, value: Option<RawValue<'_>>) -> bool {
        let literal = self.literal.raw();
        // The commonest types by themselves: they need no bracket, and none of their values is a NaN.
        match (value, literal) {
            (Some(RawValue::Int32(value)), RawValue::Int32(literal)) => {
                return self.operator.holds(value.cmp(&literal));
            }
            (Some(RawValue::DateTime(value)), RawValue::DateTime(literal)) => {
                return self.operator.holds(value.cmp(&literal));
            }
            _ => {}
        }
        let value = match value {
            None | Some(RawValue::Undefined) => RawValue::Null,
            Some(value) => value,
        };
        if canonical_type(value.element_type()) != canonical_type(literal.element_type()) {
            return match literal {
                RawValue::MaxKey => matches!(self.operator, Operator::Less | Operator::LessOrEqual),
                RawValue::MinKey => matches!(self.operator, Operator::Greater | Operator::GreaterOrEqual),
                _ => false,
            };
        }
        let ordering = self.order.compare(value, literal);
        if is_nan(literal) || is_nan(value) {
            return ordering.is_eq() && !matches!(self.operator, Operator::Less | Operator::Greater);
        }
        self.operator.holds(ordering)
    }
}

impl Operator {
    /// Whether it holds for a value in this order to the literal, neither of them a NaN.
    #[inline]
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Operator::Equal => ordering == Ordering::Equal,
            Operator::Greater => ordering == Ordering::Greater,
            Operator::GreaterOrEqual => ordering != Ordering::Less,
            Operator::Less => ordering == Ordering::Less,
            Operator::LessOrEqual => ordering != Ordering::Greater,
        }
    }
}

/// Whether a value is a NaN of either floating type.
pub(crate) fn is_nan(value: RawValue<'_>) -> bool {
    match value {
        RawValue::Double(number) => number.is_nan(),
        RawValue::Decimal128(number) => number.is_nan(),
        _ => false,
    }
}

/// Whether a document is one of operators: its first field begins with `$`, and it is no reference (`$ref`
/// and `$id`).
pub(crate) fn is_operator_document(document: &RawDocument) -> Result<bool, QueryError> {
    let Some(first) = document.iter().next() else { return Ok(false) };
    if !first?.0.starts_with('$') {
        return Ok(false);
    }
    Ok(document.get("$ref")?.is_none() || document.get("$id")?.is_none())
}
