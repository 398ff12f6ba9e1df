//! Timestamp: MongoDB's replication time, seconds and a counter within the second.

/// Seconds and increment; ordered by time, then increment, both unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub time: u32,
    /// Counter within the second.
    pub increment: u32,
}

impl Timestamp {
    /// From the 64-bit form: time in the high half.
    #[inline]
    pub const fn from_u64(bits: u64) -> Self {
        Self { time: (bits >> 32) as u32, increment: bits as u32 }
    }

    /// The 64-bit form, which is what stands in a document (little-endian).
    #[inline]
    pub const fn to_u64(self) -> u64 {
        (self.time as u64) << 32 | self.increment as u64
    }
}
