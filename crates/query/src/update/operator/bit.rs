//! `$bit`: an integer, changed bit by bit with `and`, `or` and `xor`, in the order in which they stand.

use pando_document::{RawValue, Value};

use super::{Effect, Operator, Surroundings, argument_text, bad_value};
use crate::error::QueryError;
use crate::identity::is_identical;
use crate::update::trail::{Trail, document_text};

/// An integer with its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Integer {
    Int32(i32),
    Int64(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    And(Integer),
    Or(Integer),
    Xor(Integer),
}

#[derive(Debug)]
struct Bit {
    steps: Vec<Step>,
}

pub(super) fn parse(argument: RawValue<'_>) -> Result<Box<dyn Operator>, QueryError> {
    let RawValue::Document(clauses) = argument else {
        return Err(bad_value(format!(
            "The $bit modifier is not compatible with a {}. You must pass in an embedded document: \
             {{$bit: {{field: {{and/or/xor: #}}}}",
            argument.element_type().alias()
        )));
    };
    let mut steps = Vec::new();
    for clause in clauses.iter() {
        let (name, value) = clause?;
        steps.push(parse_step(name, value)?);
    }
    if steps.is_empty() {
        return Err(bad_value(
            "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}"
                .to_owned(),
        ));
    }
    Ok(Box::new(Bit { steps }))
}

fn parse_step(name: &str, value: RawValue<'_>) -> Result<Step, QueryError> {
    let build = match name {
        "and" => Step::And,
        "or" => Step::Or,
        "xor" => Step::Xor,
        _ => {
            return Err(bad_value(format!(
                "The $bit modifier only supports 'and', 'or', and 'xor', not '{name}' which is an unknown operator: {}",
                argument_text(name, value)
            )));
        }
    };
    match Integer::from_raw(value) {
        Some(operand) => Ok(build(operand)),
        None => Err(bad_value(format!(
            "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {}",
            value.element_type().alias(),
            argument_text(name, value)
        ))),
    }
}

impl Integer {
    fn from_raw(value: RawValue<'_>) -> Option<Integer> {
        match value {
            RawValue::Int32(number) => Some(Integer::Int32(number)),
            RawValue::Int64(number) => Some(Integer::Int64(number)),
            _ => None,
        }
    }

    fn to_raw(self) -> RawValue<'static> {
        match self {
            Integer::Int32(number) => RawValue::Int32(number),
            Integer::Int64(number) => RawValue::Int64(number),
        }
    }

    /// The wider of the two types decides the result's.
    fn combine(self, other: Integer, combine: impl Fn(i64, i64) -> i64) -> Integer {
        match (self, other) {
            // Both are sign-extended, so the upper half of the result is the sign of the lower.
            (Integer::Int32(a), Integer::Int32(b)) => {
                Integer::Int32(combine(i64::from(a), i64::from(b)) as i32)
            }
            (a, b) => Integer::Int64(combine(a.wide(), b.wide())),
        }
    }

    fn wide(self) -> i64 {
        match self {
            Integer::Int32(number) => i64::from(number),
            Integer::Int64(number) => number,
        }
    }
}

impl Bit {
    fn run(&self, start: Integer) -> Integer {
        self.steps.iter().fold(start, |value, step| match step {
            Step::And(operand) => value.combine(*operand, |a, b| a & b),
            Step::Or(operand) => value.combine(*operand, |a, b| a | b),
            Step::Xor(operand) => value.combine(*operand, |a, b| a ^ b),
        })
    }
}

impl Operator for Bit {
    fn apply<'v>(
        &'v self,
        old: RawValue<'v>,
        surroundings: &Surroundings<'v>,
        trail: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        let Some(start) = Integer::from_raw(old) else {
            let document = document_text(surroundings.root);
            return Err(bad_value(format!(
                "Cannot apply $bit to a value of non-integral type.{} has the field {} of non-integer type {}",
                document.trim_start_matches('{').trim_end_matches('}'),
                trail.last_name(),
                old.element_type().alias()
            )));
        };
        let new = self.run(start).to_raw();
        Ok(if is_identical(new, old) { Effect::Keep } else { Effect::Put(new) })
    }

    fn create<'v>(&'v self, _: &Surroundings<'v>, _: &Trail<'_>) -> Result<Effect<'v>, QueryError> {
        Ok(Effect::PutValue(match self.run(Integer::Int32(0)) {
            Integer::Int32(number) => Value::Int32(number),
            Integer::Int64(number) => Value::Int64(number),
        }))
    }

    fn creates(&self, _: &Surroundings<'_>) -> bool {
        true
    }
}
