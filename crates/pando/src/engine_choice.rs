//! The engines of this build, and the opening of each: the one file that names them, for server, library and
//! lab alike.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use pando_commands::{
    ByteSize, Commands, CommandsOptions, ErrorKind, QUERY_MEMORY_MIN, QueryMemoryOptions, ScratchFiles,
    SharedEngine, StorageError,
};
use pando_environment::Environment;

use crate::store_folder::{inspect, whole_folder};
use crate::{EngineOptions, MissingStore};

/// An engine, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EngineName {
    /// Pando's own durable engine.
    #[default]
    Betree,
    /// Everything in memory, gone with the process.
    Memory,
    /// LMDB.
    #[cfg(feature = "engine-lmdb")]
    Lmdb,
    /// RocksDB.
    #[cfg(feature = "engine-rocksdb")]
    Rocksdb,
    /// WiredTiger.
    #[cfg(feature = "engine-wiredtiger")]
    WiredTiger,
    /// A TiKV cluster.
    #[cfg(feature = "engine-tikv")]
    Tikv,
}

impl EngineName {
    /// All engines of this build.
    pub const ALL: &'static [EngineName] = &[
        EngineName::Betree,
        EngineName::Memory,
        #[cfg(feature = "engine-lmdb")]
        EngineName::Lmdb,
        #[cfg(feature = "engine-rocksdb")]
        EngineName::Rocksdb,
        #[cfg(feature = "engine-wiredtiger")]
        EngineName::WiredTiger,
        #[cfg(feature = "engine-tikv")]
        EngineName::Tikv,
    ];

    /// The name as configuration spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            EngineName::Betree => "betree",
            EngineName::Memory => "memory",
            #[cfg(feature = "engine-lmdb")]
            EngineName::Lmdb => "lmdb",
            #[cfg(feature = "engine-rocksdb")]
            EngineName::Rocksdb => "rocksdb",
            #[cfg(feature = "engine-wiredtiger")]
            EngineName::WiredTiger => "wiredtiger",
            #[cfg(feature = "engine-tikv")]
            EngineName::Tikv => "tikv",
        }
    }
}

impl FromStr for EngineName {
    type Err = String;

    fn from_str(name: &str) -> Result<EngineName, String> {
        EngineName::ALL.iter().copied().find(|engine| engine.as_str() == name).ok_or_else(|| {
            let known: Vec<&str> = EngineName::ALL.iter().map(|engine| engine.as_str()).collect();
            format!("there is no engine '{name}' in this build; there are: {}", known.join(", "))
        })
    }
}

/// The divisor of the cache for the memory of queries.
const QUERY_MEMORY_SHARE: usize = 4;
/// The folder of scratch files, in that of the store.
const SCRATCH_FOLDER: &str = "scratch";

type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// Opens an engine over a folder and the commands over the engine. `query_memory_bytes` is as in
/// [`Options`](crate::Options::query_memory_bytes). Blocks while the engine recovers. Makes a store in a
/// folder that is missing or empty ([`inspect_folder`](crate::inspect_folder)). A relative path counts from
/// the working folder of this moment.
pub fn open_commands(
    engine: EngineName,
    folder: &Path,
    options: &EngineOptions,
    environment: Environment,
    commands: CommandsOptions,
    query_memory_bytes: Option<u64>,
) -> Result<Commands, OpenError> {
    let folder = &whole_folder(engine, folder)?;
    let query_memory = query_memory(engine, folder, options, query_memory_bytes)?;
    let on_device = (engine != EngineName::Memory).then(|| folder.to_owned());
    let engine =
        open_engine(engine, folder, options, &environment).map_err(|error| advised(error, folder))?;
    let options = CommandsOptions { query_memory, folder: on_device, ..commands };
    Commands::open(engine, environment, options).map_err(|error| advised(error.into(), folder))
}

/// A store that cannot be opened because of damaged bytes.
#[derive(Debug, thiserror::Error)]
#[error("{source}; 'pando verify {}' may find more damage, and 'pando restore' makes a store of a backup", folder.display())]
struct DamagedStore {
    folder: PathBuf,
    source: StorageError,
}

/// The error with what to do about damage, where it does not say so itself (`restore from a backup`).
fn advised(error: OpenError, folder: &Path) -> OpenError {
    match error.downcast::<StorageError>() {
        Ok(source) if source.kind() == ErrorKind::Corrupt && !source.to_string().contains("restore") => {
            Box::new(DamagedStore { folder: folder.to_owned(), source: *source })
        }
        Ok(other) => other,
        Err(error) => error,
    }
}

