//! The functions of windows at work on one partition: the value of one document after the other.

use std::cmp::Ordering;

use pando_collation::TextOrder;
use pando_document::{
    Decimal128, DoubleDigits, Number, Overflow, RawDocument, RawDocumentBuf, RawValue, compare_values,
};

use super::bounds::Window;
use super::function::{Derivative, Function, MinMaxScaler, RankKind};
use super::reader::Reader;
use super::sort_value;
use super::windowed::Windowed;
use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, FieldPath, narrowed};
use crate::literal::Literal;
use crate::pipeline::PipelineFault;
use crate::sort::Check;

/// A function with its state.
pub(super) enum Running {
    Windowed(Windowed),
    Slope(Derivative, Window),
    Scaler(Box<Scaling>),
    Rank(Ranking),
    Shift { output: Expression, by: i64, default: RawDocumentBuf, at: usize },
    Average { input: Expression, alpha: Decimal128, last: Option<Average> },
    Fill(Filling),
    Last { input: Expression, last: Option<Literal> },
}

/// A scaler, with the least and the greatest value of each window.
pub(super) struct Scaling {
    scaler: Box<MinMaxScaler>,
    least: Windowed,
    greatest: Windowed,
}

/// The ranks up to a document.
pub(super) struct Ranking {
    kind: RankKind,
    path: FieldPath,
    documents: i64,
    rank: i64,
    /// The sort value of the document; `None` of a missing one.
    value: Option<Literal>,
    order: TextOrder,
}

/// An exponential moving average. It is a decimal within, so that it rounds as MongoDB's does.
#[derive(Clone, Copy)]
pub(super) struct Average {
    value: Decimal128,
    is_decimal: bool,
}

/// Linear interpolation between the known values around a document.
pub(super) struct Filling {
    input: Expression,
    along: FieldPath,
    /// Where the last document was.
    place: Option<RawValue<'static>>,
    before: Option<Point>,
    /// The next known value, and the number of its document; no value where there is none.
    next: Option<(usize, Option<Point>)>,
}

#[derive(Clone, Copy)]
struct Point {
    x: RawValue<'static>,
    y: Number,
}

impl Running {
    /// The state at the start of a partition.
    pub(super) fn new(function: &Function) -> Running {
        match function {
            Function::Accumulate(call, bounds) => Running::Windowed(Windowed::new(call, bounds)),
            Function::Derivative(derivative) => Running::Slope(derivative.clone(), Window::default()),
            Function::MinMaxScaler(scaler) => Running::Scaler(Box::new(Scaling {
                least: Windowed::new(&scaler.least, &scaler.bounds),
                greatest: Windowed::new(&scaler.greatest, &scaler.bounds),
                scaler: scaler.clone(),
            })),
            Function::Rank(kind, path, order) => {
                let (path, order) = (path.clone(), order.clone());
                Running::Rank(Ranking { kind: *kind, path, documents: 0, rank: 0, value: None, order })
            }
            Function::Shift { output, by, default } => {
                Running::Shift { output: output.clone(), by: *by, default: default.clone(), at: 0 }
            }
            Function::ExpMovingAvg { input, alpha } => Running::Average {
                input: input.clone(),
                alpha: alpha.to_decimal(DoubleDigits::Fifteen),
                last: None,
            },
            Function::LinearFill { input, along } => Running::Fill(Filling {
                input: input.clone(),
                along: along.clone(),
                place: None,
                before: None,
                next: None,
            }),
            Function::LastObservation(input) => Running::Last { input: input.clone(), last: None },
        }
    }

