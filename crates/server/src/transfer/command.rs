//! One command to a store, which is a running server or a data folder.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bson::Document;
use pandodb::MissingStore;

use super::address::without_password;
use super::error::TransferError;
use super::interrupt::Interrupt;
use super::target::TargetChoice;

/// Connects to the server or opens the folder, runs a command, and ends cleanly. Its reply.
///
/// # Errors
/// A store that cannot be reached, or a command that it refuses.
pub fn run_command(
    target: &TargetChoice,
    database: &str,
    command: Document,
) -> Result<Document, TransferError> {
    run_command_in(target, MissingStore::Refuse, database, command)
}

/// The same, with a say in what becomes of a folder without a store.
///
/// # Errors
/// See [`run_command`].
pub fn run_command_in(
    target: &TargetChoice,
    missing_store: MissingStore,
    database: &str,
    command: Document,
) -> Result<Document, TransferError> {
    let mut store = target.open(missing_store, &Interrupt::default())?;
    let outcome = store.run(database, command, None);
    store.close()?;
    outcome
}

/// Runs a command on a server that has this much time for its answer, with connection and login. A connection
/// that is given up ends a little later by itself.
///
/// # Errors
/// See [`run_command`], and [`TransferError::NoAnswer`].
pub fn run_command_within(
    uri: &str,
    database: &'static str,
    command: Document,
    within: Duration,
) -> Result<Document, TransferError> {
    let (sender, receiver) = mpsc::channel();
    let (target, interrupt) = (TargetChoice::Uri(uri.to_owned()), Interrupt::default());
    let asked = interrupt.clone();
    let ask = move || {
        let opened = target.open(MissingStore::Refuse, &asked);
        let _gone = sender.send(opened.and_then(|mut store| store.run(database, command, None)));
    };
    thread::Builder::new().spawn(ask).map_err(TransferError::System)?;
    receiver.recv_timeout(within).unwrap_or_else(|_| {
        interrupt.ask();
        Err(TransferError::NoAnswer { place: without_password(uri), seconds: within.as_secs() })
    })
}
