//! SIGTERM and SIGINT: the first asks the server to stop, a [later one](crate::stop_signals) ends the
//! process. The command `shutdown` asks as well, and counts as no signal.
//!
//! | SIGHUP comes | the server |
//! |---|---|
//! | where there are certificates of TLS | reads them again |
//! | without certificates, where standard input is a terminal, which is closed | stops, as at SIGTERM |
//! | otherwise, as by `systemctl reload` | logs that there is nothing to read again, and goes on |
//!
//! SIGUSR1 rotates the audit trail, if there is one: mongod rotates its log then. Otherwise it is logged, as
//! SIGUSR2 is: the log goes to standard error, whose reader rotates it.

use std::io::{self, IsTerminal};
use std::process;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;

use pando_commands::{AuditTrail, ServerStop};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use tracing::{info, warn};

use super::logging;
use super::transport::Certificates;
use crate::stop_signals::{StopSignal, StopSignals};

/// The exit code that a shell reports of a process that SIGINT ended.
const EXIT_CODE_INTERRUPTED: i32 = 130;

/// Waits for the first signal.
pub(super) struct ShutdownSignal {
    came: Receiver<()>,
    sender: Sender<()>,
    trail: Arc<OnceLock<AuditTrail>>,
}

impl ShutdownSignal {
    /// Begins to watch.
    pub(super) fn watch(certificates: Option<Arc<Certificates>>) -> io::Result<ShutdownSignal> {
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2])?;
        let is_of_terminal = io::stdin().is_terminal();
        let (sender, came) = mpsc::channel();
        let kept = sender.clone();
        let trail = Arc::new(OnceLock::new());
        let rotated = Arc::clone(&trail);
        thread::Builder::new().name("pando-signals".to_owned()).spawn(move || {
            let mut signals_so_far = StopSignals::default();
            for signal in signals.forever() {
                if matches!(signal, SIGUSR1 | SIGUSR2) {
                    rotate(signal, rotated.get());
                    continue;
                }
                match &certificates {
                    Some(certificates) if signal == SIGHUP => {
                        // The log has a line about a failure, and the server goes on with the former ones.
                        let _ = certificates.renew();
                        continue;
                    }
                    None if signal == SIGHUP && !is_of_terminal => {
                        info!("SIGHUP: there are no certificates to read again; a restart reads changed options");
                        continue;
                    }
                    Some(_) | None => {}
                }
                match signals_so_far.take() {
                    StopSignal::First => {}
                    StopSignal::Repeated => continue,
                    // A terminal that is closed wants nobody to hurry.
                    StopSignal::Later if signal == SIGHUP => continue,
                    StopSignal::Later => {
                        warn!("second signal: ending at once; no acknowledged write is lost, and the next start replays the log");
                        logging::flush();
                        process::exit(EXIT_CODE_INTERRUPTED);
                    }
                }
                // Fails only if the server is at its end already.
                let _ = sender.send(());
            }
        })?;
        Ok(ShutdownSignal { came, sender: kept, trail })
    }

    /// Has SIGUSR1 rotate a trail from now on.
    pub(super) fn rotate_at_signal(&self, trail: &AuditTrail) {
        // A process has one trail.
        let _ = self.trail.set(trail.clone());
    }

    /// What stands for a signal.
    pub(super) fn stop(&self) -> Arc<dyn ServerStop> {
        Arc::new(Stop(self.sender.clone()))
    }

    /// Waits until it comes.
    pub(super) fn wait(&self) {
        // It has a sender of its own, so that this cannot fail.
        let _came = self.came.recv();
    }
}

/// A client's request to stop.
#[derive(Debug)]
struct Stop(Sender<()>);

impl ServerStop for Stop {
    fn ask(&self) {
        // Fails only if the server is at its end already.
        let _ = self.0.send(());
    }
}

/// The effect of SIGUSR1 and SIGUSR2.
fn rotate(signal: i32, trail: Option<&AuditTrail>) {
    match trail {
        Some(trail) if signal == SIGUSR1 => match trail.rotate() {
            Ok(()) => info!("SIGUSR1: the audit trail goes on in a new file"),
            Err(fault) => warn!("SIGUSR1: {fault}; the audit trail goes on in the same file"),
        },
        _ => {
            let name = if signal == SIGUSR1 { "SIGUSR1" } else { "SIGUSR2" };
            info!("{name}: nothing to do; the log goes to standard error, and is rotated by what reads that");
        }
    }
}
