//! `pando-bench linkbench`: its arguments, and LinkBench's own: `-c FILE`, `-D name=value`, `-l`, `-r`,
//! `-csvstats FILE`, `-csvstream FILE`.

use super::Call;
use crate::cli::{self, LoadWhen, MYSQL_SCHEME, MeasureOptions, choice, option, path};
use crate::client::{Draws, Pace, Spacing};
use crate::error::{BenchError, unwritable};
use crate::protocol::Job;
use crate::workload::RunNumber;
use crate::workload::linkbench::settings::{Properties, Settings};
use crate::workload::linkbench::store::{CheckExtent, Transactions};
use crate::workload::linkbench::{LinkBench, Ways};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::PathBuf;
use std::process::ExitCode;

/// Up to so many nodes, all counts are compared after a run if nothing else is said; of more, those of so
/// many nodes.
const CHECK_ALL_UP_TO: u64 = 200_000;
const CHECK_SAMPLE: u32 = 2000;

pub fn command() -> Command {
    Command::new("linkbench")
        .about("LinkBench: a social graph, ten operations; counts are compared with links at the end")
        .args(cli::server_arguments())
        .args(cli::run_arguments())
        .args(cli::seed_arguments())
        .arg(cli::load_when_argument())
        .args(graph_arguments())
        .args(original_arguments())
        .mut_arg("clients", |argument| argument.default_value("100"))
        .arg(cli::faithful_argument(
            "more links than the degrees say, writes with the reads' distribution, multigets of one more; over MongoDB's protocol and \
             without --txn also the commands of its plugin, whose counts go wrong",
        ))
}

fn graph_arguments() -> Vec<Arg> {
    vec![
        cli::database_argument("graph-linkbench"),
        option("nodes", "N")
            .help("Nodes, where no properties say; the post: 10,000,000 and 100,000,000")
            .default_value("100000")
            .value_parser(value_parser!(u64).range(1..=1 << 40)),
        option("max-degree", "N")
            .help("The most links of a node; without a limit (0) one node of a small graph has nearly all")
            .default_value("10000")
            .value_parser(value_parser!(u64)),
        choice("txn", "LEVEL", ["auto", "none", "session", "two-phase", "tokumx"]).help(
            "How a link and its count change together: none: in two writes; session: in a transaction; \
             two-phase: by a document that records the progress of the write; tokumx: in TokuMX's \
             transaction; auto: none over MongoDB's protocol, session over MySQL's",
        ),
        cli::durability_argument("When a write is answered: w:1, w:1 with j:true, or w:majority"),
        choice("verify", "WHAT", ["auto", "full", "sample", "no"])
            .help("Compare counts with links after a run: auto (all of a small graph), full, sample, no"),
    ]
}

fn original_arguments() -> Vec<Arg> {
    vec![
        path("properties", "FILE").help("A properties file of LinkBench").short('c'),
        Arg::new("define")
            .short('D')
            .value_name("NAME=VALUE")
            .action(ArgAction::Append)
            .help("A setting of LinkBench; it counts before those of the file"),
        Arg::new("load-phase")
            .short('l')
            .action(ArgAction::SetTrue)
            .help("Load, and then end unless there is -r"),
        Arg::new("request-phase")
            .short('r')
            .action(ArgAction::SetTrue)
            .help("Only the request phase unless there is -l"),
        cli::written_path("csvstats", "FILE").help("Write LinkBench's csvstats of the last run here"),
        cli::written_path("csvstream", "FILE")
            .help("Write its csvstream here, by interval (displayfreq) and client"),
    ]
}

pub fn with_long_options(arguments: impl Iterator<Item = std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let long = |argument: std::ffi::OsString| match argument.to_str() {
        Some("-csvstats") => "--csvstats".into(),
        Some("-csvstream") => "--csvstream".into(),
        _ => argument,
    };
    arguments.map(long).collect()
}

pub fn run(call: Call<'_>) -> Result<ExitCode, BenchError> {
    let matches = call.matches;
    let (bench, options) = workload(matches)?;
    let stream = bench.stream();
    let files = call.measure(Job::LinkBench(Box::new(bench)), options)?;
    if let Some(last) = files.runs.last() {
        let stats = crate::workload::linkbench::columns::stats(&last.figures);
        for (name, text) in [("csvstats", stats), ("csvstream", stream.text())] {
            if let Some(path) = matches.get_one::<PathBuf>(name) {
                std::fs::write(path, text).map_err(unwritable(&path))?;
            }
        }
    }
    Ok(files.exit_code())
}

pub fn workload(matches: &ArgMatches) -> Result<(LinkBench, MeasureOptions), BenchError> {
    let mut properties = match matches.get_one::<PathBuf>("properties") {
        Some(path) => Properties::read(path)?,
        None => Properties::default(),
    };
    for definition in matches.get_many::<String>("define").unwrap_or_default() {
        properties.define(definition)?;
    }
    let settings = Settings::of(properties, cli::value(matches, "nodes"))?;
    if !settings.unused.is_empty() {
        err_line!("settings that this tool has no use for: {}", settings.unused.join(", "));
    }
    let options = options(matches, &settings);
    let check = match cli::value::<String>(matches, "verify").as_str() {
        "no" => CheckExtent::Nothing,
        "full" => CheckExtent::Full,
        "auto" if settings.nodes() <= CHECK_ALL_UP_TO => CheckExtent::Full,
        _ => CheckExtent::Sample { nodes: CHECK_SAMPLE, id_max: settings.end_id - 1 },
    };
    let is_sql = cli::uri(matches).starts_with(MYSQL_SCHEME);
    let transactions = Transactions::of_name(&cli::value::<String>(matches, "txn")).unwrap_or(if is_sql {
        Transactions::Session
    } else {
        Transactions::None
    });
    let degree_max = match cli::value::<u64>(matches, "max-degree") {
        0 => u64::MAX,
        most => most,
    };
    let ways = Ways {
        database: cli::value(matches, "database"),
        transactions,
        durability: cli::durability(matches),
        generator: cli::generator(matches),
        seed: cli::value(matches, "seed"),
        degree_max,
        check,
    };
    let faithful = matches.get_flag("faithful");
    let bench = if faithful { LinkBench::faithful(settings, ways)? } else { LinkBench::new(settings, ways)? };
    Ok((bench, options))
}

