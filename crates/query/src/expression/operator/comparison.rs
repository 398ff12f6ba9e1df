//! `$cmp`, `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`: two values in the order of all values. Missing is
//! below null, and no type is bracketed off.

use std::cmp::Ordering;

use pando_document::RawValue;

use super::{Arity, Call, Definition, Evaluated, Frame, QueryError};

macro_rules! comparisons {
    ($($constant:ident $name:literal $test:expr,)+) => {
        $(
            pub(super) static $constant: Definition = Definition {
                name: $name,
                arity: Arity::Exactly(2),
                run: |call, frame| {
                    let test: fn(Ordering) -> bool = $test;
                    Ok(Evaluated::boolean(test(order(call, frame)?)))
                },
            };
        )+
    };
}

comparisons! {
    EQ "$eq" Ordering::is_eq,
    NE "$ne" Ordering::is_ne,
    GT "$gt" Ordering::is_gt,
    GTE "$gte" Ordering::is_ge,
    LT "$lt" Ordering::is_lt,
    LTE "$lte" Ordering::is_le,
}

pub(super) static CMP: Definition = Definition { name: "$cmp", arity: Arity::Exactly(2), run: run_cmp };

fn run_cmp<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    Ok(Evaluated::Raw(RawValue::Int32(order(call, frame)? as i32)))
}

fn order<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Ordering, QueryError> {
    let left = call.argument(0, frame)?;
    let right = call.argument(1, frame)?;
    Ok(left.compare(&right, call.text_order()))
}
