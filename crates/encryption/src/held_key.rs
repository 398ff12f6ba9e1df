//! A master key that the application has at hand.

use crate::{EncryptionError, KeySource, SecretKey};

/// See the [module](self).
pub struct HeldKey(SecretKey);

impl HeldKey {
    /// This key.
    pub const fn new(key: SecretKey) -> HeldKey {
        HeldKey(key)
    }
}

impl KeySource for HeldKey {
    fn master_key(&self, _id: &str) -> Result<SecretKey, EncryptionError> {
        Ok(self.0.clone())
    }

    fn id_for_new(&self) -> &str {
        ""
    }

    fn describe(&self) -> String {
        "the key of the application".to_owned()
    }
}
