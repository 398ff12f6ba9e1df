//! Latencies: recorded in nanoseconds, 1 µs to 1 h, to three digits.

mod coarse;

pub use coarse::CoarseLatencies;

use std::time::Duration;

/// The longest latency that is told apart; a longer one counts as this.
const LONGEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// How often each latency occurred.
#[derive(Clone, Debug)]
pub struct Latencies {
    counts: hdrhistogram::Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

impl Latencies {
    /// No latency yet.
    pub fn new() -> Latencies {
        let counts = hdrhistogram::Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
            .expect("the bounds and digits are constants within the histogram's limits");
        Latencies { counts }
    }

    /// Counts one.
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(LONGEST_NS);
        self.counts.saturating_record(nanoseconds);
    }

    /// Takes another's counts in.
    pub fn add(&mut self, other: &Latencies) {
        self.counts.add(&other.counts).expect("all histograms of this type have the same bounds");
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The latency that this share (0..=1) of all did not exceed, in microseconds; 0 if none was counted.
    pub fn quantile_us(&self, share: f64) -> f64 {
        self.counts.value_at_quantile(share) as f64 / 1e3
    }

    /// The mean in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.counts.mean() / 1e3
    }

    /// How often, by latency: pairs of microseconds and a count, in order. Latencies are put together to two
    /// digits, which is fine enough to draw and to compare, and keeps files small.
    pub fn buckets_us(&self) -> Vec<(f64, u64)> {
        let mut buckets: Vec<(f64, u64)> = Vec::new();
        for value in self.counts.iter_recorded() {
            let rounded = two_digits(value.value_iterated_to() as f64 / 1e3);
            match buckets.last_mut() {
                Some((last, count)) if *last == rounded => *count += value.count_at_value(),
                _ => buckets.push((rounded, value.count_at_value())),
            }
        }
        buckets
    }

    /// The number of values of at most this many microseconds, to three digits.
    pub fn count_up_to_us(&self, us: f64) -> u64 {
        let limit = (us * 1e3) as u64;
        self.counts
            .iter_recorded()
            .filter(|value| value.value_iterated_to() <= limit)
            .map(|value| value.count_at_value())
            .sum()
    }

    /// The longest in microseconds.
    pub fn max_us(&self) -> f64 {
        self.counts.max() as f64 / 1e3
    }
}

/// A number rounded to two digits that count.
fn two_digits(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    let rounded = (value / unit).round() * unit;
    // Without this, 0.1 + 0.2 shows in the file.
    format!("{rounded:.3}").parse().unwrap_or(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let mut latencies = Latencies::new();
        (1..=1000).for_each(|us| latencies.record(Duration::from_micros(us)));
        for (share, expected) in [(0.5, 500.0), (0.99, 990.0), (0.999, 999.0)] {
            let found = latencies.quantile_us(share);
            assert!((found - expected).abs() <= expected / 1000.0 + 1.0, "{share}: {found}");
        }
        assert_eq!(latencies.count(), 1000);
    }

    #[test]
    fn parts_of_several_clients_add_up() {
        let (mut a, mut b) = (Latencies::new(), Latencies::new());
        a.record(Duration::from_micros(10));
        b.record(Duration::from_micros(30));
        a.add(&b);
        assert_eq!(a.count(), 2);
        assert!((a.mean_us() - 20.0).abs() < 0.1);
    }

    #[test]
    fn buckets_keep_every_latency_to_two_digits() {
        let mut latencies = Latencies::new();
        (1..=1000).for_each(|us| latencies.record(Duration::from_micros(us)));
        let buckets = latencies.buckets_us();
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 1000);
        assert!(buckets.windows(2).all(|two| two[0].0 < two[1].0), "{buckets:?}");
        assert!(buckets.len() < 200 && buckets.contains(&(430.0, 10)), "{buckets:?}");
    }

    #[test]
    fn an_absurd_latency_counts_as_the_longest() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::MAX);
        assert!(latencies.max_us() >= 3.6e9);
        assert_eq!(Latencies::new().quantile_us(0.99), 0.0);
    }
}
