//! The keys of a store: of one that is made or opened, and their rotation in one that is not.

use std::path::Path;
use std::sync::Arc;

use pando_encryption::{Encryption, EncryptionError, KEY_TABLE_FILE, Vault};
use pando_environment::{Access, Environment, OpenMode};
use pando_storage::StorageError;

use super::superblock_slots::read_slots;
use super::{SpaceError, Superblock};
use crate::base::FileId;

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

/// Refuses a new store over the keys of another one. An operator who moves a store away may forget them, and
/// no byte of it can be read without them. Keys of a creation that was interrupted have its unfinished data
/// file beside them.
pub(super) fn refuse_keys_without_store(
    environment: &Environment,
    folder: &Path,
    unfinished: &Path,
) -> Result<(), SpaceError> {
    let (files, path) = (environment.files(), folder.join(KEY_TABLE_FILE));
    if files.exists(&path)? && !files.exists(unfinished)? {
        return Err(EncryptionError::KeysWithoutStore { path }.into());
    }
    Ok(())
}

/// The keys of a new store, if it is to be encrypted. Its unfinished data file is there.
pub(super) fn create_vault(
    environment: &Environment,
    folder: &Path,
    encryption: Option<&Encryption>,
) -> Result<Option<Arc<Vault>>, SpaceError> {
    let Some(encryption) = encryption else { return Ok(None) };
    // The name of the data file is durable before that of the keys, so that no crash leaves these alone.
    environment.files().sync_dir(folder)?;
    Ok(Some(Vault::create(environment, folder, encryption)?))
}

/// The data keys of a store after a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKeys {
    /// They are those of before.
    Kept,
    /// A new one seals all blocks and records from now on.
    Added,
}

/// Rotates the keys of a store that is not open. With a new master key, the old one does not open the store
/// any more; backups that were made before still take it. Returns the number of data keys.
///
/// # Errors
/// There is no encrypted store, it is open elsewhere, or a key cannot be had or is not the one of the store;
/// or the new master key is the present one.
pub fn rotate_keys(
    environment: &Environment,
    folder: &Path,
    old: &Encryption,
    new: Option<&Encryption>,
    data_keys: DataKeys,
) -> Result<usize, StorageError> {
    Ok(rotate(environment, folder, (old, new), data_keys)?)
}

fn rotate(
    environment: &Environment,
    folder: &Path,
    (old, new): (&Encryption, Option<&Encryption>),
    data_keys: DataKeys,
) -> Result<usize, SpaceError> {
    let path = folder.join(FileId::FIRST.name());
    if !environment.files().exists(&path)? {
        return Err(SpaceError::NoStore { path: folder.to_owned() });
    }
    let _lock = environment.files().lock(folder)?;
    let file = environment.files().open(&path, OpenMode::ReadOnly, Access::Buffered)?;
    let superblock = read_slots(file.as_ref(), &path)?.newest;
    let vault = open_vault(environment, folder, Some(old), &superblock)?;
    if !superblock.is_sealed_by(vault.as_deref()) {
        return Err(SpaceError::SuperblockSeal { path });
    }
    let Some(vault) = vault else { return Ok(0) };
    let since = (data_keys == DataKeys::Added).then(|| superblock.generation().get());
    if new.is_some() || since.is_some() {
        vault.rotate(new, since)?;
    }
    Ok(vault.data_keys().len())
}
