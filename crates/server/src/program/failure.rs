//! The failure message of the program.

use std::error::Error;

/// Prints an error and what caused it, each on a line, to standard error.
pub fn print_failure(error: &dyn Error) {
    eprintln!("pando: {error}");
    let mut cause = error.source();
    let mut said = error.to_string();
    while let Some(error) = cause {
        let text = error.to_string();
        // An error that is only a wrapper repeats what it wraps.
        if !said.contains(&text) {
            eprintln!("  because: {text}");
        }
        said = text;
        cause = error.source();
    }
}
