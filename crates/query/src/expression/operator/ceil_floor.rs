//! `$ceil` and `$floor`: the next whole number above or below, of the same type.

use pando_document::{Decimal128, DecimalParts, Number, Rounding};

use super::{Arity, Call, Definition, Evaluated, Frame, QueryError, not_numeric};

pub(super) static CEIL: Definition = Definition { name: "$ceil", arity: Arity::Exactly(1), run: run_ceil };
pub(super) static FLOOR: Definition = Definition { name: "$floor", arity: Arity::Exactly(1), run: run_floor };

fn run_ceil<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, f64::ceil, Rounding::Ceiling)
}

fn run_floor<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, f64::floor, Rounding::Floor)
}

fn run<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    of_double: fn(f64) -> f64,
    of_decimal: Rounding,
) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    Ok(Evaluated::number(match value.as_number().ok_or_else(|| not_numeric(call, &value))? {
        Number::Double(number) => Number::Double(of_double(number)),
        // A decimal whose whole part does not fit 34 digits becomes NaN, as in MongoDB. So does infinity.
        Number::Decimal128(number) => match super::round::to_place(number, 0, of_decimal) {
            whole if is_whole(whole) => Number::Decimal128(whole),
            _ => Number::Decimal128(Decimal128::NAN),
        },
        integer => integer,
    }))
}

fn is_whole(number: Decimal128) -> bool {
    matches!(number.parts(), DecimalParts::Finite { exponent: 0, .. })
}
