//! The waits of the server's threads: the sums of performance_schema before and after a run, and the greatest
//! differences.
//!
//! Only what the server was started to count is there, since counting costs: `--performance-schema=ON` and
//! `--performance-schema-instrument='wait/synch/%=ON'`. Without it, that is said, and nothing is changed.

use crate::driver::of_sql;
use mysql::Conn;
use mysql::prelude::Queryable;
use pando_bench::error::BenchError;
use std::collections::HashMap;

/// How many are shown.
const TOP: usize = 10;
const PICOSECONDS: f64 = 1e12;

/// The sums so far, by the name of what was waited for: how often, and how long in picoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits(HashMap<String, (u64, u64)>);

/// One thing that was waited for.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Wait {
    /// Its name in performance_schema.
    pub name: String,
    /// How often.
    pub waits: u64,
    /// How long, all threads together.
    pub seconds: f64,
}

impl Waits {
    /// The sums as they are now; nothing if the server does not count.
    pub fn read(connection: &mut Conn) -> Result<Option<Waits>, BenchError> {
        let is_on: Option<(String, String)> =
            connection.query_first("SHOW GLOBAL VARIABLES LIKE 'performance\\_schema'").map_err(of_sql)?;
        if is_on.is_none_or(|(_, value)| value != "ON") {
            return Ok(None);
        }
        let rows: Vec<(String, u64, u64)> = connection
            .query(
                "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT \
                 FROM performance_schema.events_waits_summary_global_by_event_name \
                 WHERE COUNT_STAR > 0 AND EVENT_NAME <> 'idle'",
            )
            .map_err(of_sql)?;
        Ok(Some(Waits(rows.into_iter().map(|(name, count, time)| (name, (count, time))).collect())))
    }

    /// What came since then: those that were waited for longest, the longest first.
    pub fn since(&self, before: &Waits) -> Vec<Wait> {
        let of = |(name, (count, time)): (&String, &(u64, u64))| {
            let (count_before, time_before) = before.0.get(name).copied().unwrap_or_default();
            Wait {
                name: name.clone(),
                waits: count.saturating_sub(count_before),
                seconds: time.saturating_sub(time_before) as f64 / PICOSECONDS,
            }
        };
        let mut waits: Vec<Wait> = self.0.iter().map(of).filter(|wait| wait.waits > 0).collect();
        waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.name.cmp(&b.name)));
        waits.truncate(TOP);
        waits
    }
}

/// As lines of a report.
pub fn lines(waits: &[Wait]) -> Vec<String> {
    let line = |wait: &Wait| format!("waits: {:>10.3} s in {:>9} of {}", wait.seconds, wait.waits, wait.name);
    waits.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_waits_since_then_come_first() {
        let of = |rows: &[(&str, u64, u64)]| {
            Waits(rows.iter().map(|(name, count, time)| ((*name).to_owned(), (*count, *time))).collect())
        };
        let before = of(&[("a", 10, 5_000_000_000_000), ("b", 1, 0)]);
        let after = of(&[("a", 11, 6_000_000_000_000), ("b", 5, 2_500_000_000_000), ("c", 0, 0)]);
        let waits = after.since(&before);
        assert_eq!(waits.iter().map(|wait| wait.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!((waits[0].waits, waits[0].seconds), (4, 2.5));
        assert!(lines(&waits)[1].contains("1.000 s") && lines(&waits)[1].ends_with("of a"));
    }
}
