//! The command line.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::PathBuf;

use crate::error::BenchError;
use crate::figures::read_json;
use crate::measuring::Task;
use crate::peer::PeerKind;
use crate::running::Run;
use crate::setup::{Phase, Setup, parse_size};

const EXAMPLES: &str = "Examples:
  everything, some twenty minutes on two cores, into ./engines:
    cargo run --release -p pando-bench-engine --features all-peers -- all --out engines
  betree and RocksDB only, inserts at 20 times a cache of 32 MB:
    … -- all --peers betree,rocksdb --phases capped --cache 32MB --scale 20
  ten minutes of inserts, second by second:
    … -- all --peers betree --phases capped --insert-seconds 600 --counters
  tables and chart of an earlier run:
    … -- report engines";

pub fn command() -> Command {
    Command::new("pando-bench-engine")
        .about("Storage engines side by side: the same data, the same durability, the same memory.")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(all())
        .subcommand(
            Command::new("report")
                .about("Print the tables of an earlier run and write its page and chart anew")
                .arg(Arg::new("folder").required(true).value_parser(value_parser!(PathBuf))),
        )
        .subcommand(measure())
}

fn all() -> Command {
    let text = |name: &'static str, usual: &'static str, help: &'static str| {
        Arg::new(name).long(name).default_value(usual).help(help)
    };
    let folder = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_parser(value_parser!(PathBuf)).help(help)
    };
    let number = |name: &'static str, usual: &'static str, help: &'static str| {
        text(name, usual, help).value_parser(value_parser!(f64))
    };
    Command::new("all")
        .about("Measure all phases of all peers, or some; write results.json, engines.md and engines.svg")
        .after_help(EXAMPLES)
        .arg(Arg::new("peers").long("peers").value_delimiter(',').help("Which peers; all of the build if left out"))
        .arg(Arg::new("phases").long("phases").value_delimiter(',').help(
            "Which phases: cached, capped, growing, updates, compacted, trees, trees-again, crash, recovery; growing, updates and \
             compacted need capped, trees-again needs trees, recovery needs crash",
        ))
        .arg(folder("out", "Where results go").default_value("bench-engine-results"))
        .arg(folder("scratch", "Where stores are made and removed; OUT/scratch if left out"))
        .arg(text("cache", "64MB", "Each peer's own caches and write buffers"))
        .arg(text("headroom", "128MB", "What a capped process may take beside, the kernel's page cache included"))
        .arg(number("scale", "10", "Bytes of documents, in multiples of the cache"))
        .arg(number("seconds", "2", "How long each read is measured"))
        .arg(number("limit", "60", "Seconds after which a load is cut short"))
        .arg(number("insert-seconds", "0", "Seconds that capped inserts go on at least"))
        .arg(text("batch", "1000", "Documents of a transaction").value_parser(value_parser!(u64).range(1..)))
        .arg(text("update-batch", "100", "Updates of a transaction").value_parser(value_parser!(u64).range(1..)))
        .arg(text("trees", "10000", "Trees of the phase with many").value_parser(value_parser!(u32).range(1..)))
        .arg(text("log", "256MB", "Log to recover from"))
        .arg(text("seed", "1", "What draws hang on").value_parser(value_parser!(u64)))
        .arg(Arg::new("layout").long("layout").value_delimiter(',').help(
            "Options of the trees that betree and btree make, such as compression=none,pageSize=8KB; those left out are the engine's own",
        ))
        .arg(Arg::new("counters").long("counters").action(ArgAction::SetTrue).help(
            "Write into results.json, for each second of a load, what the library counts of itself, if it does",
        ))
}

/// One measuring process; the command `all` calls it.
fn measure() -> Command {
    let path = |name: &'static str| Arg::new(name).required(true).value_parser(value_parser!(PathBuf));
    Command::new("measure")
        .hide(true)
        .arg(path("setup"))
        .arg(Arg::new("peer").required(true))
        .arg(Arg::new("phase").required(true))
        .arg(path("folder"))
        .arg(path("outcome"))
        .arg(Arg::new("group").long("group").value_parser(value_parser!(PathBuf)))
        .arg(Arg::new("percent").long("percent").default_value("0").value_parser(value_parser!(u64)))
        .arg(Arg::new("acknowledged").long("acknowledged").default_value("0,0"))
}

fn get<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> T {
    matches.get_one::<T>(name).expect("it is required or has a default").clone()
}

