//! `pando serve`.

use std::error::Error;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};

use super::failure::error_lines;
use crate::configuration::{Sources, serve_arguments};
use crate::error_text::{error_text, tell_line};
use crate::serve::{serve, tell_end};

/// Flags of mongod, and how the same is said here. They are refused, since what they mean is not exactly what
/// Pando does. The table of familiar switches has those that are taken.
/// `VALUE` is the value that was given.
const FLAGS_OF_MONGOD: [(&str, &str); 26] = [
    ("port", "say --listen 127.0.0.1:VALUE"),
    ("bind_ip", "say --listen ADDRESS:PORT"),
    ("bind_ip_all", "say --listen 0.0.0.0:PORT"),
    ("ipv6", "say --listen [::1]:PORT"),
    ("dbpath", "say --data DIR"),
    ("unixSocketPrefix", "say --unix-socket PATH"),
    ("nounixsocket", "say --unix-socket none"),
    ("maxConns", "say --max-connections COUNT"),
    ("logpath", "the log goes to standard error: say 2>> FILE"),
    ("logappend", "the log goes to standard error: say 2>> FILE"),
    ("fork", "leave the flag out, and start the server in the background with systemd or &"),
    (
        "pidfilepath",
        "the number of the process stands in the file LOCK of the data folder; leave the flag out",
    ),
    ("replSet", "say --replica-set VALUE; the server is a replica set of one node"),
    ("journal", "every write goes through the log; leave the flag out"),
    ("nojournal", "every write goes through the log; leave the flag out"),
    ("smallfiles", "files grow with the data; leave the flag out"),
    ("noprealloc", "files grow with the data; leave the flag out"),
    ("repair", "the log of a crash is replayed at every start; say pando verify DIR to look for damage"),
    ("shutdown", "send SIGTERM to the process, or say db.adminCommand({shutdown: 1}) in mongosh"),
    ("oplogSize", "there is no oplog; leave the flag out"),
    ("quiet", "say --log-level warn"),
    ("verbose", "say --log-level debug"),
    ("noauth", "leave the flag out: without --auth no client has to log in"),
    (
        "keyFile",
        "leave the flag out: there are no other members to log in; say --auth to have clients log in",
    ),
    ("version", "say pando --version"),
    ("f", "say --config VALUE"),
];

pub(super) fn command(examples: &'static str) -> Command {
    Command::new("serve")
        .about("Serve a data folder to MongoDB clients")
        .args(serve_arguments())
        .args(FLAGS_OF_MONGOD.iter().map(|(name, _)| flag_of_mongod(name)))
        .after_help(examples)
}

fn flag_of_mongod(name: &'static str) -> Arg {
    let flag = Arg::new(name).hide(true).num_args(0..=1).default_missing_value("true");
    match name {
        "f" => flag.short('f'),
        "verbose" => flag.long(name).short('v'),
        _ => flag.long(name),
    }
}

/// The answer to a flag of mongod.
fn refusal(name: &str, instead: &str, value: Option<&str>) -> String {
    // A flag without its value is told with the name of the value.
    let value = value.filter(|value| *value != "true").unwrap_or(match name {
        "port" => "PORT",
        "f" => "FILE",
        _ => "NAME",
    });
    let dashes = if name.len() == 1 { "-" } else { "--" };
    format!("there is no option {dashes}{name}: {}", instead.replace("VALUE", value))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    if let Some((name, instead)) = FLAGS_OF_MONGOD.iter().find(|(name, _)| matches.contains_id(name)) {
        let value = matches.get_one::<String>(name).map(String::as_str);
        tell_line!("pando: {}", refusal(name, instead, value));
        return Ok(ExitCode::from(super::EXIT_CODE_USAGE));
    }
    let configuration = Sources::from_matches(matches).resolve(|variable| std::env::var_os(variable))?;
    let Err(error) = serve(&configuration) else { return Ok(ExitCode::SUCCESS) };
    tell_end(&configuration, &error_text(&error), &error_lines(&error));
    Ok(match error.is_wrong_configuration() {
        true => ExitCode::from(super::EXIT_CODE_USAGE),
        false => ExitCode::FAILURE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(arguments: &[&str]) -> String {
        let matches = command("").try_get_matches_from([&["serve"], arguments].concat()).unwrap();
        let (name, instead) = FLAGS_OF_MONGOD.iter().find(|(name, _)| matches.contains_id(name)).unwrap();
        refusal(name, instead, matches.get_one::<String>(name).map(String::as_str))
    }

    #[test]
    fn a_flag_of_mongod_is_answered_with_the_option_that_comes_nearest() {
        assert!(told(&["--port", "4711"]).contains("--listen 127.0.0.1:4711"));
        assert!(told(&["--port"]).contains("--listen 127.0.0.1:PORT"));
        assert!(told(&["--replSet", "rs0"]).contains("--replica-set rs0"));
        for (given, instead) in [
            ("--quiet", "--log-level warn"),
            ("-v", "--log-level debug"),
            ("--version", "there is no option --version: say pando --version"),
            ("--keyFile", "--auth"),
            ("-f=pando.toml", "no option -f: say --config pando.toml"),
            ("--noauth", "--auth"),
        ] {
            assert!(told(&[given]).contains(instead), "{given}: {}", told(&[given]));
        }
    }
}
