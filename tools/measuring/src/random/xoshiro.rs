//! xoshiro256++ of Blackman and Vigna, with digits that share one number.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The generator.
#[derive(Clone, Debug)]
pub struct Xoshiro {
    source: Xoshiro256PlusPlus,
    /// The rest of a number from which digits are taken, as a binary fraction.
    fraction: u64,
    digits_left: u8,
}

/// 2^64 holds 19 digits; the last ones would be biased.
const DIGITS_PER_NUMBER: u8 = 16;

impl Xoshiro {
    /// A generator whose state SplitMix64 spreads from a seed.
    pub fn new(seed: u64) -> Xoshiro {
        Xoshiro { source: Xoshiro256PlusPlus::seed_from_u64(seed), fraction: 0, digits_left: 0 }
    }

    /// A number below `bound`. The bias of this multiplication is under 2^-32.
    pub fn below(&mut self, bound: u32) -> u32 {
        let scaled = u128::from(self.source.next_u64()) * u128::from(bound);
        u32::try_from(scaled >> 64).unwrap_or(u32::MAX)
    }

    /// A digit, 0 to 9. Sixteen of them cost one number: documents consist of digits.
    pub fn digit(&mut self) -> u8 {
        if self.digits_left == 0 {
            self.fraction = self.source.next_u64();
            self.digits_left = DIGITS_PER_NUMBER;
        }
        self.digits_left -= 1;
        let scaled = u128::from(self.fraction) * 10;
        self.fraction = scaled as u64;
        (scaled >> 64) as u8
    }

    /// A number in 0..1 with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.source.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_is_the_one_that_published_runs_drew_from() {
        let mut source = Xoshiro::new(1);
        let words: [u64; 4] = std::array::from_fn(|step| {
            super::super::split_mix(1_u64.wrapping_add((step as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
        });
        // The first number of xoshiro256++ from a state.
        let first = words[0].wrapping_add(words[3]).rotate_left(23).wrapping_add(words[0]);
        assert_eq!(source.source.next_u64(), first);
    }

    #[test]
    fn the_published_sequence_of_state_one_two_three_four_comes_out() {
        let mut seed = [0; 32];
        (0..4).for_each(|word| seed[word * 8] = word as u8 + 1);
        let mut source = Xoshiro256PlusPlus::from_seed(seed);
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!(std::array::from_fn(|_| source.next_u64()), expected);
    }

    #[test]
    fn digits_are_even() {
        let mut source = Xoshiro::new(1);
        let mut counts = [0_u32; 10];
        (0..100_000).for_each(|_| counts[source.digit() as usize] += 1);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_both_ends() {
        let mut source = Xoshiro::new(1);
        let mut seen = [false; 3];
        (0..1000).for_each(|_| seen[source.below(3) as usize] = true);
        assert_eq!(seen, [true; 3]);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&source.unit())));
    }
}
