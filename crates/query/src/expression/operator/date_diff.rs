//! `$dateDiff`: how many boundaries of a unit lie between two dates: from 23:59 to 00:01 is one day.

use pando_document::RawValue;

use super::date::{Span, Unit, moment_of, unit_of, unless_null, week_start_of, zone_and_week, zone_or_utc};
use super::named::Names;
use super::{Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError};
use crate::date::calendar::{MILLIS_PER_DAY, Moment, weekday};
use crate::date::time_zone::Zone;

/// Arguments: startDate, endDate, unit, timezone, startOfWeek.
static DATE_DIFF: Definition = Definition { name: "$dateDiff", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$dateDiff",
    names: &["startDate", "endDate", "unit", "timezone", "startOfWeek"],
    required: &[
        ("startDate", ExpressionFault::DateDiffWithoutStart.code()),
        ("endDate", ExpressionFault::DateDiffWithoutEnd.code()),
        ("unit", ExpressionFault::DateDiffWithoutUnit.code()),
    ],
    not_object: ExpressionFault::DateDiffNotObject.code(),
    unknown: ExpressionFault::DateDiffUnknownArgument.code(),
};

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    NAMES.call(&DATE_DIFF, argument, scope)
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let Some([start, end, unit]) = unless_null(call, frame, [0, 1, 2])? else { return Ok(Evaluated::NULL) };
    let Some([zone, week]) = zone_and_week(call, frame, &unit)? else { return Ok(Evaluated::NULL) };
    let name = call.name();
    let (start, end) = (required("startDate", &start)?, required("endDate", &end)?);
    let unit = unit_of(name, &unit)?;
    let zone = zone_or_utc(call, 3, &zone)?;
    let week_start = match week {
        Evaluated::Missing => 0,
        week => week_start_of(name, &week)?,
    };
    Ok(Evaluated::Raw(RawValue::Int64(boundaries(start, end, unit, &zone, week_start))))
}

fn required(role: &str, value: &Evaluated<'_>) -> Result<i64, QueryError> {
    moment_of(value).ok_or_else(|| {
        ExpressionFault::DateDiffNotDate
            .error(format!("$dateDiff requires '{role}' to be a date, but got {}", value.type_name()))
    })
}

fn boundaries(start: i64, end: i64, unit: Unit, zone: &Zone, week_start: i64) -> i64 {
    match unit.span() {
        Span::Millis(length) => {
            // Each by its own wall clock. A change of the clocks by whole units is no boundary; the rest
            // of a change, as from the local mean times of old, is one (observed on MongoDB 6.0).
            let (before, behind) = (zone.offset_at(start), zone.offset_at(end));
            let count = |moment: i64, offset| moment.saturating_add(offset).div_euclid(length);
            count(end, behind).saturating_sub(count(start, before)).saturating_sub((behind - before) / length)
        }
        Span::Days(length) => {
            let count = |moment: i64| {
                let days = zone.to_local(moment).div_euclid(MILLIS_PER_DAY);
                match length {
                    7 => (days - (weekday(days) - week_start).rem_euclid(7)).div_euclid(7),
                    _ => days,
                }
            };
            count(end) - count(start)
        }
        Span::Months(length) => {
            let count = |moment: i64| {
                let local = Moment::from_millis(zone.to_local(moment));
                (local.year * 12 + local.month - 1).div_euclid(length)
            };
            count(end) - count(start)
        }
    }
}
