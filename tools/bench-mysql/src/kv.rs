//! The rows over MySQL's protocol: `keyvalue(id BIGINT primary key, value1 INT null, value2 DOUBLE null)`, as
//! the post had them.
//!
//! Rows, read set and rounds are those of MongoDB's protocol. A read is one prepared statement, or one
//! HANDLER READ; it gives the whole row, which is compared value by value.

use crate::driver::{count_rows, is_transient, of_sql, quoted};
use crate::insert::{InsertSource, SqlLoader, recreate_table};
use crate::measured_run::SqlWork;
use crate::server::{Api, SqlServer};
use mysql::Conn;
use mysql::prelude::Queryable;
use pando_bench::client::{ClientState, Clients, Note, Performed, Statement, Task, Turn, Verdict};
use pando_bench::error::BenchError;
use pando_bench::target::Target;
use pando_bench::workload::kv::loading::RowOrder;
use pando_bench::workload::kv::rows::{Row, Rows};
use pando_bench::workload::kv::{KeyValue, Preload, WARM_UP_PASSES};
use pando_bench::workload::load::Loading;
use pando_bench::workload::{RunNumber, Workload};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A row as it comes.
type Columns = (i64, Option<i32>, Option<f64>);

/// Whether a row is compared with what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    Values,
    /// A null server's row is right for no id.
    Nothing,
}

/// The workload against servers of this protocol.
#[derive(Clone, Debug)]
pub struct SqlKeyValue {
    inner: KeyValue,
    server: SqlServer,
    check: Check,
}

impl SqlKeyValue {
    /// This workload against these servers.
    pub fn new(inner: KeyValue, server: SqlServer) -> SqlKeyValue {
        SqlKeyValue { inner, server, check: Check::Values }
    }

    /// The table of this number, from 0.
    fn table(&self, number: u32) -> String {
        let (database, table) = self.inner.load.spread.place(number);
        format!("{}.{}", quoted(&database), quoted(&table))
    }

    fn numbers(&self) -> std::ops::Range<u32> {
        0..self.inner.load.spread.collections
    }

    /// A statement that reads a row of this table by its key.
    fn reading(&self, connection: &mut Conn, number: u32) -> Result<mysql::Statement, mysql::Error> {
        let table = self.table(number);
        let text = match self.server.api() {
            Api::Sql => format!("SELECT id, value1, value2 FROM {table} WHERE id = ?"),
            Api::Handler => {
                connection.query_drop(format!("HANDLER {table} OPEN AS kv{number}"))?;
                format!("HANDLER kv{number} READ `PRIMARY` = (?)")
            }
        };
        connection.prep(text)
    }

    fn readers(&self, clients: u32, passes: u32) -> Result<Clients, BenchError> {
        let set: Arc<[u32]> = self.inner.read_set().into();
        let mut all = Clients::default();
        for client in 0..clients {
            let mut connection = self.server.connect_client(client)?;
            let statements = self.numbers().map(|number| self.reading(&mut connection, number));
            let statements = statements.collect::<Result<Vec<_>, _>>().map_err(of_sql)?;
            let part = KeyValue::part(set.len(), client, clients);
            all.tasks.push(Box::new(SqlReader {
                connection,
                statements,
                rows: self.inner.load.rows,
                set: set.clone(),
                at: part.start,
                part,
                passes,
                pass: 0,
                // A measurement of the tool itself has no rounds.
                rounds: if self.check == Check::Nothing { 1 } else { self.inner.rounds },
                check: self.check,
            }));
        }
        Ok(all)
    }
}

impl Workload for SqlKeyValue {
    fn original(&self) -> Option<&dyn Workload> {
        Some(&self.inner)
    }

    fn loading(&self) -> Option<&dyn Loading> {
        Some(self)
    }

    fn prepare(&self, _target: &Target) -> Result<(), BenchError> {
        if self.inner.preload == Preload::Nothing {
            return Ok(());
        }
        let mut connection = self.server.connect()?;
        // The primary key is the table, in all engines but MyISAM.
        let mut found = 0;
        for number in self.numbers() {
            let scan =
                format!("SELECT COUNT(*), SUM(value1) FROM {} FORCE INDEX (PRIMARY)", self.table(number));
            let row: Option<(u64, Option<f64>)> = connection.query_first(scan).map_err(of_sql)?;
            found += row.map_or(0, |(rows, _)| rows);
        }
        self.inner.check_preloaded(found)
    }

    fn warm_up(&self, _target: &Target, clients: u32) -> Result<Option<Clients>, BenchError> {
        self.readers(clients, WARM_UP_PASSES).map(Some)
    }

    fn clients(&self, _target: &Target, clients: u32, _run: RunNumber) -> Result<Clients, BenchError> {
        let endless = self.check == Check::Nothing;
        self.readers(clients, if endless { u32::MAX } else { self.inner.rounds })
    }
}

impl SqlWork for SqlKeyValue {
    fn server(&self) -> &SqlServer {
        &self.server
    }

    fn first_table(&self) -> String {
        self.table(0)
    }

    fn on_null_server(&self, server: SqlServer) -> SqlKeyValue {
        SqlKeyValue { server, check: Check::Nothing, ..self.clone() }
    }
}

