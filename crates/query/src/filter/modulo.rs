//! `$mod`: numbers that leave a remainder. Both sides are cut to whole numbers; the
//! remainder has the value's sign.

use pando_document::RawValue;

use super::number_argument::{CoercionFault, truncated};
use super::{Node, Test};
use crate::QueryError;
use crate::path::Path;

/// The argument of `$mod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulo {
    divisor: i64,
    remainder: i64,
}

/// Parses `$mod: [divisor, remainder]`.
pub(super) fn parse(path: &Path, argument: RawValue<'_>) -> Result<Node, QueryError> {
    let RawValue::Array(array) = argument else {
        return Err(QueryError::bad_value("malformed mod, needs to be an array"));
    };
    let mut values = array.iter();
    let (Some(divisor), Some(remainder)) = (values.next(), values.next()) else {
        return Err(QueryError::bad_value("malformed mod, not enough elements"));
    };
    if values.next().is_some() {
        return Err(QueryError::bad_value("malformed mod, too many elements"));
    }
    let divisor = part("divisor", divisor?)?;
    let remainder = part("remainder", remainder?)?;
    if divisor == 0 {
        return Err(QueryError::bad_value("divisor cannot be 0"));
    }
    Ok(Node::field(path, Test::Modulo(Modulo { divisor, remainder })))
}

fn part(name: &str, value: RawValue<'_>) -> Result<i64, QueryError> {
    truncated(value).map_err(|fault| {
        let cause = match fault {
            CoercionFault::NotNumber => {
                return QueryError::bad_value(format!("malformed mod, {name} not a number"));
            }
            CoercionFault::NotFinite => "Unable to coerce NaN/Inf to integral type",
            CoercionFault::OutOfBounds => "Out of bounds coercing to integral value",
        };
        QueryError::bad_value(format!("malformed mod, {name} value is invalid :: caused by :: {cause}"))
    })
}

impl Modulo {
    /// Divisor and remainder.
    pub fn parts(&self) -> (i64, i64) {
        (self.divisor, self.remainder)
    }

    /// Whether a value is a number with this remainder.
    pub(crate) fn holds(&self, value: RawValue<'_>) -> bool {
        // i64::MIN by -1 overflows in the machine; the remainder is 0 as for every other number.
        truncated(value).is_ok_and(|number| number.wrapping_rem(self.divisor) == self.remainder)
    }
}
