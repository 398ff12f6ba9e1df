//! `$integral`: the area below a curve, by trapezoids between neighbouring points; null without points.
//!
//! A value is a pair: where the point is (a number, or a date with a unit), and how high the curve is there.

use pando_document::{ArrayWriter, Number, NumberSum, Overflow, RawValue};

use super::super::{Evaluated, ExpressionFault};
use super::sum::{save_sum, saved_sum};
use super::{Accumulator, not_saved};
use crate::error::QueryError;

#[derive(Clone, Copy, Debug)]
struct Point {
    x: Number,
    y: Number,
}

#[derive(Debug)]
pub(crate) struct Integral {
    /// The unit of dates.
    unit_millis: Option<i64>,
    ends: Option<(Point, Point)>,
    area: NumberSum,
}

impl Integral {
    pub(crate) fn new(unit_millis: Option<i64>) -> Integral {
        Integral { unit_millis, ends: None, area: NumberSum::new() }
    }

    fn point(&self, value: &Evaluated<'_>) -> Result<Point, QueryError> {
        let mut parts = value.as_array().ok_or_else(not_saved)?.iter();
        let (Some(x), Some(y)) = (parts.next(), parts.next()) else { return Err(not_saved()) };
        let (x, y) = (x?, y?);
        let (is_date, x) = match x {
            RawValue::DateTime(millis) => (true, Some(Number::Int64(millis))),
            other => (false, Number::from_value(other)),
        };
        let (Some(x), Some(y)) = (x, Number::from_value(y)) else {
            return Err(ExpressionFault::IntegralBadInput.error(
                "The input value of $integral window function must be a vector of 2 value, the first value must be \
                 numeric or date type and the second must be numeric.",
            ));
        };
        match (self.unit_millis, is_date) {
            (Some(_), false) => Err(ExpressionFault::IntegralWantsDates
                .error("$integral with 'unit' expects the sortBy field to be a Date")),
            (None, true) => Err(ExpressionFault::IntegralWantsNumbers
                .error("$integral (with no 'unit') expects the sortBy field to be numeric")),
            _ => Ok(Point { x, y }),
        }
    }

    fn add_area(&mut self, from: Point, to: Point) {
        let width = to.x.subtract(from.x, Overflow::Double);
        let height = to.y.add(from.y, Overflow::Double);
        let double = width.zip(height).and_then(|(width, height)| width.multiply(height, Overflow::Double));
        if let Some(area) = double.and_then(|double| double.divide(Number::Int32(2))) {
            self.area.add(area);
        }
    }
}

impl Accumulator for Integral {
    fn add(&mut self, value: &Evaluated<'_>) -> Result<(), QueryError> {
        let point = self.point(value)?;
        match self.ends {
            None => self.ends = Some((point, point)),
            Some((first, last)) => {
                self.add_area(last, point);
                self.ends = Some((first, point));
            }
        }
        Ok(())
    }

    fn finish(&self) -> Result<Evaluated<'static>, QueryError> {
        if self.ends.is_none() {
            return Ok(Evaluated::NULL);
        }
        let total = self.area.total();
        let of_unit = self.unit_millis.and_then(|unit| total.divide(Number::Int64(unit)));
        Ok(Evaluated::number(of_unit.unwrap_or(total)))
    }

    fn save(&self, out: &mut ArrayWriter<'_>) {
        let mut array = out.array();
        save_sum(&self.area, &mut array);
        if let Some((first, last)) = self.ends {
            for number in [first.x, first.y, last.x, last.y] {
                array.push(number.to_raw());
            }
        }
        array.finish();
    }

    fn merge(&mut self, saved: RawValue<'_>) -> Result<(), QueryError> {
        let RawValue::Array(saved) = saved else { return Err(not_saved()) };
        let parts = saved.iter().collect::<Result<Vec<_>, _>>()?;
        let [area, numbers @ ..] = parts.as_slice() else { return Err(not_saved()) };
        let numbers: Vec<Number> = numbers.iter().filter_map(|number| Number::from_value(*number)).collect();
        let [x, y, last_x, last_y] = *numbers.as_slice() else { return Ok(()) };
        let (first, last) = (Point { x, y }, Point { x: last_x, y: last_y });
        let begin = match self.ends {
            None => first,
            Some((begin, end)) => {
                self.add_area(end, first);
                begin
            }
        };
        self.area.merge(&saved_sum(*area)?);
        self.ends = Some((begin, last));
        Ok(())
    }
}
