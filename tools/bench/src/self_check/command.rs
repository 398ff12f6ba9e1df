//! `pando-bench self-check`: its arguments, and the parts that it runs.

use super::{Answer, Effort, counters, degrees, floor, open_loop, seed};
use crate::cli;
use crate::command::Call;
use crate::error::BenchError;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, value_parser};
use std::path::PathBuf;
use std::process::ExitCode;

const PARTS: [&str; 5] = ["floor", "counters", "open-loop", "seed", DEGREES];
/// Only where there is a file to look at.
const DEGREES: &str = "degrees";

pub fn command() -> Command {
    let number = |name, default, help| cli::number(name, default, 1..=10_000).help(help);
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
        .arg(
            cli::option("data-file", "FILE")
                .help("Of degrees: the file that may be LinkBench's Distribution.dat")
                .value_parser(value_parser!(PathBuf)),
        )
}

/// Runs the subcommand; 1 if something is not within its bound.
pub fn run(call: Call<'_>) -> Result<ExitCode, BenchError> {
    let matches = call.matches;
    let effort = Effort {
        clients: cli::value(matches, "clients"),
        seconds: cli::value(matches, "seconds"),
        rounds: cli::value(matches, "rounds"),
    };
    let chosen = matches.get_one::<String>("part");
    let file = matches.get_one::<PathBuf>("data-file");
    if file.is_none() && chosen.is_some_and(|chosen| chosen == DEGREES) {
        return Err(BenchError::option("data-file", "name the file that is to be looked at"));
    }
    let mut all_hold = true;
    for part in PARTS.into_iter().filter(|part| chosen.is_none_or(|chosen| chosen == part)) {
        let Answer { text, holds } = match (part, file) {
            (DEGREES, None) => continue,
            (DEGREES, Some(file)) => degrees::check(file)?,
            ("floor", _) => floor::check(effort)?,
            ("counters", _) => counters::check(effort)?,
            ("open-loop", _) => open_loop::check(effort)?,
            _ => seed::check()?,
        };
        out_line!("{part:<10} {} {text}", if holds { "holds    " } else { "DOES NOT " });
        all_hold &= holds;
    }
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
