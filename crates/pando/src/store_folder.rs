//! The folder of a store before it is opened: whether a store is in it, and whether one may be made in it.
//!
//! A store is made only in a folder that is missing or empty. So a mistyped path makes no empty store beside
//! the data that was meant, and no file of another program is ever mixed with a store.
//!
//! | the folder holds | a store is |
//! |---|---|
//! | the data file of the engine | opened |
//! | nothing, or only leftovers of a creation that was interrupted | made, where the caller allows it |
//! | a log, or keys, without their data file | refused: the data file is missing |
//! | the data file of another engine | refused by the name of the engine |
//! | any other file | refused by the name of the file |
//!
//! # Not here
//! The content of the files: each engine checks its own.

use std::path::{Path, PathBuf};

use pando_environment::{Environment, EnvironmentError, Operation};

use crate::EngineName;

/// The step for a folder without a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MissingStore {
    /// Make one, if the folder is missing or empty.
    #[default]
    Create,
    /// Refuse.
    Refuse,
}

/// The store of a folder, as far as names of files tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderState {
    /// There is a store.
    Store,
    /// There is none, and one can be made.
    Vacant,
}

/// Why a folder cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// There is no store, and none is to be made.
    #[error("there is no store in {}: {state}; correct the path", folder.display())]
    NoStore {
        /// The folder.
        folder: PathBuf,
        /// The reason, such as `the folder is empty`.
        state: String,
    },
    /// The path is empty.
    #[error("the path of the store is empty: name a folder")]
    EmptyPath,
    /// The path, or one of the folders above it, is a file.
    #[error("{} is a file: a store is a folder; correct the path", file.display())]
    NotAFolder {
        /// The file.
        file: PathBuf,
    },
    /// The path goes down into a folder that is missing, and up again.
    #[error("{} leads through {}, which does not exist; correct the path, or make that folder", folder.display(), missing.display())]
    ThroughNothing {
        /// The path.
        folder: PathBuf,
        /// The folder that is missing.
        missing: PathBuf,
    },
    /// The folder holds a store of another engine.
    #[error("{} holds '{file}', {engine}, or choose another folder", folder.display())]
    OtherEngine {
        /// The folder.
        folder: PathBuf,
        /// The file.
        file: String,
        /// The engine, and how to open its store.
        engine: &'static str,
    },
    /// The folder holds files of another program.
    #[error("no store can be made in {}: it holds '{file}'{owner}; choose an empty or a new folder", folder.display())]
    Foreign {
        /// The folder.
        folder: PathBuf,
        /// The file.
        file: String,
        /// Where the file is from, such as `, a file of MongoDB`; empty if that is not known.
        owner: &'static str,
    },
    /// The log is there without the data file.
    #[error(
        "the store in {} has a log ('wal') and no data file ('{file}'): put the data file back, or restore a backup \
         into another folder",
        folder.display()
    )]
    DataFileMissing {
        /// The folder.
        folder: PathBuf,
        /// The name of the data file.
        file: &'static str,
    },
    /// The keys are there without the data file.
    #[error(
        "the store in {} has its keys ('keys') and no data file ('{file}'): put the data file and the log back, or keep \
         'keys' with them, because they cannot be read without it, and choose an empty or a new folder",
        folder.display()
    )]
    KeysWithoutStore {
        /// The folder.
        folder: PathBuf,
        /// The name of the data file.
        file: &'static str,
    },
    /// A restore into the folder was interrupted.
    #[error("the restore into {} was interrupted: run it again", folder.display())]
    RestoreUnfinished {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder cannot be read.
    #[error("cannot look into {}: {source}", folder.display())]
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        source: EnvironmentError,
    },
}

impl FolderError {
    /// Whether another path is needed: what the folder holds stays as it is.
    pub fn is_wrong_path(&self) -> bool {
        matches!(
            self,
            FolderError::EmptyPath
                | FolderError::NotAFolder { .. }
                | FolderError::OtherEngine { .. }
                | FolderError::Foreign { .. }
        )
    }
}

const OF_MONGODB: &str =
    ", a file of MongoDB (have MongoDB serve it, and take its documents with 'pando copy' or mongodump)";
