//! A key of 32 bytes, whose memory is overwritten when it is dropped, and which is never printed.

use std::fmt;

use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::EncryptionError;

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;

/// See the [module](self).
#[derive(Clone)]
pub struct SecretKey(Zeroizing<[u8; KEY_BYTES]>);

impl SecretKey {
    /// A key of these bytes; `None` for another length.
    pub fn from_bytes(bytes: &[u8]) -> Option<SecretKey> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if bytes.len() != KEY_BYTES {
            return None;
        }
        key.copy_from_slice(bytes);
        Some(SecretKey(key))
    }

    /// A new key of the operating system's generator.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn random() -> Result<SecretKey, EncryptionError> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        fill_random(key.as_mut_slice())?;
        Ok(SecretKey(key))
    }

    /// Whether two keys are one, in a time that does not tell where they differ.
    pub(crate) fn is(&self, other: &SecretKey) -> bool {
        self.0.iter().zip(other.0.iter()).fold(0, |differing, (one, other)| differing | (one ^ other)) == 0
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey")
    }
}

/// Fills a buffer from the operating system's generator.
pub(crate) fn fill_random(buffer: &mut [u8]) -> Result<(), EncryptionError> {
    SystemRandom::new().fill(buffer).map_err(|_| EncryptionError::NoRandomBytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_32_bytes_and_is_not_printed() {
        assert!(SecretKey::from_bytes(&[1; 31]).is_none());
        let key = SecretKey::from_bytes(&[0x5a; 32]).unwrap();
        assert_eq!(format!("{key:?}"), "SecretKey");
        let (one, other) = (SecretKey::random().unwrap(), SecretKey::random().unwrap());
        assert!(one.is(&one) && !one.is(&other));
        for at in 0..KEY_BYTES {
            let mut near = *one.bytes();
            near[at] ^= 1;
            assert!(!one.is(&SecretKey::from_bytes(&near).unwrap()), "byte {at}");
        }
    }
}
