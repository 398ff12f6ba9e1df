//! A patch: update operators as bytes, and what they make of a document. An engine applies it to a document
//! that nobody has read.
//!
//! # Encoding
//! A document. The name of each field is the character of an operator and a path; its value is the operand.
//!
//! | character | operator | operand |
//! |---|---|---|
//! | `=` | `$set` | any value |
//! | `-` | `$unset` | null |
//! | `+`, `*` | `$inc`, `$mul` | a number |
//! | `<`, `>` | `$min`, `$max`, in the simple order of values | any value |
//! | `&` | `$bit` | a document of `and`, `or` and `xor`, with integers |
//! | `]` | `$push` of one value | any value |
//!
//! A path names fields by their names, never elements of arrays. Paths ascend in the order in which new
//! fields are added ([`compare_names`]), and none of them leads to another.
//!
//! # Invariants
//! - The meaning of an encoding never changes: logs and trees keep it. Another meaning gets another
//!   character.
//! - It is total. Where an operator fails, or the result is larger than a document may be, the document stays
//!   as it is, and so do bytes that are no document.
//! - It depends on nothing but the document: no clock, no collation, no option.
//!
//! # Not here
//! Which updates may go down as patches: the crates `query` (operators) and `catalog` (indexes).

mod apply;
mod encode;

use std::cmp::Ordering;

pub use encode::{PatchChange, Unencodable, encode};

use crate::{Number, RawDocument, RawValue, compare_values};

/// Longest encoding of a patch, in bytes.
pub const PATCH_BYTES_MAX: usize = 1_900;

/// Most steps of a path. With [`OPERAND_NESTING_MAX`] no patch nests a document deeper than one may be
/// stored.
const STEPS_MAX: usize = 32;

/// Most documents and arrays within one another in an operand.
const OPERAND_NESTING_MAX: usize = 100;

/// An operator of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchOperator {
    /// `$set`.
    Set,
    /// `$unset`.
    Unset,
    /// `$inc`.
    Add,
    /// `$mul`.
    Multiply,
    /// `$min`.
    Least,
    /// `$max`.
    Greatest,
    /// `$bit`.
    Bits,
    /// `$push` of one value.
    Push,
}

impl PatchOperator {
    const fn character(self) -> char {
        match self {
            PatchOperator::Set => '=',
            PatchOperator::Unset => '-',
            PatchOperator::Add => '+',
            PatchOperator::Multiply => '*',
            PatchOperator::Least => '<',
            PatchOperator::Greatest => '>',
            PatchOperator::Bits => '&',
            PatchOperator::Push => ']',
        }
    }

    fn of_character(character: char) -> Option<PatchOperator> {
        Some(match character {
            '=' => PatchOperator::Set,
            '-' => PatchOperator::Unset,
            '+' => PatchOperator::Add,
            '*' => PatchOperator::Multiply,
            '<' => PatchOperator::Least,
            '>' => PatchOperator::Greatest,
            '&' => PatchOperator::Bits,
            ']' => PatchOperator::Push,
            _ => return None,
        })
    }

    /// Whether it makes a field that is not there.
    const fn creates(self) -> bool {
        !matches!(self, PatchOperator::Unset)
    }

    fn takes(self, operand: RawValue<'_>) -> bool {
        match self {
            PatchOperator::Set | PatchOperator::Least | PatchOperator::Greatest | PatchOperator::Push => true,
            PatchOperator::Unset => operand.is_null(),
            PatchOperator::Add | PatchOperator::Multiply => Number::from_value(operand).is_some(),
            PatchOperator::Bits => match operand {
                RawValue::Document(steps) => {
                    !steps.is_empty()
                        && steps.iter().all(|step| {
                            let is_integer = |value| matches!(value, RawValue::Int32(_) | RawValue::Int64(_));
                            step.is_ok_and(|(name, value)| {
                                matches!(name, "and" | "or" | "xor") && is_integer(value)
                            })
                        })
                }
                _ => false,
            },
        }
    }
}

/// A patch whose encoding was checked.
#[derive(Clone, Debug)]
pub struct Patch<'p> {
    /// Ascending by path.
    steps: Vec<Step<'p>>,
}

/// An operator at its place.
#[derive(Clone, Debug)]
struct Step<'p> {
    operator: PatchOperator,
    path: Vec<&'p str>,
    operand: RawValue<'p>,
}

impl<'p> Patch<'p> {
    /// The patch of an encoding; `None` if it is none.
    pub fn decode(bytes: &'p [u8]) -> Option<Patch<'p>> {
        if bytes.len() > PATCH_BYTES_MAX {
            return None;
        }
        let limits = crate::Limits { bytes_max: PATCH_BYTES_MAX, nesting_max: OPERAND_NESTING_MAX };
        crate::validate(bytes, &limits).ok()?;
        let mut steps: Vec<Step<'p>> = Vec::new();
        for field in RawDocument::from_bytes(bytes).ok()?.iter() {
            let (name, operand) = field.ok()?;
            let operator = PatchOperator::of_character(name.chars().next()?)?;
            let path = path_of(&name[1..])?;
            let follows = steps.last().is_none_or(|last| {
                compare_paths(&last.path, &path) == Ordering::Less && !path.starts_with(&last.path)
            });
            if !follows || !operator.takes(operand) {
                return None;
            }
            steps.push(Step { operator, path, operand });
        }
        (!steps.is_empty()).then_some(Patch { steps })
    }
}

/// The steps of a path of fields; `None` for one that names `_id`, an element of an array, or a place that
/// depends on more than the document.
fn path_of(path: &str) -> Option<Vec<&str>> {
    let steps: Vec<&str> = path.split('.').collect();
    let is_plain = |step: &&str| {
        !step.is_empty() && !step.starts_with('$') && !step.bytes().all(|byte| byte.is_ascii_digit())
    };
    (steps[0] != "_id" && steps.len() <= STEPS_MAX && steps.iter().all(is_plain)).then_some(steps)
}

fn compare_paths(a: &[&str], b: &[&str]) -> Ordering {
    let steps = a.iter().zip(b).map(|(a, b)| compare_names(a, b));
    steps.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
}

/// The order in which update operators add new fields: names that start with digits by that number,
/// everything else by bytes.
pub fn compare_names(a: &str, b: &str) -> Ordering {
    match (leading_number(a), leading_number(b)) {
        (Some(x), Some(y)) if x != y => (x.len(), x).cmp(&(y.len(), y)),
        _ => a.cmp(b),
    }
}

/// The digits that a name starts with, without leading zeroes.
fn leading_number(name: &str) -> Option<&str> {
    let end = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
    (end > 0).then(|| name[..end].trim_start_matches('0'))
}

/// Whether arithmetic has left a number as it was: the same number of the same type. NaN is never the same,
/// so that a calculation with it counts as a change.
pub fn is_same_number(old: Number, new: Number) -> bool {
    match (old, new) {
        (Number::Int32(old), Number::Int32(new)) => old == new,
        (Number::Int64(old), Number::Int64(new)) => old == new,
        (Number::Double(old), Number::Double(new)) => old == new,
        (Number::Decimal128(old), Number::Decimal128(new)) => {
            !new.is_nan() && compare_values(RawValue::Decimal128(old), RawValue::Decimal128(new)).is_eq()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
