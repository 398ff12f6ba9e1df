//! `$and`, `$or`, `$not`; the first two stop at the first argument that decides.

use super::{Arity, Call, Definition, Evaluated, Frame, QueryError};

pub(super) static AND: Definition = Definition { name: "$and", arity: Arity::Any, run: run_and };
pub(super) static OR: Definition = Definition { name: "$or", arity: Arity::Any, run: run_or };
pub(super) static NOT: Definition = Definition { name: "$not", arity: Arity::Exactly(1), run: run_not };

fn run_and<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    for index in 0..call.len() {
        if !call.argument(index, frame)?.to_bool() {
            return Ok(Evaluated::boolean(false));
        }
    }
    Ok(Evaluated::boolean(true))
}

fn run_or<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    for index in 0..call.len() {
        if call.argument(index, frame)?.to_bool() {
            return Ok(Evaluated::boolean(true));
        }
    }
    Ok(Evaluated::boolean(false))
}

fn run_not<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    Ok(Evaluated::boolean(!call.argument(0, frame)?.to_bool()))
}
