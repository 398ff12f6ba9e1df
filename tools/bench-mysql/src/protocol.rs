//! MySQL's protocol for the lab: the servers of a URI `mysql://`, and the workloads over it.

use crate::checkpoints::{self, SqlTeller};
use crate::engine::SqlEngine;
use crate::iibench::SqlIibench;
use crate::kv::SqlKeyValue;
use crate::linkbench::SqlLinkBench;
use crate::measured_run::SqlRun;
use crate::server::{Api, SCHEME, SettingsFrom, SqlServer, SqlWays};
use crate::sysbench::SqlWorkload;
use clap::ArgMatches;
use mysql::prelude::Queryable;
use pando_bench::cli;
use pando_bench::error::BenchError;
use pando_bench::protocol::{Job, Protocol, Server};
use pando_bench::target::{ServerFacts, Target};
use pando_bench::why::checkpoints::Teller;
use pando_bench::why::sizes::Sizes;
use pando_bench::why::status::Status;
use pando_bench::workload::Workload;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The protocol.
pub struct MySql;

impl Protocol for MySql {
    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn server(&self, matches: &ArgMatches) -> Result<Arc<dyn Server>, BenchError> {
        let text = |name| cli::value::<String>(matches, name);
        let posts = text("mysql-settings") == "posts";
        let ways = SqlWays {
            engine: SqlEngine::of_name(&text("mysql-engine")).expect("only names of engines are taken"),
            api: if text("api") == "handler" { Api::Handler } else { Api::Sql },
            settings: if posts { SettingsFrom::Posts } else { SettingsFrom::Server },
            table_options: text("mysql-table-options"),
        };
        Ok(Arc::new(SqlServer::of_uri(&cli::uri(matches), ways)?))
    }
}

impl Server for SqlServer {
    fn target(&self) -> Target {
        Target::at(self.address())
    }

    fn facts(&self) -> Result<ServerFacts, BenchError> {
        SqlServer::facts(self)
    }

    fn status(&self) -> Status {
        let asked =
            self.connect().ok().and_then(|mut connection| connection.query("SHOW GLOBAL STATUS").ok());
        let rows: Vec<(String, String)> = asked.unwrap_or_default();
        let is_clock = |name: &str| name.starts_with("Uptime");
        let number = |(name, value): (String, String)| Some((name, value.parse::<f64>().ok()?));
        rows.into_iter().filter(|(name, _)| !is_clock(name)).filter_map(number).collect()
    }

    fn sizes(&self, folder: Option<&Path>) -> Sizes {
        let (data, indexes) = data_and_indexes(self).unwrap_or_default();
        Sizes { data, indexes, ..Sizes::of_folder(folder) }
    }

    fn force_checkpoint(&self) -> Result<Duration, BenchError> {
        checkpoints::force(self)
    }

    fn teller(&self) -> Result<Box<dyn Teller>, BenchError> {
        Ok(Box::new(SqlTeller::open(self)?))
    }

    fn workload(&self, job: Job) -> Result<Box<dyn Workload>, BenchError> {
        let server = self.clone();
        Ok(match job {
            Job::Point(point) => Box::new(SqlRun::new(SqlWorkload::of_point(point, server)?)?),
            Job::Sysbench(sysbench) => Box::new(SqlRun::new(SqlWorkload::of_mix(sysbench, server)?)?),
            Job::KeyValue(kv) => Box::new(SqlRun::new(SqlKeyValue::new(kv, server))?),
            Job::Iibench(iibench) => Box::new(SqlRun::new(SqlIibench::new(iibench, server)?)?),
            Job::Commands(_) => {
                let cause = "these are commands of MongoDB's protocol; use a mongodb:// server";
                return Err(BenchError::option("command", cause));
            }
            Job::LinkBench(linkbench) => Box::new(SqlRun::new(SqlLinkBench::new(*linkbench, server))?),
        })
    }
}

/// Bytes of all schemas but the server's own, as the engine estimates them. Where primary keys are clustered
/// they are the data.
fn data_and_indexes(server: &SqlServer) -> Option<(Option<u64>, Option<u64>)> {
    let query = format!(
        "SELECT CAST(SUM(DATA_LENGTH) AS UNSIGNED), CAST(SUM(INDEX_LENGTH) AS UNSIGNED) FROM information_schema.TABLES \
         WHERE ENGINE = '{}' AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')",
        server.engine().name()
    );
    server.connect().ok()?.query_first(query).ok()?
}
