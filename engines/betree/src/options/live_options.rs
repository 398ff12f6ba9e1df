//! The settings that can be changed while the store is open, and the options as they are now.
//!
//! Everything reads the options in passing, on paths that take no lock, and they change a few times in the life of a process. So
//! each version of them stays in memory until the store is closed, and a change is one store to an index. Going back to what
//! was set before takes no new place; a thousand different versions are more than anybody needs.

use pando_environment::sync::OnceLock;
use pando_environment::sync::atomic::{AtomicUsize, Ordering};
use std::ops::Deref;

use pando_environment::Access;

use crate::core::Core;
use crate::error::BetreeError;
use crate::options::{DirectIo, Options};
use crate::space::{BlockStore, SpaceError};

/// Versions of the options that there is room for.
const VERSIONS_MAX: usize = 1_024;

/// What can be changed while the store is open.
const CHANGEABLE: [&str; 7] = [
    "bufferBudget",
    "cache",
    "checkpointPeriod",
    "directIo",
    "logBudget",
    "transactionLimit",
    "transactionMemory",
];

/// The options as they are now. See the module's head.
pub(crate) struct LiveOptions {
    versions: Vec<OnceLock<Options>>,
    current: AtomicUsize,
}

impl LiveOptions {
    pub(crate) fn new(options: Options) -> LiveOptions {
        let mut versions = vec![OnceLock::from(options)];
        versions.resize_with(VERSIONS_MAX, OnceLock::new);
        LiveOptions { versions, current: AtomicUsize::new(0) }
    }

    /// Puts other options into effect. Callers take turns.
    fn replace(&self, options: Options) -> Result<(), BetreeError> {
        for (at, version) in self.versions.iter().enumerate() {
            if *version.get_or_init(|| options.clone()) == options {
                self.current.store(at, Ordering::Release);
                return Ok(());
            }
        }
        Err(BetreeError::TooManyChanges { limit: VERSIONS_MAX })
    }
}

impl Deref for LiveOptions {
    type Target = Options;

    fn deref(&self) -> &Options {
        let at = self.current.load(Ordering::Acquire);
        self.versions[at].get().expect("the current version is there before its index")
    }
}

impl Core {
    /// The settings that can be changed, with what they are.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let options = &*self.options;
        let value = |name| match name {
            "bufferBudget" => match options.buffer_bytes {
                0 => "auto".to_owned(),
                bytes => bytes.to_string(),
            },
            "cache" => options.cache_bytes.to_string(),
            "checkpointPeriod" => options.checkpoint_period.as_secs().to_string(),
            "directIo" => match options.direct_io {
                DirectIo::Auto => "auto".to_owned(),
                DirectIo::On => "on".to_owned(),
                DirectIo::Off => "off".to_owned(),
            },
            "transactionLimit" => match options.transaction_bytes {
                0 => "auto".to_owned(),
                bytes => bytes.to_string(),
            },
            "transactionMemory" => match options.transaction_memory_bytes {
                0 => "auto".to_owned(),
                bytes => bytes.to_string(),
            },
            _ => options.log_budget_bytes.to_string(),
        };
        CHANGEABLE.iter().map(|name| (*name, value(*name))).collect()
    }

    /// Changes settings, all or none; what follows from it, such as a smaller cache, has happened when this returns.
    pub(crate) fn change_settings(&self, changes: &[(&str, &str)]) -> Result<(), BetreeError> {
        self.check_open()?;
        if let Some((name, _)) = changes.iter().find(|(name, _)| !CHANGEABLE.contains(name)) {
            let known = "bufferBudget, cache, checkpointPeriod (seconds), directIo (auto, on, off), logBudget, transactionLimit, transactionMemory";
            return Err(BetreeError::UnknownOption { name: (*name).to_owned(), known });
        }
        let _turn = self.changing_settings.lock();
        let entries: Vec<_> =
            changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let before = Options::clone(&self.options);
        let wanted = before.clone().with_entries(&entries)?;
        self.options.replace(wanted.clone())?;
        if wanted.direct_io != before.direct_io
            && let Err(refused) = change_access(self.blocks.store(), wanted.direct_io)
        {
            self.options.replace(before).expect("what was set before has its place");
            return Err(refused);
        }
        self.spill.set_budget(self.options.transaction_memory());
        if changes.iter().any(|(name, _)| matches!(*name, "cache" | "bufferBudget")) {
            self.blocks.cache().change_limit(self.options.cache_bytes);
            self.share_out_memory();
            self.wake_mergers();
        }
        self.wake_checkpointer();
        Ok(())
    }
}

/// Has the data file read and written as is wanted; refuses buffered access where direct access was demanded.
pub(crate) fn change_access(store: &BlockStore, wanted: DirectIo) -> Result<(), BetreeError> {
    let access = match wanted {
        DirectIo::Auto | DirectIo::On => Access::Direct,
        DirectIo::Off => Access::Buffered,
    };
    let granted = store.shared_file().change_access(access).map_err(SpaceError::from)?;
    if wanted == DirectIo::On && granted != Access::Direct {
        let expected = "auto or off: the file system of the data folder has no direct I/O";
        return Err(BetreeError::BadOption { name: "directIo", value: "on".to_owned(), expected });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::options::live_options::*;

    #[test]
    fn going_back_to_earlier_options_takes_no_new_place() {
        let live = LiveOptions::new(Options::default());
        for round in 0..5_000_u64 {
            let cache_bytes = (round % 7 + 1) << 20;
            live.replace(Options { cache_bytes, ..Options::default() }).unwrap();
            assert_eq!(live.cache_bytes, cache_bytes);
        }
        for round in 0..VERSIONS_MAX as u64 - 7 {
            live.replace(Options { cache_bytes: (round + 100) << 20, ..Options::default() }).unwrap();
        }
        let one_more = Options { cache_bytes: 5_000 << 20, ..Options::default() };
        assert!(matches!(live.replace(one_more), Err(BetreeError::TooManyChanges { .. })));
        live.replace(Options { cache_bytes: 100 << 20, ..Options::default() }).unwrap();
        assert_eq!(live.cache_bytes, 100 << 20);
    }
}
