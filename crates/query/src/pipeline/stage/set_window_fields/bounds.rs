//! The bounds of a window, by the numbers of documents or by the values of the sort field.
//!
//! The position `current` is the document itself, also among documents with equal values (observed on
//! MongoDB 6.0). Both ends of a window only move forward, as the documents are in order.

use std::cmp::Ordering;

use pando_document::{Number, Overflow, RawValue, compare_values};

use super::reader::Reader;
use super::sort_value;
use crate::error::QueryError;
use crate::expression::{Expression, FieldPath, ParseScope, TimeUnit};
use crate::needs::Needs;
use crate::pipeline::PipelineFault;
use crate::shell_text;
use crate::sort::Check;

/// One end of a window.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound<T> {
    Unbounded,
    Current,
    Offset(T),
}

/// Where a window begins and ends.
#[derive(Clone, Debug)]
pub(super) enum Bounds {
    Documents { lower: Bound<i64>, upper: Bound<i64> },
    Range { lower: Bound<Number>, upper: Bound<Number>, unit: Option<TimeUnit>, path: FieldPath },
}

/// The sort of the stage, as far as bounds depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SortField<'s> {
    /// The path of a sort by one field.
    pub(super) single: Option<&'s FieldPath>,
    /// Whether there is a `sortBy`, which may be empty.
    pub(super) is_given: bool,
    pub(super) is_ascending: bool,
}

impl Bounds {
    /// The whole partition.
    pub(super) const WHOLE: Bounds = Bounds::Documents { lower: Bound::Unbounded, upper: Bound::Unbounded };

    /// Parses the `window` of an output field.
    pub(super) fn parse(
        window: RawValue<'_>,
        sort: SortField<'_>,
        scope: &ParseScope,
    ) -> Result<Bounds, QueryError> {
        let RawValue::Document(window) = window else {
            return Err(QueryError::failed_to_parse("'window' field must be an object"));
        };
        let (documents, range, unit) = (window.get("documents")?, window.get("range")?, window.get("unit")?);
        for field in window.iter() {
            if !matches!(field?.0, "documents" | "range" | "unit") {
                return Err(QueryError::failed_to_parse(
                    "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field",
                ));
            }
        }
        match (documents, range) {
            (Some(_), Some(_)) => Err(QueryError::failed_to_parse(
                "Window bounds can specify either 'documents' or 'unit', not both.",
            )),
            (_, None) if unit.is_some() => Err(QueryError::failed_to_parse(
                "Window bounds can only specify 'unit' with range-based bounds.",
            )),
            (None, None) => Ok(Bounds::WHOLE),
            (Some(pair), None) => parse_documents(pair, sort, scope),
            (None, Some(pair)) => parse_range(pair, unit, sort, scope),
        }
    }

    /// Whether the window of each document begins with the first one.
    pub(super) fn is_left_unbounded(&self) -> bool {
        matches!(
            self,
            Bounds::Documents { lower: Bound::Unbounded, .. } | Bounds::Range { lower: Bound::Unbounded, .. }
        )
    }

    /// Adds the field that decides.
    pub(super) fn add_needs(&self, needs: &mut Needs) {
        match self {
            Bounds::Documents { .. } => {}
            Bounds::Range { path, .. } => needs.add(&path.text()),
        }
    }

    /// Whether the values of the sort field decide.
    pub(super) fn is_by_values(&self) -> bool {
        matches!(self, Bounds::Range { .. })
    }

    /// Whether the window of each document is the whole partition, whatever its values.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Bounds::Documents { lower: Bound::Unbounded, upper: Bound::Unbounded })
    }
}

fn parse_documents(
    pair: RawValue<'_>,
    sort: SortField<'_>,
    scope: &ParseScope,
) -> Result<Bounds, QueryError> {
    let (lower, upper) = parse_pair("documents", pair, |value| {
        let number = constant(value, scope)?.and_then(Number::to_i64_exact);
        number
            .filter(|number| i32::try_from(*number).is_ok())
            .ok_or_else(|| QueryError::failed_to_parse("Numeric document-based bounds must be an integer"))
    })?;
    let offset = |bound: Bound<i64>| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(0),
        Bound::Offset(offset) => Some(offset),
    };
    if let (Some(least), Some(most)) = (offset(lower), offset(upper))
        && least > most
    {
        return Err(PipelineFault::WindowBoundsCross
            .error(format!("Lower bound must not exceed upper bound: [{least}, {most}]")));
    }
    let is_whole = matches!((lower, upper), (Bound::Unbounded, Bound::Unbounded));
    if !is_whole && !sort.is_given {
        return Err(PipelineFault::WindowWithoutSort.error("Document-based bounds require a sortBy"));
    }
    Ok(Bounds::Documents { lower, upper })
}

