//! iibench over MySQL's protocol, where it came from.
//!
//! Table `purchases_index(transactionid BIGINT primary key, …)` with the fields, texts and indexes of the
//! documents. The primary key is the server's (AUTO_INCREMENT), so that inserts go to its right edge as those
//! of the documents do; with `--id random` it is the client's. A batch is one prepared INSERT of many rows;
//! making its values is in no latency.

use crate::driver::{count_where, is_transient, of_sql, of_statement, quoted};
use crate::insert::recreate_table;
use crate::measured_run::SqlWork;
use crate::server::SqlServer;
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Value};
use pando_bench::client::{ClientState, Clients, Kind, Performed, Statement, Task, Turn, Verdict};
use pando_bench::error::BenchError;
use pando_bench::target::Target;
use pando_bench::workload::iibench::purchases::{Draw, PrimaryKey, Purchases};
use pando_bench::workload::iibench::queries::{Asker, QueryPlan, Questioner};
use pando_bench::workload::iibench::{Iibench, Inserting, Sent, finding};
use pando_bench::workload::{Finding, RunNumber, Workload};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The most parameters of a prepared statement in this protocol.
const PARAMETERS_MAX: u32 = 65_535;
/// How often a batch is tried once more.
const RETRIES_MAX: u64 = 100;
/// The texts' longest length that a VARCHAR holds beside the other columns.
const VARCHAR_MAX: u32 = 500;

/// The columns of the three indexes, in the order of their creation.
const INDEXES: [&str; 3] =
    ["price, customerid", "cashregisterid, price, customerid", "price, dateandtime, customerid"];

/// Whether a batch is believed to be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// If the server has counted all of its rows.
    Counted,
    /// A null server does not count.
    Blind,
}

/// The workload against servers of this protocol.
#[derive(Clone, Debug)]
pub struct SqlIibench {
    inner: Iibench,
    server: SqlServer,
    trust: Trust,
}

impl SqlIibench {
    /// This workload against these servers, if a batch goes into a statement.
    pub fn new(inner: Iibench, server: SqlServer) -> Result<SqlIibench, BenchError> {
        let most = PARAMETERS_MAX / columns(&inner).len() as u32;
        if inner.batch > most {
            let cause = format!("a statement of MySQL's protocol holds {most} such rows at most");
            return Err(BenchError::option("batch", cause));
        }
        Ok(SqlIibench { inner, server, trust: Trust::Counted })
    }

    /// All tables.
    fn tables(&self) -> Vec<String> {
        let name = |(database, table): (String, String)| format!("{}.{}", quoted(&database), quoted(&table));
        self.inner.spread.all().map(name).collect()
    }

    fn definition(&self) -> String {
        let shape = &self.inner.shape;
        let key = match shape.primary_key {
            PrimaryKey::Ascending => "AUTO_INCREMENT",
            PrimaryKey::Random => "",
        };
        let mut text = format!(
            "(transactionid BIGINT NOT NULL {key} PRIMARY KEY, dateandtime BIGINT NOT NULL, cashregisterid INT NOT NULL, \
             customerid INT NOT NULL, productid INT NOT NULL, price DOUBLE NOT NULL"
        );
        let kind = if shape.text_bytes <= VARCHAR_MAX {
            format!("VARCHAR({})", shape.text_bytes)
        } else {
            "MEDIUMTEXT".to_owned()
        };
        (1..=shape.texts).for_each(|number| text += &format!(", cf{number} {kind} NOT NULL"));
        for columns in INDEXES.iter().take(self.inner.indexes as usize) {
            text += &format!(", KEY {} ({columns})", index_name(columns));
        }
        format!("{text}) {} CHARACTER SET latin1", self.server.table_end())
    }
}

fn index_name(columns: &str) -> String {
    columns.replace(", ", "_")
}

/// The columns that a client gives.
fn columns(workload: &Iibench) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    if workload.shape.primary_key == PrimaryKey::Random {
        names.push("transactionid".to_owned());
    }
    names.extend(["dateandtime", "cashregisterid", "customerid", "productid", "price"].map(str::to_owned));
    names.extend((1..=workload.shape.texts).map(|number| format!("cf{number}")));
    names
}

fn insert_text(table: &str, columns: &[String], rows: u32) -> String {
    let row = format!("({})", vec!["?"; columns.len()].join(","));
    let rows = vec![row; rows as usize].join(",");
    format!("INSERT INTO {table} ({}) VALUES {rows}", columns.join(", "))
}

impl Workload for SqlIibench {
    fn original(&self) -> Option<&dyn Workload> {
        Some(&self.inner)
    }

    fn prepare(&self, _target: &Target) -> Result<(), BenchError> {
        let (mut connection, definition) = (self.server.connect()?, self.definition());
        let mut places = self.inner.spread.all();
        places
            .try_for_each(|(database, table)| recreate_table(&mut connection, &database, &table, &definition))
    }

