//! Which stop signals are one.
//!
//! `timeout` sends one to the process and another to its group, a program around it hands on a Ctrl-C that
//! the terminal has sent to both, and a closed terminal comes from the shell and from the kernel.

use std::time::{Duration, Instant};

/// Signals that come within this time after the first are one with it.
const ONE_SIGNAL: Duration = Duration::from_millis(500);

/// The stop signals of a process.
#[derive(Debug, Default)]
pub(crate) struct StopSignals {
    first: Option<Instant>,
}

/// What a stop signal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// The first: stop.
    First,
    /// One with the first.
    Repeated,
    /// The user does not want to wait any longer.
    Later,
}

impl StopSignals {
    /// A signal that has just come.
    pub(crate) fn take(&mut self) -> StopSignal {
        match self.first {
            None => {
                self.first = Some(Instant::now());
                StopSignal::First
            }
            Some(first) if first.elapsed() < ONE_SIGNAL => StopSignal::Repeated,
            Some(_) => StopSignal::Later,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_at_once_are_one_and_a_later_one_is_another() {
        let mut signals = StopSignals::default();
        assert_eq!((signals.take(), signals.take()), (StopSignal::First, StopSignal::Repeated));
        signals.first = signals.first.and_then(|first| first.checked_sub(ONE_SIGNAL));
        assert_eq!(signals.take(), StopSignal::Later);
    }
}
