//! LinkBench over MySQL's protocol: its own tables and statements.
//!
//! # Tables
//! `nodetable`, `linktable` with the primary key (link_type, id1, id2) and the index `id1_type` that covers
//! lists, `counttable`. A count has a sign: without transactions a link may be hidden before who showed it
//! has counted it, and a sum is right at the end only if no part of it was left out (the original stops at
//! 0). The tables are not partitioned (the original's README advises 16 partitions by id1 for large graphs:
//! `--mysql-table-options`). A fourth table, `loadtable`, has one row: the size of the graph as it was
//! loaded.
//!
//! # A write of a link
//! 1. INSERT, or on a duplicate key make it visible. The rows that this affected say what was there: 1
//!    nothing, 2 a hidden link, 0 a visible one.
//! 2. A link that was there gets its data; one that was not visible is counted.
//!
//! Both between BEGIN and COMMIT with [`Transactions::Session`], which is the original's way; deletes then
//! read the link under a lock first. A deadlock or a lock timeout is tried again and counted. (The original
//! sends COMMIT in one message with the last statement; prepared statements go one by one.) Without
//! transactions a delete is one conditional UPDATE, whose affected rows say whether it was visible, so that
//! counts are right when nothing is under way.
//!
//! # Connections
//! Two a client, as the original: one for writes, one for reads, which are not in a transaction.

mod statements;

use crate::driver::{
    Ending, Transacting, count_rows, in_transaction, is_transient, of_sql, of_statement, quoted,
};
use crate::insert::recreate_table;
use crate::measured_run::SqlWork;
use crate::server::SqlServer;
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Value};
use pando_bench::client::Clients;
use pando_bench::error::BenchError;
use pando_bench::target::Target;
use pando_bench::workload::linkbench::LinkBench;
use pando_bench::workload::linkbench::store::{
    CheckExtent, Contents, Count, Found, Link, LinkChange, LinkDatabase, LinkKey, LinkStore, ListQuery,
    Listed, LoadRecord, Node, StoreChoice, Transactions,
};
use pando_bench::workload::load::Loading;
use pando_bench::workload::{Finding, RunNumber, Workload};
use statements::{Reading, Statements, Writing};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// LinkBench's only type of nodes.
const NODE_TYPE: u32 = 2048;
/// How often a write is tried at most.
const ATTEMPTS_MAX: u32 = 1000;

const NODES: &str = "nodetable";
const LINKS: &str = "linktable";
const COUNTS: &str = "counttable";
/// The table of the record of the load.
const LOAD: &str = "loadtable";

/// The server's code of a table that is not there.
const NO_SUCH_TABLE: u16 = 1146;

/// The workload against servers of this protocol.
#[derive(Clone, Debug)]
pub struct SqlLinkBench {
    inner: LinkBench,
    server: SqlServer,
}

impl SqlLinkBench {
    /// This workload against these servers.
    pub fn new(inner: LinkBench, server: SqlServer) -> SqlLinkBench {
        SqlLinkBench { inner: inner.on(Arc::new(server.clone())), server }
    }
}

impl Workload for SqlLinkBench {
    fn original(&self) -> Option<&dyn Workload> {
        Some(&self.inner)
    }

    fn loading(&self) -> Option<&dyn Loading> {
        self.inner.loading()
    }

    fn prepare(&self, target: &Target) -> Result<(), BenchError> {
        Workload::prepare(&self.inner, target)
    }

    fn clients(&self, target: &Target, clients: u32, run: RunNumber) -> Result<Clients, BenchError> {
        Workload::clients(&self.inner, target, clients, run)
    }

    fn verify(&self, target: &Target) -> Result<Vec<Finding>, BenchError> {
        self.inner.verify(target)
    }
}

impl SqlWork for SqlLinkBench {
    fn server(&self) -> &SqlServer {
        &self.server
    }

    fn first_table(&self) -> String {
        table(self.inner.database(), LINKS)
    }

    fn on_null_server(&self, server: SqlServer) -> SqlLinkBench {
        SqlLinkBench::new(self.inner.endless(), server)
    }
}

impl StoreChoice for SqlServer {
    fn database(&self, name: &str, transactions: Transactions) -> Box<dyn LinkDatabase> {
        Box::new(SqlDatabase {
            server: self.clone(),
            database: name.to_owned(),
            transactions,
            clients: AtomicU32::new(0),
        })
    }
}

