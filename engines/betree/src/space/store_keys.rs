//! The keys of a store that is opened.

use std::path::Path;
use std::sync::Arc;

use pando_encryption::{Encryption, EncryptionError, Vault};
use pando_environment::Environment;

use super::Superblock;

/// The keys of a store that is there. A key for a plain store is refused, as is an encrypted store without
/// one.
pub(super) fn open_vault(
    environment: &Environment,
    folder: &Path,
    encryption: Option<&Encryption>,
    superblock: &Superblock,
) -> Result<Option<Arc<Vault>>, EncryptionError> {
    match (encryption, superblock.is_encrypted()) {
        (None, false) => Ok(None),
        (None, true) => Err(EncryptionError::KeyMissing { folder: folder.to_owned() }),
        (Some(_), false) => Err(EncryptionError::StoreIsPlain { folder: folder.to_owned() }),
        (Some(encryption), true) => Vault::open(environment, folder, encryption).map(Some),
    }
}
