//! xoshiro256++ of Blackman and Vigna: fast, of period 2^256 - 1, and good in all bits.

use super::split_mix;

/// The generator.
#[derive(Clone, Debug)]
pub struct Xoshiro {
    state: [u64; 4],
    /// What is left of a number from which digits are taken, as a binary fraction.
    fraction: u64,
    digits_left: u8,
}

/// 2^64 holds 19 digits; the last ones would be biased.
const DIGITS_PER_NUMBER: u8 = 16;

impl Xoshiro {
    /// A generator whose state is spread from a seed.
    pub fn new(seed: u64) -> Xoshiro {
        let word = |step: u64| split_mix(seed.wrapping_add(step.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        Xoshiro { state: [word(0), word(1), word(2), word(3)], fraction: 0, digits_left: 0 }
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number below `bound`. The bias of this multiplication is under 2^-32.
    pub fn below(&mut self, bound: u32) -> u32 {
        let scaled = u128::from(self.next()) * u128::from(bound);
        u32::try_from(scaled >> 64).unwrap_or(u32::MAX)
    }

    /// A digit, 0 to 9. Sixteen of them cost one number: documents consist of digits.
    pub fn digit(&mut self) -> u8 {
        if self.digits_left == 0 {
            self.fraction = self.next();
            self.digits_left = DIGITS_PER_NUMBER;
        }
        self.digits_left -= 1;
        let scaled = u128::from(self.fraction) * 10;
        self.fraction = scaled as u64;
        (scaled >> 64) as u8
    }

    /// A number in 0..1 with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence_of_state_one_two_three_four_comes_out() {
        let mut source = Xoshiro { state: [1, 2, 3, 4], fraction: 0, digits_left: 0 };
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!([source.next(), source.next(), source.next(), source.next()], expected);
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
