//! Ctrl-C and its like: finished runs are kept, started servers are ended, changed settings are set back.
//!
//! 1. The first signal raises a flag ([`requested`]). Runs and suites look at it every second and end in
//!    order: finished runs are written already, and dropping a started server ends it.
//! 2. A second signal, or [`GRACE`] after the first, ends the tool at once; the [`Undo`]s that are registered
//!    are done before.
//!
//! # Invariant
//! An [`Undo`] is registered before there is something to undo (or right after, where its number is known
//! only then), and taken back when it has been done in order.

use crate::error::{BenchError, no_resource};
use rustix::process::{Pid, Signal, kill_process_group};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the tool may take to end in order.
const GRACE: Duration = Duration::from_secs(90);
/// The exit code of a program that Ctrl-C ended.
const EXIT_CODE: i32 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static UNDOS: Mutex<Vec<(u64, Undo)>> = Mutex::new(Vec::new());

/// An action that is due if the tool ends at once.
#[derive(Clone, Debug)]
pub enum Undo {
    /// End this group of processes, which the tool has started.
    EndGroup(Pid),
    /// Write this text into this file of the kernel: what stood there before.
    Write(PathBuf, String),
    /// Remove this control group.
    RemoveGroup(PathBuf),
}

impl Undo {
    fn perform(&self) {
        // The tool is ending: there is nobody left to tell.
        let _ = match self {
            Undo::EndGroup(group) => kill_process_group(*group, Signal::KILL).map_err(std::io::Error::from),
            Undo::Write(path, text) => std::fs::write(path, text),
            Undo::RemoveGroup(path) => std::fs::remove_dir(path),
        };
    }
}

/// A registered [`Undo`].
#[derive(Debug)]
pub struct Registered {
    number: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        undos().retain(|(number, _)| *number != self.number);
    }
}

/// Registers what must be undone; dropping what this gives takes it back without doing it.
pub fn register(undo: Undo) -> Registered {
    let mut undos = undos();
    let number = undos.last().map_or(0, |(number, _)| number + 1);
    undos.push((number, undo));
    Registered { number }
}

fn undos() -> MutexGuard<'static, Vec<(u64, Undo)>> {
    UNDOS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// An error if somebody asked for the end.
pub fn check() -> Result<(), BenchError> {
    if requested() { Err(BenchError::Interrupted) } else { Ok(()) }
}

pub fn listen() -> Result<(), BenchError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    let resource = no_resource("a handler of signals");
    // A file that reaches the limit of the process (`ulimit -f`) is an error of its write, and not the end.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(resource)?;
    let handle = move || {
        for _ in signals.forever() {
            if REQUESTED.swap(true, Ordering::Relaxed) {
                end_at_once();
            }
            err_line!("\nending: what has been measured is kept; once more to end at once");
            let _ = std::thread::Builder::new().name("grace".into()).spawn(|| {
                std::thread::sleep(GRACE);
                end_at_once();
            });
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(handle).map_err(resource)?;
    Ok(())
}

fn end_at_once() -> ! {
    undos().iter().rev().for_each(|(_, undo)| undo.perform());
    std::process::exit(EXIT_CODE)
}
