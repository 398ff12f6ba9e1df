//! Sizes as people write them: `256MB`, `1.5GB`, `65536`. A KB has 1,024 bytes, as in the settings of
//! PostgreSQL, MySQL and MongoDB; KiB is another name for it.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

/// Text that is no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a size is a number and a unit, such as 256MB or 1.5GB; a KB has 1,024 bytes")]
pub struct ByteSizeError;

/// The units and their bits, in the order in which a size is shown.
const UNITS: [(&str, u32); 4] = [("TB", 40), ("GB", 30), ("MB", 20), ("KB", 10)];

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

/// The bits of a unit by any of its names: `K`, `KB`, `KiB`, in either case.
fn bits(unit: &str) -> Option<u32> {
    let unit = unit.to_ascii_uppercase();
    match unit.as_str() {
        "" | "B" => Some(0),
        unit => {
            let letter = unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(unit);
            UNITS.iter().find(|(name, _)| name.strip_suffix('B') == Some(letter)).map(|(_, bits)| *bits)
        }
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<ByteSize, ByteSizeError> {
        let text = text.trim();
        let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = 1u64 << bits(&text[number.len()..]).ok_or(ByteSizeError)?;
        let number = number.trim_end();
        if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(ByteSizeError);
        }
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(unit).map(ByteSize).ok_or(ByteSizeError);
        }
        // Half a byte is no size, and options that are plain numbers are read by this as well.
        if unit == 1 {
            return Err(ByteSizeError);
        }
        let bytes = number.parse::<f64>().map_err(|_| ByteSizeError)? * unit as f64;
        // 2^53 bytes are 8,192 TB; up to there every whole number is exact.
        if bytes <= (1u64 << 53) as f64 { Ok(ByteSize(bytes.round() as u64)) } else { Err(ByteSizeError) }
    }
}

impl fmt::Display for ByteSize {
    /// The largest unit that leaves a whole number; a size that has none from a KB on is shown in bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |bits: u32| self.0 > 0 && self.0.is_multiple_of(1 << bits);
        match UNITS.iter().find(|(_, bits)| whole(*bits)) {
            Some((name, bits)) => write!(f, "{}{name}", self.0 >> bits),
            None => write!(f, "{}B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_every_name_of_a_unit() {
        let cases = [
            ("65536", 65_536),
            ("0", 0),
            ("1b", 1),
            ("256MB", 256 << 20),
            ("256 mb", 256 << 20),
            ("1GiB", 1 << 30),
            ("1.5GB", 3 << 29),
            ("64k", 65_536),
            ("2TB", 2 << 40),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(ByteSize::from_bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn text_that_is_no_size_is_refused() {
        let wrong = [
            "", "MB", "-1MB", "+1MB", "1e9", "nan", "inf", "1IB", "5XB", "256 M B", "1..5GB", "1 5GB", "4.5",
        ];
        for text in wrong.into_iter().chain(["99999999999999999999", "20000000TB", "9000.5TB"]) {
            assert_eq!(text.parse::<ByteSize>(), Err(ByteSizeError), "{text}");
        }
    }

    #[test]
    fn a_size_is_shown_in_the_unit_that_keeps_it_whole() {
        for text in ["256MB", "1GB", "64KB", "5B", "1025B", "0B", "3TB"] {
            let size: ByteSize = text.parse().expect("a size");
            assert_eq!(size.to_string(), text);
        }
    }
}
