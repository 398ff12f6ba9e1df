//! The schedule of an open loop: when units begin if the rate is given.
//!
//! The schedule goes on whatever the server does. A unit whose client was not free in time begins late, and
//! its latency counts from when it was to begin: so a stall of one second at 1,000 units a second shows in
//! about 1,000 latencies, not in one per client.

use pando_measuring::random::{Generator, Random};
use std::time::{Duration, Instant};

/// How units are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    Even,
    /// Exponential times between them, as of many users who know nothing of each other.
    Poisson,
}

impl Spacing {
    pub fn name(self) -> &'static str {
        match self {
            Spacing::Even => "even",
            Spacing::Poisson => "poisson",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A client begins its next unit when the last is over.
    Closed,
    /// Units begin by schedule, so many a second over all clients.
    Open {
        /// Units per second, above 0.
        rate: f64,
        /// How they are spread.
        spacing: Spacing,
    },
}

impl Pace {
    /// The schedule of one of `parts` workers, from a moment on; nothing in a closed loop.
    pub fn schedule(self, from: Instant, part: u32, parts: u32) -> Option<Schedule> {
        let Pace::Open { rate, spacing } = self else { return None };
        let gap_s = f64::from(parts) / rate;
        // Workers take turns: part 0 begins at once, the others between its units.
        let first = from + Duration::from_secs_f64(f64::from(part) / rate);
        let random = Random::for_client(Generator::Xoshiro, SCHEDULE_SEED, u64::from(part));
        Some(Schedule { from: first, units: 0, sum_of_gaps_s: 0.0, gap_s, spacing, random })
    }
}

/// The seed of the gaps of schedules: the same in every run, apart from the seed of its keys.
const SCHEDULE_SEED: u64 = 0x5CED;

#[derive(Clone, Debug)]
pub struct Schedule {
    from: Instant,
    units: u64,
    sum_of_gaps_s: f64,
    gap_s: f64,
    spacing: Spacing,
    random: Random,
}

impl Schedule {
    pub fn due(&self) -> Instant {
        let after_s = match self.spacing {
            // From the count, so that rounding does not add up.
            Spacing::Even => self.units as f64 * self.gap_s,
            Spacing::Poisson => self.sum_of_gaps_s,
        };
        self.from + Duration::from_secs_f64(after_s)
    }

    /// Takes that unit; the next one becomes due.
    pub fn take(&mut self) -> Instant {
        let due = self.due();
        self.units += 1;
        if self.spacing == Spacing::Poisson {
            self.sum_of_gaps_s -= (1.0 - self.random.unit()).ln() * self.gap_s;
        }
        due
    }

    /// Takes all units that are due before a moment; gives how many, and when the first of them was due.
    pub fn take_until(&mut self, moment: Instant) -> (u64, Option<Instant>) {
        let mut taken = (0, None);
        while self.due() < moment {
            let due = self.take();
            taken = (taken.0 + 1, taken.1.or(Some(due)));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units_in(seconds: u64, spacing: Spacing, parts: u32) -> u64 {
        let from = Instant::now();
        let pace = Pace::Open { rate: 1000.0, spacing };
        let schedules = (0..parts).filter_map(|part| pace.schedule(from, part, parts));
        schedules.map(|mut schedule| schedule.take_until(from + Duration::from_secs(seconds)).0).sum()
    }

    #[test]
    fn the_rate_is_kept_over_all_workers_together() {
        for parts in [1, 3, 7] {
            assert_eq!(units_in(10, Spacing::Even, parts), 10_000, "{parts} workers");
            let poisson = units_in(10, Spacing::Poisson, parts) as f64;
            assert!((9_600.0..10_400.0).contains(&poisson), "{poisson} of 10,000 within four deviations");
        }
    }

    #[test]
    fn gaps_are_even_or_exponential() {
        let gaps = |spacing| {
            let pace = Pace::Open { rate: 1000.0, spacing };
            let mut schedule = pace.schedule(Instant::now(), 0, 1).expect("the loop is open");
            let moments: Vec<Instant> = (0..20_001).map(|_| schedule.take()).collect();
            moments.windows(2).map(|two| (two[1] - two[0]).as_secs_f64() * 1e3).collect::<Vec<f64>>()
        };
        assert!(gaps(Spacing::Even).iter().all(|gap| (gap - 1.0).abs() < 1e-3));
        let poisson = gaps(Spacing::Poisson);
        let above = |limit: f64| poisson.iter().filter(|gap| **gap > limit).count() as f64 / 20_000.0;
        for limit in [0.1, 1.0, 3.0_f64] {
            assert!((above(limit) - (-limit).exp()).abs() < 0.015, "{limit}: {}", above(limit));
        }
    }

    #[test]
    fn a_closed_loop_has_no_schedule() {
        assert!(Pace::Closed.schedule(Instant::now(), 0, 1).is_none());
    }
}
