//! The command line: its arguments, and what they mean in the tool's own terms.
//!
//! Arguments stand in groups (server, load, run) that the subcommands share, so that a name means the same in each; what
//! only one workload has stands in its file of [`crate::command`].

pub mod launch;
pub mod scale;
pub mod sysbench;

use crate::client::{EMBEDDED_SCHEME, Pace, Spacing};
use crate::counters::ProcessId;
use crate::error::BenchError;
use crate::random::Generator;
use crate::run::Plan;
use crate::workload::load::Durability;
use crate::workload::spread::Spread;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The highest rate of an open loop.
const RATE_MAX: f64 = 1e9;

/// What names the server where the command line does not.
pub const URI_VARIABLE: &str = "PANDO_BENCH_URI";

/// The whole command line.
pub fn command() -> Command {
    Command::new("pando-bench")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Measures any server that speaks MongoDB's wire protocol: see docs/benchmarks.md.")
        .subcommand_required(true)
        .subcommand(crate::command::point::command())
        .subcommand(crate::command::sysbench::command())
        .subcommand(crate::command::kv::command())
        .subcommand(crate::command::iibench::command())
        .subcommand(crate::command::linkbench::command())
        .subcommand(crate::command::load::command())
        .subcommand(crate::command::compare::command())
        .subcommand(crate::command::report::command())
        .subcommand(crate::command::suite::command())
        .subcommand(crate::command::self_check::command())
}

/// An argument with a value.
pub fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// Where the server is, and where the report goes.
pub fn server_arguments() -> Vec<Arg> {
    let mut arguments = vec![
        option(
            "uri",
            "URI",
            "The server, or embedded:ENGINE for an engine in this process [default: what PANDO_BENCH_URI says, so that no \
             password stands in the list of processes, or mongodb://127.0.0.1:27017]",
        ),
        option("embedded-cache", "MB", "Of embedded: targets: memory for cached pages, in 10^6 bytes")
            .default_value("256")
            .value_parser(value_parser!(u64).range(1..=10_000_000)),
        option(
            "mysql-engine",
            "NAME",
            "Of mysql:// targets (--features mysql): innodb, rocksdb, ndb, myisam",
        )
        .default_value("innodb")
        .ignore_case(true)
        .value_parser(PossibleValuesParser::new(["innodb", "rocksdb", "ndb", "myisam"])),
        option(
            "mysql-settings",
            "WHOSE",
            "Of mysql:// targets: leave the server's settings, or set the posts'",
        )
        .default_value("server")
        .value_parser(PossibleValuesParser::new(["server", "posts"])),
        option("mysql-table-options", "SQL", "Of mysql:// targets: what else stands behind CREATE TABLE")
            .default_value(""),
        option("api", "WHICH", "Of mysql:// targets, how a row is read by its key: SELECT, or HANDLER")
            .default_value("sql")
            .value_parser(PossibleValuesParser::new(["sql", "handler"])),
        option("server-pid", "PID", "The server's process [default: who listens on that port]")
            .value_parser(value_parser!(u32).range(1..)),
        option("data-dir", "DIR", "The server's data folder [default: as its command line says]")
            .value_parser(value_parser!(PathBuf)),
        option(
            "out",
            "DIR",
            "Write a JSON file per run into this folder, and files in the original's columns",
        )
        .value_parser(value_parser!(PathBuf)),
    ];
    arguments.extend(launch::arguments());
    arguments
}

/// How to load.
pub fn load_arguments() -> Vec<Arg> {
    vec![
        option("load-connections", "N", "Connections that load")
            .default_value("4")
            .value_parser(value_parser!(u32).range(1..=1000)),
        option("batch", "N", "Documents per insert")
            .default_value("1000")
            .value_parser(value_parser!(u32).range(1..=100_000)),
        option("durability", "WHAT", "When a write is answered: w:1, w:1 with j:true, or w:majority")
            .default_value("w1")
            .value_parser(PossibleValuesParser::new(["w1", "j", "majority"])),
    ]
}

/// Over how many collections and databases the data of a workload is spread whose only collection has another name.
pub fn spread_arguments() -> Vec<Arg> {
    vec![
        option("databases", "N", "Spread the collections over so many: NAME1 to NAMEN")
            .default_value("1")
            .value_parser(value_parser!(u32).range(1..=100_000)),
        option("collections", "N", "Spread the data over so many; more than one are numbered from 1")
            .default_value("1")
            .value_parser(value_parser!(u32).range(1..=100_000)),
    ]
}

