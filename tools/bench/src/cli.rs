//! The command line: its arguments, and what they mean in the tool's own terms.
//!
//! Arguments stand in groups (server, data, load, run) that the subcommands share, so that a name means the same in each.

use crate::counters::ProcessId;
use crate::random::Generator;
use crate::random::distribution::Shape;
use crate::run::Plan;
use crate::workload::documents::DataSet;
use crate::workload::load::{Durability, IndexBuild, Load};
use crate::workload::point::{PointQuery, Projection};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::PathBuf;

/// The most documents per collection: `_id` is an int32.
const DOCUMENTS_MAX: i64 = i32::MAX as i64;

/// The whole command line.
pub fn command() -> Command {
    Command::new("pando-bench")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Measures any server that speaks MongoDB's wire protocol. All loops are closed: see docs/benchmarks.md.")
        .subcommand_required(true)
        .subcommand(
            Command::new("point")
                .about("Point queries by _id")
                .args(server_arguments())
                .args(data_arguments())
                .args(load_arguments())
                .args(run_arguments())
                .args(point_arguments()),
        )
        .subcommand(
            Command::new("load")
                .about("Loads the documents, and measures that")
                .args(server_arguments())
                .args(data_arguments())
                .args(load_arguments()),
        )
}

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn server_arguments() -> Vec<Arg> {
    vec![
        option("uri", "URI", "The server").default_value("mongodb://127.0.0.1:27017"),
        option("server-pid", "PID", "The server's process [default: who listens on that port]")
            .value_parser(value_parser!(u32).range(1..)),
        option("data-dir", "DIR", "The server's data folder [default: as its command line says]")
            .value_parser(value_parser!(PathBuf)),
        option("out", "DIR", "Write a JSON file per run into this folder")
            .value_parser(value_parser!(PathBuf)),
    ]
}

fn data_arguments() -> Vec<Arg> {
    vec![
        option("database", "NAME", "The database").default_value("sbtest"),
        option("collections", "N", "Collections sbtest1 to sbtestN")
            .default_value("8")
            .value_parser(value_parser!(u32).range(1..=100_000)),
        option("docs", "N", "Documents per collection")
            .default_value("125000")
            .value_parser(value_parser!(u32).range(1..=DOCUMENTS_MAX)),
        option("seed", "N", "What all chance hangs on").default_value("0").value_parser(value_parser!(u64)),
        Arg::new("java-rng")
            .long("java-rng")
            .action(ArgAction::SetTrue)
            .help("Draw as the original Java tools do, bit by bit, their quirks included"),
    ]
}

fn load_arguments() -> Vec<Arg> {
    vec![
        option("secondary-index", "on|off", "Whether there is an index on k")
            .default_value("on")
            .value_parser(PossibleValuesParser::new(["on", "off"])),
        option("index-build", "WHEN", "Create it before or after the load")
            .default_value("before")
            .value_parser(PossibleValuesParser::new(["before", "after"])),
        option("load-connections", "N", "Connections that load, each one collection at a time")
            .default_value("4")
            .value_parser(value_parser!(u32).range(1..=1000)),
        option("batch", "N", "Documents per insert")
            .default_value("1000")
            .value_parser(value_parser!(u32).range(1..=100_000)),
        option("durability", "WHAT", "When an insert is answered: w:1, w:1 with j:true, or w:majority")
            .default_value("w1")
            .value_parser(PossibleValuesParser::new(["w1", "j", "majority"])),
    ]
}

fn run_arguments() -> Vec<Arg> {
    vec![
        option("clients", "N,N", "Clients, each with its own connection; one run for each number")
            .default_value("8,32,100")
            .value_delimiter(',')
            .value_parser(value_parser!(u32).range(1..=60_000)),
        option("threads", "N", "Threads of this tool that drive them")
            .default_value("1")
            .value_parser(value_parser!(u32).range(1..=1000)),
        option("duration", "SECONDS", "Length of the measured window")
            .default_value("20")
            .value_parser(value_parser!(u32).range(1..=1_000_000)),
        option("warmup", "SECONDS", "Time before it")
            .default_value("3")
            .value_parser(value_parser!(u32).range(0..=1_000_000)),
        Arg::new("no-ceiling")
            .long("no-ceiling")
            .action(ArgAction::SetTrue)
            .help("Do not measure this tool's own ceiling before each run"),
        Arg::new("null-server")
            .long("null-server")
            .action(ArgAction::SetTrue)
            .help("Measure only this tool: run against a built-in server that answers without looking"),
    ]
}

fn point_arguments() -> Vec<Arg> {
    vec![
        option("dist", "SHAPE", "Which keys: uniform, zipf:THETA, special, latest")
            .default_value("uniform")
            .value_parser(|name: &str| name.parse::<Shape>()),
        option("projection", "WHAT", "Ask for field c only, or for the full document")
            .default_value("c")
            .value_parser(PossibleValuesParser::new(["c", "full"])),
        option(
            "load",
            "WHEN",
            "Load before the runs: if the first collection is empty, always (collections are dropped), \
                                never, or always and then end",
        )
        .default_value("missing")
        .value_parser(PossibleValuesParser::new(["missing", "yes", "no", "only"])),
    ]
}

/// When to load before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadWhen {
    /// If there is nothing yet.
    Missing,
    /// Always.
    Always,
    /// Never.
    Never,
    /// Always, and then nothing else.
    Only,
}

