//! The inputs that are checked in: `corpus/TARGET.hex`, one a line, in hexadecimal digits.
//!
//! A fuzzer's run kept each input because it went a way that no other went, short ones first. An input that
//! once failed stays. `examples/corpus.rs` turns the files into a fuzzer's folder and back.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The file of a target.
pub fn path_of(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(format!("{target}.hex"))
}

/// The inputs of a target.
///
/// # Errors
/// Where the file cannot be read, or has a line that is not hexadecimal.
pub fn inputs(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let path = path_of(target);
    let text = fs::read_to_string(&path)?;
    let damaged =
        |line| io::Error::new(io::ErrorKind::InvalidData, format!("{}: line {}", path.display(), line + 1));
    text.lines().enumerate().map(|(at, line)| from_hex(line).ok_or_else(|| damaged(at))).collect()
}

/// The bytes of hexadecimal digits.
pub fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Bytes as hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all that is written");
        text
    })
}