/// Files that tell where a foreign folder comes from.
const OWNERS: [(&str, &str); 13] = [
    ("WiredTiger", OF_MONGODB),
    ("WiredTiger.wt", OF_MONGODB),
    ("mongod.lock", OF_MONGODB),
    ("storage.bson", OF_MONGODB),
    ("ibdata1", ", a file of MySQL or MariaDB"),
    ("PG_VERSION", ", a file of PostgreSQL"),
    ("CURRENT", ", a file of RocksDB or LevelDB"),
    ("MANIFEST", ", a file of a backup (restore it with 'pando restore')"),
    ("MANIFEST.rocksdb", ", a file of a backup (restore it with 'pando restore --engine rocksdb')"),
    ("MANIFEST.wiredtiger", ", a file of a backup (restore it with 'pando restore --engine wiredtiger')"),
    ("trees.backup", ", a file of a backup (restore it with 'pando restore' and the engine that made it)"),
    ("keys", ", the keys of a store of the engine betree"),
    ("dump.rdb", ", a file of Redis"),
];
/// Files that tell the engine of a store, those of engines that this build lacks included.
const ENGINES: [(&str, &str); 5] = [
    (
        "data.0000",
        "the data file of the engine betree: open it with --engine betree, in the library with EngineName::Betree",
    ),
    (
        "data.mdb",
        "the data file of the engine lmdb (or of another program with LMDB): open it with --engine lmdb, in the \
         library with EngineName::Lmdb of the feature engine-lmdb",
    ),
    (
        "rocksdb",
        "the folder of the engine rocksdb: open it with --engine rocksdb, in the library with EngineName::Rocksdb of \
         the feature engine-rocksdb",
    ),
    (
        "wiredtiger",
        "the folder of the engine wiredtiger: open it with --engine wiredtiger, in the library with \
         EngineName::WiredTiger of the feature engine-wiredtiger",
    ),
    (
        "tikv-store",
        "the file of the engine tikv: open it with --engine tikv, in the library with EngineName::Tikv of the feature \
         engine-tikv",
    ),
];
/// The name of the audit trail of a server in the folder of its store, and the beginning of the names of
/// older ones.
pub const AUDIT_NAME: &str = "audit.json";
/// Names that say nothing of an owner: the lock and the socket of a server, sorted files of queries and
/// transactions, keys that were never in use, and the folder that some file systems have at their root.
const LEFTOVERS: [&str; 6] = ["LOCK", SOCKET_NAME, "scratch", "spill", "keys.new", "lost+found"];
/// The name of the unix socket of a server, in the folder of its store.
pub const SOCKET_NAME: &str = "pando.sock";
const LOG: &str = "wal";
/// Stands in a folder while a store is restored into it.
pub(crate) const RESTORING: &str = "restoring";
/// The keys of an encrypted store. They are a leftover only beside its unfinished data file.
const KEYS: &str = "keys";
/// The suffix of a data file that is being made.
const UNFINISHED_SUFFIX: &str = ".new";

impl EngineName {
    /// The file without which there is no store; `None` for an engine that keeps no file.
    const fn data_file(self) -> Option<&'static str> {
        match self {
            EngineName::Betree => Some("data.0000"),
            EngineName::Memory => None,
            #[cfg(feature = "engine-lmdb")]
            EngineName::Lmdb => Some("data.mdb"),
            // A folder.
            #[cfg(feature = "engine-rocksdb")]
            EngineName::Rocksdb => Some("rocksdb"),
            // A folder, so that no file of MongoDB is taken for it.
            #[cfg(feature = "engine-wiredtiger")]
            EngineName::WiredTiger => Some("wiredtiger"),
            // It names the store in the cluster.
            #[cfg(feature = "engine-tikv")]
            EngineName::Tikv => Some("tikv-store"),
        }
    }
}

/// Looks whether there is a store of an engine in a folder, or whether one can be made. Changes nothing.
///
/// # Errors
/// The folder cannot be opened as a store.
pub fn inspect_folder(
    engine: EngineName,
    folder: impl AsRef<Path>,
    missing: MissingStore,
) -> Result<FolderState, FolderError> {
    inspect(&Environment::real(), engine, folder.as_ref(), missing)
}

