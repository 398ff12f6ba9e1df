//! How a store is opened.

use crate::EngineName;

/// When a write returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DurabilityChoice {
    /// When it is on the device: it survives a power cut.
    #[default]
    Synced,
    /// When it is in the kernel: it survives the end of the process, and is on the device within 100 ms.
    Logged,
}

/// What an engine may use.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Bytes of memory for cached pages, write buffers included.
    pub cache_bytes: u64,
    /// Options of the engine by its own names, as text: `("logBudget", "2GB")`. Opening fails where the engine does not know one.
    pub named: Vec<(String, String)>,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions { cache_bytes: 256 * 1024 * 1024, named: Vec::new() }
    }
}

/// How a store is opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which engine keeps the data. A folder stays with the engine that made it.
    pub engine: EngineName,
    /// What the engine may use.
    pub engine_options: EngineOptions,
    /// When a write returns.
    pub durability: DurabilityChoice,
}
