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
    Poisson(Draws),
}

/// The draws of the times between units. They follow from the seed and the number of the run, as all other
/// draws do, so that both sides of a comparison have the same arrivals, and its repeats have others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    pub seed: u64,
    /// The first of the streams of draws of this run.
    pub stream: u64,
}

impl Spacing {
    pub fn name(self) -> &'static str {
        match self {
            Spacing::Even => "even",
            Spacing::Poisson(_) => "poisson",
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
        let times = match spacing {
            // Workers take turns: part 0 begins at once, the others between its units.
            Spacing::Even => Times::Even { first_s: f64::from(part) / rate, units: 0 },
            Spacing::Poisson(Draws { seed, stream }) => {
                let (seed, stream) = (seed ^ SCHEDULE_SEED, stream | u64::from(part));
                let mut random = Random::for_client(Generator::Xoshiro, seed, stream);
                // The first unit has a gap before it, too: one at once would be one too many.
                Times::Poisson { due_s: exponential(&mut random, gap_s), random }
            }
        };
        Some(Schedule { from, gap_s, times })
    }

    /// The same in another run: with draws of its own.
    pub fn in_run(self, stream: u64) -> Pace {
        match self {
            Pace::Open { rate, spacing: Spacing::Poisson(draws) } => {
                Pace::Open { rate, spacing: Spacing::Poisson(Draws { stream, ..draws }) }
            }
            pace => pace,
        }
    }
}

/// Keeps the draws of a schedule apart from those of the keys, which have the same seed and stream.
const SCHEDULE_SEED: u64 = 0x9E37_79B9_7F4A_7C15;

#[derive(Clone, Debug)]
pub struct Schedule {
    from: Instant,
    /// The mean time between units.
    gap_s: f64,
    times: Times,
}

/// When the next unit is due.
#[derive(Clone, Debug)]
enum Times {
    /// From the count, so that rounding does not add up.
    Even {
        first_s: f64,
        units: u64,
    },
    Poisson {
        due_s: f64,
        random: Random,
    },
}

/// A draw of an exponential distribution with this mean.
fn exponential(random: &mut Random, mean: f64) -> f64 {
    -(1.0 - random.unit()).ln() * mean
}

impl Schedule {
    pub fn due(&self) -> Instant {
        let after_s = match &self.times {
            Times::Even { first_s, units } => first_s + *units as f64 * self.gap_s,
            Times::Poisson { due_s, .. } => *due_s,
        };
        self.from + Duration::from_secs_f64(after_s)
    }

    /// Takes that unit; the next one becomes due.
    pub fn take(&mut self) -> Instant {
        let due = self.due();
        match &mut self.times {
            Times::Even { units, .. } => *units += 1,
            Times::Poisson { due_s, random } => *due_s += exponential(random, self.gap_s),
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

    const POISSON: Spacing = Spacing::Poisson(Draws { seed: 0, stream: 0 });

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
            let poisson = units_in(10, POISSON, parts) as f64;
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
        let poisson = gaps(POISSON);
        let above = |limit: f64| poisson.iter().filter(|gap| **gap > limit).count() as f64 / 20_000.0;
        for limit in [0.1, 1.0, 3.0_f64] {
            assert!((above(limit) - (-limit).exp()).abs() < 0.015, "{limit}: {}", above(limit));
        }
    }

    /// The times of the first units of a schedule in microseconds, at 100 a second.
    fn first_units_us(seed: u64, stream: u64, part: u32) -> Vec<u128> {
        let pace = Pace::Open { rate: 100.0, spacing: Spacing::Poisson(Draws { seed, stream: 0 }) };
        let from = Instant::now();
        let mut schedule = pace.in_run(stream).schedule(from, part, part + 1).expect("the loop is open");
        (0..100).map(|_| schedule.take().duration_since(from).as_micros()).collect()
    }

    #[test]
    fn random_arrivals_follow_from_the_seed_and_the_run_and_are_others_in_each_of_them() {
        assert_eq!(
            first_units_us(7, 1 << 48, 0),
            first_units_us(7, 1 << 48, 0),
            "both sides of a comparison"
        );
        assert_ne!(first_units_us(7, 0, 0), first_units_us(8, 0, 0), "another seed");
        assert_ne!(first_units_us(7, 0, 0), first_units_us(7, 1 << 48, 0), "another repeat");
        assert_ne!(first_units_us(7, 0, 0), first_units_us(7, 0, 1), "another worker");
    }

    #[test]
    fn random_arrivals_begin_at_the_rate_that_was_asked_for() {
        let runs = 400_u32;
        let last_s: f64 =
            (0..runs).map(|seed| first_units_us(u64::from(seed), 0, 0)[99] as f64 / 1e6).sum::<f64>();
        let mean_s = last_s / f64::from(runs);
        assert!(
            (0.98..1.02).contains(&mean_s),
            "the hundredth unit comes after {mean_s} s of 1, four deviations"
        );
        let first_s: f64 =
            (0..runs).map(|seed| first_units_us(u64::from(seed), 0, 0)[0] as f64 / 1e6).sum::<f64>();
        let first_s = first_s / f64::from(runs);
        assert!((0.008..0.012).contains(&first_s), "the first one comes after a gap: {first_s} s");
    }

    #[test]
    fn a_closed_loop_has_no_schedule() {
        assert!(Pace::Closed.schedule(Instant::now(), 0, 1).is_none());
    }
}
