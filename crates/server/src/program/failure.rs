//! The failure message of the program.

use std::error::Error;

use pando_environment::EnvironmentError;

use crate::error_text::tell_line;

/// Prints an error and what caused it, each on a line, to standard error.
pub fn print_failure(error: &dyn Error) {
    for line in error_lines(error) {
        tell_line!("{line}");
    }
}

/// A wrong command line that the parser has let through. It ends the program with a code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(String);

impl UsageError {
    pub(super) fn new(message: impl Into<String>) -> UsageError {
        UsageError(message.into())
    }
}

/// Whether a folder is in use by a server, or another process.
pub(super) fn is_folder_in_use(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if matches!(error.downcast_ref(), Some(EnvironmentError::Locked { .. })) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// An error and what caused it, each on a line.
pub(super) fn error_lines(error: &dyn Error) -> Vec<String> {
    let mut lines = vec![format!("pando: {error}")];
    let mut cause = error.source();
    let mut said = error.to_string();
    while let Some(error) = cause {
        let text = error.to_string();
        // An error that is only a wrapper repeats what it wraps.
        if !said.contains(&text) {
            // The lines of a longer one stand below each other.
            lines.push(format!("  because: {}", text.trim_end().replace('\n', "\n    ")));
        }
        said = text;
        cause = error.source();
    }
    lines
}
