//! `$bitsAllSet`, `$bitsAnySet`, `$bitsAllClear`, `$bitsAnyClear`: the bits of whole numbers and of binary.
//!
//! Numbers are 64-bit two's complement, their sign going on for ever; binary is little-endian and zero beyond
//! its end.

use pando_document::RawValue;

use super::number_argument::{self, NumberFault};
use super::{Node, Test};
use crate::QueryError;
use crate::path::Path;
use crate::shell_text::value_text;

/// The condition on the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitsWanted {
    /// All are 1.
    AllSet,
    /// Some is 1.
    AnySet,
    /// All are 0.
    AllClear,
    /// Some is 0.
    AnyClear,
}

/// Bit positions and what is asked of them.
#[derive(Clone, Debug)]
pub struct BitsTest {
    wanted: BitsWanted,
    /// Ascending, each once.
    positions: Box<[u32]>,
}

/// Parses an operator on bits: a mask (a number or binary), or an array of positions.
pub(super) fn parse(
    path: &Path,
    name: &str,
    wanted: BitsWanted,
    argument: RawValue<'_>,
) -> Result<Node, QueryError> {
    let mut positions = match argument {
        RawValue::Array(array) => {
            let mut positions = Vec::new();
            for (place, value) in array.iter().enumerate() {
                positions.push(position(place, value?)?);
            }
            positions
        }
        RawValue::Binary(binary) => {
            let bits = u32::try_from(binary.bytes.len() * 8).expect("a document has at most 48 MB");
            (0..bits).filter(|bit| binary.bytes[(bit / 8) as usize] & (1 << (bit % 8)) != 0).collect()
        }
        number if number.is_number() => {
            let fault = |fault: NumberFault| QueryError::failed_to_parse(fault.text(name, argument));
            let mask = number_argument::integer(number).map_err(fault)?;
            if mask < 0 {
                return Err(fault(NumberFault::Negative));
            }
            (0..63).filter(|bit| mask & (1 << bit) != 0).collect()
        }
        other => {
            let text = value_text(other);
            let message =
                format!("{path} takes an Array, a number, or a BinData but received: {name}: {text}");
            return Err(QueryError::bad_value(message));
        }
    };
    positions.sort_unstable();
    positions.dedup();
    Ok(Node::field(path, Test::Bits(BitsTest { wanted, positions: positions.into() })))
}

fn position(place: usize, value: RawValue<'_>) -> Result<u32, QueryError> {
    let name = place.to_string();
    let fault = |fault: NumberFault| {
        QueryError::bad_value(format!("Failed to parse bit position. {}", fault.text(&name, value)))
    };
    let number = number_argument::integer(value).map_err(fault)?;
    if number < 0 {
        return Err(fault(NumberFault::Negative));
    }
    let number = i32::try_from(number).map_err(|_| fault(NumberFault::NotInt))?;
    Ok(number.unsigned_abs())
}

impl BitsTest {
    /// The condition on the bits.
    pub fn wanted(&self) -> BitsWanted {
        self.wanted
    }

    /// The positions, ascending.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// Whether a value has bits, and they are as wanted.
    pub(crate) fn holds(&self, value: RawValue<'_>) -> bool {
        match value {
            RawValue::Binary(binary) => self.judge(|position| {
                binary
                    .bytes
                    .get((position / 8) as usize)
                    .is_some_and(|byte| byte & (1 << (position % 8)) != 0)
            }),
            value => match value.as_i64_exact() {
                Some(number) => self.judge(|position| number >> position.min(63) & 1 != 0),
                None => false,
            },
        }
    }

    fn judge(&self, is_set: impl Fn(u32) -> bool) -> bool {
        let mut positions = self.positions.iter().copied();
        match self.wanted {
            BitsWanted::AllSet => positions.all(is_set),
            BitsWanted::AnySet => positions.any(is_set),
            BitsWanted::AllClear => !positions.any(is_set),
            BitsWanted::AnyClear => !positions.all(is_set),
        }
    }
}
