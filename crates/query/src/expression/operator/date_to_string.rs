//! `$dateToString`: a date as text, by a format like `%Y-%m-%dT%H:%M:%S.%LZ`.

use pando_document::RawValue;

use super::date::{required_moment, zone_or_utc};
use super::named::Names;
use super::text::check_year;
use super::{Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError};
use crate::date::calendar::{
    MILLIS_PER_DAY, Moment, day_of_year, iso_week, month_name, week_of_year, weekday,
};
use crate::date::time_zone::Zone;

/// Arguments: date, format, timezone, onNull.
static DATE_TO_STRING: Definition = Definition { name: "$dateToString", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$dateToString",
    names: &["date", "format", "timezone", "onNull"],
    required: &[("date", ExpressionFault::DateToStringWithoutDate.code())],
    not_object: ExpressionFault::DateToStringNotObject.code(),
    unknown: ExpressionFault::DateToStringUnknownArgument.code(),
};

/// The format without `format`; the `Z` is there in every zone, as in MongoDB 6.0.
const DEFAULT_FORMAT: &str = "%Y-%m-%dT%H:%M:%S.%LZ";

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    NAMES.call(&DATE_TO_STRING, argument, scope)
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let format = call.argument(1, frame)?;
    if call.has(1) && !format.is_nullish() && format.as_str().is_none() {
        return Err(ExpressionFault::FormatNotString.error(format!(
            "$dateToString requires that 'format' be a string, found: {} with value {}",
            format.type_name(),
            format.shell_text()
        )));
    }
    let zone = call.argument(2, frame)?;
    let date = call.argument(0, frame)?;
    if date.is_nullish() {
        return if call.has(3) { call.argument(3, frame) } else { Ok(Evaluated::NULL) };
    }
    if (call.has(1) && format.is_nullish()) || (call.has(2) && zone.is_nullish()) {
        return Ok(Evaluated::NULL);
    }
    let zone = zone_or_utc(call, 2, &zone)?;
    let text = formatted(required_moment(&date)?, &zone, format.as_str().unwrap_or(DEFAULT_FORMAT))?;
    Ok(Evaluated::Text(text))
}

fn year_text(year: i64) -> Result<String, QueryError> {
    check_year(year)?;
    Ok(format!("{year:04}"))
}

fn formatted(millis: i64, zone: &Zone, format: &str) -> Result<String, QueryError> {
    let local = zone.to_local(millis);
    let moment = Moment::from_millis(local);
    let days = local.div_euclid(MILLIS_PER_DAY);
    let minutes = (local - millis) / 60_000;
    let mut text = String::with_capacity(format.len() + 8);
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        let Some(specifier) = characters.next() else {
            return Err(ExpressionFault::FormatEndsEarly.error("Unmatched '%' at end of format string"));
        };
        match specifier {
            '%' => text.push('%'),
            'Y' => text.push_str(&year_text(moment.year)?),
            'm' => text.push_str(&format!("{:02}", moment.month)),
            'd' => text.push_str(&format!("{:02}", moment.day)),
            'H' => text.push_str(&format!("{:02}", moment.hour)),
            'M' => text.push_str(&format!("{:02}", moment.minute)),
            'S' => text.push_str(&format!("{:02}", moment.second)),
            'L' => text.push_str(&format!("{:03}", moment.millisecond)),
            'b' => text.push_str(&month_name(moment.month)[..3]),
            'B' => text.push_str(month_name(moment.month)),
            'j' => text.push_str(&format!("{:03}", day_of_year(days) + 1)),
            'w' => text.push_str(&(weekday(days) + 1).to_string()),
            'u' => text.push_str(&((weekday(days) + 6) % 7 + 1).to_string()),
            'U' => text.push_str(&format!("{:02}", week_of_year(days))),
            'V' => text.push_str(&format!("{:02}", iso_week(days).1)),
            'G' => text.push_str(&year_text(iso_week(days).0)?),
            'z' => {
                let sign = if minutes < 0 { '-' } else { '+' };
                text.push_str(&format!("{sign}{:02}{:02}", minutes.abs() / 60, minutes.abs() % 60));
            }
            'Z' => text.push_str(&minutes.to_string()),
            other => {
                return Err(ExpressionFault::UnknownFormatSpecifier
                    .error(format!("Invalid format character '%{other}' in format string")));
            }
        }
    }
    Ok(text)
}
