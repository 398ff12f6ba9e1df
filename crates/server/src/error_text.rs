//! Errors and panics as one line of text, for log lines and messages.

use std::any::Any;
use std::error::Error;
use std::io::Write;

/// The error with its causes, from the outermost to the innermost: `cannot open a: no such file`.
pub(crate) fn error_text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut last = text.clone();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        // A wrapper repeats the text of the error that it wraps.
        if !last.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        last = said;
        cause = error.source();
    }
    text
}

/// The message of a panic, if it has one of the two usual types.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "no message",
    }
}

/// As `eprintln!`, which panics once nobody reads any more, as after `pando import x.json 2>&1 | head`.
macro_rules! tell_line {
    ($($argument:tt)*) => { $crate::error_text::write_line(format_args!($($argument)*)) };
}
pub(crate) use tell_line;

/// Writes a line to standard error.
pub(crate) fn write_line(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot open a")]
    struct Outer(#[source] io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error(transparent)]
    struct Wrapper(Outer);

    #[test]
    fn causes_follow_their_error_and_a_wrapper_adds_nothing() {
        let error = Outer(io::Error::other("no such file"));
        assert_eq!(error_text(&Wrapper(error)), "cannot open a: no such file");
    }
}
