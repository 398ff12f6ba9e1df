//! The comparisons of fields with constants in an expression: those that hold wherever it is true.

use pando_collation::TextOrder;
use pando_document::RawValue;

use super::{Expression, FieldPath, Node};

/// A comparison of a field with a constant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparedField<'e> {
    /// The field.
    pub path: &'e FieldPath,
    /// The operator that has the field on its left side: `$eq`, `$gt`, `$gte`, `$lt` or `$lte`.
    pub name: &'static str,
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
        let Some([as_written, turned]) = names_of(call.name()) else { return };
        let (Some(left), Some(right)) = (call.expression(0), call.expression(1)) else { return };
        let order = call.text_order();
        if let (Some(path), Some(value)) = (left.as_field_path(), right.as_constant()) {
            take(ComparedField { path, name: as_written, value, order });
        } else if let (Some(value), Some(path)) = (left.as_constant(), right.as_field_path()) {
            take(ComparedField { path, name: turned, value, order });
        }
    }
}

/// The name of a comparison, and the name with its sides exchanged.
fn names_of(name: &str) -> Option<[&'static str; 2]> {
    match name {
        "$eq" => Some(["$eq", "$eq"]),
        "$gt" => Some(["$gt", "$lt"]),
        "$gte" => Some(["$gte", "$lte"]),
        "$lt" => Some(["$lt", "$gt"]),
        "$lte" => Some(["$lte", "$gte"]),
        _ => None,
    }
}
