//! `$abs`: the magnitude of a number.

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, not_numeric};

pub(super) static ABS: Definition = Definition { name: "$abs", arity: Arity::Exactly(1), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let number = value.as_number().ok_or_else(|| not_numeric(call, &value))?;
    match number.magnitude() {
        Some(magnitude) => Ok(Evaluated::number(magnitude)),
        None => Err(ExpressionFault::AbsOfLeastInt64.error("can't take $abs of long long min")),
    }
}
