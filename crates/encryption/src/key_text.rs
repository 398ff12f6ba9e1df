//! The text form of a master key: 32 bytes as base64 or hexadecimal, with white space around them.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use zeroize::Zeroizing;

use crate::secret_key::KEY_BYTES;
use crate::{KeyTextProblem, SecretKey};

/// Bytes of a text that is looked at.
pub(crate) const TEXT_BYTES_MAX: usize = 1024;

/// The key that a text has.
///
/// # Errors
/// The text is not one of 32 bytes.
pub fn parse(text: &[u8]) -> Result<SecretKey, KeyTextProblem> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(KeyTextProblem::TooLong);
    }
    let text = text.trim_ascii();
    if text.is_empty() {
        return Err(KeyTextProblem::Empty);
    }
    // 64 hexadecimal digits are base64 of 48 bytes, too, so the length decides.
    let bytes = match text.len() {
        length if length == 2 * KEY_BYTES && text.iter().all(u8::is_ascii_hexdigit) => from_hex(text),
        _ => from_base64(text).ok_or(KeyTextProblem::NotEncoded)?,
    };
    SecretKey::from_bytes(&bytes).ok_or(KeyTextProblem::Length { found: bytes.len() })
}

fn from_hex(digits: &[u8]) -> Zeroizing<Vec<u8>> {
    let value = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
    Zeroizing::new(digits.chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect())
}

fn from_base64(text: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; TEXT_BYTES_MAX]);
    let decoded =
        STANDARD.decode_slice(text, &mut bytes).or_else(|_| STANDARD_NO_PAD.decode_slice(text, &mut bytes));
    let length = decoded.ok()?;
    bytes.truncate(length);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> KeyTextProblem {
        parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_key_is_base64_or_hexadecimal() {
        let key: Vec<u8> = (0..32).collect();
        let hex: String = key.iter().map(|byte| format!("{byte:02X}")).collect();
        let base64 = STANDARD.encode(&key);
        for text in [hex.clone(), hex.to_lowercase(), base64.clone(), base64.trim_end_matches('=').to_owned()]
        {
            assert_eq!(parse(format!(" {text}\r\n").as_bytes()).unwrap().bytes().as_slice(), key, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        assert_eq!(problem(" \n"), KeyTextProblem::Empty);
        assert_eq!(problem("secret key!"), KeyTextProblem::NotEncoded);
        assert_eq!(problem(&STANDARD.encode([7; 24])), KeyTextProblem::Length { found: 24 });
        assert_eq!(problem(&"ab".repeat(31)), KeyTextProblem::NotEncoded);
        assert_eq!(problem(&"00".repeat(48)), KeyTextProblem::Length { found: 72 });
        assert_eq!(problem(&"a".repeat(TEXT_BYTES_MAX + 1)), KeyTextProblem::TooLong);
    }

    #[test]
    fn any_bytes_are_a_key_or_refused() {
        let random = pando_environment::SeededRandom::new(0x6b65_7974);
        for _ in 0..5_000 {
            let mut bytes = vec![0; random.below(100) as usize];
            pando_environment::Random::fill(&random, &mut bytes);
            let _outcome = parse(&bytes);
        }
    }
}
