//! The layer that keeps the last log lines for `getLog`.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use pando_commands::{LogLine, LogSeverity, LogTail};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Copies each event to the tail of the log.
pub(super) struct LogTailLayer {
    pub(super) tail: Arc<LogTail>,
}

/// The fields of one event.
#[derive(Default)]
struct Fields {
    message: String,
    attributes: Vec<(&'static str, String)>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.attributes.push((field.name(), format!("{value:?}")));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.attributes.push((field.name(), value.to_owned()));
        }
    }
}

impl<S: Subscriber> Layer<S> for LogTailLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let severity = match *event.metadata().level() {
            Level::ERROR => LogSeverity::Error,
            Level::WARN => LogSeverity::Warning,
            Level::INFO => LogSeverity::Information,
            Level::DEBUG | Level::TRACE => LogSeverity::Debug,
        };
        self.tail.push(&LogLine {
            severity,
            component: event.metadata().target(),
            message: &fields.message,
            attributes: &fields.attributes,
            ..line_of_now(&ThreadName::of_this())
        });
    }
}

/// The name of the thread that logs.
pub(super) struct ThreadName(String);

impl ThreadName {
    pub(super) fn of_this() -> ThreadName {
        ThreadName(std::thread::current().name().unwrap_or("unnamed").to_owned())
    }
}

/// A line of this moment without a message.
pub(super) fn line_of_now(thread: &ThreadName) -> LogLine<'_> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    LogLine {
        at_ms: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
        severity: LogSeverity::Information,
        component: "serve",
        thread: &thread.0,
        message: "",
        attributes: &[],
    }
}
