//! The sysbench tables, `point` and the transaction mix over MySQL's protocol. Only with the feature `mysql`.
//!
//! Tables are those of sysbench: `sbtestN(id INT primary key, k INT, c CHAR(120), pad CHAR(60))`, an index `k_N` on `k`. Rows
//! and keys are the same as over MongoDB's protocol, from the same seed. Statements are prepared once per connection and
//! table. Each stands alone (autocommit), as over MongoDB's protocol; the ranges of different values are sorted, as in
//! sysbench's SQL. What an acknowledged write means is the server's setting (`innodb_flush_log_at_trx_commit`).

use super::documents::{DataSet, Documents};
use super::loading::Load;
use super::mix::{Statement, Transaction, Transactions};
use super::workload::Sysbench;
use crate::client::{ClientState, Clients, Misses, Performed, Statement as Part, Task, Turn, Verdict};
use crate::error::BenchError;
use crate::random::distribution::Distribution;
use crate::random::{Random, mask};
use crate::report::Figures;
use crate::report::csv::CsvFile;
use crate::sql::{SqlServer, of_sql};
use crate::target::Target;
use crate::workload::load::{IndexBuild, Loading, TimedStep};
use crate::workload::point::PointQuery;
use crate::workload::{Finding, Workload};
use mysql::prelude::Queryable;
use mysql::{Conn, Value};
use pando_document::Document;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

/// MySQL's codes: a table that is not there, a duplicate key, a lock timeout, a deadlock.
const NO_SUCH_TABLE: u16 = 1146;
const NO_SUCH_DATABASE: u16 = 1049;
const DUPLICATE_KEY: u16 = 1062;
const TRANSIENT: [u16; 2] = [1205, 1213];
/// How often a statement is tried once more.
const RETRIES_MAX: u64 = 100;

/// What is asked.
#[derive(Clone, Debug)]
pub enum Work {
    /// One row by its key.
    Point(PointQuery),
    /// The transaction mix.
    Mix(Sysbench),
}

/// The workload against a server of this protocol.
#[derive(Clone, Debug)]
pub struct SqlWorkload {
    work: Work,
    server: SqlServer,
}

impl SqlWorkload {
    /// This work against this server.
    pub fn new(work: Work, server: SqlServer) -> SqlWorkload {
        SqlWorkload { work, server }
    }

    fn inner(&self) -> &dyn Workload {
        match &self.work {
            Work::Point(point) => point,
            Work::Mix(sysbench) => sysbench,
        }
    }

    fn load(&self) -> &Load {
        match &self.work {
            Work::Point(point) => &point.load,
            Work::Mix(sysbench) => &sysbench.load,
        }
    }

    fn count(&self, connection: &mut Conn, number: u32) -> Result<u64, BenchError> {
        let table = table(&self.load().data, number);
        match connection.query_first::<u64, _>(format!("SELECT COUNT(*) FROM {table}")) {
            Ok(count) => Ok(count.unwrap_or(0)),
            Err(mysql::Error::MySqlError(error))
                if [NO_SUCH_TABLE, NO_SUCH_DATABASE].contains(&error.code) =>
            {
                Ok(0)
            }
            Err(error) => Err(of_sql(error)),
        }
    }

    fn create_index(&self, connection: &mut Conn, number: u32) -> Result<(), BenchError> {
        let table = table(&self.load().data, number);
        connection.query_drop(format!("CREATE INDEX k_{number} ON {table}(k)")).map_err(of_sql)
    }
}

/// A table's name with its database.
fn table(data: &DataSet, number: u32) -> String {
    let (database, name) = data.place(number);
    // A name cannot leave its quotes.
    format!("`{}`.`{}`", database.replace('`', "``"), name)
}

