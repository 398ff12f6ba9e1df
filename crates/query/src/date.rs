//! Dates: the calendar, dates as text, and time zones.
//!
//! A moment is a number of milliseconds since 1970-01-01 UTC. *Local* milliseconds are those of a clock on
//! the wall.
//!
//! Not here: the operators on dates (`expression/operator`).

pub(crate) mod calendar;
pub(crate) mod text;
pub(crate) mod time_zone;
