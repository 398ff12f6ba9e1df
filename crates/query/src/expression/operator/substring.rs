//! `$substrCP` and `$substrBytes`: a part of a string, counted in characters or bytes.

use super::text::{coerced, refuse_beyond_long};
use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, truncated};
use crate::shell_text;

pub(super) static SUBSTR_CP: Definition =
    Definition { name: "$substrCP", arity: Arity::Exactly(3), run: run_characters };
pub(super) static SUBSTR_BYTES: Definition =
    Definition { name: "$substrBytes", arity: Arity::Exactly(3), run: run_bytes };

fn run_characters<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let text = coerced(&call.argument(0, frame)?)?;
    let start = int32(
        &call.argument(1, frame)?,
        "starting index",
        (ExpressionFault::SubstrCpStartNotNumeric, ExpressionFault::SubstrCpStartNotInt32),
    )?;
    let length = int32(
        &call.argument(2, frame)?,
        "length",
        (ExpressionFault::SubstrCpLengthNotNumeric, ExpressionFault::SubstrCpLengthNotInt32),
    )?;
    let Ok(length) = usize::try_from(length) else {
        return Err(
            ExpressionFault::SubstrCpNegativeLength.error("$substrCP: length must be a nonnegative integer.")
        );
    };
    let Ok(start) = usize::try_from(start) else {
        return Err(ExpressionFault::SubstrCpNegativeStart
            .error("$substrCP: the starting index must be nonnegative integer."));
    };
    Ok(Evaluated::Text(text.chars().skip(start).take(length).collect()))
}

fn int32(
    value: &Evaluated<'_>,
    what: &str,
    (not_numeric, not_int32): (ExpressionFault, ExpressionFault),
) -> Result<i32, QueryError> {
    let Some(number) = value.as_number() else {
        return Err(not_numeric.error(format!(
            "$substrCP: {what} must be a numeric type (is BSON type {})",
            value.type_name()
        )));
    };
    number.to_i64_exact().and_then(|whole| i32::try_from(whole).ok()).ok_or_else(|| {
        not_int32.error(format!(
            "$substrCP: {what} cannot be represented as a 32-bit integral value: {}",
            shell_text::value_text(number.to_raw())
        ))
    })
}

fn run_bytes<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let text = coerced(&call.argument(0, frame)?)?;
    let start = whole(&call.argument(1, frame)?, "starting index", ExpressionFault::SubstrStartNotNumeric)?;
    let length = whole(&call.argument(2, frame)?, "length", ExpressionFault::SubstrLengthNotNumeric)?;
    let Ok(start) = usize::try_from(start) else {
        return Err(ExpressionFault::SubstrNegativeStart
            .error(format!("$substrBytes:  starting index must be non-negative (got: {start})")));
    };
    if start >= text.len() {
        return Ok(Evaluated::Text(String::new()));
    }
    // A negative length means the rest.
    let end =
        usize::try_from(length).map_or(text.len(), |length| start.saturating_add(length).min(text.len()));
    if !text.is_char_boundary(start) {
        return Err(ExpressionFault::SubstrStartsInCharacter
            .error("$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte."));
    }
    if !text.is_char_boundary(end) {
        return Err(ExpressionFault::SubstrEndsInCharacter
            .error("$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character."));
    }
    Ok(Evaluated::Text(text[start..end].to_owned()))
}

fn whole(value: &Evaluated<'_>, what: &str, fault: ExpressionFault) -> Result<i64, QueryError> {
    match value.as_number() {
        Some(number) => {
            refuse_beyond_long(number)?;
            Ok(truncated(number).unwrap_or(i64::MAX))
        }
        None => Err(fault.error(format!(
            "$substrBytes:  {what} must be a numeric type (is BSON type {})",
            value.type_name()
        ))),
    }
}