/// A table's name with its database.
fn table(database: &str, name: &str) -> String {
    format!("{}.{name}", quoted(database))
}

/// Servers of this protocol as LinkBench's database.
#[derive(Debug)]
struct SqlDatabase {
    server: SqlServer,
    database: String,
    transactions: Transactions,
    /// Clients so far: the endpoints take turns.
    clients: AtomicU32,
}

impl SqlDatabase {
    fn table(&self, name: &str) -> String {
        table(&self.database, name)
    }

    /// The highest number in a column that an index begins with; 0 if there is none.
    fn highest(&self, name: &str, column: &str) -> Result<i64, BenchError> {
        let query = format!("SELECT {column} FROM {} ORDER BY {column} DESC LIMIT 1", self.table(name));
        Ok(self.server.connect()?.query_first(query).map_err(of_sql)?.unwrap_or(0))
    }
}

impl LinkDatabase for SqlDatabase {
    fn check_ability(&self) -> Result<(), BenchError> {
        let engine = self.server.engine();
        Err(BenchError::option(
            "txn",
            match self.transactions {
                Transactions::None => return Ok(()),
                Transactions::Session if engine.has_transactions() => return Ok(()),
                Transactions::Session => {
                    format!("the engine {} has no transactions: use none", engine.name())
                }
                Transactions::TwoPhase | Transactions::TokuMx => format!(
                    "{} is a level of MongoDB's protocol: over MySQL's there are none and session",
                    self.transactions.name()
                ),
            },
        ))
    }

    fn recreate(&self) -> Result<(), BenchError> {
        let mut connection = self.server.connect()?;
        let end = format!("{} CHARACTER SET latin1", self.server.table_end());
        let definitions = [
            // First: no record may stand beside another graph than its own.
            (
                LOAD,
                "(first_id BIGINT NOT NULL PRIMARY KEY, nodes BIGINT UNSIGNED NOT NULL, links BIGINT UNSIGNED NOT NULL)",
            ),
            (
                NODES,
                "(id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, type INT UNSIGNED NOT NULL, \
                 version BIGINT UNSIGNED NOT NULL, time INT UNSIGNED NOT NULL, data MEDIUMBLOB NOT NULL)",
            ),
            (
                LINKS,
                "(id1 BIGINT UNSIGNED NOT NULL, id2 BIGINT UNSIGNED NOT NULL, link_type BIGINT UNSIGNED NOT NULL, \
                 visibility TINYINT NOT NULL, data VARBINARY(255) NOT NULL, time BIGINT UNSIGNED NOT NULL, \
                 version INT UNSIGNED NOT NULL, PRIMARY KEY (link_type, id1, id2), \
                 KEY id1_type (id1, link_type, visibility, time, id2, version, data))",
            ),
            (
                COUNTS,
                "(id BIGINT UNSIGNED NOT NULL, link_type BIGINT UNSIGNED NOT NULL, count INT NOT NULL, \
                 time BIGINT UNSIGNED NOT NULL, version BIGINT UNSIGNED NOT NULL, PRIMARY KEY (id, link_type))",
            ),
        ];
        definitions.iter().try_for_each(|(table, columns)| {
            recreate_table(&mut connection, &self.database, table, &format!("{columns} {end}"))
        })
    }

    fn record_load(&self, record: LoadRecord) -> Result<(), BenchError> {
        let LoadRecord { first_id, nodes, links } = record;
        let insert = format!("INSERT INTO {} VALUES ({first_id}, {nodes}, {links})", self.table(LOAD));
        self.server.connect()?.query_drop(insert).map_err(of_sql)
    }

    fn load_record(&self) -> Result<Option<LoadRecord>, BenchError> {
        let query = format!("SELECT first_id, nodes, links FROM {}", self.table(LOAD));
        let found: Option<(i64, u64, u64)> = match self.server.connect()?.query_first(query) {
            Err(mysql::Error::MySqlError(error)) if error.code == NO_SUCH_TABLE => return Ok(None),
            found => found.map_err(of_sql)?,
        };
        Ok(found.map(|(first_id, nodes, links)| LoadRecord { first_id, nodes, links }))
    }

    fn contents(&self) -> Result<Contents, BenchError> {
        let mut connection = self.server.connect()?;
        Ok(Contents {
            nodes: count_rows(&mut connection, &self.table(NODES))?,
            links: count_rows(&mut connection, &self.table(LINKS))?,
        })
    }

