//! The restore of a store from its backups.

use std::path::{Path, PathBuf};

use pando_commands::restore_emulated_backup;
use pando_environment::{Access, Environment, EnvironmentError, OpenMode};

use crate::engine_choice::{check_options, open_engine, refuse_key};
use crate::store_folder::{RESTORING, check_restore_target, inspect, whole_folder};
use crate::{EngineName, EngineOptions, Error, FolderState, MissingStore};

/// The file of a backup by the contract's emulation, entry by entry: any engine can take it.
const EMULATED: &str = "trees.backup";

/// Makes a store in the folder `to` from a full backup and the incremental ones behind it, in order. The
/// engine is the one that the backups were made from; `options` count for one that keeps its store elsewhere.
///
/// A backup of `memory`, `lmdb` or `tikv` has a form that every engine with files takes, so that it can
/// become a store of another one.
///
/// # Errors
/// Backups that are unfinished, damaged, of another engine or do not follow each other; a folder that is not
/// empty; a full device; the engine `memory`, which keeps nothing in a folder. Then there is no store in the
/// folder.
pub fn restore_store(
    engine: EngineName,
    backups: &[impl AsRef<Path>],
    to: impl AsRef<Path>,
    options: &EngineOptions,
) -> Result<(), Error> {
    let backups: Vec<PathBuf> = backups.iter().map(|backup| backup.as_ref().to_owned()).collect();
    let (backups, to) = (backups.as_slice(), to.as_ref());
    let environment = Environment::real();
    refuse_key(engine, options).map_err(Error::Restore)?;
    check_options(engine, options).map_err(Error::Restore)?;
    for backup in backups {
        refuse_other_engine(engine, backup).map_err(|message| Error::Restore(message.into()))?;
    }
    check_restore_target(&environment, engine, to).map_err(|error| Error::Restore(error.into()))?;
    let to = &whole_folder(engine, to).map_err(|error| Error::Restore(error.into()))?;
    match engine {
        EngineName::Betree if !backups.iter().any(|backup| has_file(backup, EMULATED)) => {
            let encryption = options.encryption.as_ref();
            while_marked(&environment, to, || {
                pando_betree::restore_encrypted(&environment, backups, to, encryption).map(drop)
            })
        }
        #[cfg(feature = "engine-rocksdb")]
        EngineName::Rocksdb if !has_file(only_backup(engine, backups)?, EMULATED) => {
            let backup = only_backup(engine, backups)?;
            while_marked(&environment, to, || pando_rocksdb::restore(&environment, backup, to).map(drop))
        }
        #[cfg(feature = "engine-wiredtiger")]
        EngineName::WiredTiger if !has_file(only_backup(engine, backups)?, EMULATED) => {
            let backup = only_backup(engine, backups)?;
            while_marked(&environment, to, || pando_wiredtiger::restore(&environment, backup, to).map(drop))
        }
        other => restore_entries(other, only_backup(other, backups)?, to, options, &environment)
            .map_err(Error::Restore),
    }
}

/// Restores while a file in the folder says so: what a killed restore leaves is no empty folder.
fn while_marked<E: std::error::Error + Send + Sync + 'static>(
    environment: &Environment,
    to: &Path,
    restore: impl FnOnce() -> Result<(), E>,
) -> Result<(), Error> {
    let (files, mark) = (environment.files(), to.join(RESTORING));
    let refused = |error: EnvironmentError| Error::Restore(Box::new(error));
    let was_there = files.exists(to).map_err(refused)?;
    files.create_dir(to).map_err(refused)?;
    drop(files.open(&mark, OpenMode::CreateOrOpen, Access::Buffered).map_err(refused)?);
    files.sync_dir(to).map_err(refused)?;
    let restored = restore().map_err(|error| Error::Restore(Box::new(error)));
    let unmarked = files.remove(&mark).and_then(|()| files.sync_dir(to)).map_err(refused);
    if restored.is_err() && !was_there && names_in(to).is_empty() {
        remove(to);
    }
    restored.and(unmarked)
}

/// Puts the entries of an emulated backup into a new store. Where that fails, the folder is as it was.
fn restore_entries(
    engine: EngineName,
    backup: &Path,
    to: &Path,
    options: &EngineOptions,
    environment: &Environment,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    if inspect(environment, engine, to, MissingStore::Create)? == FolderState::Store {
        return Err(format!("{} has a store: restore into a new or empty folder", to.display()).into());
    }
    // What a folder without a store may hold, such as the audit trail of a server.
    let before = names_in(to);
    let put = || {
        let opened = open_engine(engine, to, options, environment)?;
        restore_emulated_backup(&*opened, environment, backup)?;
        opened.close()?;
        Ok(())
    };
    put().inspect_err(|_| {
        for name in names_in(to).iter().filter(|name| !before.contains(name)) {
            remove(&to.join(name));
        }
    })
}

/// The names in a folder; none where there is no folder.
fn names_in(folder: &Path) -> Vec<String> {
    Environment::real().files().list(folder).unwrap_or_default()
}

/// Removes a file or a folder of the part of a store that a restore has made. The failure of the restore is
/// told; what cannot be removed is refused by the next one.
#[allow(
    clippy::disallowed_methods,
    reason = "a restore works on the real disk alone, whose folders are removed here"
)]
fn remove(path: &Path) {
    let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
}