/// The engine whose store lies in a folder, as far as names of files tell; the default one where none does.
pub fn engine_of_folder(folder: impl AsRef<Path>) -> EngineName {
    // A folder that cannot be read is refused when it is opened.
    let names = Environment::real().files().list(folder.as_ref()).unwrap_or_default();
    let is_of =
        |engine: &EngineName| engine.data_file().is_some_and(|file| names.iter().any(|name| name == file));
    EngineName::ALL.iter().copied().find(is_of).unwrap_or_default()
}

/// The folder of a store from the root on. An engine names its files by it as long as the store is open, so
/// that a program which changes its working folder would lead it to another place. The engine memory has no
/// folder.
pub(crate) fn whole_folder(engine: EngineName, folder: &Path) -> Result<PathBuf, FolderError> {
    if engine.data_file().is_none() {
        return Ok(folder.to_owned());
    }
    if folder.as_os_str().is_empty() {
        return Err(FolderError::EmptyPath);
    }
    std::path::absolute(folder).map_err(|error| FolderError::Unreadable {
        folder: folder.to_owned(),
        source: EnvironmentError::io(Operation::Open, folder, error),
    })
}

pub(crate) fn inspect(
    environment: &Environment,
    engine: EngineName,
    folder: &Path,
    missing: MissingStore,
) -> Result<FolderState, FolderError> {
    let Some(data_file) = engine.data_file() else { return Ok(FolderState::Vacant) };
    if folder.as_os_str().is_empty() {
        return Err(FolderError::EmptyPath);
    }
    let unreadable = |source| unreadable(environment, folder, source);
    let no_store = |state: &str| FolderError::NoStore { folder: folder.to_owned(), state: state.to_owned() };
    if !environment.files().exists(folder).map_err(unreadable)? {
        if let Some(missing) = missing_on_the_way(environment, folder) {
            return Err(FolderError::ThroughNothing { folder: folder.to_owned(), missing });
        }
        return match missing {
            MissingStore::Create => Ok(FolderState::Vacant),
            MissingStore::Refuse => Err(no_store("the folder does not exist")),
        };
    }
    let names = environment.files().list(folder).map_err(unreadable)?;
    if names.iter().any(|name| name == RESTORING) {
        return Err(FolderError::RestoreUnfinished { folder: folder.to_owned() });
    }
    if names.iter().any(|name| name == data_file) {
        return Ok(FolderState::Store);
    }
    match (check_vacant(folder, data_file, &names), missing) {
        (Err(FolderError::Foreign { file, owner, .. }), MissingStore::Refuse) => {
            Err(no_store(&format!("the folder holds '{file}'{owner}")))
        }
        (Err(error), _) => Err(error),
        (Ok(()), MissingStore::Create) => Ok(FolderState::Vacant),
        (Ok(()), MissingStore::Refuse) => Err(no_store("the folder is empty")),
    }
}

/// A folder that is missing although the path leads through it and up again. Made for the sake of the path,
/// it would be left behind, and the path would lead to what nobody has looked at.
fn missing_on_the_way(environment: &Environment, folder: &Path) -> Option<PathBuf> {
    let returns = |path: &&Path| path.file_name().is_none() && path.parent().is_some();
    // A path such as `./data` or `../data` begins at the working folder, whose own path is empty.
    let is_missing =
        |path: &&Path| !path.as_os_str().is_empty() && !matches!(environment.files().exists(path), Ok(true));
    let missing = folder.ancestors().filter(returns).filter_map(Path::parent).filter(is_missing).last();
    missing.map(Path::to_owned)
}

/// The error of a path that is no folder, or that cannot be read.
fn unreadable(environment: &Environment, folder: &Path, source: EnvironmentError) -> FolderError {
    let is_in_file = matches!(
        &source,
        EnvironmentError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotADirectory
    );
    let is_there = |path: &&Path| matches!(environment.files().exists(path), Ok(true));
    match folder.ancestors().find(is_there).filter(|_| is_in_file) {
        Some(file) => FolderError::NotAFolder { file: file.to_owned() },
        None => FolderError::Unreadable { folder: folder.to_owned(), source },
    }
}

