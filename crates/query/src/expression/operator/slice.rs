//! `$slice`: a part of an array: the first n, the last n (negative), or n from a position on.

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, array_of};
use crate::shell_text;

pub(super) static SLICE: Definition = Definition { name: "$slice", arity: Arity::Between(2, 3), run };

/// An argument that is an int32, with its place in messages and its faults.
struct Argument {
    which: &'static str,
    not_numeric: ExpressionFault,
    not_int32: ExpressionFault,
}

const SECOND: Argument = Argument {
    which: "Second",
    not_numeric: ExpressionFault::SliceSecondNotNumeric,
    not_int32: ExpressionFault::SliceSecondNotInt32,
};
const THIRD: Argument = Argument {
    which: "Third",
    not_numeric: ExpressionFault::SliceThirdNotNumeric,
    not_int32: ExpressionFault::SliceThirdNotInt32,
};

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (array, second) = (call.argument(0, frame)?, call.argument(1, frame)?);
    if array.is_nullish() || second.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(elements) = array.as_array() else {
        return Err(ExpressionFault::SliceNotArray.error(format!(
            "First argument to $slice must be an array, but is of type: {}",
            array.type_name()
        )));
    };
    let second = SECOND.read(&second)?;
    let table = call.array_table(0, &array, frame)?;
    let length = table.as_ref().map_or_else(|| elements.iter().count(), |table| table.length());
    let (start, count) = match call.has(2) {
        false if second >= 0 => (0, magnitude(second)),
        false => (length.saturating_sub(magnitude(second)), length),
        true => {
            let third = call.argument(2, frame)?;
            if third.is_nullish() {
                return Ok(Evaluated::NULL);
            }
            let third = THIRD.read(&third)?;
            if third <= 0 {
                return Err(ExpressionFault::SliceThirdNotPositive
                    .error(format!("Third argument to $slice must be positive: {third}")));
            }
            let start =
                if second >= 0 { magnitude(second) } else { length.saturating_sub(magnitude(second)) };
            (start, magnitude(third))
        }
    };
    array_of(|writer| {
        if let Some(table) = table {
            for element in table.elements_from(elements, start).take(count) {
                writer.push(element?);
            }
            return Ok(());
        }
        for element in elements.iter().skip(start).take(count) {
            writer.push(element?);
        }
        Ok(())
    })
}

fn magnitude(number: i32) -> usize {
    usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX)
}

impl Argument {
    /// The argument as an int32.
    fn read(&self, value: &Evaluated<'_>) -> Result<i32, QueryError> {
        let which = self.which;
        let Some(number) = value.as_number() else {
            return Err(self.not_numeric.error(format!(
                "{which} argument to $slice must be numeric, but is of type: {}",
                value.type_name()
            )));
        };
        number.to_i64_exact().and_then(|whole| i32::try_from(whole).ok()).ok_or_else(|| {
            self.not_int32.error(format!(
                "{which} argument to $slice can't be represented as a 32-bit integer: {}",
                shell_text::value_text(number.to_raw())
            ))
        })
    }
}
