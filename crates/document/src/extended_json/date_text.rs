//! Dates as ISO 8601 text. Days and years are converted by the rule that 400 years have 146,097 days. Years
//! start in March, so that the leap day is the last (Howard Hinnant, "chrono-compatible low-level date
//! algorithms").

use std::fmt::Write;

const DAY_MS: i64 = 86_400_000;

/// Days from 1970-01-01.
fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day.
fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// Appends a date, which is milliseconds since 1970 in UTC, as ISO 8601 text: `2026-11-27T08:37:44Z`, with
/// thousandths after the seconds if it has some. Dates before 1970 and after 9999 are not written, and the
/// answer is false.
pub fn write_date(out: &mut String, milliseconds: i64) -> bool {
    let (year, month, day) = date_from_days(milliseconds.div_euclid(DAY_MS));
    if !(1970..=9999).contains(&year) {
        return false;
    }
    let of_day = milliseconds.rem_euclid(DAY_MS);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    let written = write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
        .and_then(|()| match of_day % 1000 {
            0 => Ok(()),
            thousandths => write!(out, ".{thousandths:03}"),
        })
        .and_then(|()| out.write_str("Z"));
    written.expect("writing to a string does not fail");
    true
}

/// Milliseconds from 1970 of `YYYY-MM-DDTHH:MM:SS`, a fraction or none, and `Z` or an offset such as
/// `+01:00`. Of a fraction, three digits count.
pub(super) fn parse_date(text: &str) -> Option<i64> {
    let text = text.as_bytes();
    let number = |range: std::ops::Range<usize>| decimal(text.get(range)?);
    for (place, separator) in [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')] {
        text.get(place).filter(|byte| **byte == separator)?;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let days = days_from_date(year, month, day);
    if date_from_days(days) != (year, month, day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (thousandths, zone) = fraction(&text[19..])?;
    let milliseconds = days * DAY_MS + hour * 3_600_000 + minute * 60_000 + second * 1000 + thousandths;
    Some(milliseconds - zone_minutes(zone)? * 60_000)
}

fn decimal(digits: &[u8]) -> Option<i64> {
    digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')))
}

/// Thousandths, and the text after the fraction.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(digits) = text.strip_prefix(b".") else { return Some((0, text)) };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, zone) = digits.split_at(count);
    let kept = &digits[..count.min(3)];
    let scale = [0, 100, 10, 1][kept.len()];
    if count == 0 { None } else { Some((decimal(kept)? * scale, zone)) }
}

fn zone_minutes(zone: &[u8]) -> Option<i64> {
    let (sign, digits) = match zone {
        b"Z" => return Some(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits {
        [hours @ .., b':', _, _] if hours.len() == 2 => (decimal(hours)?, decimal(&digits[3..])?),
        [_, _, _, _] => (decimal(&digits[..2])?, decimal(&digits[2..])?),
        [_, _] => (decimal(digits)?, 0),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_has_one_date() {
        for days in -800_000..3_000_000 {
            let (year, month, day) = date_from_days(days);
            assert_eq!(days_from_date(year, month, day), days);
        }
        assert_eq!(date_from_days(0), (1970, 1, 1));
        assert_eq!(date_from_days(11_016), (2000, 2, 29));
        assert_eq!(date_from_days(-719_162), (1, 1, 1));
    }

    #[test]
    fn dates_are_written_and_read() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_356_351_330_501, "2012-12-24T12:15:30.501Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            let mut out = String::new();
            assert!(write_date(&mut out, milliseconds));
            assert_eq!(out, text);
            assert_eq!(parse_date(text), Some(milliseconds));
        }
        for milliseconds in [-1, 253_402_300_800_000, i64::MIN, i64::MAX] {
            assert!(!write_date(&mut String::new(), milliseconds));
        }
        assert_eq!(parse_date("2012-12-24T13:15:30.5+01:00"), Some(1_356_351_330_500));
        assert_eq!(parse_date("2012-12-24T13:15:30.501999+0100"), Some(1_356_351_330_501));
        assert_eq!(parse_date("0001-01-01T00:00:00-05"), Some(-62_135_578_800_000));
    }

    #[test]
    fn text_that_is_no_date_is_refused() {
        for text in [
            "",
            "2012",
            "2012-12-24",
            "2012-12-24T12:15:30",
            "2012-13-24T12:15:30Z",
            "2011-02-29T12:15:30Z",
            "2012-12-24T24:15:30Z",
            "2012-12-24T12:15:30.Z",
            "2012-12-24T12:15:30+1:00",
            "2012-12-24 12:15:30Z",
            "2012-12-24T12:15:30ZZ",
            "+012-12-24T12:15:30Z",
            "2012-12-24T12:15:30+ab:cd",
            "éééééééééééé",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }
}
