//! The trigonometric operators, on doubles and decimals. Numbers outside of a function's domain are refused,
//! NaN is not.

use pando_document::{Decimal128, Number, RawValue, compare_values};

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, not_numeric};
use crate::expression::decimal_function;
use crate::shell_text::short_double_text;

/// The numbers that a function takes.
#[derive(Clone, Copy)]
enum Domain {
    All,
    Finite,
    FromMinusOneToOne,
    FromOne,
}

impl Domain {
    fn has(self, number: Number) -> bool {
        let order = |bound: i32| compare_values(number.to_raw(), RawValue::Int32(bound));
        let is_finite = match number {
            Number::Decimal128(decimal) => decimal.is_finite(),
            other => other.to_f64().is_finite(),
        };
        number.is_nan()
            || match self {
                Domain::All => true,
                Domain::Finite => is_finite,
                Domain::FromMinusOneToOne => order(-1).is_ge() && order(1).is_le(),
                Domain::FromOne => order(1).is_ge(),
            }
    }

    fn text(self) -> &'static str {
        match self {
            Domain::All | Domain::Finite => "(-inf,inf)",
            Domain::FromMinusOneToOne => "[-1,1]",
            Domain::FromOne => "[1,inf]",
        }
    }
}

/// One function, on both kinds of numbers.
struct Function {
    of_double: fn(f64) -> f64,
    of_decimal: fn(Decimal128) -> Decimal128,
    domain: Domain,
}

macro_rules! functions {
    ($($name:literal $constant:ident $of_double:expr, $of_decimal:ident, $domain:ident;)+) => {
        $(
            static $constant: Definition = Definition {
                name: $name,
                arity: Arity::Exactly(1),
                run: |call, frame| {
                    const FUNCTION: Function = Function {
                        of_double: $of_double,
                        of_decimal: decimal_function::$of_decimal,
                        domain: Domain::$domain,
                    };
                    one(call, frame, &FUNCTION)
                },
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
    "$sin" SIN f64::sin, sin, Finite;
    "$cos" COS f64::cos, cos, Finite;
    "$tan" TAN f64::tan, tan, Finite;
    "$asin" ASIN f64::asin, asin, FromMinusOneToOne;
    "$acos" ACOS f64::acos, acos, FromMinusOneToOne;
    "$atan" ATAN f64::atan, atan, All;
    "$sinh" SINH f64::sinh, sinh, All;
    "$cosh" COSH f64::cosh, cosh, All;
    "$tanh" TANH f64::tanh, tanh, All;
    "$asinh" ASINH inverse_sinh, asinh, All;
    "$acosh" ACOSH inverse_cosh, acosh, FromOne;
    "$atanh" ATANH f64::atanh, atanh, FromMinusOneToOne;
    "$degreesToRadians" DEGREES_TO_RADIANS f64::to_radians, to_radians, All;
    "$radiansToDegrees" RADIANS_TO_DEGREES f64::to_degrees, to_degrees, All;
}

static ATAN2: Definition = Definition { name: "$atan2", arity: Arity::Exactly(2), run: run_atan2 };

/// From here on twice the number has the same logarithm as the sum that the definition asks for, and the
/// library's functions would leave the range of doubles.
const LARGE: f64 = 1e300;

fn inverse_sinh(number: f64) -> f64 {
    match number.abs() {
        large if large > LARGE => (large.ln() + std::f64::consts::LN_2).copysign(number),
        _ => number.asinh(),
    }
}

fn inverse_cosh(number: f64) -> f64 {
    if number > LARGE { number.ln() + std::f64::consts::LN_2 } else { number.acosh() }
}

fn one<'a>(call: &'a Call, frame: &mut Frame<'a>, function: &Function) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let number = value.as_number().ok_or_else(|| not_numeric(call, &value))?;
    if !function.domain.has(number) {
        let shown = match number {
            Number::Decimal128(decimal) => decimal.to_string(),
            other => short_double_text(other.to_f64()),
        };
        return Err(ExpressionFault::OutsideOfDomain.error(format!(
            "cannot apply {} to {shown}, value must be in {}",
            call.name(),
            function.domain.text()
        )));
    }
    Ok(Evaluated::number(match number {
        Number::Decimal128(decimal) => Number::Decimal128((function.of_decimal)(decimal)),
        number => Number::Double((function.of_double)(number.to_f64())),
    }))
}

fn run_atan2<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let refused = |fault: ExpressionFault, value: &Evaluated<'_>| {
        fault.error(format!("$atan2 only supports numeric types, not {}", value.type_name()))
    };
    let y = call.argument(0, frame)?;
    if y.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let y = y.as_number().ok_or_else(|| refused(ExpressionFault::Atan2FirstNotNumeric, &y))?;
    let x = call.argument(1, frame)?;
    if x.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let x = x.as_number().ok_or_else(|| refused(ExpressionFault::Atan2SecondNotNumeric, &x))?;
    Ok(Evaluated::number(match (y, x) {
        (Number::Decimal128(_), _) | (_, Number::Decimal128(_)) => {
            let [y, x] = [y, x].map(|number| number.to_decimal(pando_document::DoubleDigits::Fifteen));
            Number::Decimal128(decimal_function::atan2(y, x))
        }
        _ => Number::Double(y.to_f64().atan2(x.to_f64())),
    }))
}
