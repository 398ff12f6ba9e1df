//! The storage engine of the tables, whether the server has it, and the settings that the posts ran it with.
//!
//! A setting is of the server. The tool changes those that may be changed while it runs, and only when it is
//! asked to (`--mysql-settings posts`); what needs another start of the server is named, with the option to
//! start it with.

use crate::driver::of_sql;
use mysql::Conn;
use mysql::prelude::Queryable;
use pando_bench::error::BenchError;

/// A storage engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlEngine {
    /// InnoDB.
    InnoDb,
    /// MyRocks.
    RocksDb,
    /// NDB, the storage of MySQL Cluster.
    Ndb,
    /// MyISAM, which has no transactions.
    MyIsam,
}

/// A variable of the server that figures hang on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What a post ran it with.
    pub of_post: Option<&'static str>,
}

const fn setting(name: &'static str, of_post: Option<&'static str>) -> Setting {
    Setting { name, of_post }
}

/// What the LinkBench post ran InnoDB with (log flushed at each commit, no sync of the binary log, no double
/// cache), and what else figures hang on.
const INNODB: [Setting; 8] = [
    setting("innodb_buffer_pool_size", None),
    setting("innodb_page_size", None),
    setting("innodb_change_buffering", None),
    setting("innodb_log_file_size", None),
    setting("innodb_flush_log_at_trx_commit", Some("1")),
    setting("innodb_flush_method", Some("O_DIRECT")),
    setting("innodb_io_capacity", Some("5000")),
    setting("sync_binlog", Some("0")),
];
const ROCKSDB: [Setting; 4] = [
    setting("rocksdb_block_cache_size", None),
    setting("rocksdb_flush_log_at_trx_commit", Some("1")),
    setting("rocksdb_default_cf_options", None),
    setting("sync_binlog", Some("0")),
];
/// What the post with NDB ran it with; its pool of connections into the cluster mattered most.
const NDB: [Setting; 3] = [
    setting("ndb_use_exact_count", Some("OFF")),
    setting("ndb_force_send", Some("OFF")),
    setting("ndb_cluster_connection_pool", Some("4")),
];
const MYISAM: [Setting; 3] =
    [setting("key_buffer_size", None), setting("delay_key_write", None), setting("concurrent_insert", None)];

impl SqlEngine {
    /// The engine of a name on the command line.
    pub fn of_name(name: &str) -> Option<SqlEngine> {
        Some(match name.to_ascii_lowercase().as_str() {
            "innodb" => SqlEngine::InnoDb,
            "rocksdb" | "myrocks" => SqlEngine::RocksDb,
            "ndb" | "ndbcluster" => SqlEngine::Ndb,
            "myisam" => SqlEngine::MyIsam,
            _ => return None,
        })
    }

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            SqlEngine::InnoDb => "InnoDB",
            SqlEngine::RocksDb => "ROCKSDB",
            SqlEngine::Ndb => "ndbcluster",
            SqlEngine::MyIsam => "MyISAM",
        }
    }

    /// Whether several statements can be one transaction.
    pub fn has_transactions(self) -> bool {
        self != SqlEngine::MyIsam
    }

    /// Whether HANDLER reads its tables.
    pub fn has_handler(self) -> bool {
        matches!(self, SqlEngine::InnoDb | SqlEngine::MyIsam)
    }

    /// What makes it write what it has put off, and waits for that.
    pub fn checkpoint_statement(self) -> Option<&'static str> {
        match self {
            SqlEngine::InnoDb => Some("SET GLOBAL innodb_log_checkpoint_now = ON"),
            SqlEngine::RocksDb => Some("SET GLOBAL rocksdb_force_flush_memtable_now = ON"),
            SqlEngine::MyIsam => Some("FLUSH TABLES"),
            SqlEngine::Ndb => None,
        }
    }

    /// What figures hang on.
    pub fn settings(self) -> &'static [Setting] {
        match self {
            SqlEngine::InnoDb => &INNODB,
            SqlEngine::RocksDb => &ROCKSDB,
            SqlEngine::Ndb => &NDB,
            SqlEngine::MyIsam => &MYISAM,
        }
    }

    /// That the server has it: MySQL may quietly take another one for a table.
    pub fn check(self, connection: &mut Conn) -> Result<(), BenchError> {
        let engines: Vec<(String, String)> =
            connection.query("SELECT ENGINE, SUPPORT FROM information_schema.ENGINES").map_err(of_sql)?;
        let usable: Vec<&str> = engines
            .iter()
            .filter(|(_, support)| support == "YES" || support == "DEFAULT")
            .map(|(name, _)| name.as_str())
            .collect();
        if usable.iter().any(|name| name.eq_ignore_ascii_case(self.name())) {
            return Ok(());
        }
        let advice = match self {
            SqlEngine::RocksDb => " (MariaDB has it as a plugin: start it with --plugin-load-add=ha_rocksdb)",
            _ => "",
        };
        let cause = format!("the server has no engine {}{advice}; it has {}", self.name(), usable.join(", "));
        Err(BenchError::option("mysql-engine", cause))
    }

    /// The settings as the server has them; variables that it does not know are left out.
    pub fn values(self, connection: &mut Conn) -> Result<Vec<(Setting, String)>, BenchError> {
        let mut values = Vec::new();
        for setting in self.settings() {
            let query = format!("SHOW GLOBAL VARIABLES LIKE '{}'", setting.name.replace('_', "\\_"));
            let row: Option<(String, String)> = connection.query_first(query).map_err(of_sql)?;
            values.extend(row.map(|(_, value)| (*setting, value)));
        }
        Ok(values)
    }

    /// Sets what the posts had; refuses, with all options to start the server with, what only a start can
    /// set.
    pub fn set_as_posts(self, connection: &mut Conn) -> Result<(), BenchError> {
        let mut refused = Vec::new();
        for (setting, value) in self.values(connection)? {
            let Some(wanted) = setting.of_post.filter(|wanted| !value.eq_ignore_ascii_case(wanted)) else {
                continue;
            };
            let statement = format!("SET GLOBAL {} = {wanted}", setting.name);
            if let Err(error) = connection.query_drop(statement) {
                if !matches!(error, mysql::Error::MySqlError(_)) {
                    return Err(of_sql(error));
                }
                refused.push(format!("--{}={wanted}", setting.name.replace('_', "-")));
            }
        }
        if refused.is_empty() {
            return Ok(());
        }
        let cause =
            format!("the posts' settings need another start of the server, with {}", refused.join(" "));
        Err(BenchError::option("mysql-settings", cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_command_line_are_those_of_sql_and_others_are_none() {
        let names = ["innodb", "RocksDB", "ndb", "MyISAM"];
        let engines = names.map(|name| SqlEngine::of_name(name).map(SqlEngine::name));
        assert_eq!(engines, [Some("InnoDB"), Some("ROCKSDB"), Some("ndbcluster"), Some("MyISAM")]);
        assert_eq!(SqlEngine::of_name("InnoDB; DROP"), None);
    }

    #[test]
    fn missing_abilities_of_an_engine_are_known_before_it_is_asked() {
        assert!(!SqlEngine::MyIsam.has_transactions() && SqlEngine::RocksDb.has_transactions());
        assert!(!SqlEngine::Ndb.has_handler() && SqlEngine::MyIsam.has_handler());
    }
}
