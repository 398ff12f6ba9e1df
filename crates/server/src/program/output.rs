//! Lines on standard output, for a reader that may have gone: `pando verify data | head -1` is no error.

use std::fmt;
use std::io::Write;

/// As `println!`, which would end the program with a panic once nobody reads.
macro_rules! print_line {
    ($($argument:tt)*) => { $crate::program::output::write_line(format_args!($($argument)*)) };
}
pub(super) use print_line;

/// Writes a line. The result of the command is in its exit code as well, so that an error here has no effect.
pub(super) fn write_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
