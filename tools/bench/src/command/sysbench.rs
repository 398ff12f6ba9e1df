//! `pando-bench sysbench`: its arguments.

use crate::cli::{self, choice, flag, number};
use crate::error::BenchError;
use crate::protocol::Job;
use crate::workload::linkbench::store::Transactions;
use crate::workload::sysbench::mix::Mix;
use crate::workload::sysbench::mongo::AfterFailure;
use crate::workload::sysbench::workload::Sysbench;
use clap::{Arg, ArgMatches, Command};
use pando_measuring::random::Generator;

/// The most statements of one kind in a transaction.
const STATEMENTS_MAX: i64 = 10_000;

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
    let statements = |name, default, help| number(name, default, 0..=STATEMENTS_MAX).help(help);
    vec![
        statements("points", "10", "Queries by _id in a transaction"),
        statements("simple-ranges", "1", "Ranges of _id"),
        statements("sum-ranges", "1", "Sums of k over a range"),
        statements("order-ranges", "1", "Ranges sorted by c"),
        statements("distinct-ranges", "1", "Different c in a range"),
        statements("index-updates", "1", "Updates of k"),
        statements("non-index-updates", "1", "Updates of c"),
        statements("delete-inserts", "1", "Deletes, each with an insert of the same _id"),
        number("range-size", "100", 1..=10_000_000).help("Documents in a range"),
        choice("txn", "LEVEL", ["none", "session", "tokumx"]).help(
            "How the statements of a transaction become one: none: each stands alone; session: in a \
             transaction of a session, or BEGIN and COMMIT over MySQL's protocol; tokumx: in TokuMX's \
             transaction",
        ),
        flag("read-only").help("No updates, deletes and inserts"),
    ]
}

/// The job of the arguments, if it is possible.
pub fn job(matches: &ArgMatches) -> Result<Job, BenchError> {
    let workload = workload(matches);
    if let Some(name) = ignored_writes(matches) {
        let cause = format!("it takes all writes away: leave out --{name}, or --read-only");
        return Err(BenchError::option("read-only", cause));
    }
    if workload.mix.statements() == 0 {
        return Err(BenchError::option("points", "a transaction needs a statement"));
    }
    Ok(Job::Sysbench(workload))
}

/// A number of writes that somebody asks for and that --read-only would take away.
fn ignored_writes(matches: &ArgMatches) -> Option<&'static str> {
    let is_asked_for = |name: &&str| cli::is_given(matches, name) && cli::value::<u32>(matches, name) > 0;
    let names = ["index-updates", "non-index-updates", "delete-inserts"];
    names.into_iter().find(|name| matches.get_flag("read-only") && is_asked_for(name))
}

fn workload(matches: &ArgMatches) -> Sysbench {
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
    use crate::workload::Workload;

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
        let workload = sysbench(&["--read-only"]);
        assert_eq!(workload.mix.statements(), 14);
        let server = crate::report::file::tests::circumstances().server;
        let stated = |workload: &Sysbench| {
            let parameters = workload.parameters();
            crate::report::durability::stated(&parameters, &server, &Default::default())
        };
        assert_eq!(stated(&workload), crate::report::durability::NO_WRITES);
        assert!(workload.summary().contains(", no writes, "), "{}", workload.summary());
        assert!(stated(&sysbench(&[])).starts_with("w:1"), "{}", stated(&sysbench(&[])));
    }

    #[test]
    fn read_only_refuses_writes_that_are_asked_for() {
        let refused = |arguments: &[&str]| {
            let all = ["sysbench", "--read-only"].iter().chain(arguments);
            job(&command().try_get_matches_from(all).expect("all are known")).err()
        };
        let told = refused(&["--delete-inserts", "3"]).expect("it would be ignored").to_string();
        assert!(told.contains("--read-only") && told.contains("--delete-inserts"), "{told}");
        assert!(refused(&["--delete-inserts", "0"]).is_none() && refused(&[]).is_none());
    }

    #[test]
    fn faithful_brings_the_quirks_back() {
        let workload = sysbench(&["--faithful"]);
        assert_eq!((workload.load.generator, workload.after_failure), (Generator::Java, AfterFailure::End));
    }
}
