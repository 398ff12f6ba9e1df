//! `$range`: whole numbers from a start to before an end, by a step.

use pando_document::RawValue;

use super::{Arity, Call, Definition, ErrorCode, Evaluated, ExpressionFault, Frame, QueryError, array_of};
use crate::shell_text;

pub(super) static RANGE: Definition = Definition { name: "$range", arity: Arity::Between(2, 3), run };

/// Bytes that the array may take, as for other blocking operations.
const BYTES_MAX: i64 = 64 * 1024 * 1024;

/// Type, a name of some digits, and four bytes.
const ELEMENT_BYTES: i64 = 12;

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let start = number(
        &call.argument(0, frame)?,
        ("a numeric starting value, found value of type: ", "a starting value"),
        (ExpressionFault::RangeStartNotNumeric, ExpressionFault::RangeStartNotInt32),
    )?;
    let end = number(
        &call.argument(1, frame)?,
        ("a numeric ending value, found value of type: ", "an ending value"),
        (ExpressionFault::RangeEndNotNumeric, ExpressionFault::RangeEndNotInt32),
    )?;
    let step = match call.has(2) {
        true => number(
            &call.argument(2, frame)?,
            ("a numeric step value, found value of type:", "a step value"),
            (ExpressionFault::RangeStepNotNumeric, ExpressionFault::RangeStepNotInt32),
        )?,
        false => 1,
    };
    if step == 0 {
        return Err(ExpressionFault::RangeStepZero.error("$range requires a non-zero step value"));
    }
    // 32-bit numbers in 64 bits cannot overflow.
    let (start, end, step) = (i64::from(start), i64::from(end), i64::from(step));
    if (end - start) / step * ELEMENT_BYTES > BYTES_MAX {
        return Err(QueryError::new(
            ErrorCode::ExceededMemoryLimit,
            format!("$range would use too much memory, at most {BYTES_MAX} bytes are allowed"),
        ));
    }
    array_of(|writer| {
        let mut at = start;
        while (step > 0 && at < end) || (step < 0 && at > end) {
            writer.push(RawValue::Int32(i32::try_from(at).expect("it lies between two 32-bit numbers")));
            at += step;
        }
        Ok(())
    })
}

fn number(
    value: &Evaluated<'_>,
    (numeric, whole): (&str, &str),
    (not_numeric, not_int32): (ExpressionFault, ExpressionFault),
) -> Result<i32, QueryError> {
    let Some(number) = value.as_number() else {
        return Err(not_numeric.error(format!("$range requires {numeric}{}", value.type_name())));
    };
    number.to_i64_exact().and_then(|number| i32::try_from(number).ok()).ok_or_else(|| {
        not_int32.error(format!(
            "$range requires {whole} that can be represented as a 32-bit integer, found value: {}",
            shell_text::value_text(number.to_raw())
        ))
    })
}