/// Refuses what would be told as an unfinished backup, or would be restored into nothing.
fn refuse_other_engine(engine: EngineName, backup: &Path) -> Result<(), String> {
    if engine == EngineName::Memory {
        return Err("the engine memory keeps nothing in a folder: restore its backup with --engine betree, in the library \
                    with EngineName::Betree"
            .to_owned());
    }
    let manifests =
        [("MANIFEST", "betree"), ("MANIFEST.rocksdb", "rocksdb"), ("MANIFEST.wiredtiger", "wiredtiger")];
    let of_others = manifests.into_iter().filter(|(_, other)| *other != engine.as_str());
    match of_others.into_iter().find(|(file, _)| has_file(backup, file)) {
        Some((_, other)) => Err(format!(
            "{} has a backup of the engine {other}: restore it with --engine {other}",
            backup.display()
        )),
        None => Ok(()),
    }
}

fn has_file(backup: &Path, name: &str) -> bool {
    Environment::real().files().exists(&backup.join(name)).unwrap_or(false)
}

/// The one backup of an engine without incremental ones.
fn only_backup(engine: EngineName, backups: &[PathBuf]) -> Result<&Path, Error> {
    match backups {
        [backup] => Ok(backup),
        _ => {
            let message = match engine {
                EngineName::Betree => {
                    "a backup of another engine than betree is always full: name one".to_owned()
                }
                _ => format!("a backup of {} is always full: name one", engine.as_str()),
            };
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
    fn a_backup_of_another_engine_is_told_as_such() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let to = folder.path().join("to");
        let refused = |engine| {
            let refused = restore_store(engine, &[folder.path()], &to, &EngineOptions::default());
            let Err(Error::Restore(cause)) = refused else { panic!("{engine:?}: {refused:?}") };
            cause.to_string()
        };
        assert!(refused(EngineName::Betree).contains("no finished backup"));
        std::fs::write(folder.path().join("MANIFEST.rocksdb"), "").expect("a file");
        assert!(refused(EngineName::Betree).contains("restore it with --engine rocksdb"));
        assert!(refused(EngineName::Memory).contains("keeps nothing in a folder"));
        assert!(!to.exists());
    }

    #[test]
    fn an_option_that_the_engine_does_not_know_is_refused_before_anything_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("to");
        let options = EngineOptions { named: vec![("foo".into(), "1".into())], ..EngineOptions::default() };
        let refused = restore_store(EngineName::Betree, &[folder.path()], &to, &options).unwrap_err();
        assert!(format!("{refused:?}").contains("foo"), "{refused:?}");
        assert!(!to.exists());
    }

    #[test]
    fn a_damaged_backup_leaves_no_part_of_a_store() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (backup, to) = (folder.path().join("backup"), folder.path().join("to"));
        let store = crate::Pando::open_in_memory().expect("a store in memory");
        let notes = store.database("d").collection::<bson::Document>("notes");
        notes
            .insert_many((0..2000).map(|id| bson::doc! { "_id": id, "text": "x".repeat(200) }))
            .run()
            .expect("inserts");
        store.backup(&backup).run().expect("a backup");
        let whole = std::fs::read(backup.join(EMULATED)).expect("the backup");
        std::fs::write(backup.join(EMULATED), &whole[..whole.len() / 2]).expect("half of it");
        std::fs::create_dir(&to).expect("a folder");
        std::fs::write(to.join("audit.json"), "{}").expect("the audit trail of a server");
        let restore = || restore_store(EngineName::Betree, &[&backup], &to, &EngineOptions::default());
        let refused = restore().expect_err("half a backup").to_string();
        assert!(refused.contains("damaged"), "{refused}");
        assert_eq!(names_in(&to), ["audit.json"], "what was there before stays, and nothing else");
        std::fs::write(backup.join(EMULATED), &whole).expect("the whole backup");
        restore().expect("a restore of the whole");
        let again = restore().expect_err("a store is there").to_string();
        assert!(again.contains("has a store: restore into a new or empty folder"), "{again}");
    }

    #[test]
    fn a_backup_of_the_engine_memory_becomes_a_store_with_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let backup = folder.path().join("backup");
        let memory = crate::Options { engine: EngineName::Memory, ..crate::Options::default() };
        let store =
            crate::Pando::open_with(folder.path().join("memory"), &memory).expect("a store in memory");
        let cities = store.database("atlas").collection::<bson::Document>("cities");
        cities.insert_one(bson::doc! { "_id": 1, "name": "Brno" }).run().expect("an insert");
        cities.create_index(bson::doc! { "name": 1 }).run().expect("an index");
        store.backup(&backup).run().expect("a backup");
        let to = folder.path().join("to");
        restore_store(EngineName::Betree, &[&backup], &to, &EngineOptions::default()).expect("a restore");
        let restored = crate::Pando::open(&to).expect("the restored store");
        let cities = restored.database("atlas").collection::<bson::Document>("cities");
        let found = cities.find_one(bson::doc! { "name": "Brno" }).hint(bson::doc! { "name": 1 }).run();
        assert_eq!(found.expect("an answer"), Some(bson::doc! { "_id": 1, "name": "Brno" }));
    }

    #[test]
    fn a_key_for_an_engine_that_does_not_encrypt_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let key = SecretKey::from_bytes(&[1; 32]).expect("a key has 32 bytes");
        let encryption = Encryption { cipher: Cipher::default(), source: Arc::new(HeldKey::new(key)) };
        let options = EngineOptions { encryption: Some(encryption), ..EngineOptions::default() };
        for engine in EngineName::ALL.iter().filter(|engine| **engine != EngineName::Betree) {
            let backups = [folder.path().join("backup")];
            let refused = restore_store(*engine, &backups, folder.path().join("to"), &options);
            let Err(Error::Restore(cause)) = refused else { panic!("{engine:?} took a key: {refused:?}") };
            assert!(cause.to_string().contains("does not encrypt"), "{engine:?}: {cause}");
        }
    }
}
