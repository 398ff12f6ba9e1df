//! `$dateTrunc`: the start of the interval that a date lies in. Intervals of `binSize` units are counted from
//! 2000-01-01 in the time zone; of weeks, from the first start of a week in 2000.

use pando_document::RawValue;

use super::date::{
    Span, Unit, moment_of, out_of_range, unit_of, unless_null, week_start_of, zone_and_week, zone_or_utc,
};
use super::named::Names;
use super::{Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError};
use crate::date::calendar::{MILLIS_PER_DAY, Moment, days_of, weekday};
use crate::date::time_zone::Zone;

/// Arguments: date, unit, binSize, timezone, startOfWeek.
static DATE_TRUNC: Definition = Definition { name: "$dateTrunc", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$dateTrunc",
    names: &["date", "unit", "binSize", "timezone", "startOfWeek"],
    required: &[
        ("date", ExpressionFault::DateTruncWithoutDate.code()),
        ("unit", ExpressionFault::DateTruncWithoutUnit.code()),
    ],
    not_object: ExpressionFault::DateTruncNotObject.code(),
    unknown: ExpressionFault::DateTruncUnknownArgument.code(),
};

/// 2000-01-01, in days since 1970-01-01.
const REFERENCE_DAYS: i64 = 10_957;

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    NAMES.call(&DATE_TRUNC, argument, scope)
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let Some([date, unit, bin]) = unless_null(call, frame, [0, 1, 2])? else { return Ok(Evaluated::NULL) };
    let Some([zone, week]) = zone_and_week(call, frame, &unit)? else { return Ok(Evaluated::NULL) };
    let name = call.name();
    let Some(moment) = moment_of(&date) else {
        return Err(ExpressionFault::DateTruncNotDate
            .error(format!("$dateTrunc requires 'date' to be a date, but got {}", date.type_name())));
    };
    let unit = unit_of(name, &unit)?;
    let bin = if call.has(2) { parse_bin(&bin)? } else { 1 };
    let zone = zone_or_utc(call, 3, &zone)?;
    let week_start = match week {
        Evaluated::Missing => 0,
        week => week_start_of(name, &week)?,
    };
    let start = truncated_to(moment, unit, bin, &zone, week_start).ok_or_else(|| out_of_range(name))?;
    Ok(Evaluated::Raw(RawValue::DateTime(start)))
}

fn parse_bin(bin: &Evaluated<'_>) -> Result<i64, QueryError> {
    let Some(whole) = bin.as_number().and_then(|number| number.to_i64_exact()) else {
        return Err(ExpressionFault::DateTruncBinNotInteger.error(format!(
            "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '{}' of type {}",
            bin.shell_text(),
            bin.type_name()
        )));
    };
    if whole <= 0 {
        return Err(ExpressionFault::DateTruncBinNotPositive
            .error(format!("$dateTrunc requires 'binSize' to be greater than 0, but got value {whole}")));
    }
    Ok(whole)
}

fn truncated_to(moment: i64, unit: Unit, bin: i64, zone: &Zone, week_start: i64) -> Option<i64> {
    match unit.span() {
        Span::Millis(length) => {
            let length = length.checked_mul(bin)?;
            let reference = zone.to_utc(REFERENCE_DAYS * MILLIS_PER_DAY);
            moment.checked_sub(moment.checked_sub(reference)?.rem_euclid(length))
        }
        Span::Days(length) => {
            let days = zone.to_local(moment).div_euclid(MILLIS_PER_DAY);
            let reference = match unit {
                Unit::Week => REFERENCE_DAYS + (week_start - weekday(REFERENCE_DAYS)).rem_euclid(7),
                _ => REFERENCE_DAYS,
            };
            let start = days - (days - reference).rem_euclid(length.checked_mul(bin)?);
            Some(zone.to_utc(start.checked_mul(MILLIS_PER_DAY)?))
        }
        Span::Months(length) => {
            let local = Moment::from_millis(zone.to_local(moment));
            let months = (local.year - 2000) * 12 + local.month - 1;
            let start = months - months.rem_euclid(length.checked_mul(bin)?);
            let days = days_of(2000 + start.div_euclid(12), start.rem_euclid(12) + 1, 1)?;
            Some(zone.to_utc(days.checked_mul(MILLIS_PER_DAY)?))
        }
    }
}
