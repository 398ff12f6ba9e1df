//! Lines for the person who called the tool. Printing never fails: where the reader has gone (`| head`), the
//! lines are lost, and the measurement goes on and keeps its results. `println!` would panic there, so that
//! the lints of the crate's root refuse it.

use std::fmt::Arguments;
use std::io::Write;

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

pub fn to_output(text: Arguments<'_>) {
    let _ = std::io::stdout().write_fmt(text);
}

pub fn to_error(text: Arguments<'_>) {
    let _ = std::io::stderr().write_fmt(text);
}
