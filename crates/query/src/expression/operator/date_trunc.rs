//! `$dateTrunc`: the start of the interval that a date lies in. Intervals of `binSize` units are counted from
//! 2000-01-01 in the time zone; of weeks, from the first start of a week in 2000.

use pando_document::RawValue;

use super::date::{Span, Unit, moment_of, unit_of, unless_null, week_start_of, zone_and_week, zone_or_utc};
use super::date_arithmetic::is_within_dates;
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

/// The greatest `binSize` of days and longer units in MongoDB 6.0.
const LONGEST_BIN: i64 = 100_000_000_000;

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
    let start = truncated_to(moment, unit, bin, &zone, week_start)?;
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

/// The start of the bin. Errors are those of MongoDB, which counts milliseconds for units of fixed length,
/// and adds whole bins to the reference for the others.
fn truncated_to(moment: i64, unit: Unit, bin: i64, zone: &Zone, week_start: i64) -> Result<i64, QueryError> {
    if !matches!(unit.span(), Span::Millis(_)) && bin > LONGEST_BIN {
        return Err(ExpressionFault::DateTruncBinTooLong.error("dateTrunc unsupported binSize value"));
    }
    let beyond_dates = || ExpressionFault::DateArithmeticOverflow.error("dateAdd overflowed");
    match unit.span() {
        Span::Millis(length) => {
            let overflow = |fault: ExpressionFault| move || fault.error("dateTrunc overflowed");
            let length =
                length.checked_mul(bin).ok_or_else(overflow(ExpressionFault::DateTruncBinOverflow))?;
            let reference = zone.to_utc(REFERENCE_DAYS * MILLIS_PER_DAY);
            let since = moment.checked_sub(reference);
            let since = since.ok_or_else(overflow(ExpressionFault::DateTruncDistanceOverflow))?;
            moment
                .checked_sub(since.rem_euclid(length))
                .ok_or_else(overflow(ExpressionFault::DateTruncDistanceOverflow))
        }
        Span::Days(length) => {
            let days = zone.to_local(moment).div_euclid(MILLIS_PER_DAY);
            let reference = match unit {
                Unit::Week => REFERENCE_DAYS + (week_start - weekday(REFERENCE_DAYS)).rem_euclid(7),
                _ => REFERENCE_DAYS,
            };
            let since = start_of_bin(days - reference, unit, length, bin)?;
            let start = (reference + since).checked_mul(MILLIS_PER_DAY).ok_or_else(beyond_dates)?;
            Ok(zone.to_utc(start))
        }
        Span::Months(length) => {
            let local = Moment::from_millis(zone.to_local(moment));
            let months = (local.year - 2000) * 12 + local.month - 1;
            let start = start_of_bin(months, unit, length, bin)?;
            let days = days_of(2000 + start.div_euclid(12), start.rem_euclid(12) + 1, 1);
            let start = days.and_then(|days| days.checked_mul(MILLIS_PER_DAY)).ok_or_else(beyond_dates)?;
            Ok(zone.to_utc(start))
        }
    }
}

/// Where the bin begins that a count of days or months since the reference lies in, in the same count.
fn start_of_bin(since: i64, unit: Unit, length: i64, bin: i64) -> Result<i64, QueryError> {
    // At most 12 times LONGEST_BIN.
    let start = since - since.rem_euclid(length * bin);
    let amount = start / length;
    if !is_within_dates(unit, amount) {
        return Err(ExpressionFault::DateArithmeticAmountTooLarge
            .error(format!("invalid dateAdd 'amount' parameter value: {amount}")));
    }
    Ok(start)
}