    fn clients(&self, _target: &Target, clients: u32, _run: RunNumber) -> Result<Clients, BenchError> {
        let sent = self.inner.begin(clients);
        let Iibench { shape, generator, seed, batch, queries, .. } = self.inner;
        let mut all = Clients::default();
        for client in 0..clients {
            all.tasks.push(Box::new(SqlInserter {
                connection: self.server.connect_client(client)?,
                tables: self.tables(),
                next: client as usize,
                columns: columns(&self.inner),
                prepared: HashMap::new(),
                random_key: shape.primary_key == PrimaryKey::Random,
                texts: shape.texts,
                purchases: Purchases::new(shape, generator, seed, client),
                left: self.inner.share(client, clients),
                batch,
                sent: sent.clone(),
                inserting: Some(Inserting::one_of(&sent)),
                values: Vec::new(),
                rows: 0,
                trust: self.trust,
            }));
        }
        if queries.per_interval > 0 {
            let asker = SqlAsker::new(self.server.connect()?, &self.tables(), queries).map_err(of_sql)?;
            all.tasks.push(Box::new(Questioner::new(Box::new(asker), queries, generator, seed, sent)));
        }
        Ok(all)
    }

    fn verify(&self, _target: &Target) -> Result<Vec<Finding>, BenchError> {
        let mut connection = self.server.connect()?;
        let (tables, sent) = (self.tables(), self.inner.sent());
        let mut sum = |addition: &str| {
            let counts = tables.iter().map(|table| count_where(&mut connection, table, addition));
            counts.sum::<Result<u64, BenchError>>()
        };
        let what = if tables.len() == 1 { "the table" } else { "the tables" };
        let mut findings = vec![finding(sent, what, sum("FORCE INDEX (PRIMARY)")?)];
        for columns in INDEXES.iter().take(self.inner.indexes as usize) {
            let name = index_name(columns);
            findings.push(finding(sent, &format!("index {name}"), sum(&format!("FORCE INDEX ({name})"))?));
        }
        Ok(findings)
    }
}

impl SqlWork for SqlIibench {
    fn server(&self) -> &SqlServer {
        &self.server
    }

    fn first_table(&self) -> String {
        self.tables().swap_remove(0)
    }

    fn on_null_server(&self, server: SqlServer) -> SqlIibench {
        SqlIibench { server, inner: self.inner.endless(), trust: Trust::Blind }
    }
}

/// One client that inserts.
struct SqlInserter {
    connection: Conn,
    tables: Vec<String>,
    /// What the next batch's table hangs on: batches go around.
    next: usize,
    columns: Vec<String>,
    /// The statements by table and number of rows: whole batches, and the last one.
    prepared: HashMap<(usize, u32), mysql::Statement>,
    random_key: bool,
    texts: u32,
    purchases: Purchases,
    left: u64,
    batch: u32,
    sent: Arc<Sent>,
    /// Until all is sent, or the connection is lost.
    inserting: Option<Inserting>,
    values: Vec<Value>,
    rows: u32,
    trust: Trust,
}

impl SqlInserter {
    fn append_row(&mut self) {
        let purchase = self.purchases.next_purchase();
        let Draw { customer, price, cash_register, product } = purchase.draw;
        if self.random_key {
            let bytes = purchase.id.bytes();
            let first = [0, 1, 2, 3, 4, 5, 6, 7].map(|place: usize| bytes[place]);
            self.values.push(Value::Int(i64::from_be_bytes(first)));
        }
        self.values.push(Value::Int(purchase.milliseconds));
        self.values.extend([cash_register, customer, product].map(|number| Value::Int(number.into())));
        self.values.push(Value::Double(price));
        for _ in 0..self.texts {
            let text = self.purchases.next_text();
            self.values.push(Value::Bytes(text.as_bytes().to_vec()));
        }
    }

    fn insert(&mut self, values: Vec<Value>) -> Result<u64, mysql::Error> {
        let table = self.next % self.tables.len();
        let statement = match self.prepared.get(&(table, self.rows)) {
            Some(statement) => statement.clone(),
            None => {
                let text = insert_text(&self.tables[table], &self.columns, self.rows);
                let statement = self.connection.prep(text)?;
                self.prepared.insert((table, self.rows), statement.clone());
                statement
            }
        };
        self.connection.exec_drop(&statement, Params::Positional(values))?;
        Ok(self.connection.affected_rows())
    }
}

impl Task for SqlInserter {
    fn prepare(&mut self) -> Turn {
        self.rows = u32::try_from(self.left.min(u64::from(self.batch))).unwrap_or(self.batch);
        if self.rows == 0 {
            self.inserting = None;
            return Turn::Over;
        }
        self.values.clear();
        self.next = self.next.wrapping_add(1);
        (0..self.rows).for_each(|_| self.append_row());
        self.left -= u64::from(self.rows);
        self.sent.documents.fetch_add(self.rows.into(), Ordering::Relaxed);
        Turn::Request
    }