    /// The value of a document. They are asked for in order.
    pub(super) fn value(
        &mut self,
        at: usize,
        root: &RawDocument,
        reader: &mut Reader,
        check: Check<'_>,
    ) -> Result<Evaluated<'static>, QueryError> {
        match self {
            Running::Windowed(windowed) => windowed.value(at, reader, check),
            Running::Slope(derivative, window) => {
                window.move_to(&derivative.bounds, at, reader, check)?;
                slope(derivative, window, reader, check)
            }
            Running::Scaler(scaling) => {
                let least = scaling.least.value(at, reader, check)?;
                let greatest = scaling.greatest.value(at, reader, check)?;
                scaled(&scaling.scaler, root, (&least, &greatest))
            }
            Running::Rank(ranking) => ranking.next(root),
            Running::Shift { output, by, default, at: asked } => {
                *asked = at;
                let other = usize::try_from((at as i64).saturating_add(*by)).ok();
                let other = match other {
                    Some(other) => reader.document(other, check)?,
                    None => None,
                };
                // A missing value counts as a missing document.
                if let Some(document) = other
                    && let Some(value) = output.evaluate(document)?.raw()
                {
                    return Ok(Evaluated::owned(value));
                }
                let default = default.iter().next().transpose()?;
                Ok(default.map_or(Evaluated::NULL, |(_, value)| Evaluated::owned(value)))
            }
            Running::Average { input, alpha, last } => {
                if let Some(number) = input.evaluate(root)?.as_number() {
                    *last = Some(Average::next(*last, number, *alpha));
                }
                Ok(last.map_or(Evaluated::NULL, Average::result))
            }
            Running::Fill(filling) => filling.value(at, root, reader, check),
            Running::Last { input, last } => {
                let value = input.evaluate(root)?;
                if !value.is_nullish() {
                    *last = Some(Literal::new(value.raw_or_null()));
                }
                Ok(last.clone().map_or(Evaluated::NULL, Evaluated::Held))
            }
        }
    }

    /// The number of the first document that later values may look at.
    pub(super) fn first_needed(&self) -> usize {
        match self {
            Running::Windowed(windowed) => windowed.first_needed(),
            Running::Slope(_, window) => window.begin,
            Running::Scaler(scaling) => scaling.least.first_needed().min(scaling.greatest.first_needed()),
            Running::Shift { by, at, .. } if *by < 0 => at.saturating_sub(by.unsigned_abs() as usize),
            Running::Shift { .. }
            | Running::Rank(_)
            | Running::Average { .. }
            | Running::Fill(_)
            | Running::Last { .. } => usize::MAX,
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Running::Windowed(windowed) => windowed.held_bytes(),
            Running::Scaler(scaling) => scaling.least.held_bytes() + scaling.greatest.held_bytes(),
            _ => 0,
        }
    }
}

impl Ranking {
    fn next(&mut self, root: &RawDocument) -> Result<Evaluated<'static>, QueryError> {
        self.documents += 1;
        if self.kind == RankKind::DocumentNumber {
            return Ok(Evaluated::number(narrowed(self.documents)));
        }
        let value = sort_value(&self.path, root)?;
        let known = self.value.as_ref().map_or(Evaluated::Missing, |value| Evaluated::Raw(value.raw()));
        let is_new = self.documents == 1 || known.compare(&value, &self.order) != Ordering::Equal;
        if is_new {
            self.rank = match self.kind {
                RankKind::DenseRank => self.rank + 1,
                RankKind::Rank | RankKind::DocumentNumber => self.documents,
            };
            self.value = value.raw().map(Literal::new);
        }
        Ok(Evaluated::number(narrowed(self.rank)))
    }
}

impl Average {
    fn next(last: Option<Average>, number: Number, alpha: Decimal128) -> Average {
        let value = number.to_decimal(DoubleDigits::Fifteen);
        let is_decimal = matches!(number, Number::Decimal128(_));
        match last {
            None => Average { value, is_decimal },
            Some(last) => Average {
                value: value.multiply(alpha).add(last.value.multiply(Decimal128::from(1).subtract(alpha))),
                is_decimal: is_decimal || last.is_decimal,
            },
        }
    }

    fn result(self) -> Evaluated<'static> {
        Evaluated::number(match self.is_decimal {
            true => Number::Decimal128(self.value),
            false => Number::Double(f64::from(self.value)),
        })
    }
}

