//! The sysbench tables, `point` and the transaction mix over MySQL's protocol.
//!
//! Tables are those of sysbench: `sbtestN(id INT primary key, k INT, c CHAR(120), pad CHAR(60))`, an index
//! `k_N` on `k`. Rows and keys are the same as over MongoDB's protocol, from the same seed; the ranges of
//! different values are sorted, as in sysbench's SQL. Statements are prepared once per connection and table.
//! Each stands alone (autocommit), as over MongoDB's protocol, or the statements of a transaction are one
//! ([`Wrapping::Transaction`]), as sysbench's own are.

mod client;

use crate::driver::{count_rows, of_sql, quoted};
use crate::insert::{InsertSource, SqlLoader, recreate_table};
use crate::measured_run::SqlWork;
use crate::server::SqlServer;
use client::{ClientWays, SqlClient};
use mysql::Conn;
use mysql::prelude::Queryable;
use pando_bench::client::Clients;
use pando_bench::error::BenchError;
use pando_bench::target::Target;
use pando_bench::workload::linkbench::store::Transactions as TransactionLevel;
use pando_bench::workload::load::{IndexBuild, Loading, TimedStep};
use pando_bench::workload::point::PointQuery;
use pando_bench::workload::sysbench::documents::{DataSet, Documents};
use pando_bench::workload::sysbench::loading::Load;
use pando_bench::workload::sysbench::mix::Transactions;
use pando_bench::workload::sysbench::workload::Sysbench;
use pando_bench::workload::{Finding, RunNumber, Workload};
use pando_measuring::random::Random;
use pando_measuring::random::distribution::Distribution;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The number of indexes of a table on `k` alone.
const INDEXES_ON_K: &str = "SELECT COUNT(*) FROM (SELECT index_name FROM information_schema.statistics \
    WHERE table_schema = ? AND table_name = ? GROUP BY index_name HAVING COUNT(*) = 1 AND MIN(column_name) = 'k') AS on_k";

/// What is asked.
#[derive(Clone, Debug)]
pub enum Work {
    /// One row by its key.
    Point(PointQuery),
    /// The transaction mix.
    Mix(Sysbench),
}

/// What is one transaction to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    /// Each statement.
    Statement,
    /// The statements of a transaction of the mix, between BEGIN and COMMIT.
    Transaction,
}

/// The workload against servers of this protocol.
#[derive(Clone, Debug)]
pub struct SqlWorkload {
    work: Work,
    wrapping: Wrapping,
    server: SqlServer,
}

impl SqlWorkload {
    /// Point queries against these servers.
    pub fn of_point(point: PointQuery, server: SqlServer) -> Result<SqlWorkload, BenchError> {
        SqlWorkload::new(Work::Point(point), Wrapping::Statement, server)
    }

    /// The transaction mix against these servers.
    pub fn of_mix(sysbench: Sysbench, server: SqlServer) -> Result<SqlWorkload, BenchError> {
        let wrapping = match sysbench.transactions {
            TransactionLevel::TokuMx => {
                return Err(BenchError::option("txn", "MySQL's protocol has none and session"));
            }
            TransactionLevel::Session => Wrapping::Transaction,
            TransactionLevel::None | TransactionLevel::TwoPhase => Wrapping::Statement,
        };
        SqlWorkload::new(Work::Mix(sysbench), wrapping, server)
    }

    /// This work against these servers, if their engine can do it.
    fn new(work: Work, wrapping: Wrapping, server: SqlServer) -> Result<SqlWorkload, BenchError> {
        if wrapping == Wrapping::Transaction && !server.engine().has_transactions() {
            let cause = format!("the engine {} has no transactions", server.engine().name());
            return Err(BenchError::option("txn", cause));
        }
        Ok(SqlWorkload { work, wrapping, server })
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

    fn client_ways(&self) -> ClientWays {
        let range_size = match &self.work {
            Work::Point(_) => 1,
            Work::Mix(sysbench) => i32::try_from(sysbench.mix.range_size).unwrap_or(i32::MAX),
        };
        let (data, wrapping) = (self.load().data.clone(), self.wrapping);
        ClientWays { data, range_size, api: self.server.api(), wrapping }
    }

    fn count(&self, connection: &mut Conn, number: u32) -> Result<u64, BenchError> {
        count_rows(connection, &table(&self.load().data, number))
    }

    /// Whether there is an index on `k`, and only where one is wanted.
    fn check_index(&self, connection: &mut Conn) -> Result<(), BenchError> {
        let data = &self.load().data;
        let found: Option<u64> = connection.exec_first(INDEXES_ON_K, data.place(1)).map_err(of_sql)?;
        let found = found.unwrap_or(0) > 0;
        if found == (self.load().index != IndexBuild::Never) {
            return Ok(());
        }
        Err(BenchError::DataSetIndex { namespace: table(data, 1), found })
    }

    fn create_index(&self, connection: &mut Conn, number: u32) -> Result<(), BenchError> {
        let table = table(&self.load().data, number);
        connection.query_drop(format!("CREATE INDEX k_{number} ON {table}(k)")).map_err(of_sql)
    }
}

/// A table's name with its database.
fn table(data: &DataSet, number: u32) -> String {
    let (database, name) = data.place(number);
    format!("{}.{name}", quoted(&database))
}

impl Workload for SqlWorkload {
    fn original(&self) -> Option<&dyn Workload> {
        Some(self.inner())
    }

