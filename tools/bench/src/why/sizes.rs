//! The sizes of data, indexes and log, apart: by dbStats of the workload's databases where the server has it,
//! the log by its folder. Log and folder are those of the whole server, with all that others have put into
//! it.

use crate::client::Session;
use crate::target::Target;
use pando_document::{Document, Value, doc};
use pando_measuring::counters::FolderSize;
use std::path::Path;

/// Databases that are the server's own.
const ITS_OWN: [&str; 3] = ["admin", "local", "config"];
/// Folders and beginnings of files that hold a log: mongod's journal, Pando's log, InnoDB's redo log, MySQL's
/// binary log, RocksDB's.
const LOGS: [&str; 9] =
    ["journal", "wal", "log", "#innodb_redo", "ib_logfile", "binlog.", "mysql-bin.", "aria_log", ".rocksdb"];

/// Sizes in bytes; nothing where the server does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sizes {
    /// Documents as they are.
    pub documents: Option<u64>,
    /// Their size on the device.
    pub data: Option<u64>,
    /// The size of indexes on the device.
    pub indexes: Option<u64>,
    /// The size of the log on the device.
    pub log: Option<u64>,
    /// The size of the whole data folder on the device.
    pub folder: Option<u64>,
}

impl Sizes {
    /// Asks the server about these databases, or about all if none is named, and looks at its folder.
    pub fn of(target: &Target, databases: &[String], folder: Option<&Path>) -> Sizes {
        let Sizes { documents, data, indexes, .. } = asked(target, databases).unwrap_or_default();
        Sizes { documents, data, indexes, ..Sizes::of_folder(folder) }
    }

    /// The part that is known without asking the server.
    pub fn of_folder(folder: Option<&Path>) -> Sizes {
        Sizes {
            log: folder.and_then(log_bytes),
            folder: folder.map(|folder| FolderSize::of(folder).allocated_bytes),
            ..Sizes::default()
        }
    }

    /// In one line; nothing if nothing is known.
    pub fn line(&self) -> Option<String> {
        let parts = [
            ("documents", self.documents),
            ("data", self.data),
            ("indexes", self.indexes),
            ("log", self.log),
            ("whole folder", self.folder),
        ];
        let known: Vec<String> = parts
            .into_iter()
            .filter_map(|(name, bytes)| Some(format!("{name} {:.1} MB", bytes? as f64 / 1e6)))
            .collect();
        (!known.is_empty()).then(|| known.join(", "))
    }
}

fn asked(target: &Target, databases: &[String]) -> Option<Sizes> {
    let mut session = Session::open(target.address()).ok()?;
    let databases = if databases.is_empty() { all_databases(&mut session)? } else { databases.to_vec() };
    let mut sizes = Sizes::default();
    for name in databases {
        let stats = session.command(&name, doc! { "dbStats": 1 }).ok()?;
        let add = |sum: &mut Option<u64>, name: &str| {
            if let Some(bytes) = bytes(&stats, name) {
                *sum = Some(sum.unwrap_or(0) + bytes);
            }
        };
        add(&mut sizes.documents, "dataSize");
        add(&mut sizes.data, "storageSize");
        add(&mut sizes.indexes, "indexSize");
    }
    Some(sizes)
}

fn all_databases(session: &mut Session) -> Option<Vec<String>> {
    let reply = session.command("admin", doc! { "listDatabases": 1, "nameOnly": true }).ok()?;
    let name = |database: &Value| Some(database.as_document()?.get("name")?.as_str()?.to_owned());
    let names = reply.get("databases")?.as_array()?.iter().filter_map(name);
    Some(names.filter(|name| !ITS_OWN.contains(&name.as_str())).collect())
}

fn bytes(stats: &Document, name: &str) -> Option<u64> {
    match stats.get(name)? {
        Value::Double(bytes) if *bytes >= 0.0 => Some(*bytes as u64),
        value => u64::try_from(value.as_i64_exact()?).ok(),
    }
}

/// The size of the folder's log; nothing if no known log is there.
fn log_bytes(folder: &Path) -> Option<u64> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let logs = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        LOGS.iter().any(|log| {
            name == *log || (log.ends_with(['.', 'e', 'g']) && name.starts_with(log) && *log != "log")
        })
    });
    let sizes: Vec<u64> = logs.map(|entry| FolderSize::of_entry(&entry.path())).collect();
    (!sizes.is_empty()).then(|| sizes.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_several_servers_are_found_in_their_folders() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(log_bytes(folder.path()), None);
        std::fs::create_dir(folder.path().join("journal")).expect("it is empty");
        std::fs::write(folder.path().join("journal/one"), [1; 8192]).expect("writable");
        std::fs::write(folder.path().join("ib_logfile0"), [1; 8192]).expect("writable");
        std::fs::create_dir(folder.path().join("wal")).expect("it is empty");
        std::fs::write(folder.path().join("wal/00000005.wal"), [1; 8192]).expect("writable");
        std::fs::write(folder.path().join("login.txt"), [1; 8192]).expect("writable");
        let found = log_bytes(folder.path()).expect("three logs");
        assert!((24_576..60_000).contains(&found), "{found}");
    }
}
