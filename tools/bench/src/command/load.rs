//! `pando-bench load`: loads the sysbench documents, and reports what that cost.

use super::{find_server, phases};
use crate::cli::{self, server_options};
use crate::error::BenchError;
use clap::{ArgMatches, Command};
use std::process::ExitCode;

/// The subcommand's arguments.
pub fn command() -> Command {
    Command::new("load")
        .about("Loads the documents of point and sysbench, and measures that")
        .args(cli::server_arguments())
        .args(cli::sysbench::data_arguments())
        .args(cli::load_arguments())
        .args(cli::sysbench::index_arguments())
}

/// Runs the subcommand.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, BenchError> {
    #[cfg(feature = "mysql")]
    if let Some(server) = cli::sql_server(matches)? {
        use crate::workload::point::{PointQuery, Projection};
        use crate::workload::sysbench::sql::{SqlWorkload, Work, Wrapping};
        let mut options = server_options(matches);
        options.sql = Some(server.clone());
        let (load, shape) = (cli::sysbench::load(matches), crate::random::distribution::Shape::Uniform);
        let point = Work::Point(PointQuery { load, shape, projection: Projection::C });
        let workload = SqlWorkload::new(point, Wrapping::Statement, server)?;
        let mut found = find_server(&options)?;
        phases::load(&workload, "sysbench", &mut found, &options)?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = server_options(matches);
    let mut found = find_server(&options)?;
    phases::load(&cli::sysbench::load(matches), "sysbench", &mut found, &options)?;
    Ok(ExitCode::SUCCESS)
}
