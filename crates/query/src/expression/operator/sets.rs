//! The set operators: arrays without regard to order and repetition.
//!
//! Elements are equal as comparison has it: 1 and 1.0 are one. Union and intersection come sorted, a
//! difference in the order of its first array.

use pando_collation::TextOrder;
use pando_document::RawValue;

use super::{
    Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, QueryError, array_of,
    check_computed_bytes,
};
use crate::value_set::ValueSet;

pub(super) static SET_UNION: Definition = Definition { name: "$setUnion", arity: Arity::Any, run: run_union };
pub(super) static SET_INTERSECTION: Definition =
    Definition { name: "$setIntersection", arity: Arity::Any, run: run_intersection };
pub(super) static SET_DIFFERENCE: Definition =
    Definition { name: "$setDifference", arity: Arity::Exactly(2), run: run_difference };
pub(super) static SET_EQUALS: Definition = Definition {
    name: "$setEquals",
    arity: Arity::AtLeastTwo(ExpressionFault::SetEqualsTooFew),
    run: run_equals,
};
pub(super) static SET_IS_SUBSET: Definition =
    Definition { name: "$setIsSubset", arity: Arity::Exactly(2), run: run_is_subset };
pub(super) static ANY_ELEMENT_TRUE: Definition =
    Definition { name: "$anyElementTrue", arity: Arity::Exactly(1), run: run_any };
pub(super) static ALL_ELEMENTS_TRUE: Definition =
    Definition { name: "$allElementsTrue", arity: Arity::Exactly(1), run: run_all };

/// Distinct elements in order.
struct Set<'v, 'o> {
    sorted: Vec<RawValue<'v>>,
    order: &'o TextOrder,
}

impl<'v, 'o> Set<'v, 'o> {
    fn new(mut elements: Vec<RawValue<'v>>, order: &'o TextOrder) -> Set<'v, 'o> {
        elements.sort_by(|a, b| order.compare(*a, *b));
        elements.dedup_by(|later, first| order.is_equal(*later, *first));
        Set { sorted: elements, order }
    }

    fn contains(&self, value: RawValue<'_>) -> bool {
        self.sorted.binary_search_by(|known| self.order.compare(*known, value)).is_ok()
    }
}

fn elements_of<'v>(
    value: &'v Evaluated<'_>,
    refuse: impl FnOnce(&'static str) -> QueryError,
) -> Result<Vec<RawValue<'v>>, QueryError> {
    match value.as_array() {
        Some(array) => Ok(array.iter().collect::<Result<Vec<_>, _>>()?),
        None => Err(refuse(value.type_name())),
    }
}

fn write<'a>(elements: &[RawValue<'_>]) -> Result<Evaluated<'a>, QueryError> {
    array_of(|writer| {
        elements.iter().for_each(|element| writer.push(*element));
        Ok(())
    })
}

fn run_union<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let mut values = Vec::new();
    let mut bytes = 0;
    for index in 0..call.len() {
        let value = call.argument(index, frame)?;
        if value.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        bytes += value.as_array().map_or(0, |array| array.as_bytes().len());
        check_computed_bytes(bytes)?;
        elements_of(&value, |found| {
            ExpressionFault::SetUnionNotArray
                .error(format!("All operands of $setUnion must be arrays. One argument is of type: {found}"))
        })?;
        values.push(value);
    }
    let mut all = Vec::new();
    for array in values.iter().filter_map(Evaluated::as_array) {
        for element in array.iter() {
            all.push(element?);
        }
    }
    write(&Set::new(all, call.text_order()).sorted)
}

/// Of equal elements the smaller set's is given.
fn run_intersection<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let mut common: Option<Evaluated<'a>> = None;
    for index in 0..call.len() {
        let value = call.argument(index, frame)?;
        if value.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let set = Set::new(elements_of(&value, intersection_of_no_array)?, call.text_order());
        let next = match &common {
            None => write(&set.sorted)?,
            Some(common) => {
                let common =
                    Set { sorted: elements_of(common, intersection_of_no_array)?, order: call.text_order() };
                let (mut kept, other) =
                    if common.sorted.len() > set.sorted.len() { (set, common) } else { (common, set) };
                kept.sorted.retain(|element| other.contains(*element));
                write(&kept.sorted)?
            }
        };
        common = Some(next);
    }
    common.map_or_else(|| write(&[]), Ok)
}

