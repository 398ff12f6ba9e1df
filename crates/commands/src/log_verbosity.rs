//! The verbosity of the log, for all of it and by component, as `setParameter` sets it and the log's filter
//! follows it.
//!
//! The components are MongoDB's, with those within them. A component without a level of its own has that of
//! the one around it; the outermost ones have the level of all.

use std::fmt;
use std::sync::OnceLock;

use pando_document::{Document, doc};
use parking_lot::Mutex;

/// The most verbose level.
pub(crate) const LEVEL_MAX: i32 = 5;

/// The level of a component that has none of its own.
const INHERITED: i32 = -1;

/// The components, each before those within it.
const COMPONENTS: &[&str] = &[
    "accessControl",
    "assert",
    "command",
    "control",
    "executor",
    "geo",
    "index",
    "network",
    "network.asio",
    "network.bridge",
    "network.connectionPool",
    "processHealth",
    "query",
    "queryStats",
    "replication",
    "replication.election",
    "replication.heartbeats",
    "replication.initialSync",
    "replication.rollback",
    "sharding",
    "sharding.rangeDeleter",
    "sharding.shardingCatalogRefresh",
    "sharding.migration",
    "sharding.reshard",
    "sharding.migrationPerf",
    "storage",
    "storage.recovery",
    "storage.journal",
    "storage.wt",
    "storage.wt.wtBackup",
    "storage.wt.wtCheckpoint",
    "storage.wt.wtCompact",
    "storage.wt.wtEviction",
    "storage.wt.wtHS",
    "storage.wt.wtRecovery",
    "storage.wt.wtRTS",
    "storage.wt.wtSalvage",
    "storage.wt.wtTiered",
    "storage.wt.wtTimestamp",
    "storage.wt.wtTransaction",
    "storage.wt.wtVerify",
    "storage.wt.wtWriteLog",
    "write",
    "ftdc",
    "tracking",
    "transaction",
    "tenantMigration",
    "test",
];

/// A component of the log, or all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogComponent {
    /// All of the log.
    Whole,
    /// The component at this place of the list.
    Part(usize),
}

impl LogComponent {
    /// The component of a name within this one.
    pub fn part(self, name: &str) -> Option<LogComponent> {
        let wanted = match self {
            LogComponent::Whole => name.to_owned(),
            LogComponent::Part(at) => format!("{}.{name}", COMPONENTS[at]),
        };
        let found = !name.contains('.');
        let at = COMPONENTS.iter().position(|path| found && *path == wanted)?;
        Some(LogComponent::Part(at))
    }

    /// Its name, with those around it.
    pub fn path(self) -> &'static str {
        match self {
            LogComponent::Whole => "default",
            LogComponent::Part(at) => COMPONENTS[at],
        }
    }
}

#[derive(Clone, Debug)]
struct Levels {
    whole: i32,
    parts: Vec<i32>,
}

/// Is told of each change.
type Listener = Box<dyn Fn(&LogVerbosity) + Send + Sync>;

/// See the module's head.
pub struct LogVerbosity {
    levels: Mutex<Levels>,
    listener: OnceLock<Listener>,
}

impl Default for LogVerbosity {
    fn default() -> LogVerbosity {
        LogVerbosity::new(0)
    }
}

impl fmt::Debug for LogVerbosity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.levels.lock().fmt(f)
    }
}

impl LogVerbosity {
    /// The same level for all components.
    pub fn new(level: i32) -> LogVerbosity {
        let levels = Levels { whole: level, parts: vec![INHERITED; COMPONENTS.len()] };
        LogVerbosity { levels: Mutex::new(levels), listener: OnceLock::new() }
    }

    /// Has each later change be told. The first listener stays.
    pub fn listen(&self, listener: impl Fn(&LogVerbosity) + Send + Sync + 'static) {
        let _is_the_first = self.listener.set(Box::new(listener));
    }

    /// The level of all components that have none of their own, from 0 to 5.
    pub fn level(&self) -> i32 {
        self.levels.lock().whole
    }