    fn highest_node(&self) -> Result<i64, BenchError> {
        self.highest(NODES, "id")
    }

    fn highest_linked_node(&self) -> Result<i64, BenchError> {
        self.highest(LINKS, "id1")
    }

    fn open(&self, _clients: u32) -> Result<Box<dyn LinkStore>, BenchError> {
        let client = self.clients.fetch_add(1, Ordering::Relaxed);
        let mut writes = self.server.connect_client(client)?;
        let mut reads = self.server.connect_client(client)?;
        let tables = [NODES, LINKS, COUNTS].map(|name| self.table(name));
        let statements = Statements::prepare(&mut writes, &mut reads, &tables).map_err(of_sql)?;
        let transactions = self.transactions;
        Ok(Box::new(SqlStore { writes, reads, tables, statements, transactions, retries: 0 }))
    }

    fn check(&self, extent: CheckExtent) -> Result<Option<Finding>, BenchError> {
        let (of_links, of_counts) = match extent {
            CheckExtent::Nothing => return Ok(None),
            CheckExtent::Full => (String::new(), String::new()),
            CheckExtent::Sample { nodes, id_max } => {
                let step = (id_max / i64::from(nodes)).max(1);
                let ids: Vec<String> = (1..=id_max)
                    .step_by(usize::try_from(step).unwrap_or(usize::MAX))
                    .map(|id| id.to_string())
                    .collect();
                let ids = ids.join(",");
                (format!("AND id1 IN ({ids})"), format!("WHERE id IN ({ids})"))
            }
        };
        // A group for each node and type that has visible links or a count, with the difference of the two.
        let query = format!(
            "SELECT COUNT(*), COALESCE(SUM(difference <> 0), 0) FROM (SELECT SUM(number) AS difference FROM \
             (SELECT id1 AS id, link_type, 1 AS number FROM {} WHERE visibility = 1 {of_links} UNION ALL \
             SELECT id, link_type, -CAST(count AS SIGNED) FROM {} {of_counts}) AS both_sides \
             GROUP BY id, link_type) AS pairs",
            self.table(LINKS),
            self.table(COUNTS)
        );
        let row: Option<(u64, u64)> = self.server.connect()?.query_first(query).map_err(of_sql)?;
        let (checked, wrong) = row.unwrap_or_default();
        Ok(Some(Finding { what: "counts against visible links".to_owned(), checked, wrong }))
    }
}

/// What a client is.
struct SqlStore {
    writes: Conn,
    reads: Conn,
    tables: [String; 3],
    statements: Statements,
    transactions: Transactions,
    retries: u64,
}

impl Transacting for SqlStore {
    fn control(&mut self, statement: &'static str) -> Result<(), mysql::Error> {
        self.writes.control(statement)
    }
}

impl SqlStore {
    /// Does something that keeps a link and its count together; again and again while the server says that it
    /// may work now.
    fn atomically<T>(
        &mut self,
        what: &str,
        work: impl Fn(&mut SqlStore) -> Result<T, mysql::Error>,
    ) -> Result<T, BenchError> {
        let mut attempts = 1;
        loop {
            let outcome = match self.transactions {
                Transactions::Session => in_transaction(self, |store| Ok((work(store)?, Ending::Commit))),
                _ => work(self),
            };
            match outcome {
                Err(error) if is_transient(&error) && attempts < ATTEMPTS_MAX => {
                    attempts += 1;
                    self.retries += 1;
                }
                outcome => return outcome.map_err(|error| of_statement(what, error)),
            }
        }
    }

    /// A statement that is atomic by itself.
    fn write(&mut self, which: Writing, values: Vec<Value>) -> Result<u64, mysql::Error> {
        let statement = self.statements.of(which).clone();
        self.writes.exec_drop(&statement, Params::Positional(values))?;
        Ok(self.writes.affected_rows())
    }

    /// Without a transaction each statement is tried again by itself: what was done must not be done twice,
    /// only because what follows was not free.
    fn write_once(&mut self, which: Writing, values: Vec<Value>) -> Result<u64, mysql::Error> {
        let mut attempts = 1;
        loop {
            match self.write(which, values.clone()) {
                Err(error)
                    if self.transactions == Transactions::None
                        && is_transient(&error)
                        && attempts < ATTEMPTS_MAX =>
                {
                    attempts += 1;
                    self.retries += 1;
                }
                outcome => return outcome,
            }
        }
    }

