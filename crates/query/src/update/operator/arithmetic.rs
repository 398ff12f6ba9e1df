//! `$inc` and `$mul`: the place's number and the argument, added or multiplied.
//!
//! Types widen as everywhere: int32 to int64 where the result does not fit, to double or decimal where one
//! side is one. An int64 that overflows is an error, never a wrap. A missing place counts as an int32 zero,
//! so that `$mul` by NaN makes NaN.

use pando_document::patch::is_same_number;
use pando_document::{Number, Overflow, RawValue};

use super::{Effect, Operator, Surroundings, argument_text, bad_value, type_mismatch};
use crate::error::QueryError;
use crate::literal::Literal;
use crate::shell_text;
use crate::update::trail::{Trail, document_text};

/// Which of the two operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Multiply,
}

#[derive(Debug)]
struct Calculation {
    arithmetic: Arithmetic,
    operand: Number,
    argument: Literal,
}

pub(super) fn parse(
    arithmetic: Arithmetic,
    path: &str,
    argument: RawValue<'_>,
) -> Result<Box<dyn Operator>, QueryError> {
    let Some(operand) = Number::from_value(argument) else {
        let verb = match arithmetic {
            Arithmetic::Add => "increment",
            Arithmetic::Multiply => "multiply",
        };
        return Err(type_mismatch(format!(
            "Cannot {verb} with non-numeric argument: {}",
            argument_text(path, argument)
        )));
    };
    Ok(Box::new(Calculation { arithmetic, operand, argument: Literal::new(argument) }))
}

impl Calculation {
    fn name(&self) -> &'static str {
        match self.arithmetic {
            Arithmetic::Add => "$inc",
            Arithmetic::Multiply => "$mul",
        }
    }
}

impl Operator for Calculation {
    fn apply<'v>(
        &'v self,
        old: RawValue<'v>,
        surroundings: &Surroundings<'v>,
        trail: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        let Some(number) = Number::from_value(old) else {
            return Err(type_mismatch(format!(
                "Cannot apply {} to a value of non-numeric type. {} has the field '{}' of non-numeric type {}",
                self.name(),
                document_text(surroundings.root),
                trail.last_name(),
                old.element_type().alias()
            )));
        };
        let result = match self.arithmetic {
            Arithmetic::Add => number.add(self.operand, Overflow::Refuse),
            Arithmetic::Multiply => number.multiply(self.operand, Overflow::Refuse),
        };
        let Some(result) = result else {
            let type_name = if matches!(old, RawValue::Int32(_)) { "NumberInt" } else { "NumberLong" };
            return Err(bad_value(format!(
                "Failed to apply {} operations to current value (({type_name}){}) for document {}",
                self.name(),
                shell_text::value_text(old),
                document_text(surroundings.root)
            )));
        };
        Ok(if is_same_number(number, result) { Effect::Keep } else { Effect::Put(result.to_raw()) })
    }

    fn create<'v>(&'v self, _: &Surroundings<'v>, _: &Trail<'_>) -> Result<Effect<'v>, QueryError> {
        Ok(match self.arithmetic {
            Arithmetic::Add => Effect::Put(self.argument.raw()),
            Arithmetic::Multiply => {
                let product = Number::Int32(0).multiply(self.operand, Overflow::Refuse);
                Effect::Put(product.expect("zero times anything does not overflow").to_raw())
            }
        })
    }

    fn creates(&self, _: &Surroundings<'_>) -> bool {
        true
    }
}
