//! `pando ping`: whether a server answers, for scripts, service managers and health checks of containers.
//!
//! One try connects, logs in where a login is given, and sends `ping`. Tries follow each other until one is
//! answered, or the time of `--wait` is over. A server that refuses the login or the certificate answers, and
//! another try would not change it: that ends the command at once.

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bson::{Document, doc};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::json;

use super::login_arguments::{self, login_arguments};
use super::output::print_line;
use super::target_arguments::{URI_DEFAULT, json_argument};
use crate::configuration::seconds;
use crate::transfer::{TransferError, run_command_within, without_password};

const EXAMPLES: &str = "Examples:
  pando ping
      whether the server of this machine answers within five seconds
  pando ping --uri mongodb://127.0.0.1:27018 --wait 60
      try for a minute, such as after a start
  pando ping --uri mongodb://db.example/?tls=true --within 1 --quiet
      for a health check: the exit code alone

Exit codes: 0 it answers; 1 it does not, or refuses the login, and the message says which; 2 a wrong command line.";

/// The pause between two tries.
const TRIES_EVERY: Duration = Duration::from_millis(200);

pub(super) fn command() -> Command {
    let seconds_of = |name: &'static str| {
        Arg::new(name).long(name).value_name("SECONDS").value_parser(|text: &str| seconds(text))
    };
    Command::new("ping")
        .about("Tell whether a server answers")
        .arg(
            Arg::new("uri")
                .long("uri")
                .value_name("URI")
                .help(format!("The server [default: {URI_DEFAULT}]")),
        )
        .arg(seconds_of("within").help("How long one answer may take, at least a second [default: 5]"))
        .arg(seconds_of("wait").help("How long a server that does not answer is tried again [default: 0]"))
        .args(login_arguments())
        .arg(json_argument())
        .arg(
            Arg::new("quiet")
                .long("quiet")
                .action(ArgAction::SetTrue)
                .help("No line for a server that answers"),
        )
        .after_help(EXAMPLES)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    let time = |name, default| matches.get_one::<Duration>(name).copied().unwrap_or(default);
    let within = time("within", Duration::from_secs(5)).max(Duration::from_secs(1));
    let wait = time("wait", Duration::ZERO);
    let uri = matches.get_one::<String>("uri").map_or(URI_DEFAULT, String::as_str);
    let uri = login_arguments::completed(uri, matches)?;
    let begun = Instant::now();
    loop {
        let tried = Instant::now();
        match run_command_within(&uri, "admin", doc! { "ping": 1 }, within) {
            Ok(_) => {
                let took = tried.elapsed();
                // A server may keep it from strangers.
                let build = run_command_within(&uri, "admin", doc! { "buildInfo": 1 }, within);
                tell(matches, &uri, &build.unwrap_or_default(), took);
                return Ok(ExitCode::SUCCESS);
            }
            Err(error) if !is_away(&error) || begun.elapsed() >= wait => return Err(error.into()),
            Err(_) => std::thread::sleep(TRIES_EVERY),
        }
    }
}

/// Whether the server may be there at another try.
fn is_away(error: &TransferError) -> bool {
    matches!(
        error,
        TransferError::NoAnswer { .. }
            | TransferError::Connect { .. }
            | TransferError::Connection(_)
            | TransferError::Closed
    )
}

fn tell(matches: &ArgMatches, uri: &str, build: &Document, took: Duration) {
    let (place, milliseconds) = (without_password(uri), took.as_secs_f64() * 1e3);
    let own = build.get_document("pando").and_then(|own| own.get_str("version"));
    let version = build.get_str("version");
    if matches.get_flag("json") {
        let result = json!({
            "answers": true, "server": place, "milliseconds": milliseconds,
            "pando": own.ok(), "version": version.ok(),
        });
        print_line!("{result}");
    } else if !matches.get_flag("quiet") {
        let program = match (own, version) {
            (Ok(own), _) => format!(": Pando {own}"),
            (Err(_), Ok(version)) => format!(": version {version}"),
            (Err(_), Err(_)) => String::new(),
        };
        print_line!("{place} answers in {milliseconds:.1} ms{program}");
    }
}