/// The memory of queries: a quarter of the cache unless asked for otherwise; of the memory engine without
/// bounds. Write buffers take another
/// quarter, and the rest is for inner nodes and pages.
fn query_memory(
    engine: EngineName,
    folder: &Path,
    options: &EngineOptions,
    bytes: Option<u64>,
) -> Result<QueryMemoryOptions, OpenError> {
    let to_usize = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    if engine == EngineName::Memory {
        // It has no limit of memory unless one is asked for, and no folder to spill to.
        let limit_bytes = bytes.map_or(usize::MAX, to_usize).max(QUERY_MEMORY_MIN);
        return Ok(QueryMemoryOptions { limit_bytes, ..QueryMemoryOptions::default() });
    }
    let most = to_usize(options.cache_bytes).max(QUERY_MEMORY_MIN);
    let limit_bytes = bytes.map_or((most / QUERY_MEMORY_SHARE).max(QUERY_MEMORY_MIN), to_usize);
    if !(QUERY_MEMORY_MIN..=most).contains(&limit_bytes) {
        let [given, least, most] =
            [limit_bytes, QUERY_MEMORY_MIN, most].map(|n| ByteSize::from_bytes(n as u64));
        return Err(wrong_setting(format!(
            "the memory of queries (query_memory_bytes) cannot be {given}: choose from {least} to {most}, the size of the cache"
        )));
    }
    Ok(QueryMemoryOptions {
        limit_bytes,
        share_of_cache: bytes.is_none().then_some(QUERY_MEMORY_SHARE),
        limit_bytes_max: most,
        scratch_folder: Some(folder.join(SCRATCH_FOLDER)),
        scratch_files: match options.encryption {
            None => ScratchFiles::Plain,
            Some(_) => ScratchFiles::Encrypted,
        },
    })
}

/// The error of an option, by whose kind a caller knows that another try with it fails, too.
fn wrong_setting(message: String) -> OpenError {
    StorageError::new(ErrorKind::InvalidInput, message).into()
}

/// Refuses a key for an engine that would not encrypt with it.
pub(crate) fn refuse_key(engine: EngineName, options: &EngineOptions) -> Result<(), OpenError> {
    if options.encryption.is_none() || engine == EngineName::Betree {
        return Ok(());
    }
    Err(wrong_setting(format!(
        "the engine '{}' does not encrypt its files: choose the engine betree, or an encrypted device, and leave the \
         encryption options out",
        engine.as_str()
    )))
}

/// Refuses options that the engine does not know, before anything is done that goes without them.
pub(crate) fn check_options(engine: EngineName, options: &EngineOptions) -> Result<(), OpenError> {
    match engine {
        EngineName::Betree => drop(pando_betree::Options::default().with_entries(&options.named)?),
        #[cfg(feature = "engine-rocksdb")]
        EngineName::Rocksdb => {
            drop(pando_rocksdb::RocksdbOptions::default().with_entries(&options.named)?);
        }
        #[cfg(feature = "engine-wiredtiger")]
        EngineName::WiredTiger => {
            drop(pando_wiredtiger::WiredTigerOptions::default().with_entries(&options.named)?);
        }
        // They are opened, and look themselves.
        _ => {}
    }
    Ok(())
}

/// Opens an engine. `folder` is absolute.
pub(crate) fn open_engine(
    engine: EngineName,
    folder: &Path,
    options: &EngineOptions,
    environment: &Environment,
) -> Result<SharedEngine, OpenError> {
    inspect(environment, engine, folder, MissingStore::Create)?;
    refuse_key(engine, options)?;
    match engine {
        EngineName::Memory => {
            let options = pando_memory::MemoryOptions::default().with_entries(&options.named)?;
            Ok(Arc::new(pando_memory::MemoryEngine::with_options(environment, options)))
        }
        EngineName::Betree => {
            let mut betree = pando_betree::Options::default();
            betree.cache_bytes = options.cache_bytes;
            betree.encryption = options.encryption.clone();
            let betree = betree.with_entries(&options.named).map_err(StorageError::from)?;
            Ok(pando_betree::Betree::open(environment, folder, betree)?)
        }
        #[cfg(feature = "engine-lmdb")]
        EngineName::Lmdb => {
            // LMDB reads through the kernel's cache, so that the size of a cache of its own has no meaning.
            let options = pando_lmdb::LmdbOptions::default().with_entries(&options.named)?;
            Ok(Arc::new(pando_lmdb::LmdbEngine::open(environment, folder, options)?))
        }
        #[cfg(feature = "engine-rocksdb")]
        EngineName::Rocksdb => {
            let mut rocksdb = pando_rocksdb::RocksdbOptions::default();
            rocksdb.cache_bytes = options.cache_bytes;
            let rocksdb = rocksdb.with_entries(&options.named)?;
            Ok(Arc::new(pando_rocksdb::RocksdbEngine::open(environment, folder, rocksdb)?))
        }
        #[cfg(feature = "engine-wiredtiger")]
        EngineName::WiredTiger => {
            let mut wiredtiger = pando_wiredtiger::WiredTigerOptions::default();
            wiredtiger.cache_bytes = options.cache_bytes;
            let wiredtiger = wiredtiger.with_entries(&options.named)?;
            Ok(Arc::new(pando_wiredtiger::WiredTigerEngine::open(environment, folder, wiredtiger)?))
        }
        #[cfg(feature = "engine-tikv")]
        EngineName::Tikv => {
            // The cache is in the cluster's nodes.
            let options_of_folder = pando_tikv::TikvOptions::of_folder(environment, folder)?;
            let options = options_of_folder.with_entries(&options.named)?;
            Ok(Arc::new(pando_tikv::TikvEngine::open(environment, folder, options)?))
        }
    }
}
