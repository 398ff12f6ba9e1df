//! The parser of dates as people and programs write them, for `$dateFromString` and `$toDate` without a
//! format.
//!
//! MongoDB takes what PHP's date parser takes; these are the notations of it that name a whole date:
//!
//! | notation | examples |
//! |---|---|
//! | ISO 8601 | `2020-02-03T10:11:12.5+02:00`, `2020-2-3`, `2020-02`, `20200203`, `2020-W06-1` |
//! | year first | `2020/02/03`, `2020:02:03`, `2020-Feb-03`, `20-02-03` |
//! | day first | `3-2-2020`, `03.02.2020`, `3 Feb 2020`, `03-Feb-20`, `03/Feb/2020:10:11:12 +0000` |
//! | month first | `2/3/2020`, `Feb 3, 2020`, `February 3rd 2020`, `Feb 2020` |
//! | seconds since 1970 | `@1580724672` |
//!
//! A weekday may stand in front; another one than the date's means the next such day. A time
//! (`10:11[:12[.5]]`, `10:11 pm`, after a `T` also `101112` and `10`) and a zone (`Z`, `UTC`, `GMT+2`, `EST`,
//! `+02:00`) may follow. Observed on MongoDB 6.0, where each example is a test. Not read: times without
//! dates, words (`tomorrow`), names of zones.

use super::calendar::{MILLIS_PER_DAY, MONTHS, days_in_month, days_of, days_of_iso_week};

const WEEKDAYS: [&str; 7] = ["thursday", "friday", "saturday", "sunday", "monday", "tuesday", "wednesday"];
/// Zones by name, with their hours from UTC.
const ZONES: [(&str, i64); 10] = [
    ("UTC", 0),
    ("GMT", 0),
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
];
const MILLIS_PER_MINUTE: i64 = 60_000;

/// Local milliseconds since 1970, and the offset in milliseconds that the text names, if it names one.
pub(crate) fn parse(text: &str) -> Option<(i64, Option<i64>)> {
    let mut reader = Reader { rest: text.trim_matches(' ') };
    if reader.expect('@').is_some() {
        return reader.seconds().map(|millis| (millis, Some(0)));
    }
    let weekday = reader.weekday();
    let mut days = reader.date()?;
    if let Some(weekday) = weekday {
        days += (weekday - days).rem_euclid(7);
    }
    let time = reader.time()?;
    reader.spaces();
    let offset = if reader.rest.is_empty() { None } else { Some(reader.zone()?) };
    reader.rest.is_empty().then_some((days.checked_mul(MILLIS_PER_DAY)?.checked_add(time)?, offset))
}

/// The moment, as UTC if the text names no zone.
pub(crate) fn parse_utc(text: &str) -> Option<i64> {
    let (local, offset) = parse(text)?;
    local.checked_sub(offset.unwrap_or(0))
}

