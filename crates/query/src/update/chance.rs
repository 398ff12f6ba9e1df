//! The random numbers of the tests of updates.

/// A series of random numbers (xorshift), the same for a seed; the seed is not 0.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    /// A number below the end.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}
