//! `beginTransaction` and `rollbackTransaction`: TokuMX's transactions, which belong to a connection.
//! `commitTransaction` is that of sessions.

use std::sync::Arc;

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::Arguments;
use crate::connection_transaction::{ConnectionTransaction, Isolation};
use crate::context::Context;
use crate::sessions::Begun;
use crate::{CommandError, ErrorCode, Request};

/// `beginTransaction`.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let mut isolation = Isolation::Snapshot;
    for argument in Arguments::of_command("beginTransaction", request.body) {
        let argument = argument?;
        match (argument.name, argument.value) {
            ("isolation", RawValue::String(name)) => isolation = Isolation::named(name)?,
            ("isolation", _) => {
                return Err(CommandError::failed(
                    ErrorCode::Location(16_738),
                    "isolation has to be a string",
                ));
            }
            _ => argument.refuse_unless_generic()?,
        }
    }
    if context.connection.transaction().is_some() {
        return Err(CommandError::failed(
            ErrorCode::Location(16_787),
            "the connection has a transaction already: end it with commitTransaction or rollbackTransaction",
        ));
    }
    if isolation == Isolation::Serializable {
        // It may wait for commits under way.
        context.require_may_block()?;
    }
    context.require_reads()?;
    let begun = Begun {
        at: context.began,
        ms: context.shared.now_ms(),
        level: isolation.read_level(),
        past: None,
        connection: Arc::clone(context.record),
    };
    let transaction = ConnectionTransaction::begin(context.shared, isolation, begun)?;
    context.connection.hold_transaction(transaction);
    reply.append_str("status", "transaction began");
    Ok(())
}

/// `rollbackTransaction`. One whose statement has failed is over already, and only forgotten.
pub(crate) fn run_rollback(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    for argument in Arguments::of_command("rollbackTransaction", request.body) {
        argument?.refuse_unless_generic()?;
    }
    if context.connection.transaction().is_none() {
        return Err(CommandError::failed(
            ErrorCode::Location(16_789),
            "the connection has no transaction to roll back",
        ));
    }
    if let Some(session) = &mut context.session_use {
        session.end_open();
    }
    context.connection.forget_transaction();
    reply.append_str("status", "transaction rolled back");
    Ok(())
}
