//! Ctrl-C during an import or export: the first asks it to stop and to say what it has done, the second ends
//! the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit code that a shell reports of a process that SIGINT ended.
pub const EXIT_CODE_INTERRUPTED: u8 = 130;

/// Whether the user has asked to stop.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// Begins to watch SIGINT and SIGTERM.
    pub(super) fn watch() -> io::Result<Interrupt> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order, so that the second signal finds the mark of the first.
            flag::register_conditional_shutdown(
                signal,
                i32::from(EXIT_CODE_INTERRUPTED),
                Arc::clone(&asked),
            )?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Interrupt { asked })
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}
