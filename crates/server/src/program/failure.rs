//! The failure message of the program.

use std::error::Error;

/// Prints an error and what caused it, each on a line, to standard error.
pub fn print_failure(error: &dyn Error) {
    for line in error_lines(error) {
        eprintln!("{line}");
    }
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
            lines.push(format!("  because: {text}"));
        }
        said = text;
        cause = error.source();
    }
    lines
}
