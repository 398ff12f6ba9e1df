//! Live options: the options of an open store, which may change while it is open.
//!
//! The options are read on paths that take no lock, and change a few times in the life of a process. So every
//! version of them stays in memory until the store is closed, and a change is one store to an index. Options
//! that equal an earlier version reuse its slot. A thousand different versions are more than anybody needs.

use pando_environment::sync::atomic::{AtomicUsize, Ordering};
use pando_environment::sync::{Mutex, MutexGuard, OnceLock};
use std::ops::Deref;

use crate::error::BetreeError;
use crate::options::Options;

/// The most versions of the options.
const VERSIONS_MAX: usize = 1_024;

/// The options as they are now. See the module's head.
pub(crate) struct LiveOptions {
    versions: Vec<OnceLock<Options>>,
    current: AtomicUsize,
    /// Held while options are changed.
    changing: Mutex<()>,
}

impl LiveOptions {
    pub(crate) fn new(options: Options) -> LiveOptions {
        let mut versions = vec![OnceLock::from(options)];
        versions.resize_with(VERSIONS_MAX, OnceLock::new);
        LiveOptions { versions, current: AtomicUsize::new(0), changing: Mutex::new(()) }
    }

    /// Blocks other changes until the guard is dropped.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.changing.lock()
    }

    /// Puts other options into effect. The caller has the [lock](LiveOptions::lock).
    pub(crate) fn replace(&self, options: Options) -> Result<(), BetreeError> {
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

#[cfg(test)]
mod tests {
    use crate::options::live_options::*;

    #[test]
    fn going_back_to_earlier_options_takes_no_new_slot() {
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
