//! `commitTransaction` and `abortTransaction`: the ends of a session's transaction.
//!
//! A commit may be repeated, as long as its session has begun no newer number. The record of the commit
//! stands in `config.transactions`, so that it may be repeated after a restart as well.
//!
//! `commitTransaction` also ends the transaction of a connection (`begin_transaction.rs`).

use pando_catalog::{BlockingMode, CatalogError, Durability, ErrorKind};
use pando_document::DocumentWriter;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::sessions::open_transaction::aborted;
use crate::sessions::{OpenTransaction, Stage, committed};
use crate::{CommandError, ErrorCode, Request};

/// Writes of a commit that a thread which serves many clients makes; a larger one would hold the others up.
const INLINE_WRITES_MAX: usize = 128;

/// `commitTransaction`.
pub(crate) fn run_commit(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    check("commitTransaction", context, request)?;
    let outcome = commit_or_repeat(context);
    let is_over = !matches!(outcome, Err(CommandError::WouldBlock(_)));
    if is_over && context.connection.transaction().is_some() {
        context.connection.forget_transaction();
        reply.append_str("status", "transaction committed");
    }
    outcome
}

fn commit_or_repeat(context: &mut Context<'_>) -> Result<(), CommandError> {
    let Some(session) = &context.session_use else { return Ok(()) };
    let number = session.number();
    match session.stage() {
        Stage::Open(open) => {
            let open = std::sync::Arc::clone(open);
            commit(context, &open)
        }
        Stage::Committed => repeat_commit(context),
        Stage::Aborted | Stage::Unused | Stage::Write(_) => Err(aborted(number)),
    }
}

/// `abortTransaction`.
pub(crate) fn run_abort(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    check("abortTransaction", context, request)?;
    // That of a connection is over in any case.
    context.connection.forget_transaction();
    let Some(session) = &mut context.session_use else { return Ok(()) };
    let number = session.number();
    match session.stage() {
        Stage::Open(_) => {
            session.end_open();
            Ok(())
        }
        Stage::Committed => Err(committed(number)),
        Stage::Aborted | Stage::Unused | Stage::Write(_) => Err(aborted(number)),
    }
}

fn check(command: &'static str, context: &Context<'_>, request: &Request<'_>) -> Result<(), CommandError> {
    for argument in Arguments::of_command(command, request.body) {
        let argument = argument?;
        match argument.name {
            // A router's driver sends back what it was told.
            "recoveryToken" => {}
            _ => argument.refuse_unless_generic()?,
        }
    }
    if context.session_use.is_none() {
        return Err(CommandError::failed(
            ErrorCode::CommandFailed,
            format!("{command} must be run within a transaction"),
        ));
    }
    Ok(())
}

fn commit(context: &mut Context<'_>, open: &OpenTransaction) -> Result<(), CommandError> {
    let (catalog, caller) = (context.catalog(), context.caller());
    let leases = {
        let mut held = open.lock()?;
        let Some(transaction) = &mut *held else { return Err(aborted(open.number)) };
        if context.blocking == BlockingMode::CachedOnly
            && (transaction.needs_names() || transaction.writes() > INLINE_WRITES_MAX)
        {
            return Err(CommandError::WouldBlock(None));
        }
        transaction.commit_leases(catalog, caller).map_err(|error| counted(context, error))?
    };
    let Some(mut transaction) = open.take() else { return Err(aborted(open.number)) };
    let Some(session) = &mut context.session_use else { return Ok(()) };
    // The commit of a connection cannot be repeated.
    if transaction.has_written() && context.connection.transaction().is_none() {
        session.write_commit_record(transaction.writer(), context.shared.now_ms())?;
    }
    let outcome = transaction.commit(catalog, leases, context.concern.durability);
    if let Some(session) = &mut context.session_use {
        match &outcome {
            Ok(_) => session.committed(),
            Err(CatalogError::Storage(error)) => session.doubt_if_undetermined(error),
            Err(_) => {}
        }
    }
    let receipt = outcome.map_err(|error| counted(context, error))?;
    context.wait_for(receipt);
    Ok(())
}

/// Counts a commit that has lost a conflict.
fn counted(context: &Context<'_>, error: CatalogError) -> CommandError {
    if matches!(&error, CatalogError::Storage(error) if error.kind() == ErrorKind::Conflict) {
        context.shared.sessions.figures.count_conflict();
    }
    error.into()
}

/// Answers a commit that was answered before. A client that wants more durability than the first time gets
/// it: the log is synced in the order of commits, so a later commit on the device has this one before it.
fn repeat_commit(context: &mut Context<'_>) -> Result<(), CommandError> {
    if context.concern.durability != Durability::Synced {
        return Ok(());
    }
    let mut transaction = context.catalog().begin_write()?;
    if let Some(session) = &mut context.session_use {
        session.write_commit_record(&mut transaction, context.shared.now_ms())?;
    }
    let receipt = transaction.commit(Durability::Synced)?;
    context.wait_for(receipt);
    Ok(())
}
