//! The restore of a store from its backups.

use std::path::{Path, PathBuf};

use pando_commands::restore_emulated_backup;
use pando_environment::Environment;

use crate::engine_choice::{open_engine, refuse_key};
use crate::store_folder::check_restore_target;
use crate::{EngineName, EngineOptions, Error};

/// Makes a store in the folder `to` from a full backup and the incremental ones behind it, in order. The
/// engine is the one that the backups were made from; `options` count for one that keeps its store elsewhere.
///
/// # Errors
/// Backups that are unfinished, damaged or do not follow each other; a folder that is not empty; a full
/// device. Then there is no store in the folder.
pub fn restore_store(
    engine: EngineName,
    backups: &[PathBuf],
    to: &Path,
    options: &EngineOptions,
) -> Result<(), Error> {
    let environment = Environment::real();
    refuse_key(engine, options).map_err(Error::Restore)?;
    check_restore_target(&environment, engine, to).map_err(|error| Error::Restore(error.into()))?;
    let outcome = match engine {
        EngineName::Betree => {
            let encryption = options.encryption.as_ref();
            pando_betree::restore_encrypted(&environment, backups, to, encryption).map(drop)
        }
        #[cfg(feature = "engine-rocksdb")]
        EngineName::Rocksdb => {
            let backup = only_backup(engine, backups)?;
            pando_rocksdb::restore(&environment, backup, to).map(drop)
        }
        #[cfg(feature = "engine-wiredtiger")]
        EngineName::WiredTiger if !is_emulated(only_backup(engine, backups)?) => {
            pando_wiredtiger::restore(&environment, only_backup(engine, backups)?, to).map(drop)
        }
        other => {
            let backup = only_backup(other, backups)?;
            let opened = open_engine(other, to, options, &environment);
            let opened = opened.map_err(Error::Restore)?;
            restore_emulated_backup(&*opened, &environment, backup).and_then(|_entries| opened.close())
        }
    };
    outcome.map_err(|error| Error::Restore(Box::new(error)))
}

/// Whether a backup is of the contract's emulation, as those of older programs are.
#[cfg(feature = "engine-wiredtiger")]
fn is_emulated(backup: &Path) -> bool {
    Environment::real().files().exists(&backup.join("trees.backup")).unwrap_or(false)
}

/// The one backup of an engine without incremental ones.
fn only_backup(engine: EngineName, backups: &[PathBuf]) -> Result<&Path, Error> {
    match backups {
        [backup] => Ok(backup),
        _ => {
            let message = format!("a backup of {} is always full: name one", engine.as_str());
            Err(Error::Restore(message.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pando_encryption::{Cipher, Encryption, HeldKey, SecretKey};

    use super::*;

    #[test]
    fn a_key_for_an_engine_that_does_not_encrypt_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let key = SecretKey::from_bytes(&[1; 32]).expect("a key has 32 bytes");
        let encryption = Encryption { cipher: Cipher::default(), source: Arc::new(HeldKey::new(key)) };
        let options = EngineOptions { encryption: Some(encryption), ..EngineOptions::default() };
        for engine in EngineName::ALL.iter().filter(|engine| **engine != EngineName::Betree) {
            let backups = [folder.path().join("backup")];
            let refused = restore_store(*engine, &backups, &folder.path().join("to"), &options);
            let Err(Error::Restore(cause)) = refused else { panic!("{engine:?} took a key: {refused:?}") };
            assert!(cause.to_string().contains("does not encrypt"), "{engine:?}: {cause}");
        }
    }
}
