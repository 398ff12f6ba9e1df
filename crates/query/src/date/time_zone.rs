//! Time zones: UTC, a fixed offset (`+05:30`), or a name out of the IANA database (`America/New_York`), which
//! is compiled in.
//!
//! *Local* milliseconds are those of a clock on the wall: UTC plus the zone's offset at that moment.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::calendar::{MILLIS_PER_DAY, Moment};
use super::text::parse_offset;

/// A zone.
#[derive(Clone, Debug)]
pub(crate) enum Zone {
    /// Milliseconds to add to UTC.
    Fixed(i64),
    Named(TimeZone),
}

impl Zone {
    pub(crate) const UTC: Zone = Zone::Fixed(0);

    /// The zone of a name or an offset.
    pub(crate) fn parse(text: &str) -> Option<Zone> {
        if text.starts_with(['+', '-']) {
            return parse_offset(text).map(Zone::Fixed);
        }
        if matches!(text, "UTC" | "GMT") {
            return Some(Zone::UTC);
        }
        // Names hold a slash or are whole words; a lone letter is a military zone, which nobody means.
        TimeZone::get(text).ok().filter(|_| text.len() > 1).map(Zone::Named)
    }

    /// Milliseconds to add to UTC at a moment. Behind the year 9999 it is that of the same day in an earlier
    /// cycle of the calendar, and before all known years the first one.
    pub(crate) fn offset_at(&self, millis: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => {
                let end = if millis < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
                let moment = jiff::Timestamp::from_millisecond(within_cycle(millis)).unwrap_or(end);
                i64::from(zone.to_offset(moment).seconds()) * 1000
            }
        }
    }

    /// The wall clock at a moment.
    pub(crate) fn to_local(&self, millis: i64) -> i64 {
        millis.saturating_add(self.offset_at(millis))
    }

    /// The moment of a wall clock. A time that the clocks skip counts as the one behind the gap; of a time
    /// that they repeat, the first counts.
    pub(crate) fn to_utc(&self, local: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => local.saturating_sub(*offset),
            Zone::Named(zone) => civil(local)
                .and_then(|civil| zone.to_ambiguous_timestamp(civil).compatible().ok())
                .map_or_else(
                    || local.saturating_sub(self.offset_at(local)),
                    |moment| moment.as_millisecond(),
                ),
        }
    }
}

/// A moment behind the year 9000 as the same one of a cycle of the calendar before: rules by weekdays repeat,
/// since 400 years are whole weeks.
fn within_cycle(millis: i64) -> i64 {
    const CYCLE_MILLIS: i64 = 146_097 * MILLIS_PER_DAY;
    const YEAR_9000_MILLIS: i64 = 221_845_392_000_000;
    match millis.checked_sub(YEAR_9000_MILLIS) {
        Some(behind @ 0..) => YEAR_9000_MILLIS + behind % CYCLE_MILLIS,
        _ => millis,
    }
}

fn civil(local: i64) -> Option<DateTime> {
    let moment = Moment::from_millis(local);
    DateTime::new(
        i16::try_from(moment.year).ok()?,
        i8::try_from(moment.month).ok()?,
        i8::try_from(moment.day).ok()?,
        i8::try_from(moment.hour).ok()?,
        i8::try_from(moment.minute).ok()?,
        i8::try_from(moment.second).ok()?,
        i32::try_from(moment.millisecond).ok()? * 1_000_000,
    )
    .ok()
}
