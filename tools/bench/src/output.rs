//! Lines for the person who called the tool. Printing never fails: where the reader has gone (`| head`), the
//! lines are lost, and the measurement goes on and keeps its results. Any other loss, such as that of a full
//! disk, is told at the end ([`lost`]). `println!` would panic there, so that the lints of the crate's root
//! refuse it.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

/// A line on standard output.
macro_rules! out_line {
    ($($text:tt)*) => { $crate::output::to_output(format_args!("{}\n", format_args!($($text)*))) };
}

/// Text on standard output, with line ends of its own.
macro_rules! out_text {
    ($($text:tt)*) => { $crate::output::to_output(format_args!($($text)*)) };
}

/// A line on standard error.
macro_rules! err_line {
    ($($text:tt)*) => { $crate::output::to_error(format_args!("{}\n", format_args!($($text)*))) };
}

/// The first error of standard output other than a reader that has gone.
static LOST: OnceLock<String> = OnceLock::new();

pub fn to_output(text: Arguments<'_>) {
    match std::io::stdout().write_fmt(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = LOST.set(error.to_string());
        }
        _ => {}
    }
}

/// Why lines of standard output are lost, if any are.
pub fn lost() -> Option<&'static str> {
    let flushed = std::io::stdout().flush();
    match (LOST.get(), flushed) {
        (Some(told), _) => Some(told),
        (None, Err(error)) if error.kind() != ErrorKind::BrokenPipe => {
            Some(LOST.get_or_init(|| error.to_string()))
        }
        (None, _) => None,
    }
}

pub fn to_error(text: Arguments<'_>) {
    let _ = std::io::stderr().write_fmt(text);
}