/// What these say.
pub fn spread(matches: &ArgMatches, collection: &'static str) -> Result<Spread, BenchError> {
    let spread = Spread {
        database: value(matches, "database"),
        databases: value(matches, "databases"),
        collection,
        collections: value(matches, "collections"),
    };
    if spread.databases > spread.collections {
        let cause = format!("{} collections cannot be in {} databases", spread.collections, spread.databases);
        return Err(BenchError::Option { option: "databases", cause });
    }
    Ok(spread)
}

/// When to load.
pub fn load_when_argument() -> Arg {
    option(
        "load",
        "WHEN",
        "Load before the runs: if there is nothing, always (what is there is dropped), never, or always and then end",
    )
    .default_value("missing")
    .value_parser(PossibleValuesParser::new(["missing", "yes", "no", "only"]))
}

/// What the draws hang on.
pub fn seed_arguments() -> Vec<Arg> {
    vec![
        option("seed", "N", "What all chance hangs on").default_value("0").value_parser(value_parser!(u64)),
        Arg::new("java-rng")
            .long("java-rng")
            .action(ArgAction::SetTrue)
            .help("Draw as the original Java tools do, bit by bit, their quirks included"),
    ]
}

/// The original's way, which for this workload is `what`.
pub fn faithful_argument(what: &'static str) -> Arg {
    Arg::new("faithful")
        .long("faithful")
        .action(ArgAction::SetTrue)
        .help(format!("Do as the original does, its quirks included: {what}"))
}

/// How to run.
pub fn run_arguments() -> Vec<Arg> {
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
        option(
            "rate",
            "N",
            "Open loop: begin so many units per second, whatever the server does [default: closed loop]",
        )
        .value_parser(parse_rate),
        option(
            "arrivals",
            "HOW",
            "Of an open loop: evenly spread, or as many users who know nothing of each other",
        )
        .default_value("even")
        .value_parser(PossibleValuesParser::new(["even", "poisson"])),
        option("repeats", "N", "Runs for each number of clients")
            .default_value("1")
            .value_parser(value_parser!(u32).range(1..=1000)),
        option("interval", "SECONDS", "Width of a line in the files with the original's columns")
            .default_value("10")
            .value_parser(value_parser!(u32).range(1..=3600)),
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

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= RATE_MAX => Ok(rate),
        _ => Err(format!("a rate is a number above 0, at most {RATE_MAX}")),
    }
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
    /// Memory for cached pages of an engine in this process, in bytes.
    pub embedded_cache_bytes: u64,
    /// The folder for files, if any.
    pub out: Option<PathBuf>,
    /// What is written beside the figures.
    pub labels: BTreeMap<String, String>,
    /// The server to start, if any.
    pub launch: launch::LaunchOptions,
    /// Readaheads in kilobytes, with a set of runs for each; none if it stays as it is.
    pub readahead_sweep: Vec<u32>,
    /// Whether the server is to write a checkpoint before each run and after it.
    pub force_checkpoint: bool,
    /// How stacks are found, if the server is to be recorded.
    pub profile: Option<String>,
    /// The server, if it speaks MySQL's protocol and the workload does, too.
    #[cfg(feature = "mysql")]
    pub sql: Option<crate::sql::SqlServer>,
}

/// What every workload is told.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// The server.
    pub server: ServerOptions,
    /// When to load.
    pub load_when: LoadWhen,
    /// The runs to make.
    pub plans: Vec<Plan>,
    /// How often each.
    pub repeats: u32,
    /// Whether to measure the tool's own ceiling.
    pub with_ceiling: bool,
    /// Whether to measure nothing but the tool.
    pub null_server: bool,
}

/// The value of an argument that has a default or is required.
pub fn value<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> T {
    matches.get_one::<T>(name).cloned().expect("the argument has a default")
}

/// Where the server is: as the command line says, else the environment.
pub fn uri(matches: &ArgMatches) -> String {
    let given = matches.get_one::<String>("uri").cloned();
    let given = given.or_else(|| std::env::var(URI_VARIABLE).ok());
    given.unwrap_or_else(|| "mongodb://127.0.0.1:27017".to_owned())
}

