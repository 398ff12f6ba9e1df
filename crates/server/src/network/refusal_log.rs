//! Log lines about clients that are refused: some a second, so that an attack does not fill the disk.

use std::fmt;
use std::time::{Duration, Instant};

use tracing::warn;

/// Lines of one I/O thread in one period.
const LINES_MAX: u32 = 10;
const PERIOD: Duration = Duration::from_secs(1);

/// The lines of the current period.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog {
    begun: Option<Instant>,
    lines: u32,
    left_out: u32,
}

impl RefusalLog {
    /// Writes a line, unless there are enough of them. The first line of a later period counts those that
    /// were left out.
    pub(crate) fn warn(&mut self, line: fmt::Arguments<'_>) {
        if self.begun.is_none_or(|begun| begun.elapsed() >= PERIOD) {
            if self.left_out > 0 {
                warn!("left out {} log lines about other clients that were refused", self.left_out);
            }
            *self = RefusalLog { begun: Some(Instant::now()), lines: 0, left_out: 0 };
        }
        if self.lines < LINES_MAX {
            self.lines += 1;
            warn!("{line}");
        } else {
            self.left_out += 1;
        }
    }
}
