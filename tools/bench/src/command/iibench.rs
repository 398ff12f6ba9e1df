//! `pando-bench iibench`: its arguments.

use crate::cli::{self, choice, flag, number};
use crate::error::BenchError;
use crate::protocol::Job;
use crate::run::settle::IDLE_S;
use crate::workload::iibench::purchases::{Price, PrimaryKey, Shape};
use crate::workload::iibench::queries::QueryPlan;
use crate::workload::iibench::{COLLECTION, Iibench};
use clap::{Arg, ArgMatches, Command, value_parser};
use pando_measuring::random::Generator;
use std::sync::Arc;

/// The most bytes of a batch's texts: a message may hold 48 MB.
const BATCH_BYTES_MAX: u64 = 40_000_000;

/// The longest wait for an idle server.
const SETTLE_S_MAX: u32 = 86_400;

pub fn command() -> Command {
    Command::new("iibench")
        .about("Inserts under secondary indexes, with queries beside them; drops the collection first")
        .args(cli::server_arguments())
        .args(cli::run_arguments())
        .args(cli::seed_arguments())
        .args(cli::spread_arguments())
        .args(data_arguments())
        .args(query_arguments())
        // The run ends when all is in.
        .mut_arg("duration", |argument| argument.default_value("1000000").help("Break off after so long"))
        .mut_arg("warmup", |argument| argument.default_value("0"))
        .mut_arg("clients", |argument| argument.default_value("10"))
        .mut_arg("threads", |argument| argument.default_value("2"))
        .arg(cli::faithful_argument("java.util.Random, seeded by client; price near the customer's number"))
        .arg(cli::option_of_others(
            "load",
            "iibench has no load: it drops its collection, and inserts are its runs",
        ))
}

fn data_arguments() -> Vec<Arg> {
    vec![
        cli::database_argument("iibench"),
        cli::option("docs", "N")
            .help("Documents in all; the post had 2,000,000,000")
            .default_value("1000000")
            .value_parser(value_parser!(u64).range(1..)),
        number("batch", "1000", 1..=100_000).help("Documents per insert"),
        number("indexes", "3", 0..=3).help("How many of the three secondary indexes there are"),
        number("char-fields", "0", 0..=100).help("Texts in a document"),
        number("char-field-length", "1000", 1..=1_000_000).help("Characters in a text"),
        number("percent-compressible", "90", 0..=100).help("Percent of the characters that are the same"),
        cli::durability_argument("When a batch is answered: w:1, w:1 with j:true, or w:majority"),
        choice("id", "HOW", ["ascending", "random"]).help("The primary key: ascending, or random"),
        flag("independent-price")
            .help("Draw the price independently of the customer; the original's is nearly the customer's number"),
        cli::option("settle", "N")
            .help(
                "Wait so many seconds at most, after the last insert, until the server is idle; 0: do not wait",
            )
            .default_value("60")
            .value_parser(parse_settle),
        number("norm-docs", "200", 1..=1_000_000_000).help("Print costs per so many documents, too"),
    ]
}

/// A wait that is shorter than the idle time that it waits for would never find an idle server.
fn parse_settle(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(seconds) if seconds == 0 || (IDLE_S..=SETTLE_S_MAX).contains(&seconds) => Ok(seconds),
        _ => Err(format!(
            "give 0 (no wait) or {IDLE_S} to {SETTLE_S_MAX}: a server is idle after {IDLE_S} idle seconds in a row"
        )),
    }
}

fn query_arguments() -> Vec<Arg> {
    vec![
        number("queries", "0", 0..=1_000_000).help("Queries in an interval, by one client"),
        cli::seconds("query-interval", "15", 1..=86_400).help("The interval of --queries"),
        number("query-limit", "10", 1..=100_000).help("Documents that a query asks for"),
        cli::option("query-begin", "N")
            .help("Documents that must be in before the first query")
            .default_value("1000000")
            .value_parser(value_parser!(u64)),
        flag("guided-queries").help("Queries name their index and their order"),
    ]
}