fn parse_range(
    pair: RawValue<'_>,
    unit: Option<RawValue<'_>>,
    sort: SortField<'_>,
    scope: &ParseScope,
) -> Result<Bounds, QueryError> {
    let unit = match unit {
        None => None,
        Some(RawValue::String(name)) => Some(parse_unit(name)?),
        Some(_) => return Err(QueryError::failed_to_parse("'unit' must be a string")),
    };
    let (lower, upper) = parse_pair("range", pair, |value| {
        let Some(number) = constant(value, scope)? else {
            return Err(QueryError::failed_to_parse("Range-based bounds expression must be a number"));
        };
        if unit.is_some() && number.to_i64_exact().is_none() {
            return Err(QueryError::failed_to_parse("With 'unit', range-based bounds must be an integer"));
        }
        Ok(number)
    })?;
    let offset = |bound: Bound<Number>| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(Number::Int32(0)),
        Bound::Offset(offset) => Some(offset),
    };
    if let (Some(least), Some(most)) = (offset(lower), offset(upper))
        && compare_values(least.to_raw(), most.to_raw()) == Ordering::Greater
    {
        return Err(PipelineFault::WindowBoundsCross.error(format!(
            "Lower bound must not exceed upper bound: [{}, {}]",
            shell_text::value_text(least.to_raw()),
            shell_text::value_text(most.to_raw())
        )));
    }
    let Some(path) = sort.single else {
        return Err(PipelineFault::RangeWithoutSort.error("Range-based bounds require sortBy a single field"));
    };
    if !sort.is_ascending {
        return Err(PipelineFault::RangeDescending.error("Range-based bounds require an ascending sortBy"));
    }
    Ok(Bounds::Range { lower, upper, unit, path: path.clone() })
}

/// The unit of a name.
pub(super) fn parse_unit(name: &str) -> Result<TimeUnit, QueryError> {
    TimeUnit::parse(name)
        .ok_or_else(|| QueryError::failed_to_parse(format!("unknown time unit value: {name}")))
}

fn parse_pair<T>(
    name: &str,
    pair: RawValue<'_>,
    mut parse_offset: impl FnMut(RawValue<'_>) -> Result<T, QueryError>,
) -> Result<(Bound<T>, Bound<T>), QueryError> {
    let mut parse = |value: RawValue<'_>| match value {
        RawValue::String("unbounded") => Ok(Bound::Unbounded),
        RawValue::String("current") => Ok(Bound::Current),
        RawValue::String(_) => {
            Err(QueryError::failed_to_parse("Window bounds must be 'unbounded', 'current', or a number."))
        }
        other => parse_offset(other).map(Bound::Offset),
    };
    let mut elements = pair.as_array().map(|array| array.iter()).into_iter().flatten();
    match (elements.next(), elements.next(), elements.next()) {
        (Some(lower), Some(upper), None) => Ok((parse(lower?)?, parse(upper?)?)),
        _ => Err(QueryError::failed_to_parse(format!(
            "Window bounds must be a 2-element array: {name}: {}",
            shell_text::value_text(pair)
        ))),
    }
}

/// The number that an expression without fields is; `None` where it is something else.
fn constant(value: RawValue<'_>, scope: &ParseScope) -> Result<Option<Number>, QueryError> {
    let expression = Expression::of_pipeline(value, scope)?;
    Ok(expression.as_constant().and_then(Number::from_value))
}

/// The window of one document after the other.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// The number of the first document.
    pub(super) begin: usize,
    /// The number behind the last one.
    pub(super) end: usize,
}

