//! `$dateFromParts`: a date of year, month, day and time, or of an ISO week. Parts out of their range count
//! on: month 14 is February of the next year.

use pando_document::RawValue;

use super::date::{out_of_range, zone_of};
use super::named::Names;
use super::{Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError};
use crate::date::calendar::{Moment, date_of, days_of_iso_week};
use crate::date::time_zone::Zone;

const PARTS: [&str; 11] = [
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "timezone",
    "isoWeekYear",
    "isoWeek",
    "isoDayOfWeek",
];
const TIMEZONE: usize = 7;
const ISO_WEEK_YEAR: usize = 8;

/// Arguments: as in [`PARTS`].
static DATE_FROM_PARTS: Definition = Definition { name: "$dateFromParts", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$dateFromParts",
    names: &PARTS,
    required: &[],
    not_object: ExpressionFault::DateFromPartsNotObject.code(),
    unknown: ExpressionFault::DateFromPartsUnknownArgument.code(),
};

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let arguments = NAMES.parse(argument, scope)?;
    let is_given = |index: usize| arguments.get(index).is_some_and(Option::is_some);
    if !is_given(0) && !is_given(ISO_WEEK_YEAR) {
        return Err(ExpressionFault::DateFromPartsWithoutYear
            .error("$dateFromParts requires either 'year' or 'isoWeekYear' to be present"));
    }
    let (calendar, iso) = ((0..3).any(is_given), (ISO_WEEK_YEAR..PARTS.len()).any(is_given));
    if calendar && iso {
        return Err(ExpressionFault::DateFromPartsMixed
            .error("$dateFromParts does not allow mixing natural dates with ISO dates"));
    }
    Ok(Expression::from_call(Call::named(&DATE_FROM_PARTS, arguments)))
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let mut parts = [0i64; PARTS.len()];
    for (index, name) in PARTS.iter().enumerate() {
        // Dates begin with one, times with zero.
        parts[index] = i64::from(matches!(index, 0..=2 | ISO_WEEK_YEAR..));
        if index == TIMEZONE || !call.has(index) {
            continue;
        }
        let value = call.argument(index, frame)?;
        if value.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        parts[index] = part(name, &value)?;
    }
    let mut zone = Zone::UTC;
    if call.has(TIMEZONE) {
        let value = call.argument(TIMEZONE, frame)?;
        if value.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        zone = zone_of(call.name(), &value, ExpressionFault::TimeZoneIsNoString)?;
    }
    let [mut year, mut month, mut day, hour, minute, second, millisecond, _, week_year, week, week_day] =
        parts;
    if call.has(ISO_WEEK_YEAR) {
        let days = days_of_iso_week(week_year, week, week_day).ok_or_else(|| out_of_range(call.name()))?;
        (year, month, day) = date_of(days);
    }
    let local = Moment { year, month, day, hour, minute, second, millisecond }.to_millis();
    let local = local.ok_or_else(|| out_of_range(call.name()))?;
    Ok(Evaluated::Raw(RawValue::DateTime(zone.to_utc(local))))
}

fn part(name: &str, value: &Evaluated<'_>) -> Result<i64, QueryError> {
    let Some(whole) = value.as_number().and_then(|number| number.to_i64_exact()) else {
        return Err(ExpressionFault::DatePartNotInteger.error(format!(
            "'{name}' must evaluate to an integer, found {} with value {}",
            value.type_name(),
            value.shell_text()
        )));
    };
    match name {
        "year" | "isoWeekYear" if !(1..=9999).contains(&whole) => {
            Err(ExpressionFault::DatePartYearOutOfRange
                .error(format!("'{name}' must evaluate to an integer in the range 1 to 9999, found {whole}")))
        }
        // Seconds and milliseconds may be anything that fits.
        "month" | "day" | "hour" | "minute" | "isoWeek" | "isoDayOfWeek" if i16::try_from(whole).is_err() => {
            Err(ExpressionFault::DatePartOutOfRange.error(format!(
                "'{name}' must evaluate to a value in the range [-32768, 32767]; value {whole} is not in range"
            )))
        }
        _ => Ok(whole),
    }
}