/// The options; what was given on the command line counts before what LinkBench's settings say of the same.
fn options(matches: &ArgMatches, settings: &Settings) -> MeasureOptions {
    use clap::parser::ValueSource;
    let mut options = cli::measure_options(matches);
    let is_given = |name| matches.value_source(name) == Some(ValueSource::CommandLine);
    if let Some(clients) = settings.requesters.filter(|_| !is_given("clients")) {
        options.plans.truncate(1);
        options.plans.iter_mut().for_each(|plan| plan.clients = clients);
    }
    for plan in &mut options.plans {
        if !is_given("duration") {
            // A run that is limited by its requests ends with the last of them.
            let default_s = if settings.requests.is_some() { cli::DURATION_MAX_S } else { plan.duration_s };
            plan.duration_s = settings.max_s.unwrap_or(default_s);
        }
        if !is_given("warmup") {
            let default_s = if settings.requests.is_some() { 0 } else { plan.warmup_s };
            plan.warmup_s = settings.warmup_s.unwrap_or(default_s);
        }
        if let (Some(each), false) = (settings.rate_per_requester, is_given("rate")) {
            // Each requester of LinkBench has its own random arrivals. Those of all together are random
            // arrivals of the sum of their rates.
            let draws = Draws { seed: cli::value(matches, "seed"), stream: RunNumber::FIRST.stream(0) };
            plan.pace = Pace::Open { rate: each * f64::from(plan.clients), spacing: Spacing::Poisson(draws) };
        }
        if let (Pace::Open { spacing: Spacing::Poisson(draws), .. }, Some(seed)) =
            (&mut plan.pace, settings.seeds[1])
        {
            draws.seed = seed;
        }
    }
    options.load_when = match (matches.get_flag("load-phase"), matches.get_flag("request-phase")) {
        (true, false) => LoadWhen::Only,
        (true, true) => LoadWhen::Always,
        (false, true) => LoadWhen::Never,
        (false, false) => options.load_when,
    };
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linkbench(arguments: &str) -> Result<(LinkBench, MeasureOptions), BenchError> {
        let all = std::iter::once("linkbench").chain(arguments.split_whitespace());
        let all = with_long_options(all.map(Into::into));
        workload(&command().try_get_matches_from(all).expect("all are known"))
    }

    #[test]
    fn linkbenchs_own_arguments_are_understood() {
        let arguments = "-l -r -D maxid1=101 -D requesters=3 -D requests=50 -D requestrate=20 -D maxtime=9 -csvstats a.csv";
        let (_, options) = linkbench(arguments).expect("all are possible");
        let plan = options.plans[0];
        assert_eq!((options.plans.len(), plan.clients, plan.duration_s, plan.warmup_s), (1, 3, 9, 0));
        let spacing = Spacing::Poisson(Draws { seed: 0, stream: 0 });
        assert_eq!(plan.pace, Pace::Open { rate: 60.0, spacing }, "20 a second of each requester");
        assert_eq!(options.load_when, LoadWhen::Always);
        assert_eq!(linkbench("-l").expect("possible").1.load_when, LoadWhen::Only);
        assert_eq!(linkbench("-r").expect("possible").1.load_when, LoadWhen::Never);
    }

    #[test]
    fn a_request_rate_is_that_of_each_requester() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("workload.properties");
        std::fs::write(&file, "requesters = 4\nrequestrate = 25\n").expect("writable");
        let paces = |arguments: &str| -> Vec<Pace> {
            linkbench(arguments).expect("possible").1.plans.iter().map(|plan| plan.pace).collect()
        };
        let of = |rate, seed| Pace::Open { rate, spacing: Spacing::Poisson(Draws { seed, stream: 0 }) };
        assert_eq!(paces("-D requesters=4 -D requestrate=25"), [of(100.0, 0)]);
        assert_eq!(paces(&format!("--seed 3 -c {}", file.display())), [of(100.0, 3)]);
        assert_eq!(paces("--clients 2,8 -D requestrate=25"), [of(50.0, 0), of(200.0, 0)]);
        let seeded = "-D requesters=4 -D requestrate=25 -D request_random_seed=7";
        assert_eq!(paces(seeded), [of(100.0, 7)], "arrivals are draws of the requests");
        assert_eq!(paces("--clients 1 -D requestrate=0"), [Pace::Closed]);
    }

    #[test]
    fn the_tools_own_arguments_count_before_the_settings() {
        let (_, options) =
            linkbench("--clients 2,4 --duration 5 --rate 7 -D requesters=9 -D maxtime=99 -D requestrate=1")
                .expect("possible");
        assert_eq!(options.plans.iter().map(|plan| plan.clients).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(
            (options.plans[0].duration_s, options.plans[0].pace),
            (5, Pace::Open { rate: 7.0, spacing: Spacing::Even })
        );
    }

    #[test]
    fn a_properties_file_that_is_not_there_is_named() {
        let error = linkbench("-c /nowhere/x.properties").expect_err("there is none");
        assert!(error.to_string().contains("/nowhere/x.properties"), "{error}");
    }
}
