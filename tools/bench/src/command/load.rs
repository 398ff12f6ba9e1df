//! `pando-bench load`: loads the sysbench documents, and reports what that cost.

use super::{Call, find_server, phases};
use crate::cli;
use crate::error::BenchError;
use crate::protocol::Job;
use crate::workload::Workload;
use crate::workload::point::{PointQuery, Projection};
use clap::Command;
use pando_measuring::random::distribution::Shape;
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("load")
        .about("Loads the documents of point and sysbench, and measures that")
        .args(cli::server_arguments())
        .args(cli::sysbench::data_arguments())
        .args(cli::load_arguments())
        .args(cli::sysbench::index_arguments())
}

pub fn run(call: Call<'_>) -> Result<ExitCode, BenchError> {
    let mut options = cli::server_options(call.matches);
    let load = cli::sysbench::load(call.matches);
    let point = PointQuery { load, shape: Shape::Uniform, projection: Projection::C };
    options.foreign = call.foreign_server()?;
    let workload: Box<dyn Workload> = match &options.foreign {
        Some(server) => server.workload(Job::Point(point))?,
        None => Box::new(point),
    };
    let mut found = find_server(&options)?;
    if let Some(loading) = workload.loading() {
        phases::load(loading, "sysbench", &mut found, &options)?;
    }
    Ok(ExitCode::SUCCESS)
}
