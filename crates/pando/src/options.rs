//! The options of a store.

use pando_commands::CACHE_BYTES_MIN;
use pando_encryption::Encryption;

use crate::{EngineName, Error, MissingStore};

/// The largest value of [`EngineOptions::cache_bytes`].
const CACHE_BYTES_MAX: u64 = 1 << 50;

/// The durability of a write when its call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DurabilityChoice {
    /// When it is on the device: it survives a power cut. A call waits a few milliseconds for that, so that
    /// one `insert_many` is much faster than many `insert_one`.
    #[default]
    Synced,
    /// When it is in the kernel: it survives the end of the process, and is on the device within 100 ms.
    Logged,
}

/// The resources of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Bytes of memory for cached pages, write buffers included; at least [`CACHE_BYTES_MIN`], at most 2^50,
    /// and 256 MiB by default.
    pub cache_bytes: u64,
    /// Options of the engine by its own names, as text. Opening fails where the engine does not know one, and
    /// for `cache`, which is [`cache_bytes`](Self::cache_bytes).
    /// `("logBudget", "8MB")` keeps the files of a small store small: while it is open, its log grows to 1
    /// GiB otherwise, and is cut at the end. `("growthSize", "64KB")` does the same for its data file, which
    /// begins with 4 MiB otherwise.
    pub named: Vec<(String, String)>,
    /// The keys of an encrypted store; `None` for a plain one. Only the engine betree encrypts its files.
    pub encryption: Option<Encryption>,
}

impl EngineOptions {
    /// Refuses what no engine can work with.
    pub(crate) fn check(&self) -> Result<(), Error> {
        // The limits of the cache and of the memory of queries go by that field.
        if self.named.iter().any(|(name, _)| name == "cache") {
            let message = "the cache has a field of its own: set cache_bytes, and leave the named option out";
            return Err(Error::InvalidArgument(message.to_owned()));
        }
        if self.cache_bytes < CACHE_BYTES_MIN {
            let (given, least) = (self.cache_bytes, CACHE_BYTES_MIN);
            let message =
                format!("a cache of {given} bytes is too small: cache_bytes is at least {least} (16 MiB)");
            return Err(Error::InvalidArgument(message));
        }
        if self.cache_bytes > CACHE_BYTES_MAX {
            let message = format!(
                "a cache of {} bytes is more than any machine has: cache_bytes is the memory that the store may take, at \
                 most {CACHE_BYTES_MAX} (1 PiB)",
                self.cache_bytes
            );
            return Err(Error::InvalidArgument(message));
        }
        Ok(())
    }
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions { cache_bytes: 256 * 1024 * 1024, named: Vec::new(), encryption: None }
    }
}

/// The options of a store.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which engine keeps the data. A folder stays with the engine that made it.
    pub engine: EngineName,
    /// The resources of the engine.
    pub engine_options: EngineOptions,
    /// The durability of a write when its call returns.
    pub durability: DurabilityChoice,
    /// Bytes of memory that all queries may hold together, from a megabyte to the cache. Beyond, they use
    /// scratch files in the folder. `None`: a quarter of the cache. The memory engine has no scratch files:
    /// beyond, its queries fail; with `None` they have no limit.
    pub query_memory_bytes: Option<u64>,
    /// The step for a folder without a store: by default one is made in a missing or empty folder.
    pub missing_store: MissingStore,
}