/// The offset in milliseconds that text names, hours in two digits: `Z`, `+02:00`, `-0330`, `+05`.
pub(crate) fn parse_offset(text: &str) -> Option<i64> {
    let mut reader = Reader { rest: text };
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let offset = reader.signed_offset()?;
    (reader.rest.is_empty() && matches!(text.len(), 3 | 5 | 6)).then_some(offset)
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn expect(&mut self, wanted: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }

    /// Takes what stands between words.
    fn separators(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', ',', '.', '-', '\t']);
    }

    /// Takes at most `most` characters of a kind.
    fn run(&mut self, most: usize, is_wanted: fn(&u8) -> bool) -> &'t str {
        let count = self.rest.bytes().take(most).take_while(is_wanted).count();
        let (run, rest) = self.rest.split_at(count);
        self.rest = rest;
        run
    }

    /// A number of at least `least` and at most `most` digits, and how many it has.
    fn number(&mut self, least: usize, most: usize) -> Option<(i64, usize)> {
        let digits = self.run(most, u8::is_ascii_digit);
        if digits.len() < least {
            return None;
        }
        Some((digits.parse().ok()?, digits.len()))
    }

    fn letters(&mut self) -> &'t str {
        self.run(usize::MAX, u8::is_ascii_alphabetic)
    }

    fn seconds(&mut self) -> Option<i64> {
        let sign = if self.expect('-').is_some() { -1 } else { 1 };
        let (seconds, _) = self.number(1, 15)?;
        let millis = self.fraction()?;
        self.rest.is_empty().then(|| sign * (seconds * 1000 + millis))
    }

    /// The days from Thursday 1970-01-01 that a leading weekday stands for, 0 to 6.
    fn weekday(&mut self) -> Option<i64> {
        let mut ahead = Reader { rest: self.rest };
        let number = index_of(&WEEKDAYS, ahead.letters())?;
        ahead.separators();
        self.rest = ahead.rest;
        Some(number)
    }

    /// Days since 1970.
    fn date(&mut self) -> Option<i64> {
        if self.rest.starts_with(|first: char| first.is_ascii_alphabetic()) {
            let month = self.month()?;
            self.separators();
            return self.after_month(month);
        }
        let (first, digits) = self.number(1, 8)?;
        match (digits, self.rest.chars().next()) {
            (8, _) => days(first / 10_000, first / 100 % 100, first % 100),
            (4, Some(separator @ ('-' | '/' | ':'))) => {
                self.expect(separator)?;
                self.after_year(first, separator)
            }
            (4, Some('W')) => self.iso_week(first),
            (1 | 2, Some('/')) => {
                self.expect('/')?;
                self.after_slash(first)
            }
            (1 | 2, Some(separator @ ('-' | '.'))) if self.rest[1..].starts_with(is_digit) => {
                self.expect(separator)?;
                self.day_month_year(first, separator)
            }
            (1 | 2, Some(_)) => {
                self.separators();
                let month = self.month()?;
                self.separators();
                days(self.year()?, month, first)
            }
            _ => None,
        }
    }

    fn month(&mut self) -> Option<i64> {
        month_of(self.letters())
    }

    /// `3, 2020`, `3rd 2020`, or `2020`.
    fn after_month(&mut self, month: i64) -> Option<i64> {
        let (number, digits) = self.number(1, 4)?;
        if digits == 4 {
            return days(number, month, 1);
        }
        for suffix in ["st", "nd", "rd", "th"] {
            self.rest = self.rest.strip_prefix(suffix).unwrap_or(self.rest);
        }
        self.separators();
        let (year, _) = self.number(4, 4)?;
        days(year, month, number)
    }

    /// The part behind `2020-`.
    fn after_year(&mut self, year: i64, separator: char) -> Option<i64> {
        if self.rest.starts_with('W') {
            return self.iso_week(year);
        }
        let month = match self.number(1, 2) {
            Some((month, _)) => month,
            None => self.month()?,
        };
        let has_day = self.rest.strip_prefix(separator).is_some_and(|rest| rest.starts_with(is_digit));
        match (has_day, separator) {
            (true, _) => {
                self.expect(separator)?;
                days(year, month, self.number(1, 2)?.0)
            }
            (false, '-') => days(year, month, 1),
            (false, _) => None,
        }
    }

    fn iso_week(&mut self, year: i64) -> Option<i64> {
        self.expect('W')?;
        let (week, _) = self.number(2, 2)?;
        let mut ahead = Reader { rest: self.rest.strip_prefix('-').unwrap_or(self.rest) };
        let day = match ahead.number(1, 1) {
            Some((day, _)) => {
                self.rest = ahead.rest;
                day
            }
            None => 1,
        };
        if !(1..=53).contains(&week) || !(1..=7).contains(&day) {
            return None;
        }
        days_of_iso_week(year, week, day)
    }

    /// The part behind `2/`: a day and a year, or the name of a month and a year.
    fn after_slash(&mut self, first: i64) -> Option<i64> {
        if let Some((day, _)) = self.number(1, 2) {
            self.expect('/')?;
            return days(self.year()?, first, day);
        }
        let month = self.month()?;
        self.expect('/')?;
        days(self.year()?, month, first)
    }

    /// The part behind `3-` or `3.`: with a year of two digits the first number is the year instead.
    fn day_month_year(&mut self, first: i64, separator: char) -> Option<i64> {
        let (month, _) = self.number(1, 2)?;
        self.expect(separator)?;
        match (self.number(1, 4)?, separator) {
            ((year, 4), _) => days(year, month, first),
            ((day, 1 | 2), '-') => days(century(first), month, day),
            _ => None,
        }
    }

    fn year(&mut self) -> Option<i64> {
        match self.number(1, 4)? {
            (year, 4) => Some(year),
            (year, 1 | 2) => Some(century(year)),
            _ => None,
        }
    }

    /// Milliseconds of a time, if there is one; 0 if not.
    fn time(&mut self) -> Option<i64> {
        let mut ahead = Reader { rest: self.rest };
        let is_marked = ahead.expect('T').or_else(|| ahead.expect('t')).is_some();
        if !is_marked {
            ahead.rest = ahead.rest.trim_start_matches([' ', ',', ':']);
        }
        let is_time = ahead.rest.len() < self.rest.len() && ahead.rest.starts_with(is_digit);
        if !is_time {
            return Some(0);
        }
        let compact = ahead.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (mut hour, _) = ahead.number(1, 2)?;
        let (mut minute, mut second, mut millis) = (0, 0, 0);
        let mut is_whole = is_marked;
        if is_marked && compact == 6 {
            (minute, second) = (ahead.number(2, 2)?.0, ahead.number(2, 2)?.0);
        } else if ahead.expect(':').is_some() {
            is_whole = true;
            (minute, _) = ahead.number(1, 2)?;
            if ahead.expect(':').is_some() {
                (second, _) = ahead.number(1, 2)?;
                millis = ahead.fraction()?;
            }
        }
        if let Some(half) = ahead.half_of_day() {
            if !(1..=12).contains(&hour) {
                return None;
            }
            is_whole = true;
            hour = hour % 12 + 12 * half;
        }
        self.rest = ahead.rest;
        (is_whole && hour < 24 && minute < 60 && second < 60)
            .then_some(((hour * 60 + minute) * 60 + second) * 1000 + millis)
    }

    /// 0 for `am`, 1 for `pm`.
    fn half_of_day(&mut self) -> Option<i64> {
        let mut ahead = Reader { rest: self.rest };
        ahead.spaces();
        let half = match ahead.letters().to_ascii_lowercase().as_str() {
            "am" => 0,
            "pm" => 1,
            _ => return None,
        };
        self.rest = ahead.rest;
        Some(half)
    }

    /// Milliseconds behind the point, if there is one.
    fn fraction(&mut self) -> Option<i64> {
        if self.expect('.').is_none() {
            return Some(0);
        }
        let digits = self.run(usize::MAX, u8::is_ascii_digit);
        if digits.is_empty() {
            return None;
        }
        format!("{:0<3}", &digits[..digits.len().min(3)]).parse().ok()
    }

    /// The offset of a zone, in milliseconds.
    fn zone(&mut self) -> Option<i64> {
        if !self.rest.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return self.signed_offset();
        }
        let name = self.letters().to_ascii_uppercase();
        if name == "Z" {
            return Some(0);
        }
        let (_, hours) = ZONES.iter().find(|(known, _)| *known == name)?;
        if matches!(name.as_str(), "UTC" | "GMT") && self.rest.starts_with(['+', '-']) {
            return self.signed_offset();
        }
        Some(hours * 60 * MILLIS_PER_MINUTE)
    }

    /// `+02:00`, `-0330`, `+05`, `+2`.
    fn signed_offset(&mut self) -> Option<i64> {
        let sign = match self.expect('+') {
            Some(()) => 1,
            None => self.expect('-').map(|()| -1)?,
        };
        let (hours, _) = self.number(1, 2)?;
        let minutes = match self.expect(':') {
            Some(()) => self.number(2, 2)?.0,
            None if self.rest.starts_with(is_digit) => self.number(2, 2)?.0,
            None => 0,
        };
        Some(sign * (hours * 60 + minutes) * MILLIS_PER_MINUTE)
    }
}

fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}

/// The month with a name, in any case, whole or of three letters: 1 to 12.
pub(crate) fn month_of(name: &str) -> Option<i64> {
    Some(index_of(&MONTHS, name)? + 1)
}

/// Where a name, or its first three letters, stands in a list.
fn index_of(names: &[&str], word: &str) -> Option<i64> {
    let is_named = |name: &&str| {
        name.eq_ignore_ascii_case(word) || (word.len() == 3 && name[..3].eq_ignore_ascii_case(word))
    };
    i64::try_from(names.iter().position(is_named)?).ok()
}

/// A year of two digits: from 1970 to 2069.
fn century(year: i64) -> i64 {
    if year < 70 { 2000 + year } else { 1900 + year }
}

/// Days since 1970 of a date that there is.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    days_of(year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts as MongoDB 6.0 reads them: `text | milliseconds`.
    const READ: &str = include_str!("read_by_mongodb.txt");

    #[test]
    fn notations_are_read_as_mongodb_reads_them() {
        let cases: Vec<_> = READ.lines().filter_map(|line| line.split_once(" | ")).collect();
        assert!(cases.len() > 60);
        for (text, millis) in cases {
            let wanted = millis.parse().ok();
            assert_eq!(parse_utc(text.trim_matches('\'')), wanted, "{text}");
        }
    }

    #[test]
    fn offsets_stand_alone_too() {
        assert_eq!(parse_offset("+05:30"), Some(330 * MILLIS_PER_MINUTE));
        assert_eq!(parse_offset("-08"), Some(-480 * MILLIS_PER_MINUTE));
        assert_eq!(parse_offset("Z"), Some(0));
        assert_eq!(parse_offset("x"), None);
    }
}
