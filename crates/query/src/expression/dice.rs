//! The dice of `$rand`: a series of random numbers that all calls with a clone of it share.
//!
//! SplitMix64 (Steele, Lea and Flood 2014): a counter with large steps, whose bits are mixed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The dice of `$rand`. Clones draw from the same series.
#[derive(Clone, Debug)]
pub struct Dice(Arc<AtomicU64>);

impl Dice {
    /// A series that begins with a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(Arc::new(AtomicU64::new(seed)))
    }

    /// The next number, at least 0 and below 1.
    pub(super) fn roll(&self) -> f64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut bits = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        // A double has 53 bits.
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_between_0_and_1_and_are_spread_evenly() {
        let dice = Dice::new(7);
        let rolls: Vec<f64> = (0..10_000).map(|_| dice.clone().roll()).collect();
        assert!(rolls.iter().all(|roll| (0.0..1.0).contains(roll)));
        let mean = rolls.iter().sum::<f64>() / rolls.len() as f64;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert!(rolls.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
