//! `$filter`: the elements of an array for which a condition holds, at most `limit` of them.

use std::ops::ControlFlow;

use pando_document::RawValue;

use super::named::Names;
use super::{
    Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError, array_of,
    check_user_name,
};

/// Arguments: input, cond, limit.
static FILTER: Definition = Definition { name: "$filter", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$filter",
    names: &["input", "cond", "limit", "as"],
    required: &[
        ("input", ExpressionFault::FilterWithoutInput.code()),
        ("cond", ExpressionFault::FilterWithoutCond.code()),
    ],
    not_object: ExpressionFault::FilterNotObject.code(),
    unknown: ExpressionFault::FilterUnknownArgument.code(),
};

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let values = NAMES.read(argument)?;
    let [Some(input), Some(condition), limit, name] = values.as_slice() else {
        unreachable!("required arguments were checked")
    };
    let name = element_name(*name)?;
    let (inner, slot) = scope.with_slots(&[name]);
    let arguments = vec![
        Some(Expression::parse(*input, scope)?),
        Some(Expression::parse(*condition, &inner)?),
        limit.map(|limit| Expression::parse(limit, scope)).transpose()?,
    ];
    Ok(Expression::from_call(Call::binding(&FILTER, arguments, slot)))
}

/// The name that `as` gives to the element; `this` without it.
pub(super) fn element_name<'v>(name: Option<RawValue<'v>>) -> Result<&'v str, QueryError> {
    let name = match name {
        None => "this",
        // Anything but a string counts as an empty one.
        Some(name) => name.as_str().unwrap_or(""),
    };
    check_user_name(name)?;
    Ok(name)
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let input = call.argument(0, frame)?;
    if input.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let type_name = input.type_name();
    if input.as_array().is_none() {
        return Err(ExpressionFault::FilterInputNotArray
            .error(format!("input to $filter must be an array not {type_name}")));
    }
    let limit = call.argument(2, frame)?;
    let limit = if limit.is_nullish() { usize::MAX } else { parse_limit(&limit)? };
    let (held, mut kept) = (frame.held(), 0);
    array_of(|writer| {
        input.for_each_element(|element| {
            if kept == limit {
                return Ok(ControlFlow::Break(()));
            }
            let element = element.shared();
            frame.write(call.first_slot(), element.clone());
            if call.argument(1, frame)?.to_bool() {
                kept += 1;
                writer.push(element.raw_or_null());
            }
            frame.hold_besides(held, writer.bytes_so_far())?;
            Ok(ControlFlow::Continue(()))
        })
    })
}

fn parse_limit(limit: &Evaluated<'_>) -> Result<usize, QueryError> {
    let whole =
        limit.as_number().and_then(|number| number.to_i64_exact()).and_then(|n| i32::try_from(n).ok());
    let Some(whole) = whole else {
        return Err(ExpressionFault::FilterLimitNotInt32.error(format!(
            "$filter: limit must be represented as a 32-bit integral value: {}",
            limit.shell_text()
        )));
    };
    match usize::try_from(whole) {
        Ok(whole) if whole > 0 => Ok(whole),
        _ => Err(ExpressionFault::FilterLimitNotPositive
            .error(format!("$filter: limit must be greater than 0: {whole}"))),
    }
}
