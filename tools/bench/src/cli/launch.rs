//! The arguments for a server that the tool starts itself, for labels, and for profiles.

use super::{flag, is_given, option, seconds, value};
use crate::error::BenchError;
use crate::launch::caps::{IoCap, parse_bytes};
use crate::launch::{Caps, Launch, Words};
use crate::target::uri::without_login;
use clap::{Arg, ArgMatches, value_parser};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The beginning of the words in a command that stand for the size of the cache.
pub const CACHE_WORD: &str = "{cache_";

/// Refuses options of a server that the tool starts beside one that runs already: they would be ignored.
pub fn refuse_without_command(matches: &ArgMatches) -> Result<(), BenchError> {
    const NOT_CAPPED: &str =
        "a server that runs already is not capped: give --server-command, or start it in a control group";
    const NOT_ENDED: &str =
        "a server that runs already is not started and not ended: give --server-command, or leave this out";
    const HAS_ITS_CACHE: &str = "a server that runs already has the cache that it was started with: give --server-command, or leave \
         this out (--label cache=NAME names a cache in reports)";
    if is_given(matches, "server-command") {
        return Ok(());
    }
    let options = [
        ("cache-mb", HAS_ITS_CACHE),
        ("cap", NOT_CAPPED),
        ("io-cap", NOT_CAPPED),
        ("server-stop", NOT_ENDED),
        ("server-ready", NOT_ENDED),
        ("server-grace", NOT_ENDED),
    ];
    match options.into_iter().find(|(name, _)| is_given(matches, name)) {
        Some((name, cause)) => Err(BenchError::option(name, cause)),
        None => Ok(()),
    }
}

pub fn arguments() -> Vec<Arg> {
    vec![
        option("server-command", "COMMAND")
            .help("Start this server, and end it afterwards; words: {port} {data} {cache_mb} …"),
        option("server-stop", "COMMAND").help("Command that ends it [default: SIGTERM]"),
        seconds("server-ready", "60", 1..=86_400).help("How long it may take to answer"),
        seconds("server-grace", "120", 0..=86_400).help("How long it may take to end before it is killed"),
        option("cache-mb", "MB")
            .help("Value of {cache_mb}, {cache_bytes} and {cache_gb}, in 10^6 bytes")
            .value_parser(value_parser!(u64).range(1..=10_000_000)),
        option("cap", "SIZE")
            .help("Memory and page cache of the started server together: 640MB")
            .value_parser(|text: &str| parse_bytes(text)),
        option("io-cap", "LIMITS")
            .help("Disk of the started server: 200riops|20MBps")
            .value_parser(|text: &str| text.parse::<IoCap>()),
    ]
}

/// The conditions under which a server is measured, whoever starts it.
pub fn condition_arguments() -> Vec<Arg> {
    vec![
        option("scale", "FACTOR")
            .help("Multiply the post's data and cache by this: 0.001")
            .value_parser(value_parser!(f64)),
        option("readahead-sweep", "KB,KB")
            .help("One set of runs for each readahead of the data's device [0,8,32]")
            .num_args(0..=1)
            .default_missing_value("0,8,32")
            .value_delimiter(',')
            .value_parser(value_parser!(u32).range(0..=1_048_576)),
        flag("force-checkpoint").help(
            "Have the server write a checkpoint before each run, and another one before sizes are \
             taken again",
        ),
        option("profile", "STACKS")
            .help("Record the server with perf: top symbols, and a flame graph by frame pointers or dwarf")
            .num_args(0..=1)
            .default_missing_value("fp")
            .value_parser(clap::builder::PossibleValuesParser::new(["fp", "dwarf"])),
    ]
}

pub fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), without_login(value))),
        _ => Err("a label is NAME=TEXT".to_owned()),
    }
}

/// The labels beside the figures: the user's, and for the cache and the caps that this call gives to the
/// server those that a suite gives to its runs.
pub fn labels(matches: &ArgMatches) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> =
        matches.get_many::<(String, String)>("label").unwrap_or_default().cloned().collect();
    let mut add = |name: &str, text: String| {
        labels.entry(name.to_owned()).or_insert(text);
    };
    let cache = if is_given(matches, "embedded-cache") { "embedded-cache" } else { "cache-mb" };
    if let Some(megabytes) = matches.get_one::<u64>(cache) {
        add("cache", format!("{megabytes} MB"));
        add("cache_mb", megabytes.to_string());
    }
    let io_cap = as_written(matches, "io-cap");
    let caps: Vec<String> = as_written(matches, "cap").into_iter().chain(io_cap.clone()).collect();
    if !caps.is_empty() {
        add("cap", caps.join(", "));
    }
    if let Some(io_cap) = io_cap {
        add("io_cap", io_cap);
    }
    labels
}

/// The text of an option on the command line.
fn as_written(matches: &ArgMatches, name: &str) -> Option<String> {
    Some(matches.get_raw(name)?.next()?.to_string_lossy().into_owned())
}

/// A server to start, as it was given.
#[derive(Clone, Debug, Default)]
pub struct LaunchOptions {
    command: Option<String>,
    stop: Option<String>,
    ready_within: Duration,
    stop_within: Duration,
    cache_mb: Option<u64>,
    caps: Caps,
    log: PathBuf,
}