/// Refuses what was asked for and the target has not, before anything starts.
pub fn check_target(matches: &ArgMatches) -> Result<(), BenchError> {
    let uri = uri(matches);
    let is_given = |name: &str| {
        matches!(matches.try_contains_id(name), Ok(true))
            && matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine)
    };
    let refuse = |options: &[&'static str], cause: &str| match options.iter().find(|name| is_given(name)) {
        Some(option) => Err(BenchError::Option { option, cause: cause.to_owned() }),
        None => Ok(()),
    };
    if !uri.starts_with("mysql://") {
        refuse(
            &["mysql-engine", "mysql-settings", "mysql-table-options", "api"],
            "only targets mysql:// have it; MongoDB's protocol names no storage engine, and has one way to read",
        )?;
    } else {
        refuse(
            &["durability"],
            "of targets mysql:// an acknowledged write means what the server was started with: see innodb_flush_log_at_trx_commit",
        )?;
    }
    if uri.starts_with(EMBEDDED_SCHEME) {
        refuse(
            &["server-command", "server-stop", "server-pid", "cap", "io-cap"],
            "an engine in this process is no server that could be started, found or capped",
        )?;
    }
    Ok(())
}

/// The servers behind `mysql://`; nothing for another protocol.
#[cfg(feature = "mysql")]
pub fn sql_server(matches: &ArgMatches) -> Result<Option<crate::sql::SqlServer>, BenchError> {
    use crate::sql::server::{SettingsFrom, SqlWays};
    use crate::sql::{Api, SqlEngine};
    let text = |name| value::<String>(matches, name);
    let posts = text("mysql-settings") == "posts";
    let ways = SqlWays {
        engine: SqlEngine::of_name(&text("mysql-engine")).expect("only names of engines are taken"),
        api: if text("api") == "handler" { Api::Handler } else { Api::Sql },
        settings: if posts { SettingsFrom::Posts } else { SettingsFrom::Server },
        table_options: text("mysql-table-options"),
    };
    crate::sql::SqlServer::of_uri(&uri(matches), ways)
}

/// The options of a run against these servers.
#[cfg(feature = "mysql")]
pub fn measure_options_of_sql(matches: &ArgMatches, server: &crate::sql::SqlServer) -> MeasureOptions {
    let mut options = measure_options(matches);
    options.server.sql = Some(server.clone());
    options
}

/// The arguments of the server group.
pub fn server_options(matches: &ArgMatches) -> ServerOptions {
    ServerOptions {
        labels: launch::labels(matches),
        launch: launch::options(matches),
        readahead_sweep: matches.get_many("readahead-sweep").unwrap_or_default().copied().collect(),
        force_checkpoint: matches.get_flag("force-checkpoint"),
        profile: matches.get_one("profile").cloned(),
        uri: uri(matches),
        process: matches.get_one::<u32>("server-pid").copied().map(ProcessId::new),
        data_folder: matches.get_one("data-dir").cloned(),
        embedded_cache_bytes: value::<u64>(matches, "embedded-cache") * 1_000_000,
        out: matches.get_one("out").cloned(),
        #[cfg(feature = "mysql")]
        sql: None,
    }
}

/// Which generator the draws come from.
pub fn generator(matches: &ArgMatches) -> Generator {
    if matches.get_flag("java-rng") { Generator::Java } else { Generator::Xoshiro }
}

/// When a write is answered.
pub fn durability(matches: &ArgMatches) -> Durability {
    match value::<String>(matches, "durability").as_str() {
        "j" => Durability::Journaled,
        "majority" => Durability::Majority,
        _ => Durability::W1,
    }
}

/// The arguments of the run group, and when to load where there is something to load.
pub fn measure_options(matches: &ArgMatches) -> MeasureOptions {
    let load_when = match matches.try_get_one::<String>("load").ok().flatten().map(String::as_str) {
        Some("yes") => LoadWhen::Always,
        Some("no") => LoadWhen::Never,
        Some("only") => LoadWhen::Only,
        _ => LoadWhen::Missing,
    };
    let poisson = value::<String>(matches, "arrivals") == "poisson";
    let spacing = if poisson { Spacing::Poisson } else { Spacing::Even };
    let pace = matches.get_one("rate").map_or(Pace::Closed, |rate| Pace::Open { rate: *rate, spacing });
    let plan = |clients: &u32| Plan {
        clients: *clients,
        threads: value(matches, "threads"),
        warmup_s: value(matches, "warmup"),
        duration_s: value(matches, "duration"),
        pace,
        interval_s: value(matches, "interval"),
    };
    MeasureOptions {
        server: server_options(matches),
        load_when,
        plans: matches.get_many::<u32>("clients").unwrap_or_default().map(plan).collect(),
        repeats: value(matches, "repeats"),
        with_ceiling: !matches.get_flag("no-ceiling"),
        null_server: matches.get_flag("null-server"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        command().debug_assert();
    }
}