fn positive(matches: &ArgMatches, name: &'static str) -> Result<f64, BenchError> {
    let value: f64 = get(matches, name);
    if value.is_finite() && (value > 0.0 || name == "insert-seconds" && value == 0.0) && value < 1e6 {
        return Ok(value);
    }
    Err(BenchError::Argument {
        name,
        value: value.to_string(),
        expected: "a number above 0 and below 1000000",
    })
}

/// Options such as `compression=lz4`.
fn layout_of(matches: &ArgMatches) -> Result<Vec<(String, String)>, BenchError> {
    let parse = |option: &String| match option.split_once('=') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(BenchError::Argument {
            name: "layout",
            value: option.clone(),
            expected: "options with their values, such as compression=lz4,pageSize=8KB",
        }),
    };
    matches.get_many::<String>("layout").into_iter().flatten().map(parse).collect()
}

/// The run that `all` is asked for.
pub fn run_of(matches: &ArgMatches) -> Result<Run, BenchError> {
    let setup = Setup {
        cache_bytes: parse_size("cache", &get::<String>(matches, "cache"))?,
        headroom_bytes: parse_size("headroom", &get::<String>(matches, "headroom"))?,
        scale: positive(matches, "scale")?,
        seconds: positive(matches, "seconds")?,
        limit_seconds: positive(matches, "limit")?,
        insert_seconds: positive(matches, "insert-seconds")?,
        batch: get(matches, "batch"),
        update_batch: get(matches, "update-batch"),
        trees: get(matches, "trees"),
        log_bytes: parse_size("log", &get::<String>(matches, "log"))?,
        seed: get(matches, "seed"),
        layout: layout_of(matches)?,
        counters: matches.get_flag("counters"),
    };
    let names = |name| matches.get_many::<String>(name);
    let peers = match names("peers") {
        Some(names) => names.map(|name| PeerKind::parse(name)).collect::<Result<_, _>>()?,
        None => PeerKind::built(),
    };
    let mut phases: Vec<Phase> = match names("phases") {
        Some(names) => names.map(|name| Phase::parse(name)).collect::<Result<_, _>>()?,
        None => Phase::ALL.to_vec(),
    };
    // In their own order, however they are named: some change what others read.
    phases.sort();
    phases.dedup();
    let out: PathBuf = get(matches, "out");
    let scratch = matches.get_one::<PathBuf>("scratch").cloned().unwrap_or_else(|| out.join("scratch"));
    Ok(Run { setup, peers, phases, out, scratch })
}

pub fn task_of(matches: &ArgMatches) -> Result<Task, BenchError> {
    let acknowledged: String = get(matches, "acknowledged");
    let parts = acknowledged.split_once(',').and_then(|(documents, log_mb)| {
        Some((documents.parse::<f64>().ok()? as u64, log_mb.parse::<f64>().ok()?))
    });
    Ok(Task {
        setup: read_json::<Setup>(&get::<PathBuf>(matches, "setup"))?,
        peer: PeerKind::parse(&get::<String>(matches, "peer"))?,
        phase: Phase::parse(&get::<String>(matches, "phase"))?,
        folder: get(matches, "folder"),
        outcome: get(matches, "outcome"),
        group: matches.get_one::<PathBuf>("group").cloned(),
        percent: get(matches, "percent"),
        acknowledged: parts.ok_or(BenchError::Argument {
            name: "acknowledged",
            value: acknowledged,
            expected: "documents and megabytes, such as 1000,256",
        })?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arguments: &[&str]) -> Result<Run, BenchError> {
        let matches = command().get_matches_from([&["pando-bench-engine", "all"], arguments].concat());
        run_of(matches.subcommand().expect("there is one").1)
    }

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn everything_is_measured_by_default_and_what_is_impossible_refused() {
        let usual = run(&[]).expect("possible");
        assert_eq!((usual.peers, usual.phases), (PeerKind::built(), Phase::ALL.to_vec()));
        assert_eq!(usual.setup.cache_bytes, 64 << 20);
        let some = run(&["--phases", "updates,capped,updates"]).expect("possible");
        assert_eq!(some.phases, [Phase::Capped, Phase::Updates], "in the order in which they must run");
        assert!(run(&["--scale", "0"]).is_err());
        assert!(run(&["--cache", "1"]).is_err());
        assert!(run(&["--peers", "betree,oracle"]).is_err());
        assert!(run(&["--phases", "lukewarm"]).is_err());
        assert!(run(&["--layout", "lz4"]).is_err());
        let some = run(&["--layout", "compression=lz4, pageSize=8KB"]).expect("possible");
        assert_eq!(some.setup.layout[1], ("pageSize".to_owned(), "8KB".to_owned()));
    }
}
