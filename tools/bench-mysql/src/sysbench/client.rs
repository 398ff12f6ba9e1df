//! One client of the sysbench tables over MySQL's protocol: its statements, prepared when they are first used
//! on a table.
//!
//! With HANDLER, the table is opened under a name of its own once, and a point reads the whole row by the
//! primary key.

use super::{Units, Wrapping, table};
use crate::driver::{DUPLICATE_KEY, Ending, Transacting, in_transaction, is_transient};
use crate::server::Api;
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};
use pando_bench::client::{ClientState, Performed, Statement as Part, Task, Turn, Verdict};
use pando_bench::workload::sysbench::documents::DataSet;
use pando_bench::workload::sysbench::mix::{Statement, Transaction};
use pando_measuring::random::mask;
use std::collections::HashMap;
use std::time::Instant;

/// How often a statement, or a transaction, is tried once more.
const RETRIES_MAX: u64 = 100;

/// A client that asks.
pub struct SqlClient {
    connection: Conn,
    prepared: HashMap<(u32, usize), mysql::Statement>,
    data: DataSet,
    range_size: i32,
    api: Api,
    wrapping: Wrapping,
    units: Units,
    current: Transaction,
}

/// What a client is told.
#[derive(Clone, Debug)]
pub struct ClientWays {
    /// The tables.
    pub data: DataSet,
    /// Rows of a range.
    pub range_size: i32,
    /// How a point is read.
    pub api: Api,
    /// What is one transaction.
    pub wrapping: Wrapping,
}

impl SqlClient {
    /// A client over this connection.
    pub fn new(connection: Conn, ways: ClientWays, units: Units) -> SqlClient {
        let ClientWays { data, range_size, api, wrapping } = ways;
        let current = Transaction { collection: 1, statements: Vec::new() };
        SqlClient { connection, prepared: HashMap::new(), data, range_size, api, wrapping, units, current }
    }

    /// The statement as this connection has prepared it for its table.
    fn prepared(&mut self, statement: &Statement) -> Result<mysql::Statement, mysql::Error> {
        let number = self.current.collection;
        let place = (number, statement.kind().index());
        if let Some(prepared) = self.prepared.get(&place) {
            return Ok(prepared.clone());
        }
        let table = table(&self.data, number);
        let text = match (self.api, statement) {
            (Api::Handler, Statement::Point { .. }) => {
                self.connection.query_drop(format!("HANDLER {table} OPEN AS h{number}"))?;
                format!("HANDLER h{number} READ `PRIMARY` = (?)")
            }
            _ => text(statement, &table),
        };
        let prepared = self.connection.prep(text)?;
        self.prepared.insert(place, prepared.clone());
        Ok(prepared)
    }

    /// Does a statement; prepares it if it is the first of its kind on this table.
    fn execute(&mut self, statement: &Statement) -> Result<Verdict, mysql::Error> {
        let prepared = self.prepared(statement)?;
        let connection = &mut self.connection;
        let to = |from: i32| from.saturating_add(self.range_size - 1);
        let found = |found: bool| if found { Verdict::Done } else { Verdict::Missed };
        Ok(match statement {
            Statement::Point { id } => {
                let rows: Vec<Row> = connection.exec(&prepared, (id,))?;
                let c = rows.first().and_then(|row| row.get::<String, _>("c"));
                match (rows.len(), c) {
                    (0, _) => Verdict::Missed,
                    (1, Some(text)) if text.len() == mask::C.len() => Verdict::Done,
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
            Units::Transactions(transactions) => transactions.next_transaction(),
        };
        Turn::Request
    }

    fn perform(&mut self) -> Performed {
        let statements = std::mem::take(&mut self.current.statements);
        let mut performed = Performed {
            statements: Vec::new(),
            verdict: Verdict::Done,
            operations: 1,
            retries: 0,
            client: ClientState::GoesOn,
        };
        loop {
            performed.statements.clear();
            match self.perform_all(&statements, &mut performed) {
                // Of a transaction that was rolled back nothing is left: it is done once more.
                Err(error) if is_transient(&error) && performed.retries < RETRIES_MAX => {
                    performed.retries += 1;
                }
                Err(error) => {
                    if !matches!(error, mysql::Error::MySqlError(_)) {
                        performed.client = ClientState::Out;
                    }
                    performed.verdict = Verdict::Failed(error.to_string());
                    return performed;
                }
                Ok(()) => return performed,
            }
        }
    }
}

impl Transacting for SqlClient {
    fn control(&mut self, statement: &'static str) -> Result<(), mysql::Error> {
        self.connection.control(statement)
    }
}

impl SqlClient {
    /// Does all statements of a unit, as one transaction if they are to be that.
    fn perform_all(
        &mut self,
        statements: &[Statement],
        performed: &mut Performed,
    ) -> Result<(), mysql::Error> {
        if self.wrapping == Wrapping::Statement {
            return self.perform_statements(statements, performed);
        }
        in_transaction(self, |client| {
            client.perform_statements(statements, performed)?;
            let is_wrong = matches!(performed.verdict, Verdict::Failed(_));
            Ok(((), if is_wrong { Ending::Rollback } else { Ending::Commit }))
        })
    }

    /// Does them one by one, until an answer is wrong.
    fn perform_statements(
        &mut self,
        statements: &[Statement],
        performed: &mut Performed,
    ) -> Result<(), mysql::Error> {
        for statement in statements {
            let began = Instant::now();
            let verdict = self.perform_one(statement, &mut performed.retries)?;
            // A unit of one statement has no kinds.
            if matches!(self.units, Units::Points { .. }) {
                performed.verdict = verdict;
                return Ok(());
            }
            let (kind, latency) = (statement.kind(), began.elapsed());
            performed.statements.push(Part { kind, latency, verdict: verdict.clone() });
            if matches!(verdict, Verdict::Failed(_)) {
                performed.verdict = verdict;
                break;
            }
        }
        Ok(())
    }

    /// Does one; outside a transaction once more while the server says that it may work now.
    fn perform_one(&mut self, statement: &Statement, retries: &mut u64) -> Result<Verdict, mysql::Error> {
        loop {
            match self.execute(statement) {
                // Who deletes the same row inserts it, too: the second one finds it there.
                Err(mysql::Error::MySqlError(error)) if error.code == DUPLICATE_KEY => {
                    return Ok(Verdict::Missed);
                }
                Err(error)
                    if self.wrapping == Wrapping::Statement
                        && is_transient(&error)
                        && *retries < RETRIES_MAX =>
                {
                    *retries += 1;
                }
                outcome => return outcome,
            }
        }
    }
}