/// The change of the input over the window, for each unit along the sort field.
fn slope(
    derivative: &Derivative,
    window: &Window,
    reader: &mut Reader,
    check: Check<'_>,
) -> Result<Evaluated<'static>, QueryError> {
    if window.end <= window.begin {
        return Ok(Evaluated::NULL);
    }
    let ends = reader.two_documents([window.begin, window.end - 1], check)?;
    let [Some(first), Some(last)] = ends else { return Ok(Evaluated::NULL) };
    let place = |root| {
        let value = sort_value(&derivative.along, root)?;
        match (value.raw(), derivative.unit_millis) {
            (Some(RawValue::DateTime(millis)), Some(_)) => Ok(Number::Int64(millis)),
            (_, Some(_)) => Err(PipelineFault::DerivativeWantsDates
                .error("$derivative with 'unit' expects the sortBy field to be a Date")),
            (Some(RawValue::DateTime(_)), None) => Err(PipelineFault::DerivativeWantsUnit
                .error("$derivative where the sortBy is a Date requires an 'unit'")),
            _ => value.as_number().ok_or_else(|| {
                PipelineFault::DerivativeWantsNumbers
                    .error("$derivative (with no 'unit') expects the sortBy field to be numeric")
            }),
        }
    };
    let height = |root| {
        let value = derivative.input.evaluate(root)?;
        if value.is_nullish() {
            return Err(
                PipelineFault::DerivativeOfNull.error("$derivative input must not be null or missing")
            );
        }
        Ok(value)
    };
    // In this order MongoDB looks at them.
    let (left, low) = (place(first)?, height(first)?);
    let (right, high) = (place(last)?, height(last)?);
    let rise = difference(&high, &low)?;
    let run = right.subtract(left, Overflow::Double);
    let Some(slope) = run.and_then(|run| rise.divide(run)) else { return Ok(Evaluated::NULL) };
    let of_unit =
        derivative.unit_millis.and_then(|unit| slope.multiply(Number::Int64(unit), Overflow::Double));
    Ok(Evaluated::number(of_unit.unwrap_or(slope)))
}

/// The difference of two numbers or two dates.
fn difference(high: &Evaluated<'_>, low: &Evaluated<'_>) -> Result<Number, QueryError> {
    let number = |value: &Evaluated<'_>| match value.raw() {
        Some(RawValue::DateTime(millis)) => Some(Number::Int64(millis)),
        _ => value.as_number(),
    };
    number(high).zip(number(low)).and_then(|(high, low)| high.subtract(low, Overflow::Double)).ok_or_else(
        || {
            QueryError::type_mismatch(format!(
                "can't $subtract {} from {}",
                low.type_name(),
                high.type_name()
            ))
        },
    )
}

/// A value in the range of its window, scaled to another range.
fn scaled(
    scaler: &MinMaxScaler,
    root: &RawDocument,
    (least, greatest): (&Evaluated<'_>, &Evaluated<'_>),
) -> Result<Evaluated<'static>, QueryError> {
    let value = scaler.input.evaluate(root)?;
    let numbers = value.as_number().zip(least.as_number().zip(greatest.as_number()));
    let Some((value, (least, greatest))) = numbers else {
        return Err(PipelineFault::MinMaxScalerNotNumeric
            .error(format!("$minMaxScaler requires numeric input, but found {}", value.type_name())));
    };
    let of = |number: Option<Number>| number.unwrap_or(Number::Double(f64::NAN));
    let width = of(scaler.to_max.subtract(scaler.to_min, Overflow::Double));
    let part =
        of(value.subtract(least, Overflow::Double)).divide(of(greatest.subtract(least, Overflow::Double)));
    let Some(part) = part else { return Ok(Evaluated::number(scaler.to_min)) };
    let offset = of(part.multiply(width, Overflow::Double));
    Ok(Evaluated::number(of(offset.add(scaler.to_min, Overflow::Double))))
}