fn intersection_of_no_array(found: &'static str) -> QueryError {
    ExpressionFault::SetIntersectionNotArray
        .error(format!("All operands of $setIntersection must be arrays. One argument is of type: {found}"))
}

fn run_difference<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (left, right) = (call.argument(0, frame)?, call.argument(1, frame)?);
    if left.is_nullish() || right.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let elements = elements_of(&left, |found| {
        ExpressionFault::SetDifferenceFirstNotArray.error(format!(
            "both operands of $setDifference must be arrays. First argument is of type: {found}"
        ))
    })?;
    let without = elements_of(&right, |found| {
        ExpressionFault::SetDifferenceSecondNotArray.error(format!(
            "both operands of $setDifference must be arrays. Second argument is of type: {found}"
        ))
    })?;
    let without = Set::new(without, call.text_order());
    let mut met = ValueSet::new(call.text_order());
    let kept: Vec<RawValue<'_>> =
        elements.into_iter().filter(|element| !without.contains(*element) && met.insert(*element)).collect();
    write(&kept)
}

/// Compares all others with the first constant, or with the first where there is none, as MongoDB does.
/// Stops at the first set that differs: later arguments are not even evaluated.
fn run_equals<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let base = call.arguments().position(Expression::is_constant).unwrap_or(0);
    let first = call.argument(base, frame)?;
    let first = Set::new(elements_of(&first, |found| equality_of_no_array(base, found))?, call.text_order());
    for index in (0..call.len()).filter(|index| *index != base) {
        let value = call.argument(index, frame)?;
        let set =
            Set::new(elements_of(&value, |found| equality_of_no_array(index, found))?, call.text_order());
        let is_equal = first.sorted.len() == set.sorted.len()
            && first.sorted.iter().all(|element| set.contains(*element));
        if !is_equal {
            return Ok(Evaluated::boolean(false));
        }
    }
    Ok(Evaluated::boolean(true))
}

fn equality_of_no_array(index: usize, found: &str) -> QueryError {
    ExpressionFault::SetEqualsNotArray.error(format!(
        "All operands of $setEquals must be arrays. {}-th argument is of type: {found}",
        index + 1
    ))
}

fn run_is_subset<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (left, right) = (call.argument(0, frame)?, call.argument(1, frame)?);
    // Two ways in MongoDB, with errors of their own.
    let fault = match call.expression(1).and_then(Expression::as_constant) {
        Some(_) if call.expression(0).and_then(Expression::as_constant).is_none() => {
            ExpressionFault::SetIsSubsetOfConstantNotArray
        }
        _ => ExpressionFault::SetIsSubsetFirstNotArray,
    };
    let elements = elements_of(&left, |found| {
        fault.error(format!(
            "both operands of $setIsSubset must be arrays. First argument is of type: {found}"
        ))
    })?;
    let whole = elements_of(&right, |found| {
        ExpressionFault::SetIsSubsetSecondNotArray.error(format!(
            "both operands of $setIsSubset must be arrays. Second argument is of type: {found}"
        ))
    })?;
    let whole = Set::new(whole, call.text_order());
    Ok(Evaluated::boolean(elements.iter().all(|element| whole.contains(*element))))
}

fn run_any<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    let elements = elements_of(&value, |found| not_array(call, found, ExpressionFault::AnyElementNotArray))?;
    Ok(Evaluated::boolean(elements.iter().any(|element| element.to_bool())))
}

fn run_all<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    let elements = elements_of(&value, |found| not_array(call, found, ExpressionFault::AllElementsNotArray))?;
    Ok(Evaluated::boolean(elements.iter().all(|element| element.to_bool())))
}

fn not_array(call: &Call, found: &str, fault: ExpressionFault) -> QueryError {
    fault.error(format!("{}'s argument must be an array, but is {found}", call.name()))
}
