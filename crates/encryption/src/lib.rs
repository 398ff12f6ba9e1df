//! Encryption at rest: master keys, data keys that a master key wraps, and sealed bytes.
//!
//! ```text
//!  key file or key command          file `keys` of the store           blocks, log records, superblock
//!  master key (32 bytes)  --wraps-> data keys 1, 2, … (32 bytes each) --seal-> ciphertext | seal of 32 bytes
//! ```
//!
//! - [`Encryption`]: the settings of a store that is encrypted: a [`Cipher`], and the [`KeySource`] of its
//!   master key.
//! - [`KeyFile`], [`KeyCommand`], [`HeldKey`]: the sources of master keys.
//! - [`Vault`]: the data keys of an open store. It seals and opens bytes.
//! - [`EphemeralFiles`]: temporary files under keys that only this process has.
//! - [`EncryptionError`]: a fault of a key or of its file, with the cure.
//!
//! # Nonces A nonce has 96 bits. Each [`Vault`] draws a random start and counts from there. Two vaults use
//! one nonce under one key only if their counts overlap. With 2^14 openings of a store and 2^40 sealed
//! blocks and records the chance of that is below 2^-42. It holds for copies of a folder and for snapshots
//! of a disk as well.
//!
//! # Invariants
//! - Keys are drawn from the operating system's generator, because that of the environment is not for
//!   secrets.
//! - Memory of keys is overwritten when they are dropped. Copies on the stack of the cipher's own code are
//!   not.
//! - No key is printed: `Debug` of every type here leaves it out.
//!
//! # Not here
//! Which bytes a store seals, and to what they are bound: the engine.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![warn(missing_docs)]

mod aead_key;
mod cipher;
mod ephemeral_files;
mod error;
mod held_key;
mod key_command;
mod key_file;
mod key_table;
mod key_text;
mod nonce_source;
mod secret_key;
mod vault;

use std::fmt;
use std::sync::Arc;

pub use cipher::Cipher;
pub use ephemeral_files::EphemeralFiles;
pub use error::{EncryptionError, KeyTextProblem};
pub use held_key::HeldKey;
pub use key_command::KeyCommand;
pub use key_file::KeyFile;
#[cfg(feature = "fuzzing")]
pub use key_table::decode_for_fuzzing as decode_key_table;
pub use key_table::{FILE as KEY_TABLE_FILE, UNFINISHED_FILE as UNFINISHED_KEY_TABLE_FILE};
pub use key_table::{master_key_id, refuse_other_cipher};
pub use key_text::parse as parse_key_text;
pub use secret_key::SecretKey;
pub use vault::{DataKeyFacts, SEAL_BYTES, Seal, SealBroken, Vault};

/// A source of master keys.
pub trait KeySource: Send + Sync {
    /// The master key of an id.
    ///
    /// # Errors
    /// The source does not answer with a key.
    fn master_key(&self, id: &str) -> Result<SecretKey, EncryptionError>;

    /// The id of the key under which a new store is wrapped; empty where the source has one key only.
    fn id_for_new(&self) -> &str;

    /// The id that a store must name; `None` where any will do.
    fn required_id(&self) -> Option<&str> {
        None
    }

    /// The source in words for people, such as `the key file /etc/pando/key`.
    fn describe(&self) -> String;
}

/// The settings of an encrypted store.
#[derive(Clone)]
pub struct Encryption {
    /// The cipher of a store that is made. A store that is there keeps its own.
    pub cipher: Cipher,
    /// Where the master key comes from.
    pub source: Arc<dyn KeySource>,
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encryption({:?}, {})", self.cipher, self.source.describe())
    }
}

impl Eq for Encryption {}

impl PartialEq for Encryption {
    fn eq(&self, other: &Encryption) -> bool {
        self.cipher == other.cipher && Arc::ptr_eq(&self.source, &other.source)
    }
}
