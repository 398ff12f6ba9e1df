//! A progress line on standard error, where that is a terminal: one line, never wider than the terminal.
//!
//! ```text
//!  43% [####----]  120,000 docs  3.2 MB/s
//! ```

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::amounts::{bytes_text, count_text};

/// The time between two drawings.
const PERIOD: Duration = Duration::from_millis(200);
/// The width of a terminal that does not say its own.
const COLUMNS_DEFAULT: usize = 80;
const BAR_COLUMNS_MAX: usize = 30;
const BAR_COLUMNS_MIN: usize = 5;

/// The state that a line shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) documents: u64,
    pub(super) bytes: u64,
    /// All bytes, where that is known.
    pub(super) bytes_total: Option<u64>,
    pub(super) elapsed: Duration,
}

/// See the [module](self).
pub(super) struct Progress {
    is_terminal: bool,
    drawn: Option<Instant>,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress { is_terminal: io::stderr().is_terminal(), drawn: None }
    }

    /// No line at all, for `--quiet`.
    pub(super) fn hidden() -> Progress {
        Progress { is_terminal: false, drawn: None }
    }

    /// Draws the line, if the last drawing is some time ago.
    pub(super) fn show(&mut self, shown: Shown) {
        if self.is_terminal && self.drawn.is_none_or(|drawn| drawn.elapsed() >= PERIOD) {
            self.draw(&line(shown, columns()));
        }
    }

    /// Draws words as the line, at once.
    pub(super) fn show_words(&mut self, words: &str) {
        if self.is_terminal {
            let shown: String = words.chars().take(columns().saturating_sub(1)).collect();
            self.draw(&shown);
        }
    }

    fn draw(&mut self, line: &str) {
        self.drawn = Some(Instant::now());
        let mut out = io::stderr().lock();
        // A line that cannot be drawn is no error of the transfer.
        let _ = write!(out, "\r\x1b[2K{line}");
        let _ = out.flush();
    }

    /// Removes the line, before something else is printed.
    pub(super) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

/// The width of the terminal.
fn columns() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => COLUMNS_DEFAULT,
    }
}

/// The line for a terminal of this width. The last column stays free, since some terminals wrap there.
fn line(shown: Shown, columns: usize) -> String {
    let seconds = shown.elapsed.as_secs_f64().max(0.001);
    let rate = bytes_text((shown.bytes as f64 / seconds) as u64);
    let figures = format!("{} docs  {rate}/s", count_text(shown.documents));
    let mut line = match shown.bytes_total {
        Some(total) if total > 0 => {
            let part = (shown.bytes as f64 / total as f64).min(1.0);
            let percent = format!("{:>3}%", (part * 100.0) as u64);
            let left = columns.saturating_sub(percent.len() + figures.len() + " []  ".len() + 1);
            if left < BAR_COLUMNS_MIN {
                format!("{percent}  {figures}")
            } else {
                let width = left.min(BAR_COLUMNS_MAX);
                let full = (part * width as f64) as usize;
                format!("{percent} [{}{}]  {figures}", "#".repeat(full), "-".repeat(width - full))
            }
        }
        _ => format!("{}  {figures}", bytes_text(shown.bytes)),
    };
    line.truncate(columns.saturating_sub(1));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(documents: u64, bytes: u64, bytes_total: Option<u64>) -> Shown {
        Shown { documents, bytes, bytes_total, elapsed: Duration::from_secs(10) }
    }

    #[test]
    fn a_line_fits_the_terminal_however_narrow() {
        for columns in [10, 20, 40, 80, 200] {
            for state in [
                shown(0, 0, Some(0)),
                shown(120_000, 32_000_000, Some(74_000_000)),
                shown(9_999_999_999, 9_999_999_999_999, Some(10_000_000_000_000)),
                shown(120_000, 32_000_000, None),
            ] {
                assert!(line(state, columns).len() < columns, "{}", line(state, columns));
            }
        }
    }

    #[test]
    fn forty_columns_have_a_bar_the_documents_and_the_rate() {
        let text = line(shown(120_000, 32_000_000, Some(74_000_000)), 40);
        assert_eq!(text, " 43% [###-----]  120,000 docs  3.2 MB/s");
        assert_eq!(line(shown(1, 1_000, None), 40), "1.0 kB  1 docs  100 B/s");
    }
}
