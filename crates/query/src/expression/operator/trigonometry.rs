//! The trigonometric operators, on doubles.

use pando_document::Number;

use super::{Arity, Call, Definition, Evaluated, Frame, QueryError, not_numeric};

macro_rules! functions {
    ($($name:literal $function:ident $constant:ident,)+) => {
        $(
            static $constant: Definition = Definition {
                name: $name,
                arity: Arity::Exactly(1),
                run: |call, frame| one(call, frame, f64::$function),
            };
        )+

        /// The operator of a name.
        pub(super) fn find(name: &str) -> Option<&'static Definition> {
            Some(match name {
                $($name => &$constant,)+
                "$atan2" => &ATAN2,
                _ => return None,
            })
        }
    };
}

functions! {
    "$sin" sin SIN,
    "$cos" cos COS,
    "$tan" tan TAN,
    "$asin" asin ASIN,
    "$acos" acos ACOS,
    "$atan" atan ATAN,
    "$sinh" sinh SINH,
    "$cosh" cosh COSH,
    "$tanh" tanh TANH,
    "$asinh" asinh ASINH,
    "$acosh" acosh ACOSH,
    "$atanh" atanh ATANH,
    "$degreesToRadians" to_radians DEGREES_TO_RADIANS,
    "$radiansToDegrees" to_degrees RADIANS_TO_DEGREES,
}

static ATAN2: Definition = Definition { name: "$atan2", arity: Arity::Exactly(2), run: run_atan2 };

fn one<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    compute: fn(f64) -> f64,
) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    match value.as_number().ok_or_else(|| not_numeric(call, &value))? {
        Number::Decimal128(_) => Err(QueryError::not_implemented(&format!("{} of a decimal", call.name()))),
        number => Ok(Evaluated::number(Number::Double(compute(number.to_f64())))),
    }
}

fn run_atan2<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (y, x) = (call.argument(0, frame)?, call.argument(1, frame)?);
    if y.is_nullish() || x.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let y = y.as_number().ok_or_else(|| not_numeric(call, &y))?;
    let x = x.as_number().ok_or_else(|| not_numeric(call, &x))?;
    match (y, x) {
        (Number::Decimal128(_), _) | (_, Number::Decimal128(_)) => {
            Err(QueryError::not_implemented("$atan2 of a decimal"))
        }
        _ => Ok(Evaluated::number(Number::Double(y.to_f64().atan2(x.to_f64())))),
    }
}
