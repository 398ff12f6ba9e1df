//! `pando-bench self-check`: what the tool itself costs, and whether it keeps its word.

use crate::cli;
use crate::error::BenchError;
use crate::self_check::{Answer, Effort, counters, floor, open_loop, seed};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command, value_parser};
use std::process::ExitCode;

const PARTS: [&str; 4] = ["floor", "counters", "open-loop", "seed"];

/// The subcommand's arguments.
pub fn command() -> Command {
    let number = |name, default: &'static str, help| {
        cli::option(name, "N", help).default_value(default).value_parser(value_parser!(u32).range(1..=10_000))
    };
    Command::new("self-check")
        .about("Measures the tool itself against its null server: see docs/benchmarks.md")
        .arg(
            Arg::new("part")
                .value_name("PART")
                .help("Only this part [default: all]")
                .value_parser(PossibleValuesParser::new(PARTS)),
        )
        .arg(number("clients", "100", "Clients"))
        .arg(number("seconds", "2", "Seconds of one measurement"))
        .arg(number("rounds", "7", "Measurements of each kind, in turn"))
}

/// Runs the subcommand; 1 if something is not within its bound.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, BenchError> {
    let effort = Effort {
        clients: cli::value(matches, "clients"),
        seconds: cli::value(matches, "seconds"),
        rounds: cli::value(matches, "rounds"),
    };
    let chosen = matches.get_one::<String>("part");
    let mut all_hold = true;
    for part in PARTS.into_iter().filter(|part| chosen.is_none_or(|chosen| chosen == part)) {
        let Answer { text, holds } = match part {
            "floor" => floor::check(effort)?,
            "counters" => counters::check(effort)?,
            "open-loop" => open_loop::check(effort)?,
            _ => seed::check()?,
        };
        println!("{part:<10} {} {text}", if holds { "holds    " } else { "DOES NOT " });
        all_hold &= holds;
    }
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
