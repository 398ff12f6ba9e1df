//! Log lines about clients that are refused: some a second, so that an attack does not fill the disk.

use std::fmt;
use std::time::Instant;

use pando_commands::{Admission, LogLimiter};
use tracing::warn;

/// The lines of one I/O thread.
#[derive(Debug)]
pub(crate) struct RefusalLog {
    begun: Instant,
    limiter: LogLimiter,
}

impl Default for RefusalLog {
    fn default() -> RefusalLog {
        RefusalLog { begun: Instant::now(), limiter: LogLimiter::default() }
    }
}

impl RefusalLog {
    /// Writes a line, unless there are enough of them. The first line of a later period counts those that
    /// were left out.
    pub(crate) fn warn(&mut self, line: fmt::Arguments<'_>) {
        let Admission::Written { left_out } = self.limiter.admit(self.begun.elapsed()) else { return };
        if left_out > 0 {
            warn!("left out {left_out} log lines about other clients that were refused");
        }
        warn!("{line}");
    }
}