/// The job of the arguments, if it is possible.
pub fn job(matches: &ArgMatches) -> Result<Job, BenchError> {
    let workload = workload(matches)?;
    if workload.queries.guided && workload.queries.per_interval > 0 && workload.indexes < 3 {
        let cause = "each of the three queries names its index: --indexes 3";
        return Err(BenchError::option("guided-queries", cause));
    }
    let queries = workload.queries;
    if queries.per_interval > 0 && queries.begin_after >= workload.documents {
        let (begin, documents) = (queries.begin_after, workload.documents);
        let cause = format!(
            "no query would be asked: they begin after {begin} documents, and only {documents} go in"
        );
        return Err(BenchError::option("query-begin", cause));
    }
    let bytes = u64::from(workload.batch) * u64::from(workload.shape.document_bytes());
    if bytes > BATCH_BYTES_MAX {
        let cause = format!("a batch would have {bytes} bytes, at most {BATCH_BYTES_MAX} go into a message");
        return Err(BenchError::option("batch", cause));
    }
    Ok(Job::Iibench(workload))
}

fn workload(matches: &ArgMatches) -> Result<Iibench, BenchError> {
    let faithful = matches.get_flag("faithful");
    let independent = matches.get_flag("independent-price") && !faithful;
    let random = cli::value::<String>(matches, "id") == "random";
    let shape = Shape {
        texts: cli::value(matches, "char-fields"),
        text_bytes: cli::value(matches, "char-field-length"),
        compressible_percent: cli::value(matches, "percent-compressible"),
        price: if independent { Price::Independent } else { Price::NearCustomer },
        primary_key: if random { PrimaryKey::Random } else { PrimaryKey::Ascending },
    };
    let queries = QueryPlan {
        per_interval: cli::value(matches, "queries"),
        interval_s: cli::value(matches, "query-interval"),
        limit: cli::value(matches, "query-limit"),
        begin_after: cli::value(matches, "query-begin"),
        guided: matches.get_flag("guided-queries"),
    };
    Ok(Iibench {
        spread: cli::spread(matches, COLLECTION)?,
        documents: cli::value(matches, "docs"),
        batch: cli::value(matches, "batch"),
        indexes: cli::value(matches, "indexes"),
        shape,
        durability: cli::durability(matches),
        queries,
        settle_s: cli::value(matches, "settle"),
        generator: if faithful { Generator::Java } else { cli::generator(matches) },
        seed: cli::value(matches, "seed"),
        norm_documents: cli::value(matches, "norm-docs"),
        sent: Arc::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iibench(arguments: &[&str]) -> Option<Iibench> {
        let all = std::iter::once(&"iibench").chain(arguments);
        workload(&command().try_get_matches_from(all).ok()?).ok()
    }

    #[test]
    fn the_defaults_are_the_posts_apart_from_the_number_of_documents() {
        let workload = iibench(&[]).expect("no argument is required");
        assert_eq!((workload.batch, workload.indexes, workload.shape.texts), (1000, 3, 0));
        assert_eq!((workload.queries.per_interval, workload.shape.price), (0, Price::NearCustomer));
    }

    #[test]
    fn a_wait_that_is_too_short_to_find_an_idle_server_is_refused() {
        for seconds in ["1", "2", "-1", "86401", "soon"] {
            let refusal = command().try_get_matches_from(["iibench", &format!("--settle={seconds}")]);
            let refusal = refusal.expect_err("it is too short").to_string();
            assert!(refusal.contains("idle after 3 idle seconds in a row"), "{refusal}");
        }
        for seconds in [0, 3, 86_400] {
            let settled = iibench(&["--settle", &seconds.to_string()]).map(|workload| workload.settle_s);
            assert_eq!(settled, Some(seconds));
        }
    }

    #[test]
    fn queries_that_would_never_begin_are_refused() {
        let job = |arguments: &[&str]| {
            let all = std::iter::once(&"iibench").chain(arguments);
            job(&command().try_get_matches_from(all).expect("each is possible alone"))
        };
        let refusal = job(&["--queries", "10"]).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refusal.contains("--query-begin") && refusal.contains("1000000 documents"), "{refusal}");
        assert!(job(&["--queries", "10", "--query-begin", "500"]).is_ok());
        assert!(job(&["--docs", "500"]).is_ok(), "without queries they need no begin");
    }

    #[test]
    fn a_load_is_refused_with_the_reason() {
        let refusal = command().try_get_matches_from(["iibench", "--load", "yes"]).expect_err("it has none");
        assert!(refusal.to_string().contains("iibench has no load"), "{refusal}");
    }

    #[test]
    fn more_indexes_than_there_are_and_batches_that_no_message_holds_are_refused() {
        assert!(iibench(&["--indexes", "4"]).is_none());
        let arguments = ["iibench", "--batch", "100000", "--char-fields", "1"];
        let matches = command().try_get_matches_from(arguments).expect("each is possible alone");
        assert!(matches!(job(&matches), Err(BenchError::Option { option: "batch", .. })));
    }
}
