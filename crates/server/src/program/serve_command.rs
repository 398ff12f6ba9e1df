//! `pando serve`.

use std::error::Error;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};

use crate::configuration::{Sources, serve_arguments};
use crate::error_text::tell_line;
use crate::serve::serve;

/// Flags of mongod, and how the same is said here. They are refused, since what they mean is not exactly what
/// Pando does. The table of familiar switches has those that are taken.
const FLAGS_OF_MONGOD: [(&str, &str); 14] = [
    ("port", "say --listen 127.0.0.1:PORT"),
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
    ("replSet", "leave the flag out: a server is by itself"),
    ("journal", "every write goes through the log; leave the flag out"),
];

pub(super) fn command(examples: &'static str) -> Command {
    Command::new("serve")
        .about("Serve a data folder to MongoDB clients")
        .args(serve_arguments())
        .args(FLAGS_OF_MONGOD.iter().map(|(name, _)| flag_of_mongod(name)))
        .after_help(examples)
}

fn flag_of_mongod(name: &'static str) -> Arg {
    Arg::new(name).long(name).hide(true).num_args(0..=1).default_missing_value("true")
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn Error>> {
    if let Some((name, instead)) = FLAGS_OF_MONGOD.iter().find(|(name, _)| matches.contains_id(name)) {
        let value = matches.get_one::<String>(name).map_or("PORT", String::as_str);
        let instead = if *name == "port" { instead.replace("PORT", value) } else { (*instead).to_owned() };
        tell_line!("pando: there is no option --{name}: {instead}");
        return Ok(ExitCode::from(super::EXIT_CODE_USAGE));
    }
    let configuration = Sources::from_matches(matches).resolve(|variable| std::env::var_os(variable))?;
    serve(&configuration)?;
    Ok(ExitCode::SUCCESS)
}
