//! Ctrl-C during an import or export: the first asks it to stop and to say what it has done, a
//! [later one](crate::stop_signals) ends the process.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error_text::tell_line;
use crate::stop_signals::{StopSignal, StopSignals};

/// The exit code that a shell reports of a process that SIGINT ended.
pub const EXIT_CODE_INTERRUPTED: u8 = 130;

/// Has SIGINT and SIGTERM end the process with a line that says what it leaves behind.
pub(crate) fn tell_at_end(left_behind: impl FnOnce() -> String + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("pando-signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            tell_line!("pando: interrupted; {}", left_behind());
            process::exit(i32::from(EXIT_CODE_INTERRUPTED));
        }
    })?;
    Ok(())
}

/// Whether the user has asked to stop.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// Begins to watch SIGINT and SIGTERM.
    pub(super) fn watch() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        let asked = Arc::clone(&interrupt.asked);
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        thread::Builder::new().name("pando-signals".to_owned()).spawn(move || {
            let mut so_far = StopSignals::default();
            for _signal in signals.forever() {
                match so_far.take() {
                    StopSignal::First => asked.store(true, Ordering::Relaxed),
                    StopSignal::Repeated => {}
                    StopSignal::Later => process::exit(i32::from(EXIT_CODE_INTERRUPTED)),
                }
            }
        })?;
        Ok(interrupt)
    }

    /// Asks by itself, without a signal.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}