impl Workload for SqlWorkload {
    fn name(&self) -> &'static str {
        self.inner().name()
    }

    fn summary(&self) -> String {
        format!(
            "{}; by SQL, engine {}, prepared statements, durable as the server is set",
            self.inner().summary(),
            self.server.engine()
        )
    }

    fn parameters(&self) -> serde_json::Value {
        let mut parameters = self.inner().parameters();
        parameters["engine"] = self.server.engine().into();
        parameters
    }

    fn operations(&self) -> &'static str {
        self.inner().operations()
    }

    fn kinds(&self) -> Vec<String> {
        self.inner().kinds()
    }

    fn misses(&self) -> Misses {
        self.inner().misses()
    }

    fn loading(&self) -> Option<&dyn Loading> {
        Some(self)
    }

    fn clients(&self, _target: &Target, count: u32) -> Result<Clients, BenchError> {
        let Load { data, generator, seed, .. } = self.load();
        let mut clients = Clients::default();
        for client in 0..count {
            let units = match &self.work {
                Work::Point(point) => Units::Points {
                    keys: Distribution::new(point.shape, data.documents),
                    random: Random::for_client(*generator, *seed, u64::from(client)),
                },
                Work::Mix(sysbench) => {
                    Units::Transactions(Transactions::new(sysbench.mix, data, *generator, *seed, client))
                }
            };
            let range_size = match &self.work {
                Work::Point(_) => 1,
                Work::Mix(sysbench) => i32::try_from(sysbench.mix.range_size).unwrap_or(i32::MAX),
            };
            clients.tasks.push(Box::new(SqlClient {
                connection: self.server.connect()?,
                prepared: HashMap::new(),
                data: data.clone(),
                range_size,
                units,
                current: Transaction { collection: 1, statements: Vec::new() },
            }));
        }
        Ok(clients)
    }

    fn null_reply(&self) -> Option<Document> {
        None
    }

    fn verify(&self, _target: &Target) -> Result<Vec<Finding>, BenchError> {
        let mut connection = self.server.connect()?;
        let DataSet { collections, documents, .. } = self.load().data;
        let (mut checked, mut wrong) = (0, 0);
        for number in 1..=collections {
            checked += u64::from(documents);
            wrong += self.count(&mut connection, number)?.abs_diff(documents.into());
        }
        Ok(vec![Finding { what: "rows that must be there".into(), checked, wrong }])
    }

    fn csv(&self, figures: &Figures, interval_s: u32) -> Vec<CsvFile> {
        self.inner().csv(figures, interval_s)
    }
}

impl Loading for SqlWorkload {
    fn summary(&self) -> String {
        format!("{}; by SQL, engine {}", Loading::summary(self.load()), self.server.engine())
    }

    fn parameters(&self) -> serde_json::Value {
        let mut parameters = Loading::parameters(self.load());
        parameters["engine"] = self.server.engine().into();
        parameters
    }

    fn is_there(&self, _target: &Target) -> Result<bool, BenchError> {
        Ok(self.count(&mut self.server.connect()?, 1)? > 0)
    }

    fn prepare(&self, _target: &Target) -> Result<(), BenchError> {
        let mut connection = self.server.connect()?;
        let data = &self.load().data;
        for number in 1..=data.collections {
            let (database, _) = data.place(number);
            let table = table(data, number);
            let statements = [
                format!("CREATE DATABASE IF NOT EXISTS `{}`", database.replace('`', "``")),
                format!("DROP TABLE IF EXISTS {table}"),
                format!(
                    "CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, k INT NOT NULL DEFAULT 0, \
                     c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '') ENGINE={}",
                    self.server.engine()
                ),
            ];
            for statement in statements {
                connection.query_drop(statement).map_err(of_sql)?;
            }
            if self.load().index == IndexBuild::Before {
                self.create_index(&mut connection, number)?;
            }
        }
        Ok(())
    }

    fn connections(&self) -> u32 {
        self.load().connections
    }

    fn clients(&self, _target: &Target) -> Result<Clients, BenchError> {
        let (next, failed) = (Arc::new(AtomicU32::new(1)), Arc::new(AtomicBool::new(false)));
        let mut clients = Clients::default();
        for _ in 0..self.load().connections {
            clients.tasks.push(Box::new(SqlLoader {
                connection: self.server.connect()?,
                load: self.load().clone(),
                next: next.clone(),
                failed: failed.clone(),
                current: None,
                statement: String::new(),
                rows: 0,
            }));
        }
        Ok(clients)
    }

