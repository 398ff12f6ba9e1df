//! Log lines on standard error, and one for each panic.
//!
//! A log that cannot be written, because its disk is full or its reader has gone, loses lines and stops
//! nothing: `getLog` still has the last ones.

use std::backtrace::Backtrace;
use std::io;
use std::panic;
use std::sync::Arc;

use pando_commands::LogTail;
use tracing::error;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::log_tail_layer::LogTailLayer;
use crate::configuration::{Configuration, LogFormat};
use crate::error_text::panic_text;

/// Starts logging, and keeps the last lines in the tail. A process that has a logger already keeps it.
pub(super) fn start(configuration: &Configuration, tail: &Arc<LogTail>) {
    // The table of options has checked the filter.
    let filter = EnvFilter::new(&configuration.log_level);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // Otherwise it tells of a failed line on standard error too, which panics there.
        .log_internal_errors(false);
    let tail = LogTailLayer { tail: Arc::clone(tail) };
    let started = match configuration.log_format {
        LogFormat::Text => builder.finish().with(tail).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).finish().with(tail).try_init(),
    };
    if started.is_ok() {
        log_panics();
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
    }));
}
