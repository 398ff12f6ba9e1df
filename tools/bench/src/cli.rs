//! The arguments that subcommands share, and their meaning in the tool's own terms.
//!
//! Arguments stand in groups (server, load, run), so that a name means the same in each subcommand. The
//! arguments of one workload stand in its file of `command`.

pub(crate) mod launch;
pub(crate) mod sysbench;

use crate::client::{Draws, EMBEDDED_SCHEME, Pace, Spacing};
use crate::error::BenchError;
use crate::protocol::Server;
use crate::run::Plan;
use crate::workload::RunNumber;
use crate::workload::load::Durability;
use crate::workload::spread::Spread;
use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser, UnknownArgumentValueParser};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use pando_measuring::counters::ProcessId;
use pando_measuring::random::Generator;
use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::path::PathBuf;
use std::sync::Arc;

/// The highest rate of an open loop.
const RATE_MAX: f64 = 1e9;

/// The beginning of targets of MySQL's protocol, which a program of its own speaks.
pub(crate) const MYSQL_SCHEME: &str = "mysql://";

/// The longest window. Workloads that end with their work have it by default.
pub(crate) const DURATION_MAX_S: u32 = 1_000_000;

/// The file name that means standard output.
pub(crate) const STANDARD_OUTPUT: &str = "-";

const LOAD_HEADING: &str = "Load";

/// The variable that names the server where the command line does not.
pub(crate) const URI_VARIABLE: &str = "PANDO_BENCH_URI";

pub(crate) fn option(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value)
}

pub(crate) fn number(name: &'static str, default: &'static str, range: impl RangeBounds<i64>) -> Arg {
    option(name, "N").default_value(default).value_parser(value_parser!(u32).range(range))
}

pub(crate) fn seconds(name: &'static str, default: &'static str, range: impl RangeBounds<i64>) -> Arg {
    number(name, default, range).value_name("SECONDS")
}

/// One of some words, the first of which is the default.
pub(crate) fn choice<const N: usize>(
    name: &'static str,
    value: &'static str,
    words: [&'static str; N],
) -> Arg {
    option(name, value).default_value(words[0]).value_parser(PossibleValuesParser::new(words))
}

pub(crate) fn flag(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue)
}

pub(crate) fn path(name: &'static str, value: &'static str) -> Arg {
    option(name, value).value_parser(value_parser!(PathBuf))
}

/// A file or a folder that the tool writes. It is never standard output, which has the tables of the runs: a
/// `-` would become the name of a file.
pub(crate) fn written_path(name: &'static str, value: &'static str) -> Arg {
    let parser = PathBufValueParser::new().try_map(|path: PathBuf| {
        if path.as_os_str() == STANDARD_OUTPUT {
            return Err("standard output has the tables of the runs; give a name (./- for one of this name)");
        }
        Ok(path)
    });
    option(name, value).value_parser(parser)
}

/// Puts arguments under a heading of the help.
fn under(heading: &'static str, arguments: Vec<Arg>) -> Vec<Arg> {
    arguments.into_iter().map(|argument| argument.help_heading(heading)).collect()
}

/// Where the server is, and where the report goes.
pub(crate) fn server_arguments() -> Vec<Arg> {
    let mut arguments = under("Server and files", target_arguments());
    arguments
        .extend(under("MySQL's protocol (program pando-bench-mysql, --uri mysql://…)", mysql_arguments()));
    arguments.extend(under("Server that the tool starts", launch::arguments()));
    arguments.extend(under("Conditions", launch::condition_arguments()));
    arguments.extend(["host", "port"].map(|name| {
        let refusal = UnknownArgumentValueParser::suggest_arg("--uri");
        refused(name, refusal.and_suggest("name the server by --uri mongodb://HOST:PORT"))
    }));
    arguments
}

fn target_arguments() -> Vec<Arg> {
    vec![
        option("uri", "URI").help(
            "The server, or embedded:ENGINE for an engine in this process [default: the value of \
             PANDO_BENCH_URI, so that no password stands in the list of processes, or \
             mongodb://127.0.0.1:27017]",
        ),
        option("embedded-cache", "MB")
            .help("Of embedded: targets: memory for cached pages, in 10^6 bytes")
            .default_value("256")
            .value_parser(value_parser!(u64).range(1..=10_000_000)),
        option("server-pid", "PID")
            .help("The server's process [default: the process that listens on the port]")
            .value_parser(value_parser!(u32).range(1..)),
        path("data-dir", "DIR").help("The server's data folder [default: as its command line says]"),
        written_path("out", "DIR")
            .help("Write a JSON file per run into this folder, and files in the original's columns"),
        option("label", "NAME=TEXT")
            .help("Write this beside the figures: server, engine, cache, state, durability, …")
            .action(ArgAction::Append)
            .value_parser(launch::parse_label),
    ]
}