    fn finish(&self, _target: &Target) -> Result<Vec<TimedStep>, BenchError> {
        if self.load().index != IndexBuild::After {
            return Ok(Vec::new());
        }
        let mut connection = self.server.connect()?;
        let step = TimedStep::take("index on k after the load", || {
            (1..=self.load().data.collections)
                .try_for_each(|number| self.create_index(&mut connection, number))
        })?;
        Ok(vec![step])
    }

    fn check(&self, _target: &Target) -> Result<(), BenchError> {
        let mut connection = self.server.connect()?;
        let data = &self.load().data;
        for number in 1..=data.collections {
            let (found, expected) = (self.count(&mut connection, number)?, u64::from(data.documents));
            if found != expected {
                return Err(BenchError::DataSet { namespace: table(data, number), found, expected });
            }
        }
        Ok(())
    }
}

/// A client that loads: table after table, many rows in an INSERT.
struct SqlLoader {
    connection: Conn,
    load: Load,
    next: Arc<AtomicU32>,
    failed: Arc<AtomicBool>,
    current: Option<(u32, Documents)>,
    statement: String,
    rows: u32,
}

impl Task for SqlLoader {
    fn prepare(&mut self) -> Turn {
        if self.failed.load(Ordering::Relaxed) {
            return Turn::Over;
        }
        while self.current.as_ref().is_none_or(|(_, rows)| rows.left() == 0) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if !(1..=self.load.data.collections).contains(&number) {
                return Turn::Over;
            }
            let Load { generator, seed, data, .. } = &self.load;
            self.current = Some((number, Documents::new(*generator, *seed, number, data.documents)));
        }
        let Some((number, rows)) = &mut self.current else { return Turn::Over };
        self.rows = rows.left().min(self.load.batch);
        self.statement = format!("INSERT INTO {} (id, k, c, pad) VALUES ", table(&self.load.data, *number));
        for row in 0..self.rows {
            let next = rows.next_row();
            let comma = if row == 0 { "" } else { "," };
            // Texts are digits and dashes.
            let _ = write!(self.statement, "{comma}({},{},'{}','{}')", next.id, next.k, next.c, next.pad);
        }
        Turn::Request
    }

    fn perform(&mut self) -> Performed {
        let (verdict, client) = match self.connection.query_drop(&self.statement) {
            Ok(()) => (Verdict::Done, ClientState::GoesOn),
            Err(error) => {
                self.failed.store(true, Ordering::Relaxed);
                (Verdict::Failed(error.to_string()), ClientState::Out)
            }
        };
        Performed { statements: Vec::new(), verdict, operations: self.rows, retries: 0, client }
    }
}

/// Where a client's units come from.
enum Units {
    Points { keys: Distribution, random: Random },
    Transactions(Transactions),
}

/// A client that asks.
struct SqlClient {
    connection: Conn,
    prepared: HashMap<(u32, usize), mysql::Statement>,
    data: DataSet,
    range_size: i32,
    units: Units,
    current: Transaction,
}

impl SqlClient {
    /// Does a statement; prepares it if it is the first of its kind on this table.
    fn execute(&mut self, statement: &Statement) -> Result<Verdict, mysql::Error> {
        let place = (self.current.collection, statement.kind().index());
        let prepared = match self.prepared.get(&place) {
            Some(prepared) => prepared.clone(),
            None => {
                let prepared = self.connection.prep(text(statement, &table(&self.data, place.0)))?;
                self.prepared.insert(place, prepared.clone());
                prepared
            }
        };
        let connection = &mut self.connection;
        let to = |from: i32| from.saturating_add(self.range_size - 1);
        let found = |found: bool| if found { Verdict::Done } else { Verdict::Missed };
        Ok(match statement {
            Statement::Point { id } => {
                let texts: Vec<String> = connection.exec(&prepared, (id,))?;
                match texts.as_slice() {
                    [] => Verdict::Missed,
                    [text] if text.len() == mask::C.len() => Verdict::Done,
                    _ => Verdict::Failed("not one c of 119 characters".to_owned()),
                }
            }
            Statement::SimpleRange { from }
            | Statement::OrderRange { from }
            | Statement::DistinctRange { from } => {
                let texts: Vec<String> = connection.exec(&prepared, (from, to(*from)))?;
                found(!texts.is_empty())
            }
            Statement::SumRange { from } => {
                let sum: Option<Value> = connection.exec_first(&prepared, (from, to(*from)))?;
                found(sum.is_some_and(|sum| sum != Value::NULL))
            }
            Statement::IndexUpdate { id } | Statement::Delete { id } => {
                connection.exec_drop(&prepared, (id,))?;
                found(connection.affected_rows() == 1)
            }
            Statement::NonIndexUpdate { id, c } => {
                connection.exec_drop(&prepared, (c, id))?;
                found(connection.affected_rows() == 1)
            }
            Statement::Insert { id, k, c, pad } => {
                connection.exec_drop(&prepared, (id, k, c, pad))?;
                Verdict::Done
            }
        })
    }
}