impl Window {
    /// Moves on to the window of a document.
    pub(super) fn move_to(
        &mut self,
        bounds: &Bounds,
        at: usize,
        reader: &mut Reader,
        check: Check<'_>,
    ) -> Result<(), QueryError> {
        match bounds {
            Bounds::Documents { lower, upper } => {
                self.begin = match lower {
                    Bound::Unbounded => 0,
                    Bound::Current => at,
                    Bound::Offset(offset) => shifted(at, *offset),
                };
                let wanted = match upper {
                    Bound::Unbounded => usize::MAX,
                    Bound::Current => at + 1,
                    Bound::Offset(offset) => shifted(at + 1, *offset),
                };
                while self.end < wanted && reader.document(self.end, check)?.is_some() {
                    self.end += 1;
                }
            }
            Bounds::Range { lower, upper, unit, path } => {
                let range = Range { unit: *unit, path };
                let Some(current) = range.value(at, reader, check)? else { return Ok(()) };
                self.begin = match lower {
                    Bound::Unbounded => 0,
                    Bound::Current => at,
                    Bound::Offset(offset) => {
                        let least = range.plus(current, *offset);
                        range.first_behind(self.begin, reader, check, |value| {
                            compare_values(value, least) == Ordering::Less
                        })?
                    }
                };
                self.end = match upper {
                    Bound::Current => at + 1,
                    Bound::Unbounded => range.first_behind(self.end, reader, check, |_| true)?,
                    Bound::Offset(offset) => {
                        let most = range.plus(current, *offset);
                        range.first_behind(self.end, reader, check, |value| {
                            compare_values(value, most) != Ordering::Greater
                        })?
                    }
                };
            }
        }
        Ok(())
    }
}

fn shifted(at: usize, offset: i64) -> usize {
    usize::try_from((at as i64).saturating_add(offset)).unwrap_or(0)
}

/// A window by values.
#[derive(Clone, Copy)]
struct Range<'b> {
    unit: Option<TimeUnit>,
    path: &'b FieldPath,
}

impl Range<'_> {
    /// The sort value of a document: a number, or with a unit a date.
    fn value(
        self,
        at: usize,
        reader: &mut Reader,
        check: Check<'_>,
    ) -> Result<Option<RawValue<'static>>, QueryError> {
        let Some(document) = reader.document(at, check)? else { return Ok(None) };
        let value = sort_value(self.path, document)?;
        let type_name = value.type_name();
        match (value.raw(), self.unit) {
            (Some(RawValue::DateTime(millis)), Some(_)) => Ok(Some(RawValue::DateTime(millis))),
            (_, Some(_)) => Err(PipelineFault::RangeWantsDates.error(format!(
                "Invalid range: Expected the sortBy field to be a Date, but it was {type_name}"
            ))),
            (Some(RawValue::DateTime(_)), None) => Err(PipelineFault::RangeWantsUnit.error(
                "Invalid range: For windows that involve date or time ranges, a unit must be provided.",
            )),
            (_, None) => match value.as_number() {
                Some(number) => Ok(Some(number.to_raw())),
                None => Err(PipelineFault::RangeWantsNumbers.error(format!(
                    "Invalid range: Expected the sortBy field to be a number, but it was {type_name}"
                ))),
            },
        }
    }

    fn plus(self, value: RawValue<'static>, offset: Number) -> RawValue<'static> {
        match (value, self.unit) {
            (RawValue::DateTime(millis), Some(unit)) => {
                let amount = offset.to_i64_exact().unwrap_or(0);
                let end = if amount < 0 { i64::MIN } else { i64::MAX };
                RawValue::DateTime(unit.shifted(millis, amount).unwrap_or(end))
            }
            (value, _) => {
                let sum = Number::from_value(value).and_then(|value| value.add(offset, Overflow::Double));
                sum.map_or(value, Number::to_raw)
            }
        }
    }

    /// The number of the first document from one on whose value does not pass.
    fn first_behind(
        self,
        from: usize,
        reader: &mut Reader,
        check: Check<'_>,
        passes: impl Fn(RawValue<'_>) -> bool,
    ) -> Result<usize, QueryError> {
        let mut at = from;
        while let Some(value) = self.value(at, reader, check)?
            && passes(value)
        {
            at += 1;
        }
        Ok(at)
    }
}
