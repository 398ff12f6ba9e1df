//! The comparisons of fields with constants in an expression: those that hold wherever it is true.

use pando_collation::TextOrder;
use pando_document::RawValue;

use super::{Expression, FieldPath, Node};

/// The operator of a comparison, which has the field on its left side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparing {
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

/// A comparison of a field with a constant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparedField<'e> {
    /// The field.
    pub path: &'e FieldPath,
    /// How they are compared.
    pub operator: Comparing,
    /// The constant.
    pub value: RawValue<'e>,
    /// The order of strings.
    pub order: &'e TextOrder,
}

impl Expression {
    /// Calls `take` with the comparison that this is, or with those among the arguments of an `$and`.
    pub(crate) fn for_each_compared<'e>(&'e self, take: &mut dyn FnMut(ComparedField<'e>)) {
        let Node::Call(call) = &self.node else { return };
        if call.name() == "$and" {
            call.arguments().for_each(|argument| argument.for_each_compared(take));
            return;
        }
        let Some(operator) = Comparing::of_name(call.name()) else { return };
        let (Some(left), Some(right)) = (call.expression(0), call.expression(1)) else { return };
        let order = call.text_order();
        if let (Some(path), Some(value)) = (left.as_field_path(), right.as_constant()) {
            take(ComparedField { path, operator, value, order });
        } else if let (Some(value), Some(path)) = (left.as_constant(), right.as_field_path()) {
            take(ComparedField { path, operator: operator.turned(), value, order });
        }
    }
}

impl Comparing {
    fn of_name(name: &str) -> Option<Comparing> {
        match name {
            "$eq" => Some(Comparing::Equal),
            "$gt" => Some(Comparing::Greater),
            "$gte" => Some(Comparing::GreaterOrEqual),
            "$lt" => Some(Comparing::Less),
            "$lte" => Some(Comparing::LessOrEqual),
            _ => None,
        }
    }

    /// The same with its sides exchanged.
    fn turned(self) -> Comparing {
        match self {
            Comparing::Equal => Comparing::Equal,
            Comparing::Greater => Comparing::Less,
            Comparing::GreaterOrEqual => Comparing::LessOrEqual,
            Comparing::Less => Comparing::Greater,
            Comparing::LessOrEqual => Comparing::GreaterOrEqual,
        }
    }
}
