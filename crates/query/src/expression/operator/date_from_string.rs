//! `$dateFromString`: text as a date: in one of many notations, or by a format like that of `$dateToString`.

use pando_document::RawValue;

use super::date::zone_of;
use super::named::Names;
use super::{
    Arity, Call, Definition, ErrorCode, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError,
};
use crate::date::calendar::{Moment, date_of, days_in_month, days_of, days_of_iso_week};
use crate::date::text;
use crate::date::time_zone::Zone;

/// Arguments: dateString, format, timezone, onError, onNull.
static DATE_FROM_STRING: Definition = Definition { name: "$dateFromString", arity: Arity::Any, run };

static NAMES: Names = Names {
    operator: "$dateFromString",
    names: &["dateString", "format", "timezone", "onError", "onNull"],
    required: &[("dateString", ExpressionFault::DateFromStringWithoutText.code())],
    not_object: ExpressionFault::DateFromStringNotObject.code(),
    unknown: ExpressionFault::DateFromStringUnknownArgument.code(),
};

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    NAMES.call(&DATE_FROM_STRING, argument, scope)
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (text, format, zone) = (call.argument(0, frame)?, call.argument(1, frame)?, call.argument(2, frame)?);
    if text.is_nullish() {
        return if call.has(4) { call.argument(4, frame) } else { Ok(Evaluated::NULL) };
    }
    if (call.has(1) && format.is_nullish()) || (call.has(2) && zone.is_nullish()) {
        return Ok(Evaluated::NULL);
    }
    if call.has(1) && format.as_str().is_none() {
        return Err(ExpressionFault::DateFromStringFormatNotString.error(format!(
            "$dateFromString requires that 'format' be a string, found: {} with value {}",
            format.type_name(),
            format.shell_text()
        )));
    }
    let zone = match call.has(2) {
        true => Some(zone_of(call.name(), &zone, ExpressionFault::TimeZoneIsNoString)?),
        false => None,
    };
    match moment(&text, format.as_str(), zone.as_ref()) {
        Ok(millis) => Ok(Evaluated::Raw(RawValue::DateTime(millis))),
        Err(error) if error.code() == Some(ErrorCode::ConversionFailure) && call.has(3) => {
            call.argument(3, frame)
        }
        Err(error) => Err(error),
    }
}

fn failure(message: String) -> QueryError {
    QueryError::new(ErrorCode::ConversionFailure, message)
}

fn moment(text: &Evaluated<'_>, format: Option<&str>, zone: Option<&Zone>) -> Result<i64, QueryError> {
    let Some(text) = text.as_str() else {
        return Err(failure(format!(
            "$dateFromString requires that 'dateString' be a string, found: {} with value {}",
            text.type_name(),
            text.shell_text()
        )));
    };
    let parsed = match format {
        None => text::parse(text),
        Some(format) => by_format(text, format)?,
    };
    let Some((local, offset)) = parsed else {
        return Err(failure(format!("Error parsing date string '{text}'")));
    };
    match (offset, zone) {
        (Some(_), Some(_)) => Err(failure(
            "you cannot pass in a date/time string with time zone information together with a timezone argument".to_owned(),
        )),
        (Some(offset), None) => Ok(local - offset),
        (None, Some(zone)) => Ok(zone.to_utc(local)),
        (None, None) => Ok(local),
    }
}

/// A bad format is refused for any text and `onError`.
fn check_format(format: &str) -> Result<(), QueryError> {
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            continue;
        }
        match characters.next() {
            Some('%' | 'b' | 'B' | 'd' | 'G' | 'H' | 'L' | 'm' | 'M' | 'S' | 'u' | 'V' | 'Y' | 'z' | 'Z') => {
            }
            Some(other) => {
                return Err(ExpressionFault::UnknownFormatSpecifier
                    .error(format!("Invalid format character '%{other}' in format string")));
            }
            None => {
                return Err(ExpressionFault::FormatEndsEarly.error("Unmatched '%' at end of format string"));
            }
        }
    }
    Ok(())
}

