//! `$sortArray`: the elements of an array in order, whole (`1`, `-1`) or by fields.

use pando_collation::TextOrder;
use pando_document::RawValue;

use super::named::Names;
use super::{
    Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError, array_of,
};
use crate::array_sort::ArraySort;

/// Arguments: input, and the pattern as a constant.
static SORT_ARRAY: Definition = Definition { name: "$sortArray", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$sortArray",
    names: &["input", "sortBy"],
    required: &[
        ("input", ExpressionFault::SortArrayWithoutInput.code()),
        ("sortBy", ExpressionFault::SortArrayWithoutSortBy.code()),
    ],
    not_object: ExpressionFault::SortArrayNotObject.code(),
    unknown: ExpressionFault::SortArrayUnknownArgument.code(),
};

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let values = NAMES.read(argument)?;
    let [Some(input), Some(pattern)] = values.as_slice() else {
        unreachable!("required arguments were checked")
    };
    parse_pattern(*pattern, scope.text_order())?;
    let arguments = vec![Some(Expression::parse(*input, scope)?), Some(Expression::constant(*pattern))];
    Ok(Expression::from_call(Call::named(&SORT_ARRAY, arguments)))
}

fn parse_pattern(pattern: RawValue<'_>, order: &TextOrder) -> Result<ArraySort, QueryError> {
    let fault = match pattern {
        RawValue::Document(_) => ExpressionFault::SortArrayBadPattern,
        number if number.is_number() => ExpressionFault::SortArrayBadDirection,
        _ => ExpressionFault::SortArrayBadSortBy,
    };
    ArraySort::parse(pattern, order).map_err(|error| fault.error(error.message()))
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(array) = value.as_array() else {
        return Err(ExpressionFault::SortArrayInputNotArray.error(format!(
            "The input argument to $sortArray must be an array, but was of type: {}",
            value.type_name()
        )));
    };
    let pattern = call.argument(1, frame)?;
    let sort = parse_pattern(pattern.raw_or_null(), call.text_order())?;
    let mut elements = array.iter().collect::<Result<Vec<_>, _>>()?;
    sort.sort_checked(&mut elements, &mut || call.check())?;
    array_of(|writer| {
        elements.iter().for_each(|element| writer.push(*element));
        Ok(())
    })
}
