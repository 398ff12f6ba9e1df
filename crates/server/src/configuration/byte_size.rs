//! Sizes as people write them: `256MB`, `1GiB`, `65536`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

/// Text that is no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a size is a number and a unit, such as 256MB (a thousand thousand each) or 1GiB (1024 each)")]
pub struct ByteSizeError;

/// Every unit, the longest names first so that `MiB` is not taken for a number followed by `B`.
const UNITS: [(&str, u64); 9] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("b", 1),
];

impl ByteSize {
    /// This many bytes.
    pub const fn from_bytes(bytes: u64) -> ByteSize {
        ByteSize(bytes)
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<ByteSize, ByteSizeError> {
        let text = text.trim().to_ascii_lowercase();
        let (number, unit) = UNITS
            .iter()
            .find_map(|(name, bytes)| text.strip_suffix(name).map(|number| (number, *bytes)))
            .unwrap_or((&text, 1));
        let number = number.trim_end();
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(unit).map(ByteSize).ok_or(ByteSizeError);
        }
        let digits_and_point = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let fraction = number.parse::<f64>().map_err(|_| ByteSizeError)? * unit as f64;
        // 2^53 bytes are 9 PB; up to there every whole number is exact.
        if digits_and_point && fraction <= 9e15 {
            Ok(ByteSize(fraction.round() as u64))
        } else {
            Err(ByteSizeError)
        }
    }
}

impl fmt::Display for ByteSize {
    /// The largest unit that leaves a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: [(&str, u64); 6] = [
            ("GiB", 1 << 30),
            ("GB", 1_000_000_000),
            ("MiB", 1 << 20),
            ("MB", 1_000_000),
            ("KiB", 1 << 10),
            ("KB", 1_000),
        ];
        for (name, bytes) in SHOWN {
            if self.0 >= bytes && self.0.is_multiple_of(bytes) {
                return write!(f, "{}{name}", self.0 / bytes);
            }
        }
        write!(f, "{}B", self.0)
    }
}
