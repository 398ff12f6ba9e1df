//! `$ifNull`: the first argument that is neither missing nor null; the last in any case.

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError};

pub(super) static IF_NULL: Definition =
    Definition { name: "$ifNull", arity: Arity::AtLeastTwo(ExpressionFault::IfNullTooFew), run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let last = call.len() - 1;
    for index in 0..last {
        let value = call.argument(index, frame)?;
        if !value.is_nullish() {
            return Ok(value);
        }
    }
    call.argument(last, frame)
}