/// Refuses the target of a restore that holds anything of value. The engine refuses a store that is there.
pub(crate) fn check_restore_target(
    environment: &Environment,
    engine: EngineName,
    folder: &Path,
) -> Result<(), FolderError> {
    match inspect(environment, engine, folder, MissingStore::Create) {
        Ok(_) | Err(FolderError::RestoreUnfinished { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Refuses a folder without a data file that holds anything of value.
fn check_vacant(folder: &Path, data_file: &'static str, names: &[String]) -> Result<(), FolderError> {
    let unfinished = format!("{data_file}{UNFINISHED_SUFFIX}");
    let foreign: Vec<&String> = names
        .iter()
        .filter(|name| !LEFTOVERS.contains(&name.as_str()) && **name != unfinished)
        .filter(|name| *name != LOG && !(*name == KEYS && EngineName::Betree.data_file() == Some(data_file)))
        // The server opens its audit trail before the store, so that opening is an event.
        .filter(|name| !name.starts_with(AUDIT_NAME))
        .collect();
    let of_engine = |name: &&String| ENGINES.iter().find(|(file, _)| *file == name.as_str());
    if let Some((file, engine)) = foreign.iter().copied().find_map(|name| of_engine(&name)) {
        let (folder, file) = (folder.to_owned(), (*file).to_owned());
        return Err(FolderError::OtherEngine { folder, file, engine });
    }
    // A file whose owner is known says more than one that comes first in the alphabet.
    let known = foreign.iter().find_map(|name| Some((*name, owner_of(name)?)));
    if let Some((file, owner)) = known.or_else(|| foreign.first().map(|name| (*name, ""))) {
        return Err(FolderError::Foreign { folder: folder.to_owned(), file: (*file).clone(), owner });
    }
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    match (has(LOG), has(&unfinished)) {
        (true, true) => Err(FolderError::RestoreUnfinished { folder: folder.to_owned() }),
        (true, false) => Err(FolderError::DataFileMissing { folder: folder.to_owned(), file: data_file }),
        (false, false) if has(KEYS) => {
            Err(FolderError::KeysWithoutStore { folder: folder.to_owned(), file: data_file })
        }
        (false, _) => Ok(()),
    }
}

fn owner_of(name: &str) -> Option<&'static str> {
    OWNERS.iter().find(|(file, _)| *file == name).map(|(_, owner)| *owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks into a folder with these files, after which nothing else may be in it.
    fn look(files: &[&str], missing: MissingStore) -> Result<FolderState, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for file in files {
            std::fs::write(folder.path().join(file), b"x").expect("a file");
        }
        let found = inspect_folder(EngineName::Betree, folder.path(), missing);
        let left = std::fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(left, files.len(), "a look changes nothing");
        found.map_err(|error| error.to_string())
    }

    #[test]
    fn a_store_is_made_only_where_nothing_is() {
        assert_eq!(look(&[], MissingStore::Create), Ok(FolderState::Vacant));
        assert_eq!(look(&["LOCK", "data.0000.new"], MissingStore::Create), Ok(FolderState::Vacant));
        assert_eq!(look(&["data.0000", "wal", "notes.txt"], MissingStore::Create), Ok(FolderState::Store));
        let refused = look(&[], MissingStore::Refuse).expect_err("there is no store");
        assert!(refused.contains("there is no store in") && refused.contains("empty"), "{refused}");
    }

    #[test]
    fn a_foreign_file_is_named_with_its_owner() {
        for (files, words) in [
            (&["collection-0.wt", "WiredTiger"][..], ["'WiredTiger'", "MongoDB"]),
            (&["mongod.lock"], ["'mongod.lock'", "MongoDB"]),
            (&["ibdata1", "aria_log"], ["'ibdata1'", "MySQL"]),
            (&["000004.log", "CURRENT"], ["'CURRENT'", "RocksDB"]),
            (&["MANIFEST", "extents"], ["'MANIFEST'", "pando restore"]),
            (&["rocksdb", "synced"], ["'rocksdb'", "--engine rocksdb"]),
            (&["data.mdb", "durable"], ["'data.mdb'", "--engine lmdb"]),
            (&["letter.odt"], ["'letter.odt'", "holds"]),
            (&["wiredtiger"], ["'wiredtiger'", "--engine wiredtiger"]),
        ] {
            for missing in [MissingStore::Create, MissingStore::Refuse] {
                let refused = look(files, missing).expect_err("a foreign folder");
                assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
            }
        }
    }

    #[test]
    fn a_store_of_another_engine_names_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("data.0000"), b"x").expect("a file");
        for engine in EngineName::ALL {
            let found = inspect_folder(*engine, folder.path(), MissingStore::Create);
            match engine {
                EngineName::Betree => assert_eq!(found.expect("its own store"), FolderState::Store),
                EngineName::Memory => assert_eq!(found.expect("it has no folder"), FolderState::Vacant),
                #[cfg(any(
                    feature = "engine-lmdb",
                    feature = "engine-rocksdb",
                    feature = "engine-wiredtiger"
                ))]
                _ => {
                    let refused = found.expect_err("a store of betree").to_string();
                    assert!(refused.contains("--engine betree"), "{refused}");
                }
            }
        }
    }

    #[test]
    fn a_log_without_its_data_file_is_not_taken_for_an_empty_folder() {
        for missing in [MissingStore::Create, MissingStore::Refuse] {
            let refused = look(&["LOCK", "wal"], missing).expect_err("half a store");
            assert!(refused.contains("'data.0000'") && refused.contains("restore"), "{refused}");
            for files in
                [&["data.0000.new", "wal"][..], &["data.0000.new", "restoring"], &["data.0000", "restoring"]]
            {
                let refused = look(files, missing).expect_err("half a restore");
                assert!(refused.contains("was interrupted"), "{refused}");
            }
        }
    }

    #[test]
    fn keys_without_their_data_file_are_not_taken_for_an_empty_folder() {
        assert_eq!(look(&["LOCK", "data.0000.new", "keys"], MissingStore::Create), Ok(FolderState::Vacant));
        assert_eq!(look(&["LOCK", "keys.new"], MissingStore::Create), Ok(FolderState::Vacant));
        for missing in [MissingStore::Create, MissingStore::Refuse] {
            for files in [&["LOCK", "keys"][..], &["keys", "keys.new", "scratch"]] {
                let refused = look(files, missing).expect_err("the keys of a store that was moved away");
                assert!(refused.contains("'keys'") && refused.contains("'data.0000'"), "{refused}");
            }
        }
    }

    #[test]
    fn a_folder_that_is_missing_stays_missing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let missing = folder.path().join("typo");
        let refused = inspect_folder(EngineName::Betree, &missing, MissingStore::Refuse);
        assert!(refused.expect_err("no folder").to_string().contains("does not exist"));
        let found = inspect_folder(EngineName::Betree, &missing, MissingStore::Create);
        assert_eq!(found.expect("it can be made"), FolderState::Vacant);
        assert!(!missing.exists());
    }

    #[test]
    fn a_path_through_a_missing_folder_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (path, through) in [("typo/../store", "typo"), ("a/b/../../store", "a/b")] {
            let refused = inspect_folder(EngineName::Betree, folder.path().join(path), MissingStore::Create);
            let refused = refused.expect_err("the way is missing").to_string();
            let words = format!("through {}, which", folder.path().join(through).display());
            assert!(refused.contains(&words), "{refused}");
        }
        std::fs::create_dir(folder.path().join("there")).expect("a folder");
        let found =
            inspect_folder(EngineName::Betree, folder.path().join("there/../store"), MissingStore::Create);
        assert_eq!(found.expect("it can be made"), FolderState::Vacant);
        // Paths from the working folder.
        for path in
            ["no-such-store", "./no-such-store", "../no-such-store", "./../no-such-store", "../../x/y"]
        {
            let found = inspect_folder(EngineName::Betree, Path::new(path), MissingStore::Create);
            assert_eq!(found.expect("it can be made"), FolderState::Vacant, "{path}");
        }
        let refused = inspect_folder(EngineName::Betree, Path::new("./typo/../store"), MissingStore::Create);
        assert!(refused.expect_err("the way is missing").to_string().contains("through ./typo, which"));
    }
}
