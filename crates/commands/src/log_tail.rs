//! The tail of the log: its last lines, and the warnings of the start, as `getLog` shows them. Shells print
//! the warnings when they connect.
//!
//! A line is one JSON document with the fields that readers of MongoDB's log expect: `t`, `s`, `c`, `id`,
//! `ctx`, `msg`, `attr`.

use std::collections::VecDeque;

use pando_document::{DocumentWriter, JsonFormat, RawDocument, RawValue, to_json};
use parking_lot::Mutex;

/// Lines that are kept.
const LINES_MAX: usize = 1_024;

/// How grave a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSeverity {
    /// It takes more than logging to go on.
    Error,
    /// Somebody should look at it.
    Warning,
    /// As usual.
    Information,
    /// For the developers.
    Debug,
}

impl LogSeverity {
    fn letter(self) -> &'static str {
        match self {
            LogSeverity::Error => "E",
            LogSeverity::Warning => "W",
            LogSeverity::Information => "I",
            LogSeverity::Debug => "D1",
        }
    }
}

/// A line before it is written.
#[derive(Clone, Copy, Debug)]
pub struct LogLine<'l> {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// How grave it is.
    pub severity: LogSeverity,
    /// The part of the program.
    pub component: &'l str,
    /// The thread.
    pub thread: &'l str,
    /// The sentence.
    pub message: &'l str,
    /// Values by name.
    pub attributes: &'l [(&'static str, String)],
}

#[derive(Debug, Default)]
struct Lines {
    last: VecDeque<String>,
    ever: u64,
    startup_warnings: Vec<String>,
}

/// See the module's head.
#[derive(Debug, Default)]
pub struct LogTail {
    lines: Mutex<Lines>,
}

impl LogTail {
    /// Keeps a line.
    pub fn push(&self, line: &LogLine<'_>) {
        let text = text_of(line);
        let mut lines = self.lines.lock();
        if lines.last.len() == LINES_MAX {
            lines.last.pop_front();
        }
        lines.last.push_back(text);
        lines.ever += 1;
    }

    /// Keeps a line among the warnings of the start, too.
    pub fn push_startup_warning(&self, line: &LogLine<'_>) {
        self.push(line);
        self.lines.lock().startup_warnings.push(text_of(line));
    }

    /// The lines that are kept, and the number of all since the start.
    pub(crate) fn lines(&self) -> (Vec<String>, u64) {
        let lines = self.lines.lock();
        (lines.last.iter().cloned().collect(), lines.ever)
    }

    /// The warnings of the start.
    pub(crate) fn startup_warnings(&self) -> Vec<String> {
        self.lines.lock().startup_warnings.clone()
    }
}

fn text_of(line: &LogLine<'_>) -> String {
    let mut bytes = Vec::new();
    let mut document = DocumentWriter::begin(&mut bytes);
    document.append_date_time("t", line.at_ms);
    document.append_str("s", line.severity.letter());
    document.append_str("c", line.component);
    document.append_i32("id", 0);
    document.append_str("ctx", line.thread);
    document.append_str("msg", line.message);
    if !line.attributes.is_empty() {
        let mut attributes = document.document("attr");
        for (name, value) in line.attributes {
            attributes.append_str(name, value);
        }
        attributes.finish();
    }
    document.finish();
    match RawDocument::from_bytes(&bytes) {
        Ok(document) => to_json(RawValue::Document(document), JsonFormat::Relaxed),
        Err(_) => line.message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_and_the_warnings_of_the_start_are_kept() {
        let tail = LogTail::default();
        let line = LogLine {
            at_ms: 0,
            severity: LogSeverity::Warning,
            component: "serve",
            thread: "main",
            message: "a \"quoted\" message",
            attributes: &[("port", "7".to_owned())],
        };
        tail.push_startup_warning(&line);
        for _ in 0..LINES_MAX {
            tail.push(&LogLine { severity: LogSeverity::Information, attributes: &[], ..line });
        }
        let (lines, ever) = tail.lines();
        assert_eq!((lines.len(), ever), (LINES_MAX, LINES_MAX as u64 + 1));
        let wanted = concat!(
            r#"{"t":{"$date":"1970-01-01T00:00:00Z"},"s":"W","c":"serve","id":0,"ctx":"main","#,
            r#""msg":"a \"quoted\" message","attr":{"port":"7"}}"#
        );
        assert_eq!(tail.startup_warnings(), [wanted]);
        assert!(lines[0].contains(r#""s":"I""#), "{}", lines[0]);
    }
}