    fn hide(&mut self, key: LinkKey) -> Result<Found, mysql::Error> {
        let key_values = key_values(key);
        if self.transactions == Transactions::Session {
            let statement = self.statements.read_for_delete.clone();
            let visibility: Option<i64> =
                self.writes.exec_first(&statement, Params::Positional(key_values.clone()))?;
            if visibility != Some(1) {
                return Ok(Found::No);
            }
        }
        let changed = self.write_once(Writing::HideLink, key_values)?;
        Ok(Found::of(i64::try_from(changed).unwrap_or(i64::MAX)))
    }

    /// Many rows in one INSERT.
    fn load(&mut self, place: usize, columns: &str, rows: Vec<String>) -> Result<(), BenchError> {
        if rows.is_empty() {
            return Ok(());
        }
        let expected = rows.len() as u64;
        let text = format!("INSERT INTO {} ({columns}) VALUES {}", self.tables[place], rows.join(","));
        self.writes.query_drop(text).map_err(|error| of_statement("INSERT", error))?;
        let inserted = self.writes.affected_rows();
        if inserted == expected {
            return Ok(());
        }
        let message = format!("{inserted} of {expected} rows inserted");
        Err(BenchError::Refused { command: "INSERT".to_owned(), code: 0, message })
    }

    /// How many rows a prepared SELECT of the other connection gives, and the first value of the last one.
    fn read(&mut self, which: Reading, values: Vec<Value>) -> Result<(u32, Option<Value>), BenchError> {
        let statement = self.statements.reading(which).clone();
        let result = self.reads.exec_iter(&statement, Params::Positional(values));
        let result = result.map_err(|error| of_statement("SELECT", error))?;
        let (mut rows, mut last) = (0, None);
        for row in result {
            let mut row = row.map_err(|error| of_statement("SELECT", error))?;
            last = row.take::<Value, _>(0);
            rows += 1;
        }
        Ok((rows, last))
    }
}

fn number(value: i64) -> Value {
    Value::Int(value)
}

fn key_values(key: LinkKey) -> Vec<Value> {
    [key.id1, key.link_type, key.id2].map(number).to_vec()
}

/// Bytes as SQL has them in a text.
fn hex(data: &[u8]) -> String {
    let mut text = String::with_capacity(3 + 2 * data.len());
    text.push_str("x'");
    data.iter().for_each(|byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    });
    text.push('\'');
    text
}

/// An integer out of a column, whichever form it came in.
fn integer(value: Option<Value>) -> Option<i64> {
    value.and_then(|value| mysql::from_value_opt(value).ok())
}

impl LinkStore for SqlStore {
    fn add_link(&mut self, link: &Link) -> Result<LinkChange, BenchError> {
        self.atomically("add_link", |store| {
            let mut values = key_values(link.key);
            let data = Value::Bytes(link.data.clone());
            values.extend([data.clone(), number(link.time), number(link.version.into())]);
            let change = match store.write_once(Writing::UpsertLink, values)? {
                1 => LinkChange::Inserted,
                0 => LinkChange::Changed,
                _ => LinkChange::Shown,
            };
            if change != LinkChange::Changed {
                let values = [link.key.id1, link.key.link_type, 1, link.time, 1, link.time].map(number);
                store.write_once(Writing::AddToCount, values.to_vec())?;
            }
            if change != LinkChange::Inserted {
                let mut values = vec![data, number(link.time), number(link.version.into())];
                values.extend(key_values(link.key));
                store.write_once(Writing::ChangeLink, values)?;
            }
            Ok(change)
        })
    }

    fn delete_link(&mut self, key: LinkKey, time: i64) -> Result<Found, BenchError> {
        self.atomically("delete_link", |store| {
            if store.hide(key)? == Found::No {
                return Ok(Found::No);
            }
            let values = [key.id1, key.link_type, time, time].map(number);
            store.write_once(Writing::TakeFromCount, values.to_vec())?;
            Ok(Found::Yes)
        })
    }

    fn count_links(&mut self, id1: i64, link_type: i64) -> Result<i64, BenchError> {
        let (_, count) = self.read(Reading::Count, vec![number(id1), number(link_type)])?;
        Ok(integer(count).unwrap_or(0))
    }

