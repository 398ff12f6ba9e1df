//! Checkpoints of a server of this protocol, by what SHOW GLOBAL STATUS says, and a checkpoint that is asked
//! for.
//!
//! | server | checkpoints | behind | background |
//! |---|---|---|---|
//! | InnoDB | none to count: it writes on and on | age of the checkpoint: log that only the log has | pages written |
//! | MyRocks | none: it flushes and compacts | not counted | bytes flushed and compacted |

use crate::driver::of_sql;
use crate::engine::SqlEngine;
use crate::server::SqlServer;
use mysql::Conn;
use mysql::prelude::Queryable;
use pando_bench::error::BenchError;
use pando_bench::why::checkpoints::{Teller, Told, cannot_be_forced};
use std::time::{Duration, Instant};

/// Asks by SHOW GLOBAL STATUS.
pub struct SqlTeller {
    connection: Conn,
    engine: SqlEngine,
}

impl SqlTeller {
    /// Of several servers the first one is asked.
    pub fn open(server: &SqlServer) -> Result<SqlTeller, BenchError> {
        Ok(SqlTeller { connection: server.connect()?, engine: server.engine() })
    }
}

impl Teller for SqlTeller {
    fn ask(&mut self) -> Result<Told, BenchError> {
        let names: Vec<String> = names(self.engine).iter().map(|name| format!("'{name}'")).collect();
        if names.is_empty() {
            return Ok(Told::default());
        }
        let query = format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", names.join(", "));
        let rows: Vec<(String, String)> = self.connection.query(query).map_err(of_sql)?;
        Ok(of_global_status(&rows))
    }
}

/// Has the first server write a checkpoint; gives how long it took.
pub fn force(server: &SqlServer) -> Result<Duration, BenchError> {
    let Some(statement) = server.engine().checkpoint_statement() else {
        let cause = format!("the engine {} has no statement for it", server.engine().name());
        return Err(cannot_be_forced(cause));
    };
    let began = Instant::now();
    match server.connect()?.query_drop(statement) {
        Ok(()) => Ok(began.elapsed()),
        Err(mysql::Error::MySqlError(error)) => {
            Err(cannot_be_forced(format!("`{statement}` is refused: {}", error.message)))
        }
        Err(error) => Err(of_sql(error)),
    }
}

/// The variables of an engine that are looked at. Those of another engine in the same server say nothing of
/// it.
fn names(engine: SqlEngine) -> &'static [&'static str] {
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

fn of_global_status(rows: &[(String, String)]) -> Told {
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