fn mysql_arguments() -> Vec<Arg> {
    vec![
        choice("mysql-engine", "NAME", ["innodb", "rocksdb", "ndb", "myisam"])
            .help("Storage engine of the tables")
            .ignore_case(true),
        choice("mysql-settings", "WHOSE", ["server", "posts"])
            .help("Leave the server's settings, or set the posts'"),
        option("mysql-table-options", "SQL").help("More text behind CREATE TABLE").default_value(""),
        choice("api", "WHICH", ["sql", "handler"])
            .help("Way to read a row by its key: SELECT, or HANDLER (point and kv)"),
    ]
}

/// An argument that this command does not have, refused with advice. Without it clap would propose the most
/// similar name, which means something else.
fn refused(name: &'static str, advice: UnknownArgumentValueParser) -> Arg {
    option(name, "TEXT").hide(true).num_args(0..=1).default_missing_value("").value_parser(advice)
}

/// An option of other commands, refused with the reason why this command does not have it.
pub(crate) fn option_of_others(name: &'static str, reason: &'static str) -> Arg {
    refused(name, UnknownArgumentValueParser::suggest(reason))
}

/// How to load.
pub(crate) fn load_arguments() -> Vec<Arg> {
    let arguments = vec![
        number("load-connections", "4", 1..=1000).help("Connections that load"),
        number("batch", "1000", 1..=100_000).help("Documents per insert"),
        durability_argument("When a write is answered: w:1, w:1 with j:true, or w:majority"),
    ];
    under(LOAD_HEADING, arguments)
}

pub(crate) fn durability_argument(help: &'static str) -> Arg {
    choice("durability", "WHAT", ["w1", "j", "majority"]).help(help)
}

pub(crate) fn database_argument(default: &'static str) -> Arg {
    option("database", "NAME").help("The database").default_value(default)
}

/// Over how many databases the collections are spread.
pub(crate) fn databases_argument() -> Arg {
    number("databases", "1", 1..=100_000).help("Spread the collections over so many: NAME1 to NAMEN")
}

/// Over how many collections and databases the data of a workload is spread whose only collection has another
/// name.
pub(crate) fn spread_arguments() -> Vec<Arg> {
    vec![
        databases_argument(),
        number("collections", "1", 1..=100_000)
            .help("Spread the data over so many; more than one are numbered from 1"),
    ]
}

pub(crate) fn spread(matches: &ArgMatches, collection: &'static str) -> Result<Spread, BenchError> {
    let spread = Spread {
        database: value(matches, "database"),
        databases: value(matches, "databases"),
        collection,
        collections: value(matches, "collections"),
    };
    if spread.databases > spread.collections {
        let cause = format!("{} collections cannot be in {} databases", spread.collections, spread.databases);
        return Err(BenchError::option("databases", cause));
    }
    Ok(spread)
}

pub(crate) fn load_when_argument() -> Arg {
    let argument = choice("load", "WHEN", ["missing", "yes", "no", "only"]).help(
        "Load before the runs: if there is no data, always (data that is there is dropped), never, \
         or always and then end",
    );
    argument.help_heading(LOAD_HEADING)
}

/// The seed of all draws.
pub(crate) fn seed_argument() -> Arg {
    option("seed", "N").help("Seed of all random draws").default_value("0").value_parser(value_parser!(u64))
}

/// The seed of the draws.
pub(crate) fn seed_arguments() -> Vec<Arg> {
    vec![
        seed_argument(),
        flag("java-rng").help("Draw as the original Java tools do, bit by bit, their quirks included"),
    ]
}

/// The original's way, which for this workload is `what`.
pub(crate) fn faithful_argument(what: &'static str) -> Arg {
    let help = format!("Do as the original does, its quirks included: {what}");
    flag("faithful").help(help)
}

/// How to run.
pub(crate) fn run_arguments() -> Vec<Arg> {
    let arguments = vec![
        number("clients", "8,32,100", 1..=60_000)
            .help("Clients, each with its own connection; one run for each number")
            .value_name("N,N")
            .value_delimiter(','),
        number("threads", "1", 1..=1000).help("Threads of this tool that drive them"),
        seconds("duration", "20", 1..=i64::from(DURATION_MAX_S)).help("Length of the measured window"),
        seconds("warmup", "3", 0..=1_000_000).help("Time before it"),
        option("rate", "N")
            .help(
                "Open loop: begin so many units per second, whatever the server does [default: closed loop]",
            )
            .value_parser(parse_rate),
        choice("arrivals", "HOW", ["even", "poisson"])
            .help("Of an open loop: evenly spread, or random as from many independent users"),
        number("repeats", "1", 1..=1000).help("Runs for each number of clients"),
        // Of suites, whose cells are calls of one run each: without it each of them had the first run's
        // draws.
        number("first-run", "0", 0..=i64::from(RunNumber::FIRST_MAX))
            .help("Number of the first run, on which the draws hang")
            .hide(true),
        seconds("interval", "10", 1..=3600).help("Time of one line in the files with the original's columns"),
        flag("no-ceiling").help("Do not measure this tool's own ceiling before each run"),
        flag("null-server").help("Measure only this tool: run against a built-in server that does no work"),
    ];
    under("Runs", arguments)
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= RATE_MAX => Ok(rate),
        _ => Err(format!("a rate is a number above 0, at most {RATE_MAX}")),
    }
}