/// The parts of a date that a format has found so far.
#[derive(Default)]
struct Found {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_weekday: Option<i64>,
    time: [i64; 4],
    offset: Option<i64>,
}

/// Local milliseconds and the offset that the text names; none if the text does not fit the format.
fn by_format(text: &str, format: &str) -> Result<Option<(i64, Option<i64>)>, QueryError> {
    check_format(format)?;
    let mut found = Found::default();
    let mut rest = text;
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            match rest.strip_prefix(character) {
                Some(behind) => rest = behind,
                None => return Ok(None),
            }
            continue;
        }
        let specifier = characters.next().expect("the format was checked to end behind a specifier");
        match found.take(specifier, rest)? {
            Some(behind) => rest = behind,
            None => return Ok(None),
        }
    }
    Ok(if rest.is_empty() { found.finish() } else { None })
}

impl Found {
    /// Reads what a specifier stands for; gives what is left.
    fn take<'t>(&mut self, specifier: char, text: &'t str) -> Result<Option<&'t str>, QueryError> {
        let mut rest = text;
        let mut number = |digits_max: usize| {
            let count = rest.bytes().take(digits_max).take_while(u8::is_ascii_digit).count();
            let value = rest[..count].parse::<i64>().ok();
            rest = &rest[count..];
            value
        };
        let value = match specifier {
            '%' => return Ok(text.strip_prefix('%')),
            'z' => return Ok(self.take_offset(text)),
            'Z' => return Ok(self.take_minutes(text)),
            'b' | 'B' => return Ok(self.take_month(text)),
            'Y' | 'G' => number(4),
            'L' => number(3),
            'm' | 'd' | 'H' | 'M' | 'S' | 'V' => number(2),
            'u' => number(1),
            _ => unreachable!("the specifiers were checked before the text is read"),
        };
        let Some(value) = value else { return Ok(None) };
        match specifier {
            'Y' => self.year = Some(value),
            'm' => self.month = Some(value),
            'd' => self.day = Some(value),
            'G' => self.iso_year = Some(value),
            'V' => self.iso_week = Some(value),
            'u' => self.iso_weekday = Some(value),
            'H' => self.time[0] = value,
            'M' => self.time[1] = value,
            'S' => self.time[2] = value,
            _ => self.time[3] = value,
        }
        Ok(Some(rest))
    }

    /// The name of a month: as in MongoDB 7.0, both specifiers take the whole name and the short one.
    fn take_month<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let count = text.bytes().take_while(u8::is_ascii_alphabetic).count();
        self.month = Some(text::month_of(&text[..count])?);
        Some(&text[count..])
    }

    fn take_offset<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let end = match text.strip_prefix('Z') {
            Some(_) => 1,
            None => {
                1 + text.get(1..)?.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b':').count()
            }
        };
        self.offset = Some(text::parse_offset(text.get(..end)?)?);
        text.get(end..)
    }

    /// An offset in minutes, such as `+90`.
    fn take_minutes<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let count = digits.bytes().take(4).take_while(u8::is_ascii_digit).count();
        self.offset = Some(sign * digits[..count].parse::<i64>().ok()? * 60_000);
        Some(&digits[count..])
    }

    fn finish(self) -> Option<(i64, Option<i64>)> {
        let [hour, minute, second, millisecond] = self.time;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let days = match (self.iso_year.zip(self.iso_week), self.year) {
            (Some((year, week)), None) => days_of_iso_week(year, week, self.iso_weekday.unwrap_or(1))?,
            (_, Some(year)) => {
                let (month, day) = (self.month?, self.day?);
                if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
                    return None;
                }
                days_of(year, month, day)?
            }
            _ => return None,
        };
        let (year, month, day) = date_of(days);
        let local = Moment { year, month, day, hour, minute, second, millisecond }.to_millis()?;
        Some((local, self.offset))
    }
}