pub fn options(matches: &ArgMatches) -> LaunchOptions {
    LaunchOptions {
        command: matches.get_one("server-command").cloned(),
        stop: matches.get_one("server-stop").cloned(),
        ready_within: Duration::from_secs(u64::from(value::<u32>(matches, "server-ready"))),
        stop_within: Duration::from_secs(u64::from(value::<u32>(matches, "server-grace"))),
        cache_mb: matches.get_one("cache-mb").copied(),
        caps: Caps {
            memory_bytes: matches.get_one("cap").copied(),
            io: matches.get_one("io-cap").copied().unwrap_or_default(),
        },
        log: log_path(matches),
    }
}

impl LaunchOptions {
    pub fn is_given(&self) -> bool {
        self.command.is_some()
    }

    /// The server to start, with words filled in; none if none was given.
    pub fn resolve(&self, uri: &str, folder: Option<&Path>) -> Result<Option<Launch>, BenchError> {
        let Some(command) = &self.command else { return Ok(None) };
        let mut words = Words::new();
        if let Some(port) = port_of(uri) {
            words = words.with("port", port);
        }
        if let Some(folder) = folder {
            words = words.with("data", folder.display());
        }
        if let Some(megabytes) = self.cache_mb {
            words = words.with_cache(megabytes);
            if !command.contains(CACHE_WORD) {
                let cause = "the command of the server takes no cache: write {cache_mb}, {cache_bytes} or {cache_gb} in it";
                return Err(BenchError::option("cache-mb", cause));
            }
        }
        let fill =
            |option, text: &String| words.fill(text).map_err(|cause| BenchError::option(option, cause));
        Ok(Some(Launch {
            start: fill("server-command", command)?,
            stop: self.stop.as_ref().map(|stop| fill("server-stop", stop)).transpose()?,
            ready_within: self.ready_within,
            stop_within: self.stop_within,
            log: self.log.clone(),
            caps: self.caps,
            data_folder: folder.map(Path::to_owned),
        }))
    }
}

/// The port of a URI, if it has one.
fn port_of(uri: &str) -> Option<u16> {
    let host = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    host.rsplit_once(':')?.1.parse().ok()
}

/// Beside the results, or with the other temporary files.
fn log_path(matches: &ArgMatches) -> PathBuf {
    let folder = matches.get_one::<PathBuf>("out").cloned().unwrap_or_else(std::env::temp_dir);
    folder.join(format!("server-{}.log", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &str) -> Result<Option<Launch>, BenchError> {
        let all = std::iter::once("x").chain(arguments.split(';').filter(|argument| !argument.is_empty()));
        let command = clap::Command::new("x")
            .args(super::arguments())
            .arg(option("out", "DIR").help("").value_parser(value_parser!(PathBuf)));
        let matches = command.try_get_matches_from(all).expect("each is possible alone");
        options(&matches).resolve("mongodb://127.0.0.1:7000/", Some(Path::new("/data")))
    }

    #[test]
    fn a_command_gets_its_words_and_its_caps() {
        let launch = of(
            "--server-command;s {port} {data} {cache_mb};--cache-mb;64;--cap;640MB;--io-cap;200riops|20MBps",
        )
        .expect("all fit")
        .expect("a server");
        assert_eq!(launch.start, "s 7000 /data 64");
        assert_eq!((launch.caps.memory_bytes, launch.caps.io.reads), (Some(640_000_000), Some(200)));
        assert!(of("").expect("nothing is possible").is_none());
    }

    #[test]
    fn the_port_of_a_uri_is_found_whatever_stands_around_it() {
        assert_eq!(port_of("mongodb://127.0.0.1:7000/"), Some(7000));
        assert_eq!(port_of("mongodb://a:8@h:9/d?authSource=x:1"), Some(9));
        assert_eq!(port_of("mongodb://a:8@h/?authSource=x"), None);
        assert_eq!(port_of("embedded:betree"), None);
    }

    #[test]
    fn an_unknown_word_and_a_cache_that_the_command_does_not_take_are_refused() {
        assert!(matches!(
            of("--server-command;s {prot}"),
            Err(BenchError::Option { option: "server-command", .. })
        ));
        let without = of("--server-command;s {port};--cache-mb;64");
        assert!(matches!(without, Err(BenchError::Option { option: "cache-mb", .. })));
    }

    #[test]
    fn a_cache_and_caps_of_the_call_are_labels_as_those_of_a_suite_and_the_users_stay() {
        let labels_of = |arguments: &str| {
            let command = crate::command::point::command();
            let all = format!("x --server-command {arguments}");
            let matches = command.try_get_matches_from(all.split_whitespace()).expect("all possible");
            let labels = labels(&matches).into_iter();
            labels.map(|(name, text)| format!("{name}={text}")).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(
            labels_of("s{cache_mb} --cache-mb 64 --cap 400MB --io-cap 200riops"),
            "cache=64 MB; cache_mb=64; cap=400MB, 200riops; io_cap=200riops"
        );
        assert_eq!(labels_of("s --cap 1GB --label cap=mine --label cache=theirs"), "cache=theirs; cap=mine");
        assert_eq!(labels_of("s"), "");
        assert_eq!(labels_of("s --embedded-cache 32"), "cache=32 MB; cache_mb=32");
    }
}
