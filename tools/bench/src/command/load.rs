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

/// The options of the runs of a workload.
const OF_RUNS: [&str; 12] = [
    "clients",
    "threads",
    "duration",
    "warmup",
    "rate",
    "arrivals",
    "repeats",
    "first-run",
    "interval",
    "no-ceiling",
    "null-server",
    "load",
];
const NO_RUNS: &str = "a load has no runs: give this option to point or sysbench, which load what is missing; \
                       the number of connections that load is --load-connections";

pub fn command() -> Command {
    Command::new("load")
        .about("Loads the documents of point and sysbench, and measures that")
        .args(cli::server_arguments())
        .args(cli::sysbench::data_arguments())
        .args(cli::load_arguments())
        .args(cli::sysbench::index_arguments())
        .args(OF_RUNS.map(|name| cli::option_of_others(name, NO_RUNS)))
        .mut_arg("profile", |_| cli::option_of_others("profile", NO_RUNS))
        .mut_arg("readahead-sweep", |_| cli::option_of_others("readahead-sweep", NO_RUNS))
        .mut_arg("force-checkpoint", |argument| {
            argument.help("Have the server write a checkpoint after the load, and take sizes once more")
        })
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
    if options.force_checkpoint {
        // Better refused now than after a load.
        phases::forced_checkpoint(found.server.as_ref())?;
    }
    if let Some(loading) = workload.loading() {
        phases::load(loading, "sysbench", &mut found, &options)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_runs_are_refused_with_the_commands_that_have_them() {
        let of_runs = cli::run_arguments().into_iter().map(|argument| argument.get_id().to_string());
        for name in of_runs.chain(["load", "profile", "readahead-sweep"].map(str::to_owned)) {
            let arguments = ["load".to_owned(), format!("--{name}")];
            let refusal = command().try_get_matches_from(arguments).expect_err("it is of runs").to_string();
            assert!(refusal.contains("give this option to point or sysbench"), "{name}: {refusal}");
        }
        let help = command().render_help().to_string();
        assert!(!help.contains("--no-ceiling") && help.contains("a checkpoint after the load"), "{help}");
    }
}
