//! The sizes of the two tiers of the page cache: a pure function of the lookups of the last period.
//!
//! # Model
//! - A byte of the *decoded* tier saves decompressing. A byte of the *compressed* tier saves reads of the
//!   device.
//! - The worth of a byte is the mean saving per byte of its tier in the last period.
//! - A read that the memory as a whole no longer needs saves nothing. So the worth of the compressed tier
//!   falls with the rate of misses.
//!
//! # Rules
//! | compressed tier | rule |
//! |---|---|
//! | full | the tier whose bytes are worth more grows by a step |
//! | not full, few misses | the decoded tier grows into the unused memory |
//! | not full, many misses | no change: the missed pages were never in memory |
//!
//! | data | result |
//! |---|---|
//! | fits into memory | decoded |
//! | fits when compressed | mostly compressed |
//! | does not fit | compressed, and the hottest pages decoded |
//!
//! # Not here
//! - Which pages a tier keeps: the tier's own eviction decides that.

/// The cost of a device read in decompressions of a page (16 KB: 6 to 10 µs, and 50 to 100 µs).
const DECODES_PER_READ: f64 = 8.0;
/// From this rate of misses on the compressed tier counts in full.
const MISS_RATE_FULL: f64 = 0.02;
/// The worth of the decoded tier's last bytes, relative to the mean. A decision moves the last bytes, and the
/// hottest ones save most. This holds for both tiers, and more for the decoded one, which has the hottest
/// pages of all.
const DECODED_MARGIN: f64 = 0.5;
/// A tier grows if its bytes are worth this many times as much as those of the other.
const LEAD: f64 = 1.5;
/// Fewer lookups than this decide nothing.
const LOOKUPS_MIN: u64 = 1_000;

/// The lookups of a period, and the sizes of the tiers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Period {
    pub(super) decoded_hits: u64,
    pub(super) compressed_hits: u64,
    pub(super) misses: u64,
    pub(super) decoded_bytes: u64,
    pub(super) compressed_bytes: u64,
    /// The capacity of the compressed tier.
    pub(super) compressed_limit: u64,
    /// The capacity of both tiers together.
    pub(super) limit: u64,
}

impl Period {
    /// Whether the compressed tier is full, so that each new page evicts another.
    fn is_full(&self) -> bool {
        self.compressed_bytes >= self.compressed_limit / 10 * 9
    }
}

/// The decoded tier's share of the memory for pages of leaves, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DecodedShare(u16);

impl DecodedShare {
    /// The share of a new cache. Small, because a tier that shrinks frees its memory in fragments.
    pub(super) const FIRST: DecodedShare = DecodedShare(125);
    /// Both tiers always have some memory, or they would have no hits to compare.
    pub(super) const MIN: DecodedShare = DecodedShare(60);
    const MAX: DecodedShare = DecodedShare(940);
    /// Small, because pages that the compressed tier loses may have to be read again.
    const STEP_UP: u16 = 30;
    const STEP_DOWN: u16 = 110;
    /// The step into unused memory.
    const UNUSED_STEP: u16 = 300;

    pub(super) fn from_thousandths(thousandths: u16) -> DecodedShare {
        DecodedShare(thousandths.clamp(Self::MIN.0, Self::MAX.0))
    }

    pub(super) fn thousandths(self) -> u16 {
        self.0
    }

    /// The decoded part of these bytes.
    pub(super) fn of(self, bytes: u64) -> u64 {
        (u128::from(bytes) * u128::from(self.0) / 1_000) as u64
    }

    /// The share for the next period.
    pub(super) fn after(self, period: &Period) -> DecodedShare {
        let lookups = period.decoded_hits + period.compressed_hits + period.misses;
        if lookups < LOOKUPS_MIN {
            return self;
        }
        let miss_rate = period.misses as f64 / lookups as f64;
        let is_decoding = period.compressed_hits * 1_000 > lookups;
        if period.is_full() {
            self.by_worth(period, miss_rate, is_decoding)
        } else if is_decoding && miss_rate < MISS_RATE_FULL {
            let room = 1_000 - (period.compressed_bytes as f64 * 1_050.0 / period.limit.max(1) as f64) as i64;
            let wanted = (self.0 + Self::UNUSED_STEP).min(u16::try_from(room).unwrap_or(0));
            DecodedShare::from_thousandths(wanted.max(self.0))
        } else {
            self
        }
    }