/// The server, and where the report goes.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Its URI.
    pub uri: String,
    /// Its process, if given.
    pub process: Option<ProcessId>,
    /// Its data folder, if given.
    pub data_folder: Option<PathBuf>,
    /// The folder for JSON files, if any.
    pub out: Option<PathBuf>,
}

/// All arguments of `point`.
#[derive(Clone, Debug)]
pub struct PointOptions {
    /// The server.
    pub server: ServerOptions,
    /// How to load.
    pub load: Load,
    /// When to load.
    pub load_when: LoadWhen,
    /// What to ask.
    pub workload: PointQuery,
    /// The runs to make.
    pub plans: Vec<Plan>,
    /// Whether to measure the tool's own ceiling.
    pub with_ceiling: bool,
    /// Whether to measure nothing but the tool.
    pub null_server: bool,
}

/// The value of an argument that has a default or is required.
fn value<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> T {
    matches.get_one::<T>(name).cloned().expect("the argument has a default")
}

/// The arguments of the server group.
pub fn server_options(matches: &ArgMatches) -> ServerOptions {
    ServerOptions {
        uri: value(matches, "uri"),
        process: matches.get_one::<u32>("server-pid").copied().map(ProcessId::new),
        data_folder: matches.get_one("data-dir").cloned(),
        out: matches.get_one("out").cloned(),
    }
}

fn generator(matches: &ArgMatches) -> Generator {
    if matches.get_flag("java-rng") { Generator::Java } else { Generator::Xoshiro }
}

fn data_set(matches: &ArgMatches) -> DataSet {
    DataSet {
        database: value(matches, "database"),
        collections: value(matches, "collections"),
        documents: value(matches, "docs"),
    }
}

/// The arguments of the data and load groups.
pub fn load_options(matches: &ArgMatches) -> Load {
    let text = |name| value::<String>(matches, name);
    let index = match (text("secondary-index").as_str(), text("index-build").as_str()) {
        ("off", _) => IndexBuild::Never,
        (_, "after") => IndexBuild::After,
        _ => IndexBuild::Before,
    };
    let durability = match text("durability").as_str() {
        "j" => Durability::Journaled,
        "majority" => Durability::Majority,
        _ => Durability::W1,
    };
    Load {
        data: data_set(matches),
        generator: generator(matches),
        seed: value(matches, "seed"),
        connections: value(matches, "load-connections"),
        batch: value(matches, "batch"),
        index,
        durability,
    }
}

/// The arguments of `point`.
pub fn point_options(matches: &ArgMatches) -> PointOptions {
    let load_when = match value::<String>(matches, "load").as_str() {
        "yes" => LoadWhen::Always,
        "no" => LoadWhen::Never,
        "only" => LoadWhen::Only,
        _ => LoadWhen::Missing,
    };
    let full = value::<String>(matches, "projection") == "full";
    let plan = |clients: &u32| Plan {
        clients: *clients,
        threads: value(matches, "threads"),
        warmup_s: value(matches, "warmup"),
        duration_s: value(matches, "duration"),
    };
    PointOptions {
        server: server_options(matches),
        load: load_options(matches),
        load_when,
        workload: PointQuery {
            data: data_set(matches),
            shape: value(matches, "dist"),
            projection: if full { Projection::Full } else { Projection::C },
            generator: generator(matches),
            seed: value(matches, "seed"),
        },
        plans: matches.get_many::<u32>("clients").unwrap_or_default().map(plan).collect(),
        with_ceiling: !matches.get_flag("no-ceiling"),
        null_server: matches.get_flag("null-server"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(arguments: &[&str]) -> Option<PointOptions> {
        let all = ["pando-bench", "point"].iter().chain(arguments);
        let matches = command().try_get_matches_from(all).ok()?;
        matches.subcommand_matches("point").map(point_options)
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_documentation() {
        let options = point(&[]).expect("no argument is required");
        assert_eq!(options.plans.iter().map(|plan| plan.clients).collect::<Vec<_>>(), [8, 32, 100]);
        assert_eq!(options.workload.shape, Shape::Uniform);
        assert_eq!((options.load.index, options.load.durability), (IndexBuild::Before, Durability::W1));
        assert!(options.with_ceiling && !options.null_server);
    }

    #[test]
    fn every_value_reaches_the_tools_own_terms() {
        let arguments = "--clients 1,2 --dist zipf:0.5 --projection full --secondary-index off --durability j --load only";
        let options = point(&arguments.split(' ').collect::<Vec<_>>()).expect("all are known");
        assert_eq!(options.plans.len(), 2);
        assert_eq!(
            (options.workload.shape, options.workload.projection),
            (Shape::Zipf(0.5), Projection::Full)
        );
        assert_eq!((options.load.index, options.load.durability), (IndexBuild::Never, Durability::Journaled));
        assert_eq!(options.load_when, LoadWhen::Only);
    }

    #[test]
    fn nonsense_is_refused() {
        for arguments in [
            ["--clients", "0"],
            ["--clients", "many"],
            ["--docs", "3000000000"],
            ["--dist", "pareto"],
            ["--durability", "w9"],
            ["--duration", "0"],
            ["--unknown", "1"],
        ] {
            assert!(point(&arguments).is_none(), "{arguments:?}");
        }
    }
}
