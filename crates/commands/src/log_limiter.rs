//! A limit of the log lines that clients can cause, so that an attack does not fill the disk. The caller
//! writes the lines and has the clock.

use std::time::Duration;

/// Lines of one period.
const LINES_MAX: u32 = 10;
const PERIOD: Duration = Duration::from_secs(1);

/// The lines of the current period.
#[derive(Debug, Default)]
pub struct LogLimiter {
    begun: Option<Duration>,
    lines: u32,
    left_out: u32,
}

/// Whether a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Yes. So many before it were left out, which no line has told yet.
    Written {
        /// Their number.
        left_out: u32,
    },
    /// No: there are enough of them.
    LeftOut,
}

impl LogLimiter {
    /// Whether a line is written at this time, which is counted from any fixed moment.
    pub fn admit(&mut self, now: Duration) -> Admission {
        let mut left_out = 0;
        if self.begun.is_none_or(|begun| now.saturating_sub(begun) >= PERIOD) {
            left_out = self.left_out;
            *self = LogLimiter { begun: Some(now), lines: 0, left_out: 0 };
        }
        if self.lines < LINES_MAX {
            self.lines += 1;
            Admission::Written { left_out }
        } else {
            self.left_out += 1;
            Admission::LeftOut
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_has_ten_lines_and_the_next_one_counts_those_that_were_left_out() {
        let mut limiter = LogLimiter::default();
        let admitted = |limiter: &mut LogLimiter, millis| limiter.admit(Duration::from_millis(millis));
        for _ in 0..LINES_MAX {
            assert_eq!(admitted(&mut limiter, 500), Admission::Written { left_out: 0 });
        }
        for _ in 0..7 {
            assert_eq!(admitted(&mut limiter, 1_499), Admission::LeftOut);
        }
        assert_eq!(admitted(&mut limiter, 1_500), Admission::Written { left_out: 7 });
        assert_eq!(admitted(&mut limiter, 1_501), Admission::Written { left_out: 0 });
    }
}
