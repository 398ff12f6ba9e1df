//! The settings of the profiler. Threshold and sample rate are those of the whole store, as in MongoDB; level
//! and filter are those of a database. They hold until the store is closed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use pando_document::{RawDocument, RawDocumentBuf};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use parking_lot::RwLock;

use crate::CommandError;

/// The default threshold, in milliseconds.
const SLOW_MS: i64 = 100;

/// A filter over entries.
#[derive(Debug)]
pub(crate) struct FilterSettings {
    /// As the client wrote it.
    pub document: RawDocumentBuf,
    pub filter: Filter,
}

impl FilterSettings {
    pub fn parse(document: &RawDocument, now_ms: i64) -> Result<FilterSettings, CommandError> {
        let filter = Filter::parse(document, &ParseScope::at(now_ms))?;
        Ok(FilterSettings { document: document.to_owned(), filter })
    }
}

/// The settings of one database.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatabaseSettings {
    /// 0, 1 or 2.
    pub level: i32,
    pub filter: Option<Arc<FilterSettings>>,
}

impl DatabaseSettings {
    fn is_default(&self) -> bool {
        self.level == 0 && self.filter.is_none()
    }
}

/// All settings.
#[derive(Debug)]
pub(crate) struct ProfilerSettings {
    slow_ms: AtomicI64,
    /// The bits of a double from 0 to 1.
    sample_rate: AtomicU64,
    /// Databases whose settings are not the default.
    profiled: AtomicUsize,
    databases: RwLock<BTreeMap<String, DatabaseSettings>>,
}

impl Default for ProfilerSettings {
    fn default() -> ProfilerSettings {
        ProfilerSettings {
            slow_ms: AtomicI64::new(SLOW_MS),
            sample_rate: AtomicU64::new(1.0_f64.to_bits()),
            profiled: AtomicUsize::new(0),
            databases: RwLock::default(),
        }
    }
}

impl ProfilerSettings {
    pub fn slow_ms(&self) -> i64 {
        self.slow_ms.load(Ordering::Relaxed)
    }

    pub fn set_slow_ms(&self, slow_ms: i64) {
        self.slow_ms.store(slow_ms, Ordering::Relaxed);
    }

    pub fn sample_rate(&self) -> f64 {
        f64::from_bits(self.sample_rate.load(Ordering::Relaxed))
    }

    pub fn set_sample_rate(&self, rate: f64) {
        self.sample_rate.store(rate.to_bits(), Ordering::Relaxed);
    }

    /// Whether a request that took this long is slow.
    #[inline]
    pub fn is_slow(&self, took: Duration) -> bool {
        i64::try_from(took.as_millis()).unwrap_or(i64::MAX) > self.slow_ms()
    }

    /// Whether some database has settings other than the default.
    #[inline]
    pub fn has_profiled(&self) -> bool {
        self.profiled.load(Ordering::Relaxed) > 0
    }

    /// Whether requests on a database may be recorded.
    #[inline]
    pub fn is_profiled(&self, database: &str) -> bool {
        self.has_profiled() && self.of(database).level > 0
    }

    /// The settings of a database.
    pub fn of(&self, database: &str) -> DatabaseSettings {
        self.databases.read().get(database).cloned().unwrap_or_default()
    }

    /// Changes the settings of a database. Gives the earlier ones.
    pub fn change(&self, database: &str, change: impl FnOnce(&mut DatabaseSettings)) -> DatabaseSettings {
        let mut databases = self.databases.write();
        let before = databases.get(database).cloned().unwrap_or_default();
        let mut after = before.clone();
        change(&mut after);
        if after.is_default() {
            databases.remove(database);
        } else {
            databases.insert(database.to_owned(), after);
        }
        self.profiled.store(databases.len(), Ordering::Relaxed);
        before
    }
}
