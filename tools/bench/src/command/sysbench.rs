//! `pando-bench sysbench`: its arguments.

use super::phases;
use crate::cli;
use crate::error::BenchError;
use crate::random::Generator;
use crate::workload::linkbench::store::Transactions;
use crate::workload::sysbench::mix::Mix;
use crate::workload::sysbench::mongo::AfterFailure;
use crate::workload::sysbench::workload::Sysbench;
use clap::{Arg, ArgMatches, Command, value_parser};
use std::process::ExitCode;

/// The most statements of one kind in a transaction.
const STATEMENTS_MAX: i64 = 10_000;

/// The subcommand's arguments.
pub fn command() -> Command {
    Command::new("sysbench")
        .about("Transactions of 18 statements, as sysbench-mongodb does them")
        .args(cli::server_arguments())
        .args(cli::sysbench::data_arguments())
        .args(cli::load_arguments())
        .args(cli::sysbench::index_arguments())
        .args(cli::run_arguments())
        .arg(cli::load_when_argument())
        .args(mix_arguments())
        .arg(cli::faithful_argument(
            "java.util.Random, seeded by client; a failure ends its client without a word",
        ))
}

fn mix_arguments() -> Vec<Arg> {
    let statements = |name, default: &'static str, help| {
        cli::option(name, "N", help)
            .default_value(default)
            .value_parser(value_parser!(u32).range(0..=STATEMENTS_MAX))
    };
    vec![
        statements("points", "10", "Queries by _id in a transaction"),
        statements("simple-ranges", "1", "Ranges of _id"),
        statements("sum-ranges", "1", "Sums of k over a range"),
        statements("order-ranges", "1", "Ranges sorted by c"),
        statements("distinct-ranges", "1", "Different c in a range"),
        statements("index-updates", "1", "Updates of k"),
        statements("non-index-updates", "1", "Updates of c"),
        statements("delete-inserts", "1", "Deletes, each with an insert of the same _id"),
        cli::option("range-size", "N", "Documents in a range")
            .default_value("100")
            .value_parser(value_parser!(u32).range(1..=10_000_000)),
        cli::option(
            "txn",
            "LEVEL",
            "What makes a transaction's statements one: nothing; a transaction of a session, or BEGIN and COMMIT over MySQL's protocol; \
             TokuMX's transaction",
        )
        .default_value("none")
        .value_parser(clap::builder::PossibleValuesParser::new(["none", "session", "tokumx"])),
        Arg::new("read-only")
            .long("read-only")
            .action(clap::ArgAction::SetTrue)
            .help("No updates, deletes and inserts, whatever their numbers"),
    ]
}

/// Runs the subcommand.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, BenchError> {
    let workload = workload(matches);
    if workload.mix.statements() == 0 {
        let cause = "a transaction needs a statement".to_owned();
        return Err(BenchError::Option { option: "points", cause });
    }
    #[cfg(feature = "mysql")]
    if let Some(server) = cli::sql_server(matches)? {
        if workload.transactions == Transactions::TokuMx {
            let cause = "MySQL's protocol has none and session".to_owned();
            return Err(BenchError::Option { option: "txn", cause });
        }
        let wrapped = workload.transactions == Transactions::Session;
        use crate::workload::sysbench::sql::{SqlWorkload, Work, Wrapping};
        let options = cli::measure_options_of_sql(matches, &server);
        let wrapping = if wrapped { Wrapping::Transaction } else { Wrapping::Statement };
        let workload = SqlWorkload::new(Work::Mix(workload), wrapping, server)?;
        return phases::measure(&crate::sql::SqlRun::new(workload)?, &options);
    }
    phases::measure(&workload, &cli::measure_options(matches))
}

/// What the arguments say.
pub fn workload(matches: &ArgMatches) -> Sysbench {
    let number = |name| cli::value::<u32>(matches, name);
    let faithful = matches.get_flag("faithful");
    let writes = |name| if matches.get_flag("read-only") { 0 } else { number(name) };
    let mix = Mix {
        points: number("points"),
        simple_ranges: number("simple-ranges"),
        sum_ranges: number("sum-ranges"),
        order_ranges: number("order-ranges"),
        distinct_ranges: number("distinct-ranges"),
        index_updates: writes("index-updates"),
        non_index_updates: writes("non-index-updates"),
        delete_inserts: writes("delete-inserts"),
        range_size: number("range-size"),
    };
    let mut load = cli::sysbench::load(matches);
    if faithful {
        load.generator = Generator::Java;
    }
    let after_failure = if faithful { AfterFailure::End } else { AfterFailure::NextTransaction };
    let transactions =
        Transactions::of_name(&cli::value::<String>(matches, "txn")).unwrap_or(Transactions::None);
    Sysbench { durability: load.durability, load, mix, after_failure, transactions }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysbench(arguments: &[&str]) -> Sysbench {
        let all = std::iter::once(&"sysbench").chain(arguments);
        workload(&command().try_get_matches_from(all).expect("all are known"))
    }

    #[test]
    fn the_default_is_the_originals_transaction() {
        let workload = sysbench(&[]);
        assert_eq!((workload.mix, workload.transactions), (Mix::DEFAULT, Transactions::None));
        assert_eq!(sysbench(&["--txn", "tokumx"]).transactions, Transactions::TokuMx);
        assert_eq!(
            (workload.load.generator, workload.after_failure),
            (Generator::Xoshiro, AfterFailure::NextTransaction)
        );
    }

    #[test]
    fn read_only_takes_all_four_writes_away() {
        assert_eq!(sysbench(&["--read-only"]).mix.statements(), 14);
    }

    #[test]
    fn faithful_brings_the_quirks_back() {
        let workload = sysbench(&["--faithful"]);
        assert_eq!((workload.load.generator, workload.after_failure), (Generator::Java, AfterFailure::End));
    }
}
