//! `$arrayElemAt`, `$first` and `$last`: one element of an array. Outside of the array there is nothing.

use pando_document::{RawArray, RawValue};

use super::super::array_table::ArrayTable;
use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError};
use crate::shell_text;

pub(super) static ARRAY_ELEM_AT: Definition =
    Definition { name: "$arrayElemAt", arity: Arity::Exactly(2), run: run_at };
pub(super) static FIRST: Definition = Definition { name: "$first", arity: Arity::Exactly(1), run: run_first };
pub(super) static LAST: Definition = Definition { name: "$last", arity: Arity::Exactly(1), run: run_last };

fn run_at<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (array, index) = (call.argument(0, frame)?, call.argument(1, frame)?);
    if array.is_nullish() || index.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    if array.as_array().is_none() {
        return Err(ExpressionFault::ElementOfNonArray
            .error(format!("$arrayElemAt's first argument must be an array, but is {}", array.type_name())));
    }
    let Some(number) = index.as_number() else {
        return Err(ExpressionFault::IndexNotNumeric.error(format!(
            "$arrayElemAt's second argument must be a numeric value, but is {}",
            index.type_name()
        )));
    };
    let Some(index) = number.to_i64_exact().and_then(|index| i32::try_from(index).ok()) else {
        return Err(ExpressionFault::IndexNotInt32.error(format!(
            "$arrayElemAt's second argument must be representable as a 32-bit integer: {}",
            shell_text::value_text(number.to_raw())
        )));
    };
    let table = call.array_table(0, &array, frame)?;
    element(array, i64::from(index), table.as_deref())
}

fn run_first<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run_end(call, frame, 0)
}

fn run_last<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run_end(call, frame, -1)
}

fn run_end<'a>(call: &'a Call, frame: &mut Frame<'a>, index: i64) -> Result<Evaluated<'a>, QueryError> {
    let array = call.argument(0, frame)?;
    if array.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    if array.as_array().is_none() {
        return Err(ExpressionFault::ElementOfNonArray.error(format!(
            "{}'s argument must be an array, but is {}",
            call.name(),
            array.type_name()
        )));
    }
    let table = call.array_table(0, &array, frame)?;
    element(array, index, table.as_deref())
}

/// The element at an index, from the end if it is negative.
fn element<'a>(
    array: Evaluated<'a>,
    index: i64,
    table: Option<&ArrayTable>,
) -> Result<Evaluated<'a>, QueryError> {
    match array {
        Evaluated::Raw(RawValue::Array(array)) => {
            Ok(find(array, index, table)?.map_or(Evaluated::Missing, Evaluated::Raw))
        }
        computed => match computed.as_array() {
            Some(array) => Ok(find(array, index, table)?.map_or(Evaluated::Missing, Evaluated::owned)),
            None => unreachable!("the callers have checked that it is an array"),
        },
    }
}

fn find<'v>(
    array: &'v RawArray,
    index: i64,
    table: Option<&ArrayTable>,
) -> Result<Option<RawValue<'v>>, QueryError> {
    let place = if index >= 0 {
        usize::try_from(index).ok()
    } else {
        let length = table.map_or_else(|| array.iter().count(), ArrayTable::length);
        usize::try_from(index.unsigned_abs()).ok().and_then(|behind| length.checked_sub(behind))
    };
    let Some(place) = place else { return Ok(None) };
    match table {
        Some(table) => table.elements_from(array, place).next().transpose(),
        None => Ok(array.iter().nth(place).transpose()?),
    }
}
