//! Dates: milliseconds since 1970-01-01 UTC as years, months and days of the Gregorian calendar, and as ISO
//! 8601 text.
//!
//! The conversions between days and dates count years from March, so that the leap day is the last of its
//! year. See Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2013).

pub(crate) const MILLIS_PER_DAY: i64 = 86_400_000;
/// The names of the months.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A moment taken apart, in UTC or in the local time that was added before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: i64,
    /// 1 to 31.
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) millisecond: i64,
}

impl Moment {
    /// The parts of a moment.
    pub(crate) fn from_millis(millis: i64) -> Moment {
        let (days, rest) = (millis.div_euclid(MILLIS_PER_DAY), millis.rem_euclid(MILLIS_PER_DAY));
        let (year, month, day) = date_of(days);
        Moment {
            year,
            month,
            day,
            hour: rest / 3_600_000,
            minute: rest / 60_000 % 60,
            second: rest / 1000 % 60,
            millisecond: rest % 1000,
        }
    }

    /// The moment; parts out of range count on, as month 13 is January of the next year. None beyond int64.
    pub(crate) fn to_millis(self) -> Option<i64> {
        let months = self.year.checked_mul(12)?.checked_add(self.month - 1)?;
        let days = days_of(months.div_euclid(12), months.rem_euclid(12) + 1, 1)?.checked_add(self.day - 1)?;
        let time = self.hour.checked_mul(3_600_000)?.checked_add(self.minute.checked_mul(60_000)?)?;
        let time = time.checked_add(self.second.checked_mul(1000)?)?.checked_add(self.millisecond)?;
        days.checked_mul(MILLIS_PER_DAY)?.checked_add(time)
    }
}

/// Year, month and day of a number of days since 1970-01-01.
pub(crate) fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Days since 1970-01-01 of a date; none where the year is absurdly far.
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    const YEAR_MAX: i64 = 1_000_000_000;
    if !(-YEAR_MAX..=YEAR_MAX).contains(&year) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// The day of the week of a number of days since 1970-01-01: 0 is Sunday.
pub(crate) fn weekday(days: i64) -> i64 {
    // 1970-01-01 was a Thursday.
    (days + 4).rem_euclid(7)
}

/// Days since the year began: 0 is January 1.
pub(crate) fn day_of_year(days: i64) -> i64 {
    let (year, _, _) = date_of(days);
    days - days_of(year, 1, 1).unwrap_or(days)
}

/// The week of the year, weeks from Sunday: 0 is the part of a week before the first Sunday.
pub(crate) fn week_of_year(days: i64) -> i64 {
    (day_of_year(days) + 7 - weekday(days)) / 7
}

/// Year and number of the ISO 8601 week: weeks from Monday, the first with four days in the year.
pub(crate) fn iso_week(days: i64) -> (i64, i64) {
    let from_monday = (weekday(days) + 6) % 7;
    // The week's Thursday decides its year.
    let thursday = days - from_monday + 3;
    let (year, _, _) = date_of(thursday);
    (year, day_of_year(thursday) / 7 + 1)
}

/// Days since 1970-01-01 of a day of an ISO week; 1 is Monday.
pub(crate) fn days_of_iso_week(year: i64, week: i64, day: i64) -> Option<i64> {
    // January 4 is always in the first week.
    let fourth = days_of(year, 1, 4)?;
    let monday = fourth - (weekday(fourth) + 6) % 7;
    monday.checked_add((week - 1).checked_mul(7)?)?.checked_add(day - 1)
}

/// Days of a month.
pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// A moment as text: `2020-02-29T13:14:15.678Z`.
pub fn iso_text(millis: i64) -> String {
    let moment = Moment::from_millis(millis);
    let sign = if moment.year < 0 { "-" } else { "" };
    format!(
        "{sign}{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        moment.year.abs(),
        moment.month,
        moment.day,
        moment.hour,
        moment.minute,
        moment.second,
        moment.millisecond
    )
}

/// The name of a month of 1 to 12. Its first three letters are its short name.
pub(crate) fn month_name(month: i64) -> &'static str {
    MONTHS[(month - 1).rem_euclid(12) as usize]
}

/// A second of UTC without its year, as C's `ctime` writes it: `Feb 29 13:14:15`.
pub(crate) fn short_text(seconds: i64) -> String {
    let Moment { month, day, hour, minute, second, .. } = Moment::from_millis(seconds.saturating_mul(1000));
    let month = &month_name(month)[..3];
    format!("{month} {day:>2} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_eight_hundred_years_comes_back_from_its_date() {
        let start = days_of(1600, 1, 1).expect("in range");
        for days in start..start + 2 * 146_097 {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), Some(days));
            assert!((1..=days_in_month(year, month)).contains(&day), "{year}-{month}-{day}");
        }
    }

    #[test]
    fn text_and_moment_agree() {
        for text in ["2020-02-29T13:14:15.678Z", "1969-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z"] {
            assert_eq!(super::super::text::parse_utc(text).map(iso_text).as_deref(), Some(text));
        }
    }
}
