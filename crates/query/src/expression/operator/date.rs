//! Arguments of the date operators: values as dates, time zones, units and days of the week.

use pando_document::RawValue;

use super::{Call, ErrorCode, Evaluated, ExpressionFault, Frame, QueryError};
use crate::date::calendar::MILLIS_PER_DAY;
use crate::date::time_zone::Zone;

/// A length of time that dates are added, subtracted and cut by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

/// How long a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// This many months of any length.
    Months(i64),
    /// This many days of the wall clock.
    Days(i64),
    /// This many milliseconds.
    Millis(i64),
}

impl Unit {
    /// The unit of a name.
    pub(crate) fn parse(name: &str) -> Option<Unit> {
        Some(match name {
            "year" => Unit::Year,
            "quarter" => Unit::Quarter,
            "month" => Unit::Month,
            "week" => Unit::Week,
            "day" => Unit::Day,
            "hour" => Unit::Hour,
            "minute" => Unit::Minute,
            "second" => Unit::Second,
            "millisecond" => Unit::Millisecond,
            _ => return None,
        })
    }

    /// A date so many units later, in UTC; `None` beyond all dates.
    pub(crate) fn shifted(self, moment: i64, amount: i64) -> Option<i64> {
        super::date_arithmetic::shifted(moment, self, amount, &Zone::UTC)
    }

    /// Its length in milliseconds; `None` of a month and more, which have none.
    pub(crate) fn millis(self) -> Option<i64> {
        match self.span() {
            Span::Months(_) => None,
            Span::Days(days) => Some(days * MILLIS_PER_DAY),
            Span::Millis(millis) => Some(millis),
        }
    }

    pub(super) fn span(self) -> Span {
        match self {
            Unit::Year => Span::Months(12),
            Unit::Quarter => Span::Months(3),
            Unit::Month => Span::Months(1),
            Unit::Week => Span::Days(7),
            Unit::Day => Span::Days(1),
            Unit::Hour => Span::Millis(3_600_000),
            Unit::Minute => Span::Millis(60_000),
            Unit::Second => Span::Millis(1000),
            Unit::Millisecond => Span::Millis(1),
        }
    }
}

/// The unit that a value names, for `$dateDiff` and `$dateTrunc`.
pub(super) fn unit_of(operator: &str, value: &Evaluated<'_>) -> Result<Unit, QueryError> {
    let Some(name) = value.as_str() else {
        return Err(ExpressionFault::UnitNotString
            .error(format!("{operator} requires 'unit' to be a string, but got {}", value.type_name())));
    };
    Unit::parse(name).ok_or_else(|| {
        ExpressionFault::UnknownUnit
            .error(format!("{operator} parameter 'unit' value cannot be recognized as a time unit: {name}"))
    })
}

/// The values of some arguments, where none is null. No argument behind a null one is evaluated; one that is
/// not given is missing.
pub(super) fn unless_null<'a, const N: usize>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    arguments: [usize; N],
) -> Result<Option<[Evaluated<'a>; N]>, QueryError> {
    let mut values = [const { Evaluated::Missing }; N];
    for (value, index) in values.iter_mut().zip(arguments) {
        if call.has(index) {
            *value = call.argument(index, frame)?;
            if value.is_nullish() {
                return Ok(None);
            }
        }
    }
    Ok(Some(values))
}

/// The arguments 3 and 4 of `$dateDiff` and `$dateTrunc`, the zone and the start of weeks, where none is
/// null. The start of weeks is evaluated first, and for the unit of a week alone.
pub(super) fn zone_and_week<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    unit: &Evaluated<'_>,
) -> Result<Option<[Evaluated<'a>; 2]>, QueryError> {
    let week = match unit.as_str().and_then(Unit::parse) {
        Some(Unit::Week) => unless_null(call, frame, [4])?,
        _ => Some([Evaluated::Missing]),
    };
    let Some([week]) = week else { return Ok(None) };
    Ok(unless_null(call, frame, [3])?.map(|[zone]| [zone, week]))
}

/// The day that weeks start with: 0 is Sunday.
pub(super) fn week_start_of(operator: &str, value: &Evaluated<'_>) -> Result<i64, QueryError> {
    let Some(name) = value.as_str() else {
        return Err(ExpressionFault::WeekStartNotString.error(format!(
            "{operator} requires 'startOfWeek' to be a string, but got {}",
            value.type_name()
        )));
    };
    Ok(match name.to_ascii_lowercase().as_str() {
        "sunday" | "sun" => 0,
        "monday" | "mon" => 1,
        "tuesday" | "tue" => 2,
        "wednesday" | "wed" => 3,
        "thursday" | "thu" => 4,
        "friday" | "fri" => 5,
        "saturday" | "sat" => 6,
        _ => {
            return Err(ExpressionFault::UnknownWeekStart.error(format!(
                "{operator} parameter 'startOfWeek' value cannot be recognized as a day of a week: {name}"
            )));
        }
    })
}

/// The moment that a value is: a date, a timestamp or an ObjectId.
pub(super) fn moment_of(value: &Evaluated<'_>) -> Option<i64> {
    match value.raw()? {
        RawValue::DateTime(millis) => Some(millis),
        RawValue::Timestamp(stamp) => Some(i64::from(stamp.time) * 1000),
        RawValue::ObjectId(id) => Some(i64::from(id.seconds()) * 1000),
        _ => None,
    }
}

/// The same, or the error of most operators.
pub(super) fn required_moment(value: &Evaluated<'_>) -> Result<i64, QueryError> {
    moment_of(value).ok_or_else(|| {
        ExpressionFault::NotConvertibleToDate
            .error(format!("can't convert from BSON type {} to Date", value.type_name()))
    })
}

/// The zone that a value names.
pub(super) fn zone_of(
    operator: &str,
    value: &Evaluated<'_>,
    not_string: ExpressionFault,
) -> Result<Zone, QueryError> {
    let Some(name) = value.as_str() else {
        return Err(not_string.error(format!(
            "{operator} requires a string for the timezone argument, but was given a {} ({})",
            value.type_name(),
            value.shell_text()
        )));
    };
    Zone::parse(name).ok_or_else(|| {
        ExpressionFault::UnknownTimeZone.error(format!("unrecognized time zone identifier: \"{name}\""))
    })
}

/// The zone of an argument, or UTC if the argument was left out.
pub(super) fn zone_or_utc(call: &Call, index: usize, value: &Evaluated<'_>) -> Result<Zone, QueryError> {
    match call.has(index) {
        true => zone_of(call.name(), value, ExpressionFault::TimeZoneIsNoString),
        false => Ok(Zone::UTC),
    }
}

/// The error of a computed date that no date can be.
pub(super) fn out_of_range(operator: &str) -> QueryError {
    QueryError::new(ErrorCode::Overflow, format!("the result of {operator} is out of the range of dates"))
}
