//! Lines on standard output, for a reader that may have gone: `pando verify data | head -1` is no error. A
//! full disk beneath them is one.

use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;

/// As `println!`, which would end the program with a panic once nobody reads.
macro_rules! print_line {
    ($($argument:tt)*) => { $crate::program::output::write_line(format_args!($($argument)*)) };
}
pub(super) use print_line;

/// Why lines of this process were lost.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Writes a line. What the command does goes on if that fails, and [`lost`] tells why.
pub(super) fn write_line(line: fmt::Arguments<'_>) {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => _ = LOST.set(error),
        Ok(()) | Err(_) => {}
    }
}

/// The first error by which lines were lost, other than that nobody reads them any more.
pub(super) fn lost() -> Option<&'static io::Error> {
    LOST.get()
}
