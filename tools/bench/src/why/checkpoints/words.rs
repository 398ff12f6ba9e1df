//! How each server names its checkpoints, what it is behind, and what it writes in the background.
//!
//! | server | checkpoints | behind | background |
//! |---|---|---|---|
//! | MongoDB, WiredTiger | counted, with their time | dirty bytes in the cache | bytes written from the cache |
//! | Pando, `betree` | counted, with their time | bytes in buffers that are to be merged | bytes written to the data file |
//! | InnoDB | none to count: it writes on and on | age of the checkpoint: log that only the log has | pages written |
//! | MyRocks | none: it flushes and compacts | nothing that it says | bytes flushed and compacted |

use super::{Counted, Told};
#[cfg(feature = "mysql")]
use crate::sql::SqlEngine;
use pando_document::{Document, Value};

/// The parts of serverStatus that are looked at.
pub const PARTS: [&str; 2] = ["wiredTiger", "pando"];

/// The variables of an engine that are looked at: those of another one in the same server say nothing of it.
#[cfg(feature = "mysql")]
pub fn sql_names(engine: SqlEngine) -> &'static [&'static str] {
    match engine {
        // The first of MariaDB, the next two of MySQL 8.
        SqlEngine::InnoDb => &[
            "Innodb_checkpoint_age",
            "Innodb_redo_log_current_lsn",
            "Innodb_redo_log_checkpoint_lsn",
            "Innodb_pages_written",
            "Innodb_buffer_pool_pages_flushed",
            "Innodb_page_size",
        ],
        SqlEngine::RocksDb => &["Rocksdb_flush_write_bytes", "Rocksdb_compact_write_bytes"],
        SqlEngine::Ndb | SqlEngine::MyIsam => &[],
    }
}

/// What a serverStatus says.
pub fn of_server_status(status: &Document) -> Told {
    let at = |path: &[&str]| number(status, path);
    let engine = |name: &str| at(&["pando", "engine", name]);
    if let Some(over) = engine("checkpoints.count") {
        let seconds = engine("checkpoints.nanos").unwrap_or(0.0) / 1e9;
        return Told {
            checkpoints: Some(Counted { over: over as u64, seconds, is_running: false }),
            behind: engine("buffers.bytes").map(|bytes| bytes as u64),
            background: engine("data.write_bytes").map(|bytes| bytes as u64),
        };
    }
    // From version 8 on, checkpoints have a part of their own.
    let older = |name: &str| at(&["wiredTiger", "transaction", &format!("transaction checkpoint{name}")]);
    let newer = |name: &str| at(&["wiredTiger", "checkpoint", name]);
    let over = older("s").or_else(|| newer("total succeed number of checkpoints"));
    let milliseconds = older(" total time (msecs)").or_else(|| newer("total time (msecs)"));
    let running = older(" currently running").or_else(|| newer("progress state"));
    let checkpoints = over.map(|over| Counted {
        over: over as u64,
        seconds: milliseconds.unwrap_or(0.0) / 1e3,
        is_running: running.is_some_and(|state| state != 0.0),
    });
    let of_cache = |name: &str| at(&["wiredTiger", "cache", name]).map(|bytes| bytes as u64);
    Told {
        checkpoints,
        behind: of_cache("tracked dirty bytes in the cache"),
        background: of_cache("bytes written from cache"),
    }
}

fn number(document: &Document, path: &[&str]) -> Option<f64> {
    let (name, rest) = path.split_first()?;
    match document.get(name)? {
        Value::Document(inner) => number(inner, rest),
        Value::Double(number) if rest.is_empty() => Some(*number),
        value if rest.is_empty() => Some(value.as_i64_exact()? as f64),
        _ => None,
    }
}