    fn perform(&mut self) -> Performed {
        let began = Instant::now();
        let mut retries = 0;
        let (verdict, client) = loop {
            match self.insert(self.values.clone()) {
                Ok(inserted) if self.trust == Trust::Blind || inserted == u64::from(self.rows) => {
                    break (Verdict::Done, ClientState::GoesOn);
                }
                Ok(inserted) => {
                    let message = format!("{inserted} of {} rows inserted", self.rows);
                    break (Verdict::Failed(message), ClientState::GoesOn);
                }
                Err(error) if is_transient(&error) && retries < RETRIES_MAX => retries += 1,
                Err(error) => {
                    let goes_on = matches!(error, mysql::Error::MySqlError(_));
                    let client = if goes_on { ClientState::GoesOn } else { ClientState::Out };
                    if client == ClientState::Out {
                        self.inserting = None;
                    }
                    break (Verdict::Failed(error.to_string()), client);
                }
            }
        };
        let latency = began.elapsed();
        let statements = vec![Statement { kind: Kind::new(0), latency, verdict: verdict.clone() }];
        Performed { statements, verdict, operations: self.rows, retries, client }
    }
}

/// Asks the three queries.
struct SqlAsker {
    connection: Conn,
    /// Of each table three.
    statements: Vec<mysql::Statement>,
    asked: usize,
}

impl SqlAsker {
    fn new(mut connection: Conn, tables: &[String], plan: QueryPlan) -> Result<SqlAsker, mysql::Error> {
        let mut statements = Vec::with_capacity(tables.len() * 3);
        for table in tables {
            for which in 0..3 {
                statements.push(connection.prep(query_text(which, table, plan))?);
            }
        }
        Ok(SqlAsker { connection, statements, asked: 0 })
    }
}

/// One of the three queries in SQL.
fn query_text(which: u32, table: &str, plan: QueryPlan) -> String {
    let (columns, condition) = match which {
        0 => (
            INDEXES[2],
            "(price = ? AND dateandtime = ? AND customerid >= ?) OR (price = ? AND dateandtime > ?) OR price > ?",
        ),
        1 => (INDEXES[0], "(price = ? AND customerid >= ?) OR price > ?"),
        _ => (
            INDEXES[1],
            "(cashregisterid = ? AND price = ? AND customerid >= ?) OR (cashregisterid = ? AND price > ?) OR \
             cashregisterid > ?",
        ),
    };
    let (index, order) = if plan.guided {
        (format!(" FORCE INDEX ({})", index_name(columns)), format!(" ORDER BY {columns}"))
    } else {
        Default::default()
    };
    format!("SELECT {columns} FROM {table}{index} WHERE {condition}{order} LIMIT {}", plan.limit)
}

impl Asker for SqlAsker {
    fn ask(&mut self, which: u32, draw: Draw, moment: i64) -> Result<u64, BenchError> {
        let Draw { customer, price, cash_register, .. } = draw;
        let (customer, register) = (Value::Int(customer.into()), Value::Int(cash_register.into()));
        let (price, moment) = (Value::Double(price), Value::Int(moment));
        let values = match which {
            0 => vec![price.clone(), moment.clone(), customer, price.clone(), moment, price],
            1 => vec![price.clone(), customer, price],
            _ => vec![register.clone(), price.clone(), customer, register.clone(), price, register],
        };
        // All three queries of one table, then those of the next.
        let table = self.asked / 3 % (self.statements.len() / 3);
        self.asked += 1;
        let statement = &self.statements[table * 3 + which.min(2) as usize];
        let rows: Vec<mysql::Row> = self
            .connection
            .exec(statement, Params::Positional(values))
            .map_err(|error| of_statement("SELECT", error))?;
        Ok(rows.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_as_many_places_as_values_and_a_guided_one_names_index_and_order() {
        let places = [0, 1, 2].map(|which| query_text(which, "t", QueryPlan::NONE).matches('?').count());
        assert_eq!(places, [6, 3, 6]);
        let guided = query_text(0, "t", QueryPlan { guided: true, ..QueryPlan::NONE });
        assert!(guided.contains("FORCE INDEX (price_dateandtime_customerid)"), "{guided}");
        assert!(guided.ends_with("ORDER BY price, dateandtime, customerid LIMIT 10"), "{guided}");
    }

    #[test]
    fn an_insert_has_a_place_for_each_value() {
        let text = insert_text("t", &["a".to_owned(), "b".to_owned()], 3);
        assert_eq!(text, "INSERT INTO t (a, b) VALUES (?,?),(?,?),(?,?)");
    }
}
