//! Latencies to two digits in little memory: a run has one of these for each of its intervals and each kind
//! of statement.
//!
//! # Places
//! Nanoseconds below 2^6 have a place each; above, each power of two is cut into 2^6 equal parts, so that a
//! place is at most 1.6 % wide. Only places from the lowest to the highest that occurred are kept: a steady
//! server needs some hundred of them.

use std::time::Duration;

/// Each power of two is cut into two to this many parts.
const PART_BITS: u32 = 6;
const PARTS: u64 = 1 << PART_BITS;

/// How often latencies occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoarseLatencies {
    /// The place that the first count is of.
    first: usize,
    counts: Vec<u32>,
    count: u64,
    max_ns: u64,
}

impl CoarseLatencies {
    /// Counts one.
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.max_ns = self.max_ns.max(nanoseconds);
        self.count += 1;
        let count = self.at(place_of(nanoseconds));
        *count = count.saturating_add(1);
    }

    /// The count of a place, with room made for it.
    fn at(&mut self, place: usize) -> &mut u32 {
        if self.counts.is_empty() {
            self.first = place;
        }
        if place < self.first {
            let missing = self.first - place;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = place;
        }
        let at = place - self.first;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        &mut self.counts[at]
    }

    /// Takes another's counts in.
    pub fn add(&mut self, other: &CoarseLatencies) {
        for (offset, theirs) in other.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = self.at(other.first + offset);
            *count = count.saturating_add(*theirs);
        }
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest in microseconds.
    pub fn max_us(&self) -> f64 {
        self.max_ns as f64 / 1e3
    }

    /// The latency that this share (0..=1) of all did not exceed, in microseconds; 0 if none was counted.
    pub fn quantile_us(&self, share: f64) -> f64 {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut so_far = 0;
        for (offset, count) in self.counts.iter().enumerate() {
            so_far += u64::from(*count);
            if so_far >= rank {
                // The place's upper end, which none in it exceeds. The greatest value of all is known
                // exactly.
                return (upper_end(self.first + offset).min(self.max_ns)) as f64 / 1e3;
            }
        }
        self.max_us()
    }
}

fn place_of(nanoseconds: u64) -> usize {
    if nanoseconds < PARTS {
        return nanoseconds as usize;
    }
    let shift = nanoseconds.ilog2() - PART_BITS;
    // The first power of two that is cut comes right behind the places of their own.
    let part = (nanoseconds >> shift) - PARTS;
    (u64::from(shift + 1) * PARTS + part) as usize
}

/// The highest nanosecond of a place.
fn upper_end(place: usize) -> u64 {
    let place = place as u64;
    if place < PARTS {
        return place;
    }
    let shift = place / PARTS - 1;
    let part = u128::from(place % PARTS + PARTS + 1);
    u64::try_from((part << shift) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::Latencies;
    use super::*;

    #[test]
    fn every_place_ends_where_the_next_one_begins_and_is_narrow() {
        assert_eq!((place_of(0), place_of(63), place_of(64), place_of(65)), (0, 63, 64, 65));
        for place in 0..place_of(u64::MAX) {
            let end = upper_end(place);
            assert_eq!((place_of(end), place_of(end + 1)), (place, place + 1), "{place}");
        }
        assert_eq!(upper_end(place_of(u64::MAX)), u64::MAX);
        let (lower, upper) = (upper_end(place_of(1_000_000) - 1) + 1, upper_end(place_of(1_000_000)));
        assert!((upper - lower) as f64 / lower as f64 <= 1.0 / 64.0, "{lower} to {upper}");
    }

    #[test]
    fn quantiles_are_those_of_the_fine_histogram_to_two_digits() {
        let (mut coarse, mut fine) = (CoarseLatencies::default(), Latencies::new());
        let mut random = crate::random::Random::for_client(crate::random::Generator::Xoshiro, 3, 0);
        for _ in 0..50_000 {
            // From a microsecond to a second, as many in each power of ten.
            let latency = Duration::from_nanos((1e3 * 1e6_f64.powf(random.unit())) as u64);
            coarse.record(latency);
            fine.record(latency);
        }
        for share in [0.0, 0.01, 0.5, 0.95, 0.99, 0.999, 1.0] {
            let (found, expected) = (coarse.quantile_us(share), fine.quantile_us(share));
            assert!((found / expected - 1.0).abs() < 0.02, "{share}: {found}, not {expected}");
        }
        assert_eq!(coarse.count(), 50_000);
        assert!((coarse.max_us() / fine.max_us() - 1.0).abs() < 0.001);
    }

    #[test]
    fn parts_add_up_in_any_order_to_the_whole() {
        let latencies = [7_u64, 900, 1_000_000, 3, 70_000, u64::MAX];
        let of = |some: &[u64]| {
            let mut all = CoarseLatencies::default();
            some.iter().for_each(|nanoseconds| all.record(Duration::from_nanos(*nanoseconds)));
            all
        };
        for cut in 0..=latencies.len() {
            let (mut a, b) = (of(&latencies[..cut]), of(&latencies[cut..]));
            a.add(&b);
            assert_eq!(a, of(&latencies), "{cut}");
        }
        assert_eq!(CoarseLatencies::default().quantile_us(0.99), 0.0);
    }
}
