//! One command to a store, which is a running server or a data folder.

use bson::Document;
use pandodb::MissingStore;

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