/// When to load before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadWhen {
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
pub(crate) struct ServerOptions {
    pub uri: String,
    /// Its process, if given.
    pub process: Option<ProcessId>,
    /// Its data folder, if given.
    pub data_folder: Option<PathBuf>,
    /// Memory for cached pages of an engine in this process, in bytes.
    pub embedded_cache_bytes: u64,
    /// The folder for files, if any.
    pub out: Option<PathBuf>,
    /// The labels beside the figures.
    pub labels: BTreeMap<String, String>,
    /// The server to start, if any.
    pub launch: launch::LaunchOptions,
    /// Readaheads in kilobytes, with a set of runs for each; none if it stays as it is.
    pub readahead_sweep: Vec<u32>,
    /// Whether the server is to write a checkpoint before each run and after it.
    pub force_checkpoint: bool,
    /// How stacks are found, if the server is to be recorded.
    pub profile: Option<String>,
    /// The server, if it speaks another protocol than MongoDB's.
    pub foreign: Option<Arc<dyn Server>>,
}

/// The options that every workload has.
#[derive(Clone, Debug)]
pub(crate) struct MeasureOptions {
    pub server: ServerOptions,
    pub load_when: LoadWhen,
    pub plans: Vec<Plan>,
    /// How often each.
    pub repeats: u32,
    /// The number of the first run.
    pub first_run: RunNumber,
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
pub(crate) fn check_target(matches: &ArgMatches) -> Result<(), BenchError> {
    let uri = uri(matches);
    if is_given(matches, "profile") && !is_given(matches, "out") {
        let cause = "symbols and flame graph are kept in the file of the run: give --out DIR, and read them with `report DIR`";
        return Err(BenchError::option("profile", cause));
    }
    let refuse =
        |options: &[&'static str], cause: &str| match options.iter().find(|name| is_given(matches, name)) {
            Some(option) => Err(BenchError::option(option, cause)),
            None => Ok(()),
        };
    if !uri.starts_with(MYSQL_SCHEME) {
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
            &["server-command", "server-stop", "server-ready", "server-grace", "server-pid", "cap", "io-cap"],
            "an engine in this process is no server that could be started, found or capped",
        )?;
        return refuse(&["cache-mb"], "the cache of an engine in this process is --embedded-cache");
    }
    refuse(
        &["embedded-cache"],
        "only targets embedded: have it; a server that the tool starts has --cache-mb, any other one the cache that it was started \
         with",
    )?;
    launch::refuse_without_command(matches)
}

/// Whether an option stands on the command line.
pub(crate) fn is_given(matches: &ArgMatches, name: &str) -> bool {
    matches!(matches.try_contains_id(name), Ok(true))
        && matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine)
}

pub(crate) fn server_options(matches: &ArgMatches) -> ServerOptions {
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
        foreign: None,
    }
}

pub(crate) fn generator(matches: &ArgMatches) -> Generator {
    if matches.get_flag("java-rng") { Generator::Java } else { Generator::Xoshiro }
}

pub(crate) fn durability(matches: &ArgMatches) -> Durability {
    if uri(matches).starts_with(MYSQL_SCHEME) {
        return Durability::OfServer;
    }
    match value::<String>(matches, "durability").as_str() {
        "j" => Durability::Journaled,
        "majority" => Durability::Majority,
        _ => Durability::W1,
    }
}

/// The arguments of the run group, and when to load where there is something to load.
pub(crate) fn measure_options(matches: &ArgMatches) -> MeasureOptions {
    let load_when = match matches.try_get_one::<String>("load").ok().flatten().map(String::as_str) {
        Some("yes") => LoadWhen::Always,
        Some("no") => LoadWhen::Never,
        Some("only") => LoadWhen::Only,
        _ => LoadWhen::Missing,
    };
    let poisson = value::<String>(matches, "arrivals") == "poisson";
    let seed = matches.try_get_one::<u64>("seed").ok().flatten().copied().unwrap_or(0);
    let draws = Draws { seed, stream: RunNumber::FIRST.stream(0) };
    let spacing = if poisson { Spacing::Poisson(draws) } else { Spacing::Even };
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
        first_run: RunNumber::new(value(matches, "first-run")),
        with_ceiling: !matches.get_flag("no-ceiling"),
        null_server: matches.get_flag("null-server"),
    }
}