/// What the rows of a SHOW GLOBAL STATUS say.
#[cfg(feature = "mysql")]
pub fn of_global_status(rows: &[(String, String)]) -> Told {
    let value = |name: &str| {
        let row = rows.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        row.and_then(|(_, value)| value.parse::<u64>().ok())
    };
    let lsn = value("Innodb_redo_log_current_lsn").zip(value("Innodb_redo_log_checkpoint_lsn"));
    let age = value("Innodb_checkpoint_age").or(lsn.map(|(now, then)| now.saturating_sub(then)));
    let pages = value("Innodb_pages_written").or_else(|| value("Innodb_buffer_pool_pages_flushed"));
    let of_innodb = pages.zip(value("Innodb_page_size")).map(|(pages, bytes)| pages.saturating_mul(bytes));
    let of_rocksdb = [value("Rocksdb_flush_write_bytes"), value("Rocksdb_compact_write_bytes")];
    let parts: Vec<u64> = [of_innodb].into_iter().chain(of_rocksdb).flatten().collect();
    let background = (!parts.is_empty()).then(|| parts.iter().sum());
    Told { checkpoints: None, behind: age, background }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_document::doc;

    #[test]
    fn both_forms_of_mongodb_and_pandos_are_understood() {
        let older = doc! {
            "transaction checkpoints": 7, "transaction checkpoint total time (msecs)": 1500,
            "transaction checkpoint currently running": 1,
        };
        let cache = doc! { "tracked dirty bytes in the cache": 4096_i64, "bytes written from cache": 9.0 };
        let told = of_server_status(&doc! { "wiredTiger": { "transaction": older, "cache": cache.clone() } });
        let counted = Counted { over: 7, seconds: 1.5, is_running: true };
        assert_eq!(told, Told { checkpoints: Some(counted), behind: Some(4096), background: Some(9) });
        let newer = doc! {
            "total succeed number of checkpoints": 7_i64, "total time (msecs)": 1500_i64, "progress state": 0,
        };
        let told = of_server_status(
            &doc! { "wiredTiger": { "transaction": {}, "checkpoint": newer, "cache": cache } },
        );
        assert_eq!(told.checkpoints, Some(Counted { is_running: false, ..counted }));
        let engine = doc! {
            "checkpoints.count": 3_i64, "checkpoints.nanos": 250_000_000_i64, "buffers.bytes": 5_i64, "data.write_bytes": 6_i64,
        };
        let told = of_server_status(&doc! { "pando": { "engine": engine } });
        let counted = Counted { over: 3, seconds: 0.25, is_running: false };
        assert_eq!(told, Told { checkpoints: Some(counted), behind: Some(5), background: Some(6) });
    }

    #[test]
    fn another_status_says_nothing() {
        for status in [doc! {}, doc! { "wiredTiger": 5, "pando": { "engine": "none" } }, doc! { "pando": {} }]
        {
            assert_eq!(of_server_status(&status), Told::default(), "{status:?}");
        }
    }

    #[cfg(feature = "mysql")]
    #[test]
    fn the_age_of_innodbs_checkpoint_and_what_rocksdb_writes_are_found() {
        let rows = |rows: &[(&str, &str)]| -> Vec<(String, String)> {
            rows.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let of_mariadb = rows(&[
            ("Innodb_checkpoint_age", "77"),
            ("Innodb_pages_written", "2"),
            ("Innodb_page_size", "16384"),
        ]);
        let told = of_global_status(&of_mariadb);
        assert_eq!((told.behind, told.background, told.checkpoints), (Some(77), Some(32_768), None));
        let of_mysql =
            rows(&[("Innodb_redo_log_current_lsn", "100"), ("Innodb_redo_log_checkpoint_lsn", "60")]);
        assert_eq!(of_global_status(&of_mysql).behind, Some(40));
        let of_rocksdb = rows(&[("rocksdb_flush_write_bytes", "5"), ("Rocksdb_compact_write_bytes", "6")]);
        assert_eq!(of_global_status(&of_rocksdb).background, Some(11));
        assert_eq!(of_global_status(&rows(&[("Uptime", "9")])), Told::default());
    }
}
