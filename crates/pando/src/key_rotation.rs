//! The rotation of the keys of an encrypted store that is not open.

use std::path::Path;

use pando_betree::DataKeys;
use pando_encryption::Encryption;
use pando_environment::Environment;

use crate::store_folder::{inspect, whole_folder};
use crate::{EngineName, Error, MissingStore};

/// Rotates the keys of the store in a folder. With a new master key, the old one does not open the store any
/// more. Returns the number of data keys.
///
/// # Errors
/// There is no encrypted store, it is open elsewhere, or a key cannot be had or is not the one of the store.
pub fn rotate_keys(
    folder: impl AsRef<Path>,
    old: &Encryption,
    new: Option<&Encryption>,
    data_keys: DataKeys,
) -> Result<usize, Error> {
    let (environment, folder) = (Environment::real(), folder.as_ref());
    inspect(&environment, EngineName::Betree, folder, MissingStore::Refuse)
        .map_err(|error| Error::Open(error.into()))?;
    let folder = whole_folder(EngineName::Betree, folder).map_err(|error| Error::Open(error.into()))?;
    pando_betree::rotate_keys(&environment, &folder, old, new, data_keys).map_err(Error::of_opening)
}
