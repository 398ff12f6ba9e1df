//! The settings of the profiler. Threshold and sample rate are those of the whole store, as in MongoDB; level
//! and filter are those of a database. They hold until the store is closed. A level of the start is that of
//! every database for which none was set since, except those of the server itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use pando_document::{RawDocument, RawDocumentBuf};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use parking_lot::RwLock;

use crate::CommandError;

/// The databases of the server itself.
const OF_SERVER: [&str; 3] = ["admin", "config", "local"];

/// The settings at the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfilerOptions {
    /// The time that a request may take before it is slow, in milliseconds.
    pub slow_ms: i64,
    /// The share of slow requests that are logged and recorded, from 0 to 1.
    pub sample_rate: f64,
    /// 0 records none, 1 the slow requests and 2 all of them.
    pub level: i32,
}

impl Default for ProfilerOptions {
    fn default() -> ProfilerOptions {
        ProfilerOptions { slow_ms: 100, sample_rate: 1.0, level: 0 }
    }
}

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
#[derive(Clone, Debug)]
pub(crate) struct DatabaseSettings {
    /// 0, 1 or 2.
    pub level: i32,
    pub filter: Option<Arc<FilterSettings>>,
}

/// All settings.
#[derive(Debug)]
pub(crate) struct ProfilerSettings {
    slow_ms: AtomicI64,
    /// The bits of a double from 0 to 1.
    sample_rate: AtomicU64,
    /// The level of databases that have no settings of their own.
    level: i32,
    /// Databases whose settings are not the default.
    profiled: AtomicUsize,
    databases: RwLock<BTreeMap<String, DatabaseSettings>>,
}

impl ProfilerSettings {
    /// The settings at the start.
    pub fn new(options: ProfilerOptions) -> ProfilerSettings {
        ProfilerSettings {
            slow_ms: AtomicI64::new(options.slow_ms),
            sample_rate: AtomicU64::new(options.sample_rate.to_bits()),
            level: options.level,
            profiled: AtomicUsize::new(0),
            databases: RwLock::default(),
        }
    }

    /// The settings of a database for which nothing was set.
    fn default_of(&self, database: &str) -> DatabaseSettings {
        let level = if OF_SERVER.contains(&database) { 0 } else { self.level };
        DatabaseSettings { level, filter: None }
    }

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

    /// Whether some database may be profiled, or has a filter.
    #[inline]
    pub fn has_profiled(&self) -> bool {
        self.level > 0 || self.profiled.load(Ordering::Relaxed) > 0
    }

    /// Whether requests on a database may be recorded.
    #[inline]
    pub fn is_profiled(&self, database: &str) -> bool {
        self.has_profiled() && self.of(database).level > 0
    }

    /// The settings of a database.
    pub fn of(&self, database: &str) -> DatabaseSettings {
        self.databases.read().get(database).cloned().unwrap_or_else(|| self.default_of(database))
    }

    /// Changes the settings of a database. Gives the earlier ones.
    pub fn change(&self, database: &str, change: impl FnOnce(&mut DatabaseSettings)) -> DatabaseSettings {
        let mut databases = self.databases.write();
        let default = self.default_of(database);
        let before = databases.get(database).cloned().unwrap_or_else(|| default.clone());
        let mut after = before.clone();
        change(&mut after);
        if after.level == default.level && after.filter.is_none() {
            databases.remove(database);
        } else {
            databases.insert(database.to_owned(), after);
        }
        self.profiled.store(databases.len(), Ordering::Relaxed);
        before
    }

    /// A database that was dropped has the settings of the start.
    pub fn forget(&self, database: &str) {
        let mut databases = self.databases.write();
        databases.remove(database);
        self.profiled.store(databases.len(), Ordering::Relaxed);
    }
}
