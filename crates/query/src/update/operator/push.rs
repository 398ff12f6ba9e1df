//! `$push`: values go into an array, which may then be sorted and cut.
//!
//! `{$push: {a: value}}` appends one; `{$push: {a: {$each: […], $position, $sort, $slice}}}`:
//! 1. the values are put in at `$position` (from the end if negative; at the end without it);
//! 2. the array is sorted by `$sort`, stably;
//! 3. `$slice: n` keeps the first n, or the last |n| if negative.
//!
//! A missing array is made. No values, no sort and nothing to cut is no change.

use pando_collation::TextOrder;
use pando_document::{RawArray, RawDocument, RawValue};

use super::pop::collect;
use super::{Effect, Operator, Surroundings, bad_value};
use crate::array_build::build_array;
use crate::array_sort::ArraySort;
use crate::error::QueryError;
use crate::literal::Literal;
use crate::update::trail::{Trail, document_text};

#[derive(Debug)]
struct Push {
    values: Vec<Literal>,
    position: Option<i64>,
    sort: Option<ArraySort>,
    slice: Option<i64>,
}

pub(super) fn parse(argument: RawValue<'_>, order: &TextOrder) -> Result<Box<dyn Operator>, QueryError> {
    if let RawValue::Document(clauses) = argument
        && let Some(each) = clauses.get("$each")?
    {
        return Ok(Box::new(parse_clauses(each, clauses, order)?));
    }
    Ok(Box::new(Push { values: vec![Literal::new(argument)], position: None, sort: None, slice: None }))
}

fn parse_clauses(each: RawValue<'_>, clauses: &RawDocument, order: &TextOrder) -> Result<Push, QueryError> {
    let RawValue::Array(each) = each else {
        return Err(bad_value(format!(
            "The argument to $each in $push must be an array but it was of type: {}",
            each.element_type().alias()
        )));
    };
    let mut push = Push { values: parse_each(each)?, position: None, sort: None, slice: None };
    for clause in clauses.iter() {
        let (name, value) = clause?;
        match name {
            "$each" => {}
            "$position" => push.position = Some(parse_position(value)?),
            "$slice" => push.slice = Some(parse_slice(value)?),
            "$sort" => push.sort = Some(ArraySort::parse(value, order)?),
            _ => return Err(bad_value(format!("Unrecognized clause in $push: {name}"))),
        }
    }
    Ok(push)
}

/// The values of `$each`.
pub(super) fn parse_each(each: &RawArray) -> Result<Vec<Literal>, QueryError> {
    let mut values = Vec::new();
    for value in each.iter() {
        values.push(Literal::new(value?));
    }
    Ok(values)
}

fn parse_position(value: RawValue<'_>) -> Result<i64, QueryError> {
    value.as_i64_exact().ok_or_else(|| {
        bad_value(format!(
            "The value for $position must be an integer value, not of type: {}",
            value.element_type().alias()
        ))
    })
}

fn parse_slice(value: RawValue<'_>) -> Result<i64, QueryError> {
    value.as_i64_exact().ok_or_else(|| {
        bad_value(format!(
            "The value for $slice must be an integer value but was given type: {}",
            value.element_type().alias()
        ))
    })
}

impl Push {
    /// The elements after the push.
    fn run<'v>(&'v self, mut elements: Vec<RawValue<'v>>) -> Result<Vec<RawValue<'v>>, QueryError> {
        let at = self.insertion_point(elements.len());
        elements.splice(at..at, self.values.iter().map(Literal::raw));
        if let Some(sort) = &self.sort {
            sort.sort(&mut elements);
        }
        match self.slice {
            Some(slice) if slice >= 0 => elements.truncate(usize::try_from(slice).unwrap_or(usize::MAX)),
            Some(slice) => {
                let kept = usize::try_from(slice.unsigned_abs()).unwrap_or(usize::MAX);
                elements.drain(..elements.len().saturating_sub(kept));
            }
            None => {}
        }
        Ok(elements)
    }

    fn insertion_point(&self, length: usize) -> usize {
        match self.position {
            None => length,
            Some(position) if position >= 0 => usize::try_from(position).unwrap_or(usize::MAX).min(length),
            Some(position) => {
                length.saturating_sub(usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX))
            }
        }
    }
}

impl Operator for Push {
    fn apply<'v>(
        &'v self,
        old: RawValue<'v>,
        surroundings: &Surroundings<'v>,
        trail: &Trail<'_>,
    ) -> Result<Effect<'v>, QueryError> {
        let RawValue::Array(array) = old else {
            return Err(bad_value(format!(
                "The field '{}' must be an array but is of type {} in document {}",
                trail.path(),
                old.element_type().alias(),
                document_text(surroundings.root)
            )));
        };
        let elements = collect(array)?;
        let length = elements.len();
        let new = self.run(elements)?;
        // A push of something counts as a change, and so does sorting, even where the
        // result is the same array.
        let is_idle = self.values.is_empty() && self.sort.is_none() && new.len() == length;
        Ok(if is_idle { Effect::Keep } else { Effect::PutArray(build_array(new)) })
    }

    fn create<'v>(&'v self, _: &Surroundings<'v>, _: &Trail<'_>) -> Result<Effect<'v>, QueryError> {
        Ok(Effect::PutArray(build_array(self.run(Vec::new())?)))
    }

    fn creates(&self, _: &Surroundings<'_>) -> bool {
        true
    }
}
