//! Type bits: a row of bits, written and read in the order of the parts. Trailing zeros are not stored.

/// The bits that go with a key; empty if every part is of its commonest type. Made anew or cleared for each
/// key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeBits {
    /// Up to the last 1; a bit beyond is 0.
    bytes: Vec<u8>,
    /// Bits that were pushed.
    count: usize,
    use_of_bits: UseOfBits,
}

/// Whether anybody wants the bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum UseOfBits {
    #[default]
    Kept,
    Discarded,
}

impl TypeBits {
    /// No bits. Allocates nothing before the first 1.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), count: 0, use_of_bits: UseOfBits::Kept }
    }

    /// No bits, and none that are pushed: for keys that are only compared. Allocates nothing.
    pub const fn discarded() -> Self {
        Self { bytes: Vec::new(), count: 0, use_of_bits: UseOfBits::Discarded }
    }

    /// The bytes to store: none if all bits are 0, and the last is not 0.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether there is nothing to store.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Back to no bits; keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Appends one 0.
    #[inline]
    pub(crate) fn push_zero(&mut self) {
        self.count += 1;
    }

    /// Appends the lowest `bits` bits of `value`, the highest of them first.
    pub(crate) fn push(&mut self, value: u16, bits: u32) {
        if self.use_of_bits == UseOfBits::Discarded {
            return;
        }
        for place in (0..bits).rev() {
            if value >> place & 1 == 1 {
                self.bytes.resize(self.count / 8 + 1, 0);
                self.bytes[self.count / 8] |= 0x80 >> (self.count % 8);
            }
            self.count += 1;
        }
    }
}

/// Reads type bits; beyond the end there are zeros.
pub(crate) struct TypeBitsReader<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl<'a> TypeBitsReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, place: 0 }
    }

    #[inline]
    pub fn bit(&mut self) -> bool {
        let byte = self.bytes.get(self.place / 8).copied().unwrap_or(0);
        let bit = byte >> (7 - self.place % 8) & 1;
        self.place += 1;
        bit == 1
    }

    pub fn bits(&mut self, count: u32) -> u16 {
        (0..count).fold(0, |value, _| value << 1 | u16::from(self.bit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_and_trailing_zeros_take_no_bytes() {
        let mut bits = TypeBits::new();
        (0..40).for_each(|_| bits.push_zero());
        assert!(bits.is_empty());
        bits.push(0b1011, 4);
        bits.push_zero();
        bits.push(0x3FFF, 14);
        bits.push(0, 9);
        assert_eq!(bits.as_bytes().len(), 8, "59 bits up to the last 1");
        let mut reader = TypeBitsReader::new(bits.as_bytes());
        assert_eq!(reader.bits(16) | reader.bits(16) | reader.bits(8), 0);
        assert_eq!(reader.bits(4), 0b1011);
        assert!(!reader.bit());
        assert_eq!(reader.bits(14), 0x3FFF);
        assert_eq!(reader.bits(16), 0);
        bits.clear();
        assert_eq!(bits, TypeBits::new());
    }

    #[test]
    fn discarded_bits_are_none() {
        let mut bits = TypeBits::discarded();
        bits.push_zero();
        bits.push(0xFFFF, 16);
        assert!(bits.is_empty());
    }
}
