//! The numbers of java.util.Random, so that a run repeats the keys and documents of the original tools.
//!
//! A linear congruential generator of 48 bits, as the class's documentation specifies it.

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

/// The generator.
#[derive(Clone, Debug)]
pub struct JavaRandom {
    state: u64,
    /// The second number of the last pair of `nextGaussian()`.
    second_gaussian: Option<f64>,
}

impl JavaRandom {
    /// `new Random(seed)`.
    pub fn new(seed: u64) -> JavaRandom {
        JavaRandom { state: (seed ^ MULTIPLIER) & MASK, second_gaussian: None }
    }

    /// The upper `bits` (at most 32) of the next state.
    fn next(&mut self, bits: u32) -> u32 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        u32::try_from(self.state >> (48 - bits)).unwrap_or(u32::MAX)
    }

    /// `nextInt(bound)` for a bound of 1 to 2^31 - 1.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound.is_power_of_two() {
            let scaled = u64::from(bound) * u64::from(self.next(31));
            return u32::try_from(scaled >> 31).unwrap_or(u32::MAX);
        }
        // The last, incomplete run of `bound` numbers is drawn again.
        loop {
            let drawn = self.next(31);
            let value = drawn % bound;
            if drawn - value <= (i32::MAX as u32) - (bound - 1) {
                return value;
            }
        }
    }

    /// `nextDouble()`.
    pub fn unit(&mut self) -> f64 {
        let upper = u64::from(self.next(26)) << 27;
        (upper + u64::from(self.next(27))) as f64 / (1_u64 << 53) as f64
    }
}

impl JavaRandom {
    /// `nextGaussian()`: pairs by Marsaglia's polar method, the second of which waits for its turn.
    pub fn gaussian(&mut self) -> f64 {
        if let Some(second) = self.second_gaussian.take() {
            return second;
        }
        let (first, second) = super::gaussian_pair(|| self.unit());
        self.second_gaussian = Some(second);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eight(seed: u64, bound: u32) -> Vec<u32> {
        let mut random = JavaRandom::new(seed);
        (0..8).map(|_| random.below(bound)).collect()
    }

    #[test]
    fn the_numbers_are_those_of_java() {
        assert_eq!(eight(0, 100), [60, 48, 29, 47, 15, 53, 91, 61]);
        assert_eq!(eight(42, 100), [30, 63, 48, 84, 70, 25, 5, 18]);
    }

    #[test]
    fn a_power_of_two_takes_the_upper_bits() {
        // The first collection of 8 for seed 0, at which all clients of the original met.
        assert_eq!(eight(0, 8)[0], 5);
    }

    #[test]
    fn gaussians_are_those_of_java() {
        let mut random = JavaRandom::new(42);
        let expected = [1.141_905_315_473_054_7, 0.919_407_948_982_787_9, -0.949_866_636_890_895_9];
        for expected in expected {
            let found = random.gaussian();
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    #[test]
    fn doubles_are_those_of_java() {
        assert_eq!(JavaRandom::new(0).unit(), 0.730_967_787_376_657);
    }
}