    fn summary(&self) -> String {
        let summary = self.inner().summary();
        match self.wrapping {
            Wrapping::Statement => summary,
            Wrapping::Transaction => format!(
                "{}; each transaction between BEGIN and COMMIT",
                summary.split(';').next().unwrap_or_default()
            ),
        }
    }

    fn parameters(&self) -> serde_json::Value {
        let mut parameters = self.inner().parameters();
        parameters["wrapping"] = format!("{:?}", self.wrapping).to_lowercase().into();
        parameters
    }

    fn loading(&self) -> Option<&dyn Loading> {
        Some(self)
    }

    fn clients(&self, _target: &Target, count: u32, run: RunNumber) -> Result<Clients, BenchError> {
        let Load { data, generator, seed, .. } = self.load();
        let mut clients = Clients::default();
        for client in 0..count {
            let units = match &self.work {
                Work::Point(point) => Units::Points {
                    keys: Distribution::new(point.shape, data.documents),
                    random: Random::for_client(*generator, *seed, run.stream(client)),
                },
                Work::Mix(sysbench) => Units::Transactions(Transactions::new(
                    sysbench.mix,
                    data,
                    *generator,
                    *seed,
                    run.stream(client),
                )),
            };
            let connection = self.server.connect_client(client)?;
            clients.tasks.push(Box::new(SqlClient::new(connection, self.client_ways(), units)));
        }
        Ok(clients)
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
}

impl SqlWork for SqlWorkload {
    fn server(&self) -> &SqlServer {
        &self.server
    }

    fn first_table(&self) -> String {
        table(&self.load().data, 1)
    }

    fn on_null_server(&self, server: SqlServer) -> SqlWorkload {
        SqlWorkload { server, ..self.clone() }
    }
}

impl Loading for SqlWorkload {
    fn summary(&self) -> String {
        format!("{}; by SQL, engine {}", Loading::summary(self.load()), self.server.engine().name())
    }

    fn parameters(&self) -> serde_json::Value {
        let mut parameters = Loading::parameters(self.load());
        self.server.add_parameters(&mut parameters);
        parameters
    }

    fn is_there(&self, _target: &Target) -> Result<bool, BenchError> {
        Ok(self.count(&mut self.server.connect()?, 1)? > 0)
    }

    fn prepare(&self, _target: &Target) -> Result<(), BenchError> {
        let mut connection = self.server.connect()?;
        let data = &self.load().data;
        for number in 1..=data.collections {
            let (database, name) = data.place(number);
            let definition = format!(
                "(id INT NOT NULL PRIMARY KEY, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', \
                 pad CHAR(60) NOT NULL DEFAULT '') {}",
                self.server.table_end()
            );
            recreate_table(&mut connection, &database, &name, &definition)?;
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
        let (next, failed) = (Arc::new(AtomicU32::new(1)), Arc::<AtomicBool>::default());
        let mut clients = Clients::default();
        for client in 0..self.load().connections {
            let source = SqlRows { load: self.load().clone(), next: next.clone(), current: None };
            let connection = self.server.connect_client(client)?;
            clients.tasks.push(Box::new(SqlLoader::new(connection, source, failed.clone())));
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
        self.check_index(&mut connection)
    }
}

/// The rows of a client that loads: table after table.
struct SqlRows {
    load: Load,
    next: Arc<AtomicU32>,
    current: Option<(u32, Documents)>,
}

impl InsertSource for SqlRows {
    fn next_insert(&mut self, statement: &mut String) -> Option<u32> {
        while self.current.as_ref().is_none_or(|(_, rows)| rows.left() == 0) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if !(1..=self.load.data.collections).contains(&number) {
                return None;
            }
            let Load { generator, seed, data, .. } = &self.load;
            self.current = Some((number, Documents::new(*generator, *seed, number, data.documents)));
        }
        let (number, rows) = self.current.as_mut()?;
        let count = rows.left().min(self.load.batch);
        let _ = write!(statement, "INSERT INTO {} (id, k, c, pad) VALUES ", table(&self.load.data, *number));
        for row in 0..count {
            let next = rows.next_row();
            let comma = if row == 0 { "" } else { "," };
            // Texts are digits and dashes.
            let _ = write!(statement, "{comma}({},{},'{}','{}')", next.id, next.k, next.c, next.pad);
        }
        Some(count)
    }
}

/// Where a client's units come from.
enum Units {
    Points { keys: Distribution, random: Random },
    Transactions(Transactions),
}
