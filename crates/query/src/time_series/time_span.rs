//! The span of time outside which no measurement matches a filter: those outside need not come out of their
//! buckets. Those within are tested again.

use pando_document::{DocumentWriter, RawDocument, RawValue};

use super::bucket::Series;
use crate::QueryError;

/// The first field of the span in the argument of the stage that unpacks, a date.
const FROM: &str = "from";
/// The last one.
const TO: &str = "to";

/// A span of time in milliseconds, both ends within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    from: i64,
    to: i64,
}

impl TimeSpan {
    /// All of time.
    pub const ALL: TimeSpan = TimeSpan { from: i64::MIN, to: i64::MAX };

    /// The span of a filter of measurements.
    pub fn of_filter(series: &Series, filter: &RawDocument) -> Result<TimeSpan, QueryError> {
        let mut span = TimeSpan::ALL;
        span.narrow(series, filter)?;
        Ok(span)
    }

    /// The span in the argument of the stage.
    pub fn of_argument(argument: &RawDocument) -> TimeSpan {
        let date = |name| match argument.get(name) {
            Ok(Some(RawValue::DateTime(date))) => Some(date),
            _ => None,
        };
        TimeSpan { from: date(FROM).unwrap_or(i64::MIN), to: date(TO).unwrap_or(i64::MAX) }
    }

    /// Appends the span to the argument of the stage.
    pub fn write(self, argument: &mut DocumentWriter<'_>) {
        for (name, date, unbounded) in [(FROM, self.from, i64::MIN), (TO, self.to, i64::MAX)] {
            if date != unbounded {
                argument.append(name, RawValue::DateTime(date));
            }
        }
    }

    /// Whether a measurement of this time has to come out. One without a date has.
    pub(super) fn has(self, time: Option<RawValue<'_>>) -> bool {
        match time {
            Some(RawValue::DateTime(time)) => self.from <= time && time <= self.to,
            _ => true,
        }
    }

    /// The nesting of `$and` is bounded by that of documents.
    fn narrow(&mut self, series: &Series, filter: &RawDocument) -> Result<(), QueryError> {
        for field in filter.iter() {
            match field? {
                ("$and", RawValue::Array(parts)) => {
                    for part in parts.iter() {
                        if let RawValue::Document(part) = part? {
                            self.narrow(series, part)?;
                        }
                    }
                }
                (path, RawValue::DateTime(date)) if path == series.time_field => self.compare("$eq", date),
                (path, RawValue::Document(operators)) if path == series.time_field => {
                    for operator in operators.iter() {
                        if let (operator, RawValue::DateTime(date)) = operator? {
                            self.compare(operator, date);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn compare(&mut self, operator: &str, date: i64) {
        let (from, to) = match operator {
            "$eq" => (date, date),
            "$gt" => (date.saturating_add(1), i64::MAX),
            "$gte" => (date, i64::MAX),
            "$lt" => (i64::MIN, date.saturating_sub(1)),
            "$lte" => (i64::MIN, date),
            _ => return,
        };
        (self.from, self.to) = (self.from.max(from), self.to.min(to));
    }
}