impl Filling {
    fn value(
        &mut self,
        at: usize,
        root: &RawDocument,
        reader: &mut Reader,
        check: Check<'_>,
    ) -> Result<Evaluated<'static>, QueryError> {
        let (x, y) = self.point(root)?;
        if let Some(last) = self.place.replace(x) {
            check_ascent(last, x)?;
        }
        if let Some(y) = y {
            self.before = Some(Point { x, y });
            return Ok(Evaluated::number(y));
        }
        let Some(before) = self.before else { return Ok(Evaluated::NULL) };
        let Some(next) = self.next_known(at, reader, check)? else { return Ok(Evaluated::NULL) };
        let rise = next.y.subtract(before.y, Overflow::Double);
        let slope = rise.zip(distance(before.x, next.x)?).and_then(|(rise, run)| rise.divide(run));
        let part =
            slope.zip(distance(before.x, x)?).and_then(|(slope, run)| slope.multiply(run, Overflow::Double));
        let filled = part.and_then(|part| before.y.add(part, Overflow::Double));
        Ok(filled.map_or(Evaluated::NULL, Evaluated::number))
    }

    /// The next known value behind a document.
    fn next_known(
        &mut self,
        at: usize,
        reader: &mut Reader,
        check: Check<'_>,
    ) -> Result<Option<Point>, QueryError> {
        if let Some((known, point)) = self.next
            && known > at
        {
            return Ok(point);
        }
        let mut next = at + 1;
        while let Some(document) = reader.document(next, check)? {
            if let (x, Some(y)) = self.point(document)? {
                self.next = Some((next, Some(Point { x, y })));
                return Ok(Some(Point { x, y }));
            }
            next += 1;
        }
        self.next = Some((usize::MAX, None));
        Ok(None)
    }

    /// Where a document is, and its value.
    fn point(&self, root: &RawDocument) -> Result<(RawValue<'static>, Option<Number>), QueryError> {
        let x = sort_value(&self.along, root)?;
        let place = match x.raw() {
            Some(RawValue::DateTime(millis)) => Some(RawValue::DateTime(millis)),
            // Dates to MongoDB, which then cannot subtract them from one another.
            Some(RawValue::Timestamp(time)) => Some(RawValue::Timestamp(time)),
            Some(RawValue::ObjectId(id)) => Some(RawValue::ObjectId(id)),
            _ => x.as_number().map(Number::to_raw),
        };
        let place = place.ok_or_else(|| {
            QueryError::type_mismatch(format!(
                "Value of the sortBy field must be numeric or a date, but found {}",
                x.type_name()
            ))
        })?;
        let y = self.input.evaluate(root)?;
        if y.is_nullish() {
            return Ok((place, None));
        }
        y.as_number().map(|y| (place, Some(y))).ok_or_else(|| {
            QueryError::type_mismatch(format!(
                "Value to be filled must be numeric or nullish, but found {}",
                y.type_name()
            ))
        })
    }
}

/// A place is of its predecessor's kind, and another one.
fn check_ascent(last: RawValue<'_>, next: RawValue<'_>) -> Result<(), QueryError> {
    if last.is_number() != next.is_number() {
        return Err(QueryError::type_mismatch(format!(
            "Conflicting sort value types, previously received type {}, but found {}",
            last.element_type().alias(),
            next.element_type().alias()
        )));
    }
    if compare_values(last, next).is_eq() {
        return Err(
            PipelineFault::LinearFillRepeatedSort.error("There can be no repeated values in the sort field")
        );
    }
    Ok(())
}

/// How far one place is behind another; nothing beyond all numbers.
fn distance(from: RawValue<'_>, to: RawValue<'_>) -> Result<Option<Number>, QueryError> {
    let number = |place| match place {
        RawValue::DateTime(millis) => Some(Number::Int64(millis)),
        other => Number::from_value(other),
    };
    match (number(to), number(from)) {
        (Some(to), Some(from)) => Ok(to.subtract(from, Overflow::Double)),
        _ => Err(QueryError::type_mismatch(format!(
            "can't $subtract {} from {}",
            from.element_type().alias(),
            to.element_type().alias()
        ))),
    }
}
