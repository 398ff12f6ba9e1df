//! Log lines on standard error, and one for each panic.
//!
//! The filter is that of the configuration until a client changes the verbosity (`logLevel` and
//! `logComponentVerbosity` of `setParameter`). Then it is made anew: level 0 is what the configuration says,
//! or `info` where it says more; 1 is `debug`; 2 and above are `trace`. Other programs' crates stay as they
//! were.
//!
//! A log that cannot be written, because its disk is full or its reader has gone or stalled, loses lines and
//! stops nothing ([`LogWriter`]): `getLog` still has the last ones.

use std::backtrace::Backtrace;
use std::io::{self, Write};
use std::panic;
use std::sync::{Arc, OnceLock};

use pando_commands::{LogTail, LogVerbosity};
use tracing::{error, warn};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, reload};

use super::log_tail_layer::LogTailLayer;
use super::log_writer::LogWriter;
use crate::configuration::{Configuration, LogFormat};
use crate::error_text::{panic_text, tell_line};

/// The beginning of the targets of all crates of Pando.
const ALL_TARGETS: &str = "pando";

/// The targets of components of the log, by MongoDB's names of these. Inner components come after those
/// around them.
const TARGETS: [(&str, &[&str]); 8] = [
    ("command", &["pando_commands"]),
    ("accessControl", &["pando_access", "pando_commands::access", "pando_commands::sasl"]),
    ("transaction", &["pando_commands::sessions"]),
    ("index", &["pando_catalog"]),
    ("query", &["pando_query"]),
    ("network", &["pando_server::network", "pando_wire", "pando_tls"]),
    ("control", &["pando_server::serve"]),
    (
        "storage",
        &[
            "pando_betree",
            "pando_lmdb",
            "pando_memory",
            "pando_rocksdb",
            "pando_storage",
            "pando_tikv",
            "pando_wiredtiger",
        ],
    ),
];

/// The writer of the process's only log.
static WRITER: OnceLock<Arc<LogWriter>> = OnceLock::new();

/// Waits until the lines of the log are written, for a second at most: before the process ends.
pub(super) fn flush() {
    if let Some(writer) = WRITER.get() {
        writer.flush_lines();
    }
}

/// Tells of the end of the process in text, in a row with the lines of the log, and waits as [`flush`].
pub(super) fn tell_end(text: &str) {
    match WRITER.get() {
        Some(writer) => {
            // In one piece, as a line of the log.
            let _never_fails = (&**writer).write_all(format!("{text}\n").as_bytes());
            writer.flush_lines();
        }
        None => tell_line!("{text}"),
    }
}

/// Flushes the log when it goes.
#[derive(Debug)]
pub(super) struct FlushAtEnd;

impl Drop for FlushAtEnd {
    fn drop(&mut self) {
        flush();
    }
}

/// The log of the process, as commands show and change it.
pub(super) struct ProcessLog {
    /// Its last lines.
    pub(super) tail: Arc<LogTail>,
    pub(super) verbosity: Arc<LogVerbosity>,
}

/// The verbosity that a configured filter comes to.
fn verbosity_of(configured: &str) -> LogVerbosity {
    LogVerbosity::new(match configured {
        "debug" => 1,
        "trace" => 2,
        _ => 0,
    })
}

/// The text of the filter that follows from the configured one and the verbosity.
fn filter_text(configured: &str, verbosity: &LogVerbosity) -> String {
    let base = if matches!(configured, "debug" | "trace") { "info" } else { configured };
    let word = |level: i32| match level {
        ..=0 if matches!(base, "off" | "error" | "warn" | "info") => base,
        ..=0 => "info",
        1 => "debug",
        2.. => "trace",
    };
    let mut text = base.to_owned();
    if verbosity.level() > 0 {
        text.push_str(&format!(",{ALL_TARGETS}={}", word(verbosity.level())));
    }
    for (component, targets) in TARGETS {
        if let Some(level) = verbosity.own_level_of(component) {
            targets.iter().for_each(|target| text.push_str(&format!(",{target}={}", word(level))));
        }
    }
    text
}

/// Starts logging, and keeps the last lines in the tail. A process that has a logger already keeps it.
pub(super) fn start(configuration: &Configuration) -> ProcessLog {
    let tail = Arc::new(LogTail::default());
    let verbosity = Arc::new(verbosity_of(&configuration.log_level));
    // The table of options has checked the filter.
    let filter = EnvFilter::new(&configuration.log_level);
    let writer = WRITER.get().cloned().map_or_else(|| LogWriter::start(io::stderr()), Ok);
    let writer = match writer {
        Ok(writer) => BoxMakeWriter::new(Arc::clone(WRITER.get_or_init(|| writer))),
        // Without a thread to spare each line is written by the thread that it comes from.
        Err(_) => BoxMakeWriter::new(io::stderr),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        // Otherwise it tells of a failed line on standard error too, which panics there.
        .log_internal_errors(false);
    let layer = LogTailLayer { tail: Arc::clone(&tail) };
    let configured = configuration.log_level.clone();
    let started = match configuration.log_format {
        LogFormat::Text => {
            let builder = builder.with_filter_reloading();
            let handle = builder.reload_handle();
            verbosity.listen(move |verbosity| follow(&configured, verbosity, |filter| handle.reload(filter)));
            builder.finish().with(layer).try_init()
        }
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true).with_filter_reloading();
            let handle = builder.reload_handle();
            verbosity.listen(move |verbosity| follow(&configured, verbosity, |filter| handle.reload(filter)));
            builder.finish().with(layer).try_init()
        }
    };
    if started.is_ok() {
        log_panics();
    }
    ProcessLog { tail, verbosity }
}

/// Makes the filter anew.
fn follow(
    configured: &str,
    verbosity: &LogVerbosity,
    replace: impl Fn(EnvFilter) -> Result<(), reload::Error>,
) {
    if let Err(error) = replace(EnvFilter::new(filter_text(configured, verbosity))) {
        warn!(%error, "the verbosity of the log stays as it was");
    }
}

/// Writes a log line for each panic, with all that helps to find its cause.
fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(|| "unknown place".to_owned(), ToString::to_string);
        let text = panic_text(panic.payload());
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("without a name");
        let backtrace = Backtrace::force_capture();
        error!(%backtrace, "panic in thread {thread} at {place}: {text}; report this defect with its backtrace");
        flush();
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_follows_the_verbosity() {
        let text = |configured, level| filter_text(configured, &LogVerbosity::new(level));
        assert_eq!(text("info", 0), "info");
        assert_eq!(text("warn", 1), "warn,pando=debug");
        assert_eq!(text("debug", 0), "info", "which setParameter has asked for");
        assert_eq!(text("info,pando_betree=debug", 5), "info,pando_betree=debug,pando=trace");
        assert_eq!((verbosity_of("debug").level(), verbosity_of("warn,x=debug").level()), (1, 0));
        EnvFilter::try_new(text("warn", 2)).unwrap();
    }
}