/// A statement's SQL.
fn text(statement: &Statement, table: &str) -> String {
    match statement {
        Statement::Point { .. } => format!("SELECT c FROM {table} WHERE id = ?"),
        Statement::SimpleRange { .. } => format!("SELECT c FROM {table} WHERE id BETWEEN ? AND ?"),
        Statement::SumRange { .. } => format!("SELECT SUM(k) FROM {table} WHERE id BETWEEN ? AND ?"),
        Statement::OrderRange { .. } => format!("SELECT c FROM {table} WHERE id BETWEEN ? AND ? ORDER BY c"),
        Statement::DistinctRange { .. } => {
            format!("SELECT DISTINCT c FROM {table} WHERE id BETWEEN ? AND ? ORDER BY c")
        }
        Statement::IndexUpdate { .. } => format!("UPDATE {table} SET k = k + 1 WHERE id = ?"),
        Statement::NonIndexUpdate { .. } => format!("UPDATE {table} SET c = ? WHERE id = ?"),
        Statement::Delete { .. } => format!("DELETE FROM {table} WHERE id = ?"),
        Statement::Insert { .. } => format!("INSERT INTO {table} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
    }
}

impl Task for SqlClient {
    fn prepare(&mut self) -> Turn {
        self.current = match &mut self.units {
            Units::Points { keys, random } => {
                let collection = random.below(self.data.collections) + 1;
                let id = i32::try_from(keys.draw(random) + 1).unwrap_or(i32::MAX);
                Transaction { collection, statements: vec![Statement::Point { id }] }
            }
            Units::Transactions(transactions) => transactions.next(),
        };
        Turn::Request
    }

    fn perform(&mut self) -> Performed {
        let statements = std::mem::take(&mut self.current.statements);
        // A unit of one statement has no kinds.
        let has_kinds = matches!(self.units, Units::Transactions(_));
        let mut performed = Performed {
            statements: Vec::new(),
            verdict: Verdict::Done,
            operations: 1,
            retries: 0,
            client: ClientState::GoesOn,
        };
        for statement in &statements {
            let began = Instant::now();
            let verdict = loop {
                match self.execute(statement) {
                    Ok(verdict) => break verdict,
                    Err(mysql::Error::MySqlError(error))
                        if TRANSIENT.contains(&error.code) && performed.retries < RETRIES_MAX =>
                    {
                        performed.retries += 1;
                    }
                    Err(mysql::Error::MySqlError(error)) if error.code == DUPLICATE_KEY => {
                        break Verdict::Missed;
                    }
                    Err(error) => {
                        if !matches!(error, mysql::Error::MySqlError(_)) {
                            performed.client = ClientState::Out;
                        }
                        break Verdict::Failed(error.to_string());
                    }
                }
            };
            if has_kinds {
                let latency = began.elapsed();
                performed.statements.push(Part { kind: statement.kind(), latency, verdict: verdict.clone() });
            }
            if matches!(verdict, Verdict::Failed(_)) || !has_kinds {
                performed.verdict = verdict;
                break;
            }
        }
        performed
    }
}
