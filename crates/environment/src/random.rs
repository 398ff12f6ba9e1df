//! Random numbers, from the operating system or from a seed.
//!
//! Both are drawn from SplitMix64, the only generator of this crate. `rand_xoshiro` has the same generator,
//! but only behind `&mut self`: here threads share one without a lock, and tests and simulations depend on
//! its sequences.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

/// The door to chance. Not for secrets: unique names, salts and spread are what it serves.
pub trait Random: Send + Sync {
    /// The next number, all 64 bits of it random.
    fn next_u64(&self) -> u64;

    /// Fills a buffer with random bytes.
    fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// The increment of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the golden ratio in 64 bits.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of SplitMix64 from a state: spreads related seeds over all bits. The next step is of the state
/// plus the golden ratio.
pub fn split_mix(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(GAMMA);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// SplitMix64: a counter and a mixing function, so that threads draw from it without a lock.
pub struct SeededRandom {
    state: AtomicU64,
}

impl SeededRandom {
    /// A sequence that follows from the seed.
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom { state: AtomicU64::new(seed) }
    }

    /// A number below `bound`, which must not be zero. The bias of the remainder does not matter to a
    /// simulation.
    pub fn below(&self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        self.next_u64() % bound
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        split_mix(self.state.fetch_add(GAMMA, Ordering::Relaxed))
    }
}

/// Seeded by the kernel; longer fills come from the kernel directly.
pub(crate) struct OsRandom {
    numbers: SeededRandom,
}

impl OsRandom {
    pub(crate) fn new() -> OsRandom {
        let mut seed = [0; 8];
        if !fill_from_kernel(&mut seed) {
            // Without the device the address of a fresh allocation and the time still differ between
            // processes.
            let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let mixed = time.as_nanos() ^ (u128::from(std::process::id()) << 64);
            seed.copy_from_slice(&mixed.to_le_bytes()[..8]);
        }
        OsRandom { numbers: SeededRandom::new(u64::from_le_bytes(seed)) }
    }
}

impl Random for OsRandom {
    fn next_u64(&self) -> u64 {
        self.numbers.next_u64()
    }

    fn fill(&self, buffer: &mut [u8]) {
        if !fill_from_kernel(buffer) {
            self.numbers.fill(buffer);
        }
    }
}

fn fill_from_kernel(buffer: &mut [u8]) -> bool {
    std::fs::File::open("/dev/urandom").and_then(|mut device| device.read_exact(buffer)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_seed_others() {
        let draw = |seed| {
            let random = SeededRandom::new(seed);
            (0..8).map(|_| random.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        // The reference value of SplitMix64 for seed 0.
        assert_eq!(SeededRandom::new(0).next_u64(), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn split_mix_gives_its_published_first_numbers() {
        // From state 1234567; each step advances the state by the odd constant.
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        let states = (0..3_u64).map(|step| 1_234_567_u64.wrapping_add(step.wrapping_mul(GAMMA)));
        let numbers: Vec<u64> = states.map(split_mix).collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn a_fill_covers_the_odd_tail() {
        let mut bytes = [0; 19];
        OsRandom::new().fill(&mut bytes);
        assert!(bytes.iter().any(|byte| *byte != 0));
        let mut seeded = [0; 19];
        SeededRandom::new(3).fill(&mut seeded);
        assert!(seeded[16..].iter().any(|byte| *byte != 0));
    }
}
