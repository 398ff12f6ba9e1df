//! Loading: INSERTs of many rows, by several clients, each a statement on its own.

use crate::driver::{of_sql, quoted};
use mysql::Conn;
use mysql::prelude::Queryable;
use pando_bench::client::{ClientState, Note, Performed, Task, Turn, Verdict};
use pando_bench::error::BenchError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the rows come from.
pub trait InsertSource: Send {
    /// Writes the next INSERT into `statement`, which is empty; gives its rows, nothing when all are made.
    fn next_insert(&mut self, statement: &mut String) -> Option<u32>;

    /// What it counted besides.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// A client that loads. One that fails ends all that share its flag: a load that lost rows is no load.
pub struct SqlLoader<S> {
    connection: Conn,
    source: S,
    failed: Arc<AtomicBool>,
    statement: String,
    rows: u32,
}

impl<S: InsertSource> SqlLoader<S> {
    /// A client that inserts all rows of a source.
    pub fn new(connection: Conn, source: S, failed: Arc<AtomicBool>) -> SqlLoader<S> {
        SqlLoader { connection, source, failed, statement: String::new(), rows: 0 }
    }
}

impl<S: InsertSource> Task for SqlLoader<S> {
    fn prepare(&mut self) -> Turn {
        self.statement.clear();
        if self.failed.load(Ordering::Relaxed) {
            return Turn::Over;
        }
        match self.source.next_insert(&mut self.statement) {
            Some(rows) => {
                self.rows = rows;
                Turn::Request
            }
            None => Turn::Over,
        }
    }

    fn perform(&mut self) -> Performed {
        let (verdict, client) = match self.connection.query_drop(&self.statement) {
            Ok(()) if self.connection.affected_rows() == u64::from(self.rows) => {
                (Verdict::Done, ClientState::GoesOn)
            }
            outcome => {
                self.failed.store(true, Ordering::Relaxed);
                let inserted = self.connection.affected_rows();
                let message = outcome.map_or_else(
                    |error| error.to_string(),
                    |()| format!("{inserted} of {} rows inserted", self.rows),
                );
                (Verdict::Failed(message), ClientState::Out)
            }
        };
        Performed { statements: Vec::new(), verdict, operations: self.rows, retries: 0, client }
    }

    fn notes(&self) -> Vec<Note> {
        self.source.notes()
    }
}

/// A new table in its database, which is made if it is not there; an old one goes.
pub fn recreate_table(
    connection: &mut Conn,
    database: &str,
    table: &str,
    definition: &str,
) -> Result<(), BenchError> {
    let database = quoted(database);
    let statements = [
        format!("CREATE DATABASE IF NOT EXISTS {database}"),
        format!("DROP TABLE IF EXISTS {database}.{table}"),
        format!("CREATE TABLE {database}.{table} {definition}"),
    ];
    statements.iter().try_for_each(|statement| connection.query_drop(statement).map_err(of_sql))
}
