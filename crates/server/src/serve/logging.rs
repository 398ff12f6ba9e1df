//! Structured log lines on standard error, and panics among them.

use std::backtrace::Backtrace;
use std::io;
use std::panic;

use tracing::error;
use tracing_subscriber::EnvFilter;

use crate::configuration::{Configuration, LogFormat};

/// Starts logging. A process that has a logger already keeps it.
pub(super) fn start(configuration: &Configuration) {
    // The table has checked the filter.
    let filter = EnvFilter::new(&configuration.log_level);
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match configuration.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    if started.is_ok() {
        log_panics();
    }
}

/// A panic is one log line with everything that helps to find its cause.
fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(|| "unknown place".to_owned(), ToString::to_string);
        let text = crate::network::panic_text(panic.payload());
        let backtrace = Backtrace::force_capture();
        error!(place, text, %backtrace, "panic");
    }));
}
