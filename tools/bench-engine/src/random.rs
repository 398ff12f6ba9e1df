//! Random numbers that follow from a seed: draws in sequence, and draws by their number.

use pando_measuring::random::split_mix;

/// The increment of SplitMix64.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The draw of SplitMix64 that a number stands at: a permutation of all numbers of 64 bits.
pub fn scattered(number: u64) -> u64 {
    split_mix(number.wrapping_sub(1).wrapping_mul(GAMMA))
}

#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { state: scattered(seed ^ GAMMA) }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(1);
        scattered(self.state)
    }

    /// A number below `bound`, which must not be 0; its bias is below 2^-32 for the bounds of this tool.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Each as often as any other.
    Uniform,
    /// Four fifths of the draws in the latest fifth, and so on within it (Gray et al., SIGMOD 1994:
    /// self-similar, 80-20).
    Latest,
}

impl Draw {
    /// A number below `bound`.
    pub fn draw(self, random: &mut Random, bound: u64) -> u64 {
        match self {
            Draw::Uniform => random.below(bound),
            Draw::Latest => {
                let exponent = 0.2_f64.ln() / 0.8_f64.ln();
                let from_the_end = (bound as f64 * random.unit().powf(exponent)) as u64;
                bound - 1 - from_the_end.min(bound - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_a_seed_stays_what_it_was() {
        assert_eq!(scattered(0), 0, "the mixing function keeps 0");
        assert_eq!(scattered(1), split_mix(0));
        assert_eq!(
            scattered(1),
            0xE220_A839_7B1D_CDAF,
            "the first number of the published sequence of state 0"
        );
    }

    #[test]
    fn four_fifths_of_the_latest_draws_fall_into_the_latest_fifth() {
        let mut random = Random::new(1);
        let late = (0..10_000).filter(|_| Draw::Latest.draw(&mut random, 1_000) >= 800).count();
        assert!((7_700..8_300).contains(&late), "{late}");
    }

    #[test]
    fn uniform_draws_reach_both_ends_and_stay_below_the_bound() {
        let mut random = Random::new(2);
        let draws: Vec<u64> = (0..10_000).map(|_| Draw::Uniform.draw(&mut random, 10)).collect();
        let counts: Vec<usize> = (0..10).map(|n| draws.iter().filter(|draw| **draw == n).count()).collect();
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }
}