    fn get_links(&mut self, id1: i64, link_type: i64, id2s: &[i64]) -> Result<u32, BenchError> {
        // A statement for each length: what is prepared has a fixed number of places.
        let statement = self.statements.multiget(&mut self.reads, &self.tables[1], id2s.len());
        let statement = statement.map_err(|error| of_statement("SELECT", error))?;
        let mut values = vec![number(id1), number(link_type)];
        values.extend(id2s.iter().map(|id2| number(*id2)));
        let rows: Vec<mysql::Row> = self
            .reads
            .exec(&statement, Params::Positional(values))
            .map_err(|error| of_statement("SELECT", error))?;
        Ok(u32::try_from(rows.len()).unwrap_or(u32::MAX))
    }

    fn list_links(&mut self, query: ListQuery) -> Result<Listed, BenchError> {
        let ListQuery { id1, link_type, time_to, offset, limit } = query;
        let values = [id1, link_type, time_to, i64::from(offset), i64::from(limit)].map(number);
        let (links, last) = self.read(Reading::List, values.to_vec())?;
        Ok(Listed { links, last_time: integer(last) })
    }

    fn add_node(&mut self, node: &Node) -> Result<(), BenchError> {
        let mut values = [node.id, i64::from(NODE_TYPE), node.version, node.time.into()].map(number).to_vec();
        values.push(Value::Bytes(node.data.clone()));
        self.atomically("add_node", |store| store.write_once(Writing::AddNode, values.clone()).map(|_| ()))
    }

    fn update_node(&mut self, node: &Node) -> Result<Found, BenchError> {
        let mut values = [node.version, i64::from(node.time)].map(number).to_vec();
        values.push(Value::Bytes(node.data.clone()));
        values.extend([node.id, i64::from(NODE_TYPE)].map(number));
        let changed =
            self.atomically("update_node", |store| store.write_once(Writing::ChangeNode, values.clone()))?;
        Ok(Found::of(i64::try_from(changed).unwrap_or(i64::MAX)))
    }

    fn delete_node(&mut self, id: i64) -> Result<Found, BenchError> {
        let values = [id, i64::from(NODE_TYPE)].map(number).to_vec();
        let changed =
            self.atomically("delete_node", |store| store.write_once(Writing::DeleteNode, values.clone()))?;
        Ok(Found::of(i64::try_from(changed).unwrap_or(i64::MAX)))
    }

    fn get_node(&mut self, id: i64) -> Result<Found, BenchError> {
        let (_, node_type) = self.read(Reading::Node, vec![number(id)])?;
        let is_one = integer(node_type) == Some(i64::from(NODE_TYPE));
        Ok(if is_one { Found::Yes } else { Found::No })
    }

    fn load_nodes(&mut self, nodes: &[Node]) -> Result<(), BenchError> {
        let row = |node: &Node| {
            format!("({},{NODE_TYPE},{},{},{})", node.id, node.version, node.time, hex(&node.data))
        };
        self.load(0, "id, type, version, time, data", nodes.iter().map(row).collect())
    }

    fn load_links(&mut self, links: &[Link]) -> Result<(), BenchError> {
        let row = |link: &Link| {
            let LinkKey { id1, link_type, id2 } = link.key;
            format!("({id1},{id2},{link_type},1,{},{},{})", hex(&link.data), link.time, link.version)
        };
        let columns = "id1, id2, link_type, visibility, data, time, version";
        self.load(1, columns, links.iter().map(row).collect())
    }

    fn load_counts(&mut self, counts: &[Count]) -> Result<(), BenchError> {
        let row = |count: &Count| {
            let Count { id, link_type, count, time } = *count;
            format!("({id},{link_type},{count},{time},0)")
        };
        self.load(2, "id, link_type, count, time, version", counts.iter().map(row).collect())
    }

    fn take_retries(&mut self) -> u64 {
        std::mem::take(&mut self.retries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_sql_reads_them() {
        assert_eq!([hex(&[]), hex(&[0, 39, 255])], ["x''", "x'0027ff'"]);
        assert_eq!(integer(Some(Value::Bytes(b"12".to_vec()))), Some(12));
        assert_eq!(integer(Some(Value::UInt(7))), Some(7));
        assert_eq!(integer(None), None);
    }
}
