//! `$addToSet`: values that the array does not hold yet are appended. Equality is that of comparison: 3 is
//! 3.0, and the order of fields counts.

use pando_collation::TextOrder;
use pando_document::RawValue;

use super::pop::collect;
use super::push::parse_each;
use super::{Effect, Operator, Surroundings, bad_value, type_mismatch};
use crate::array_build::build_array;
use crate::error::QueryError;
use crate::literal::Literal;
use crate::shell_text;
use crate::update::trail::Trail;
use crate::value_set::{FEW_VALUES, ValueSet};

#[derive(Debug)]
struct AddToSet {
    values: Vec<Literal>,
    order: TextOrder,
}

pub(super) fn parse(argument: RawValue<'_>, order: &TextOrder) -> Result<Box<dyn Operator>, QueryError> {
    let mut values = vec![Literal::new(argument)];
    if let RawValue::Document(clauses) = argument
        && let Some(first) = clauses.iter().next()
        && let ("$each", each) = first?
    {
        let RawValue::Array(each) = each else {
            return Err(type_mismatch(format!(
                "The argument to $each in $addToSet must be an array but it was of type {}",
                each.element_type().alias()
            )));
        };
        if clauses.iter().count() > 1 {
            return Err(bad_value(format!(
                "Found unexpected fields after $each in $addToSet: {}",
                shell_text::document_text(clauses)
            )));
        }
        values = parse_each(each)?;
    }
    Ok(Box::new(AddToSet { values, order: order.clone() }))
}

impl AddToSet {
    /// Appends what is missing; true if anything was.
    fn extend<'v>(&'v self, elements: &mut Vec<RawValue<'v>>) -> bool {
        let before = elements.len();
        let values = self.values.iter().map(Literal::raw);
        if self.values.len() <= FEW_VALUES {
            for value in values {
                if !elements.iter().any(|known| self.order.is_equal(*known, value)) {
                    elements.push(value);
                }
            }
        } else {
            let mut known = ValueSet::of(elements.iter().copied(), &self.order);
            elements.extend(values.filter(|value| known.insert(*value)));
        }
        elements.len() > before
    }
}

impl Operator for AddToSet {
    fn apply<'v>(
        &'v self,
        old: RawValue<'v>,
        _: &Surroundings<'v>,
        trail: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        let RawValue::Array(array) = old else {
            return Err(bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                trail.last_name(),
                old.element_type().alias()
            )));
        };
        let mut elements = collect(array)?;
        Ok(if self.extend(&mut elements) { Effect::PutArray(build_array(elements)) } else { Effect::Keep })
    }

    fn create<'v>(&'v self, _: &Surroundings<'v>, _: &Trail<'_>) -> Result<Effect<'v>, QueryError> {
        let mut elements = Vec::new();
        self.extend(&mut elements);
        Ok(Effect::PutArray(build_array(elements)))
    }

    fn creates(&self, _: &Surroundings<'_>) -> bool {
        true
    }
}
