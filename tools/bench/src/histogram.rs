//! Latencies: recorded in nanoseconds, 1 µs to 1 h, to three digits.

use std::time::Duration;

/// The longest latency that is told apart; a longer one counts as this.
const LONGEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// How often each latency occurred.
#[derive(Clone, Debug)]
pub struct Latencies {
    counts: hdrhistogram::Histogram<u64>,
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

    /// The longest in microseconds.
    pub fn max_us(&self) -> f64 {
        self.counts.max() as f64 / 1e3
    }
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
    fn an_absurd_latency_counts_as_the_longest() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::MAX);
        assert!(latencies.max_us() >= 3.6e9);
        assert_eq!(Latencies::new().quantile_us(0.99), 0.0);
    }
}
