//! ObjectId: twelve bytes, made of seconds, a process's random number and a counter.

use std::fmt;

/// Twelve bytes that identify a document: big-endian seconds since 1970 (4), a random number of the process
/// (5), a big-endian counter (3). So ids of one process sort by time of making.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; 12]);

impl ObjectId {
    /// The id with these bytes.
    #[inline]
    pub const fn from_bytes(bytes: [u8; 12]) -> Self {
        Self(bytes)
    }

    /// The id of a moment and a process. Only the low 24 bits of `counter` are used. Clock, randomness and
    /// the counter are the caller's (see the `environment` crate).
    pub fn from_parts(seconds: u32, process: [u8; 5], counter: u32) -> Self {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        bytes[4..9].copy_from_slice(&process);
        bytes[9..].copy_from_slice(&counter.to_be_bytes()[1..]);
        Self(bytes)
    }

    /// The twelve bytes.
    #[inline]
    pub const fn bytes(&self) -> &[u8; 12] {
        &self.0
    }

    /// Seconds since 1970 at which it was made.
    pub fn seconds(&self) -> u32 {
        u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }

    /// Reads 24 hexadecimal digits of either case.
    pub fn from_hex(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 24 {
            return None;
        }
        let mut bytes = [0; 12];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high * 16 + low) as u8;
        }
        Some(Self(bytes))
    }

    /// 24 lower-case hexadecimal digits.
    pub fn to_hex(self) -> String {
        self.to_string()
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_text_gives_the_same_id_back() {
        let id = ObjectId::from_parts(0x0102_0304, [5, 6, 7, 8, 9], 0xFF0A_0B0C);
        assert_eq!(id.to_hex(), "0102030405060708090a0b0c");
        assert_eq!(ObjectId::from_hex("0102030405060708090A0B0C"), Some(id));
        assert_eq!(id.seconds(), 0x0102_0304);
    }

    #[test]
    fn text_that_is_not_24_hexadecimal_digits_is_refused() {
        for text in ["", "0102", "0102030405060708090a0b0g", "+102030405060708090a0b0c", "éééééééééééé"]
        {
            assert_eq!(ObjectId::from_hex(text), None, "{text}");
        }
    }
}
