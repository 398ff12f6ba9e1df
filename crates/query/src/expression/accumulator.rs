//! Accumulators: functions of many values, such as `$sum` and `$push`. One file each.
//!
//! An accumulator takes one value after the other, and gives one value at the end. `$group` keeps one in each
//! group; the expressions `$sum`, `$avg`, `$min` … feed one with the elements of an array.
//!
//! Not here: how `$group` parses and chooses them (`pipeline/accumulator.rs`).

mod add_to_set;
mod avg;
mod count;
mod covariance;
mod each_element;
mod ends;
mod extreme;
mod extreme_n;
mod integral;
mod merge_objects;
mod percentiles;
mod push;
mod std_dev;
mod sum;
mod top;

use std::any::Any;
use std::fmt::Debug;

use pando_document::{ArrayWriter, RawArray, RawDocument, RawValue};

pub(crate) use self::add_to_set::AddToSet;
pub(crate) use self::avg::Avg;
pub(crate) use self::count::Count;
pub(crate) use self::covariance::Covariance;
pub(crate) use self::each_element::EachElement;
pub(crate) use self::ends::{First, FirstN, Last, LastN};
pub(crate) use self::extreme::{Extreme, Wanted};
pub(crate) use self::extreme_n::ExtremeN;
pub(crate) use self::integral::Integral;
pub(crate) use self::merge_objects::MergeObjects;
pub(crate) use self::percentiles::{PercentileShape, Percentiles};
pub(crate) use self::push::Push;
pub(crate) use self::std_dev::{Deviation, StdDev};
pub(crate) use self::sum::Sum;
pub(crate) use self::top::{End, Shape, Ties, Top};

use super::evaluated::{Evaluated, array_of};
use crate::error::{ErrorCode, QueryError};
use crate::literal::Literal;

/// The state of one accumulator.
pub(crate) trait Accumulator: Any + Debug + Send {
    /// Takes one value in.
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError>;

    /// Takes one value in so many times.
    fn add_times(&mut self, value: &Evaluated<'_>, times: u64) -> Result<(), QueryError> {
        for _ in 0..times {
            if self.is_full() {
                break;
            }
            self.add(value)?;
        }
        Ok(())
    }

    /// The result so far.
    fn finish(&self) -> Result<Evaluated<'static>, QueryError>;

    /// The result over a window that slides. Some accumulators give another number type there in MongoDB
    /// (observed on 6.0).
    fn finish_in_sliding_window(&self) -> Result<Evaluated<'static>, QueryError> {
        self.finish()
    }

    /// Whether no further value can change the result.
    fn is_full(&self) -> bool {
        false
    }

    /// Bytes held beyond the accumulator itself.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Appends the state as one value, of which [`merge`](Accumulator::merge) makes it again.
    fn save(&self, out: &mut ArrayWriter<'_>);

    /// Takes in a state that was saved: of values that come after those which this one has.
    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError>;
}

/// Takes in a state of the same accumulator: of values that come after those which the first one has.
pub(crate) fn absorb(
    state: &mut (dyn Accumulator + 'static),
    later: &(dyn Accumulator + 'static),
) -> Result<(), QueryError> {
    let any: &mut dyn Any = &mut *state;
    let later_any: &dyn Any = later;
    // The commonest ones need no bytes in between.
    if let (Some(sum), Some(later)) = (any.downcast_mut::<Sum>(), later_any.downcast_ref::<Sum>()) {
        sum.absorb(later);
        return Ok(());
    }
    if let (Some(mean), Some(later)) = (any.downcast_mut::<Avg>(), later_any.downcast_ref::<Avg>()) {
        mean.absorb(later);
        return Ok(());
    }
    let mut bytes = Vec::with_capacity(96);
    let mut out = ArrayWriter::begin(&mut bytes);
    later.save(&mut out);
    out.finish();
    let saved = RawArray::from_document(RawDocument::from_bytes(&bytes)?);
    saved.iter().try_for_each(|saved| state.merge(saved?))
}

/// Appends kept values as a saved state.
fn save_all<'k>(values: impl Iterator<Item = &'k Literal>, out: &mut ArrayWriter<'_>) {
    let mut array = out.array();
    values.for_each(|value| array.push(value.raw()));
    array.finish();
}

/// Calls `take` with each value of a saved state.
fn for_saved(
    saved: RawValue<'_>,
    mut take: impl FnMut(RawValue<'_>) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    let RawValue::Array(values) = saved else { return Err(not_saved()) };
    values.iter().try_for_each(|value| take(value?))
}

/// The error of a value that is no saved state. Checksums find damage before, so it is a defect.
pub(crate) fn not_saved() -> QueryError {
    QueryError::new(ErrorCode::InternalError, "a group's saved state cannot be read: report this defect")
}

/// A copy that a state can keep; null for a missing value.
fn keep(value: &Evaluated<'_>) -> Literal {
    Literal::new(value.raw_or_null())
}

/// Adds a copy to kept values. The first has no room beside it: most groups may have one value.
fn push_kept(values: &mut Vec<Literal>, value: &Evaluated<'_>) {
    if values.is_empty() {
        values.reserve_exact(1);
    }
    values.push(keep(value));
}

/// The memory of the room that kept values do not use.
fn unused_bytes(values: &Vec<Literal>) -> usize {
    (values.capacity() - values.len()) * size_of::<Literal>()
}

/// The kept values as an array.
fn give_all<'k>(values: impl Iterator<Item = &'k Literal>) -> Result<Evaluated<'static>, QueryError> {
    array_of(|writer| {
        values.for_each(|value| writer.push(value.raw()));
        Ok(())
    })
}

/// The kept value as a result.
fn give(literal: Literal) -> Evaluated<'static> {
    Evaluated::Held(literal)
}

/// How many bytes a value takes, roughly.
fn bytes_of(value: &Evaluated<'_>) -> usize {
    const SCALAR: usize = 16;
    match value.raw() {
        Some(RawValue::String(text)) => SCALAR + text.len(),
        Some(RawValue::Document(document)) => SCALAR + document.as_bytes().len(),
        Some(RawValue::Array(array)) => SCALAR + array.as_bytes().len(),
        Some(RawValue::Binary(binary)) => SCALAR + binary.bytes.len(),
        _ => SCALAR,
    }
}

/// The error of an accumulator of arrays that meets something else.
fn not_array(operator: &str, value: &Evaluated<'_>) -> QueryError {
    QueryError::type_mismatch(format!(
        "{operator} requires array inputs, but input {} is of type {}",
        value.shell_text(),
        value.type_name()
    ))
}
