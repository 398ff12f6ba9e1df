//! The engines of this build, and the opening of each: the one file that names them, for server, library and
//! lab alike.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use pando_commands::{Commands, CommandsOptions, SharedEngine};
use pando_environment::Environment;

use crate::EngineOptions;

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
}

impl EngineName {
    /// All engines of this build.
    pub const ALL: &'static [EngineName] = &[
        EngineName::Betree,
        EngineName::Memory,
        #[cfg(feature = "engine-lmdb")]
        EngineName::Lmdb,
    ];

    /// The name as configuration spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            EngineName::Betree => "betree",
            EngineName::Memory => "memory",
            #[cfg(feature = "engine-lmdb")]
            EngineName::Lmdb => "lmdb",
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

type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// Opens an engine over a folder and the commands over the engine. Blocks while the engine recovers.
pub fn open_commands(
    engine: EngineName,
    folder: &Path,
    options: &EngineOptions,
    environment: Environment,
    commands: CommandsOptions,
) -> Result<Commands, OpenError> {
    let engine = open_engine(engine, folder, options, &environment)?;
    Ok(Commands::open(engine, environment, commands)?)
}

pub(crate) fn open_engine(
    engine: EngineName,
    folder: &Path,
    options: &EngineOptions,
    environment: &Environment,
) -> Result<SharedEngine, OpenError> {
    if engine != EngineName::Betree
        && let Some((name, _)) = options.named.first()
    {
        return Err(format!("the engine '{}' has no option '{name}'", engine.as_str()).into());
    }
    match engine {
        EngineName::Memory => Ok(Arc::new(pando_memory::MemoryEngine::new(environment))),
        EngineName::Betree => {
            let mut betree = pando_betree::Options::default();
            betree.cache_bytes = options.cache_bytes;
            let betree = betree.with_entries(&options.named)?;
            Ok(pando_betree::Betree::open(environment, folder, betree)?)
        }
        #[cfg(feature = "engine-lmdb")]
        EngineName::Lmdb => {
            // LMDB reads through the kernel's cache, so that the size of a cache of its own has no meaning.
            let options = pando_lmdb::LmdbOptions::default();
            Ok(Arc::new(pando_lmdb::LmdbEngine::open(environment, folder, options)?))
        }
    }
}