impl Loading for SqlKeyValue {
    fn summary(&self) -> String {
        format!("{}; by SQL, engine {}", Loading::summary(&self.inner.load), self.server.engine().name())
    }

    fn parameters(&self) -> serde_json::Value {
        let mut parameters = Loading::parameters(&self.inner.load);
        self.server.add_parameters(&mut parameters);
        parameters
    }

    fn is_there(&self, _target: &Target) -> Result<bool, BenchError> {
        let mut connection = self.server.connect()?;
        for number in self.numbers() {
            if count_rows(&mut connection, &self.table(number))? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn prepare(&self, _target: &Target) -> Result<(), BenchError> {
        let definition = format!(
            "(id BIGINT NOT NULL PRIMARY KEY, value1 INT NULL, value2 DOUBLE NULL) {}",
            self.server.table_end()
        );
        let mut connection = self.server.connect()?;
        let mut places = self.inner.load.spread.all();
        places
            .try_for_each(|(database, table)| recreate_table(&mut connection, &database, &table, &definition))
    }

    fn connections(&self) -> u32 {
        self.inner.load.connections
    }

    fn clients(&self, _target: &Target) -> Result<Clients, BenchError> {
        let (order, failed) = (RowOrder::new(self.inner.load.clone()), Arc::<AtomicBool>::default());
        let mut clients = Clients::default();
        for client in 0..self.connections() {
            let tables = self.numbers().map(|number| self.table(number)).collect();
            let source = SqlRows { order: order.clone(), tables };
            let connection = self.server.connect_client(client)?;
            clients.tasks.push(Box::new(SqlLoader::new(connection, source, failed.clone())));
        }
        Ok(clients)
    }

    fn check(&self, _target: &Target) -> Result<(), BenchError> {
        let mut connection = self.server.connect()?;
        for number in self.numbers() {
            let found = count_rows(&mut connection, &self.table(number))?;
            let expected = u64::from(self.inner.load.spread.share(self.inner.load.rows.count, number));
            if found != expected {
                return Err(BenchError::DataSet { namespace: self.table(number), found, expected });
            }
        }
        Ok(())
    }
}

/// The rows of a client that loads.
struct SqlRows {
    order: RowOrder,
    tables: Vec<String>,
}

impl InsertSource for SqlRows {
    fn next_insert(&mut self, statement: &mut String) -> Option<u32> {
        let batch = self.order.next_batch()?;
        let table = &self.tables[batch.collection as usize];
        let _ = write!(statement, "INSERT INTO {table} (id, value1, value2) VALUES ");
        let rows = self.order.rows(batch);
        for (place, row) in rows.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(statement, "{comma}({},", row.id);
            // With an exponent a number is a double to the server, not a decimal that it would round.
            let _ = match row.value1 {
                Some(value) => write!(statement, "{value},"),
                None => write!(statement, "NULL,"),
            };
            let _ = match row.value2 {
                Some(value) => write!(statement, "{value:e})"),
                None => write!(statement, "NULL)"),
            };
        }
        u32::try_from(rows.len()).ok()
    }

    fn notes(&self) -> Vec<Note> {
        self.order.notes()
    }
}

/// One client: its part of the read set, pass after pass.
struct SqlReader {
    connection: Conn,
    /// One for each table; rows go around these.
    statements: Vec<mysql::Statement>,
    rows: Rows,
    set: Arc<[u32]>,
    part: std::ops::Range<usize>,
    at: usize,
    passes: u32,
    pass: u32,
    rounds: u32,
    check: Check,
}

impl SqlReader {
    fn read(&mut self, row: Row) -> Result<Verdict, mysql::Error> {
        let statement = &self.statements[self.set[self.at] as usize % self.statements.len()];
        let found: Option<Columns> = self.connection.exec_first(statement, (row.id,))?;
        Ok(match found {
            None => Verdict::Missed,
            Some(columns) if self.check == Check::Nothing || columns == (row.id, row.value1, row.value2) => {
                Verdict::Done
            }
            Some(_) => Verdict::Failed(format!("wrong row for id {}", row.id)),
        })
    }
}

impl Task for SqlReader {
    fn prepare(&mut self) -> Turn {
        if self.part.is_empty() || self.pass >= self.passes { Turn::Over } else { Turn::Request }
    }

    fn perform(&mut self) -> Performed {
        let row = self.rows.row(self.set[self.at]);
        let began = Instant::now();
        let mut retries = 0;
        let (verdict, client) = loop {
            match self.read(row) {
                Ok(verdict) => break (verdict, ClientState::GoesOn),
                Err(error) if is_transient(&error) && retries < 100 => retries += 1,
                Err(error) => {
                    let goes_on = matches!(error, mysql::Error::MySqlError(_));
                    let client = if goes_on { ClientState::GoesOn } else { ClientState::Out };
                    break (Verdict::Failed(error.to_string()), client);
                }
            }
        };
        let kind = KeyValue::kind_of(self.pass, self.rounds);
        let statements = vec![Statement { kind, latency: began.elapsed(), verdict: verdict.clone() }];
        self.at += 1;
        if self.at == self.part.end {
            self.at = self.part.start;
            self.pass += 1;
        }
        Performed { statements, verdict, operations: 1, retries, client }
    }
}
