//! `pando-bench kv`: its arguments.

use crate::cli::{self, choice, flag, number};
use crate::error::BenchError;
use crate::workload::kv::loading::{KvLoad, LoadFormat, LoadOrder};
use crate::workload::kv::rows::Rows;
use crate::workload::kv::{KeyValue, Preload};
use clap::{Arg, ArgMatches, Command};

/// The most rows: a place is a u32, and one more than the last is a number, too.
const ROWS_MAX: i64 = u32::MAX as i64 - 1;

pub fn command() -> Command {
    Command::new("kv")
        .about("Reads of single rows by key, in rounds over one set of keys")
        .args(cli::server_arguments())
        .args(cli::load_arguments())
        .args(cli::run_arguments())
        .arg(cli::load_when_argument())
        .args(cli::spread_arguments())
        .args(arguments())
        // The run ends with its last round.
        .mut_arg("duration", |argument| argument.default_value("1000000").help("Break off after so long"))
        .mut_arg("warmup", |argument| argument.default_value("0"))
        .mut_arg("clients", |argument| argument.default_value("100"))
}

fn arguments() -> Vec<Arg> {
    vec![
        cli::database_argument("kv"),
        number("rows", "1000000", 1..=ROWS_MAX).help("Rows; the post had 105,000,000"),
        number("reads", "100000", 1..=ROWS_MAX).help("Rows that are read in a round; the post: 1,000,000"),
        number("rounds", "10", 1..=200).help("How often they are read"),
        number("id-gap", "1", 1..=1_000_000).help("Ids are multiples of this"),
        number("null-pct", "0", 0..=100).help("Percent of the values that are null").value_name("PERCENT"),
        cli::seed_argument(),
        choice("load-format", "WHAT", ["bson", "json"]).help("Make documents straight, or by lines of JSON"),
        flag("preload").help("Read the whole collection before the run, so that everything is in memory"),
        flag("shuffle-load").help("Load in mixed order, not by id"),
    ]
}

pub fn workload(matches: &ArgMatches) -> Result<KeyValue, BenchError> {
    let rows = Rows {
        count: cli::value(matches, "rows"),
        gap: cli::value(matches, "id-gap"),
        seed: cli::value(matches, "seed"),
        null_percent: cli::value(matches, "null-pct"),
    };
    let json = cli::value::<String>(matches, "load-format") == "json";
    let load = KvLoad {
        spread: cli::spread(matches, "keyvalue")?,
        rows,
        format: if json { LoadFormat::Json } else { LoadFormat::Bson },
        order: if matches.get_flag("shuffle-load") { LoadOrder::Shuffled } else { LoadOrder::Ascending },
        connections: cli::value(matches, "load-connections"),
        batch: cli::value(matches, "batch"),
        durability: cli::durability(matches),
    };
    let preload = if matches.get_flag("preload") { Preload::Everything } else { Preload::Nothing };
    Ok(KeyValue { load, reads: cli::value(matches, "reads"), rounds: cli::value(matches, "rounds"), preload })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_posts_ten_rounds_by_a_hundred_clients() {
        let matches = command().try_get_matches_from(["kv"]).expect("no argument is required");
        let workload = workload(&matches).expect("it is possible");
        assert_eq!((workload.rounds, workload.load.rows.gap), (10, 1));
        let options = cli::measure_options(&matches);
        assert_eq!(options.plans.iter().map(|plan| plan.clients).collect::<Vec<_>>(), [100]);
        assert!(command().try_get_matches_from(["kv", "--rounds", "201"]).is_err());
        let arguments = ["kv", "--collections", "2", "--databases", "3"];
        let matches = command().try_get_matches_from(arguments).expect("each is possible alone");
        assert!(matches!(super::workload(&matches), Err(BenchError::Option { option: "databases", .. })));
    }
}
