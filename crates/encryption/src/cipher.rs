//! The ciphers: AES-256-GCM and ChaCha20-Poly1305, both with 256-bit keys, 96-bit nonces and 128-bit tags.

use std::fmt;
use std::str::FromStr;

use ring::aead::{AES_256_GCM, Algorithm, CHACHA20_POLY1305};

/// An authenticated cipher. The numbers stand in files and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Cipher {
    /// AES in Galois/counter mode: the faster one where the processor has instructions for AES.
    #[default]
    Aes256Gcm = 1,
    /// ChaCha20 with Poly1305: the faster one elsewhere.
    ChaCha20Poly1305 = 2,
}

impl Cipher {
    /// Both.
    pub const ALL: [Cipher; 2] = [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];

    /// The name as configuration spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Cipher::Aes256Gcm => "AES256-GCM",
            Cipher::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        }
    }

    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_number(number: u8) -> Option<Cipher> {
        Cipher::ALL.into_iter().find(|cipher| cipher.number() == number)
    }

    pub(crate) const fn algorithm(self) -> &'static Algorithm {
        match self {
            Cipher::Aes256Gcm => &AES_256_GCM,
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Cipher {
    type Err = String;

    fn from_str(name: &str) -> Result<Cipher, String> {
        let found = Cipher::ALL.into_iter().find(|cipher| cipher.as_str().eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let reason = match name.eq_ignore_ascii_case("AES256-CBC") {
                true => "; CBC does not notice changed bytes, so Pando does not have it",
                false => "",
            };
            format!("there is no cipher '{name}'{reason}; choose AES256-GCM or ChaCha20-Poly1305")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cipher_is_found_by_name_and_number() {
        for cipher in Cipher::ALL {
            assert_eq!(cipher.as_str().to_lowercase().parse(), Ok(cipher));
            assert_eq!(Cipher::from_number(cipher.number()), Some(cipher));
        }
        assert_eq!(Cipher::from_number(0), None);
        assert!("AES256-CBC".parse::<Cipher>().unwrap_err().contains("does not notice"));
    }
}