    /// The next share where one tier grows only if the other shrinks.
    fn by_worth(self, period: &Period, miss_rate: f64, is_decoding: bool) -> DecodedShare {
        let per_byte = |hits: u64, bytes: u64| hits as f64 / bytes.max(1) as f64;
        let compressed = per_byte(period.compressed_hits, period.compressed_bytes)
            * DECODES_PER_READ
            * (miss_rate / MISS_RATE_FULL).min(1.0);
        let decoded = per_byte(period.decoded_hits, period.decoded_bytes) * DECODED_MARGIN;
        if decoded > compressed * LEAD && is_decoding {
            DecodedShare::from_thousandths(self.0 + Self::STEP_UP)
        } else if compressed > decoded * LEAD {
            DecodedShare::from_thousandths(self.0.saturating_sub(Self::STEP_DOWN))
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform lookups over `data` raw bytes, compressed to two fifths, with a cache of `cache` bytes.
    fn uniform(data: f64, cache: f64) -> DecodedShare {
        let mut share = DecodedShare::FIRST;
        for _ in 0..50 {
            let decoded_bytes = share.of(cache as u64) as f64;
            let compressed_bytes = cache - decoded_bytes;
            let decoded = (decoded_bytes / data).min(1.0);
            let compressed = (compressed_bytes / (0.4 * data)).min(1.0 - decoded);
            let hits = |part: f64| (part * 1e6) as u64;
            share = share.after(&Period {
                decoded_hits: hits(decoded),
                compressed_hits: hits(compressed),
                misses: hits(1.0 - decoded - compressed),
                decoded_bytes: decoded_bytes as u64,
                compressed_bytes: (compressed * 0.4 * data) as u64,
                compressed_limit: compressed_bytes as u64,
                limit: cache as u64,
            });
        }
        share
    }

    #[test]
    fn data_of_ten_times_the_memory_is_kept_compressed() {
        assert_eq!(uniform(1e10, 1e9), DecodedShare::MIN);
    }

    #[test]
    fn data_that_fits_is_kept_decoded() {
        assert!(uniform(0.8e9, 1e9).of(1_000_000_000) >= 800_000_000);
    }

    #[test]
    fn of_data_that_fits_only_when_compressed_as_much_is_decoded_as_leaves_few_misses() {
        // All of it compressed takes 0.64 of the memory; each decoded byte takes 0.6 more than it frees.
        let share = uniform(1.6e9, 1e9).thousandths();
        assert!((300..=800).contains(&share), "{share}");
    }

    #[test]
    fn a_hot_set_stays_decoded_beside_a_cold_rest() {
        let period = Period {
            decoded_hits: 900_000,
            compressed_hits: 20_000,
            misses: 80_000,
            decoded_bytes: 500_000_000,
            compressed_bytes: 500_000_000,
            compressed_limit: 500_000_000,
            limit: 1_000_000_000,
        };
        assert!(DecodedShare::FIRST.after(&period) > DecodedShare::FIRST);
    }

    #[test]
    fn while_there_is_room_only_the_room_is_taken_and_only_when_little_misses() {
        let period = Period {
            decoded_hits: 1_000,
            compressed_hits: 30_000,
            misses: 20_000,
            decoded_bytes: 100_000_000,
            compressed_bytes: 400_000_000,
            compressed_limit: 900_000_000,
            limit: 1_000_000_000,
        };
        assert_eq!(DecodedShare::FIRST.after(&period), DecodedShare::FIRST);
        let warm = Period { misses: 100, ..period };
        assert_eq!(DecodedShare::FIRST.after(&warm).thousandths(), 425);
        assert_eq!(DecodedShare::FIRST.after(&warm).after(&warm).thousandths(), 580);
        let full = Period { compressed_limit: 400_000_000, ..period };
        assert_eq!(DecodedShare::FIRST.after(&full), DecodedShare::MIN);
    }

    #[test]
    fn the_sizes_stay_while_few_pages_are_looked_up() {
        let period = Period { decoded_hits: 10, misses: 900, ..Period::default() };
        assert_eq!(DecodedShare::FIRST.after(&period), DecodedShare::FIRST);
    }
}