    /// The level that a component, or the one around it, has of its own.
    pub fn own_level_of(&self, path: &str) -> Option<i32> {
        let levels = self.levels.lock();
        let mut path = path;
        loop {
            let at = COMPONENTS.iter().position(|component| *component == path)?;
            if levels.parts[at] != INHERITED {
                return Some(levels.parts[at]);
            }
            path = path.rsplit_once('.')?.0;
        }
    }

    /// Sets levels. One below 0 is that of the component around, and 0 for all of the log.
    pub(crate) fn set(&self, changes: &[(LogComponent, i32)]) {
        {
            let mut levels = self.levels.lock();
            for (component, level) in changes {
                match component {
                    LogComponent::Whole => levels.whole = (*level).clamp(0, LEVEL_MAX),
                    LogComponent::Part(at) => levels.parts[*at] = (*level).clamp(INHERITED, LEVEL_MAX),
                }
            }
        }
        if let Some(listener) = self.listener.get() {
            listener(self);
        }
    }

    /// All levels, as `logComponentVerbosity` shows them.
    pub(crate) fn document(&self) -> Document {
        let levels = self.levels.lock();
        let mut shown = doc! { "verbosity": levels.whole };
        append_parts("", &levels.parts, &mut shown);
        shown
    }
}

/// Appends the components directly within that of this prefix, and those within them.
fn append_parts(prefix: &str, levels: &[i32], into: &mut Document) {
    for (path, level) in COMPONENTS.iter().zip(levels) {
        let Some(name) = path.strip_prefix(prefix).filter(|name| !name.contains('.')) else { continue };
        let mut inner = doc! { "verbosity": *level };
        append_parts(&format!("{path}."), levels, &mut inner);
        into.push(name, inner);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI32, Ordering};

    use super::*;

    #[test]
    fn a_component_has_the_level_of_the_one_around_it_unless_it_has_its_own() {
        let verbosity = LogVerbosity::new(0);
        let storage = LogComponent::Whole.part("storage").unwrap();
        let wt = storage.part("wt").unwrap();
        assert_eq!(wt.part("wtHS").unwrap().path(), "storage.wt.wtHS");
        assert!(LogComponent::Whole.part("storage.wt").is_none() && storage.part("query").is_none());
        let told = Arc::new(AtomicI32::new(-7));
        let heard = Arc::clone(&told);
        verbosity.listen(move |verbosity| {
            heard.store(verbosity.own_level_of("storage.wt.wtHS").unwrap_or(-1), Ordering::SeqCst);
        });
        verbosity.set(&[(storage, 2), (LogComponent::Whole, 9)]);
        assert_eq!((told.load(Ordering::SeqCst), verbosity.level()), (2, LEVEL_MAX));
        verbosity.set(&[(wt, 7), (LogComponent::Whole, -3)]);
        assert_eq!((told.load(Ordering::SeqCst), verbosity.level()), (LEVEL_MAX, 0));
        verbosity.set(&[(wt, -3), (storage, -1)]);
        assert_eq!((told.load(Ordering::SeqCst), verbosity.own_level_of("query")), (-1, None));
    }

    #[test]
    fn the_levels_are_shown_as_a_document_of_components_within_components() {
        let verbosity = LogVerbosity::new(1);
        verbosity.set(&[(LogComponent::Whole.part("query").unwrap(), 2)]);
        let shown = verbosity.document();
        assert_eq!(shown.get("verbosity"), Some(&1.into()));
        assert_eq!(shown.get("query"), Some(&doc! { "verbosity": 2 }.into()));
        let asio = shown.get("network").and_then(|network| network.as_document()?.get("asio"));
        assert_eq!(asio, Some(&doc! { "verbosity": -1 }.into()));
        let names: Vec<_> = shown.iter().map(|(name, _)| name).take(4).collect();
        assert_eq!(names, ["verbosity", "accessControl", "assert", "command"]);
    }
}
