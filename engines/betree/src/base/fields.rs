//! A bounds-checked reader of a block's fields, and the matching writers of varints and sized bytes.

use crate::base::{FORMAT_VERSION, FormatError};

/// The fields of a block that are not read yet.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    block: &'static str,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(block: &'static str, bytes: &'a [u8]) -> Fields<'a> {
        Fields { block, rest: bytes }
    }

    /// Bytes that are not read yet.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], FormatError> {
        let (taken, rest) =
            self.rest.split_at_checked(count).ok_or(FormatError::Truncated { block: self.block, field })?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, FormatError> {
        Ok(self.bytes(1, field)?[0])
    }

    pub(crate) fn array<const N: usize>(&mut self, field: &'static str) -> Result<&'a [u8; N], FormatError> {
        let block = self.block;
        let (taken, rest) =
            self.rest.split_first_chunk::<N>().ok_or(FormatError::Truncated { block, field })?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, FormatError> {
        self.array(field).map(|bytes| u16::from_le_bytes(*bytes))
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, FormatError> {
        self.array(field).map(|bytes| u32::from_le_bytes(*bytes))
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, FormatError> {
        self.array(field).map(|bytes| u64::from_le_bytes(*bytes))
    }

    pub(crate) fn varint(&mut self, field: &'static str) -> Result<u64, FormatError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8(field)?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && byte > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(FormatError::OutOfRange { block: self.block, field, found: u64::MAX, limit: u64::MAX - 1 })
    }

    /// A varint that counts or measures something and cannot be greater than `limit`.
    pub(crate) fn count(&mut self, field: &'static str, limit: usize) -> Result<usize, FormatError> {
        let found = self.varint(field)?;
        match usize::try_from(found) {
            Ok(count) if count <= limit => Ok(count),
            _ => Err(FormatError::OutOfRange { block: self.block, field, found, limit: limit as u64 }),
        }
    }

    /// Bytes with their length before them.
    pub(crate) fn sized_bytes(&mut self, field: &'static str, limit: usize) -> Result<&'a [u8], FormatError> {
        let length = self.count(field, limit)?;
        self.bytes(length, field)
    }

    /// The version byte that begins every block.
    pub(crate) fn version(&mut self) -> Result<(), FormatError> {
        match self.u8("format version")? {
            FORMAT_VERSION => Ok(()),
            found => Err(FormatError::Version { block: self.block, found }),
        }
    }

    /// A field that must be zero until a later format gives it a meaning.
    pub(crate) fn reserved(&mut self, field: &'static str) -> Result<(), FormatError> {
        match self.varint(field)? {
            0 => Ok(()),
            found => Err(FormatError::Unknown { block: self.block, field, found }),
        }
    }

    /// Fails if bytes remain.
    pub(crate) fn finish(self) -> Result<(), FormatError> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(FormatError::Trailing { block: self.block, bytes }),
        }
    }
}

/// Bytes that a varint takes.
pub(crate) const fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Appends a varint.
pub(crate) fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7F) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends bytes with their length before them.
pub(crate) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use crate::base::fields::*;

    #[test]
    fn varints_come_back_and_their_length_is_known() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            write_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value));
            let mut fields = Fields::new("test", &out);
            assert_eq!(fields.varint("value"), Ok(value));
            assert_eq!(fields.finish(), Ok(()));
        }
    }

    #[test]
    fn a_varint_that_overflows_or_never_ends_is_an_error() {
        assert!(Fields::new("test", &[0xFF; 10]).varint("value").is_err());
        assert!(Fields::new("test", &[0x80; 3]).varint("value").is_err());
        assert!(
            Fields::new("test", &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02])
                .varint("value")
                .is_err()
        );
    }

    #[test]
    fn a_count_beyond_its_limit_is_refused_before_anything_is_allocated() {
        let mut out = Vec::new();
        write_varint(&mut out, u64::MAX);
        assert!(Fields::new("test", &out).count("count", 10).is_err());
    }
}
