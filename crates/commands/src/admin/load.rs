//! `beginLoad`, `commitLoad` and `abortLoad`: TokuMX's bulk loader. Documents that the connection inserts
//! between begin and commit are sorted, and make a new collection whose trees are written once.
//!
//! # Steps
//! 1. `beginLoad` names the collection, its indexes and its options. The connection holds the load.
//! 2. Each `insert` of the connection goes to the load (`crud/load_insert.rs`).
//! 3. `commitLoad` writes the trees. The commit of the connection's transaction publishes the collection, or,
//!    where the connection has none, a commit of the command's own.
//!
//! A `commitLoad` that fails has ended the load.

use pando_catalog::{CatalogError, LoadedCollection};
use pando_collation::TextOrder;
use pando_document::{DocumentWriter, RawValue};

use super::{create, create_indexes};
use crate::arguments::{Arguments, missing, no_more};
use crate::collation::parse as parse_collation;
use crate::context::Context;
use crate::error::write_failure;
use crate::open_load::OpenLoad;
use crate::sessions::open_transaction::aborted;
use crate::{CommandError, ErrorCode, Request};

/// `beginLoad`.
pub(crate) fn run_begin(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    check_transaction(context, "beginLoad")?;
    let (mut name, mut indexes, mut options) = (None, Vec::new(), None);
    for argument in Arguments::of_command("beginLoad", request.body) {
        let argument = argument?;
        match argument.name {
            "ns" => name = argument.string()?,
            "indexes" => indexes = argument.documents()?,
            "options" => options = argument.document()?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    let name = name.ok_or_else(|| missing("beginLoad", "ns"))?;
    if let Some(load) = context.connection.load() {
        return Err(CommandError::failed(
            ErrorCode::ConflictingOperationInProgress,
            format!("the connection has a load of {} already: end it first", load.namespace()),
        ));
    }
    let namespace = context.writable(name)?;
    note_namespace(context, &namespace.to_string());
    let options = create::options_of_load(context, &namespace, options)?;
    let options = options.to_raw();
    let order = match options.get("collation")? {
        Some(RawValue::Document(collation)) => parse_collation(collation, "collation")?,
        _ => TextOrder::SIMPLE,
    };
    let descriptions = create_indexes::descriptions_of_load(context, &namespace, &indexes, &order)?;
    context.require_may_block()?;
    let uuid = context.shared.new_uuid();
    let mut load = context.catalog().begin_load(&namespace, options, uuid, descriptions)?;
    load.make_partitions(context.shared.now_ms())?;
    let load = OpenLoad::new(load);
    if let Some(open) = context.open_transaction() {
        open.hold_load(load.clone());
    }
    context.connection.hold_load(load);
    reply.append_str("status", "load began");
    Ok(())
}

/// `commitLoad`.
pub(crate) fn run_commit(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    check_transaction(context, "commitLoad")?;
    no_more("commitLoad", request.body)?;
    context.require_may_block()?;
    let load = context.connection.take_load().ok_or_else(no_load)?.take()?;
    let namespace = load.namespace().to_string();
    note_namespace(context, &namespace);
    let loaded = load.finish(context.catalog(), context.operation).map_err(|error| match error {
        CatalogError::Write(error) => write_failure(error, &namespace),
        other => other.into(),
    })?;
    publish(context, loaded)?;
    reply.append_str("status", "load committed");
    Ok(())
}

/// Hands a loaded collection to the connection's transaction, or publishes it at once.
fn publish(context: &mut Context<'_>, loaded: LoadedCollection) -> Result<(), CommandError> {
    let catalog = context.catalog();
    let Some(open) = context.open_transaction() else {
        let receipt = catalog.publish_load(loaded, context.caller(), context.concern.durability)?;
        context.wait_for(receipt);
        return Ok(());
    };
    match &mut *open.lock()? {
        Some(transaction) => Ok(transaction.adopt(catalog, loaded)?),
        None => Err(aborted(open.number)),
    }
}

/// `abortLoad`.
pub(crate) fn run_abort(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    check_transaction(context, "abortLoad")?;
    no_more("abortLoad", request.body)?;
    let load = context.connection.take_load().ok_or_else(no_load)?;
    note_namespace(context, &load.namespace().to_string());
    load.end();
    reply.append_str("status", "load aborted");
    Ok(())
}

/// Has lists of operations and the profiler show the collection, which is not the value of the command.
fn note_namespace(context: &Context<'_>, namespace: &str) {
    context.list_change(|listed| listed.namespace = namespace.to_owned());
    context.note(|notes| notes.namespace = Some(namespace.to_owned()));
}

/// A load belongs to a connection, and cannot be part of a session's transaction.
fn check_transaction(context: &Context<'_>, name: &str) -> Result<(), CommandError> {
    if context.open_transaction().is_none() || context.connection.transaction().is_some() {
        return Ok(());
    }
    Err(CommandError::failed(
        ErrorCode::OperationNotSupportedInTransaction,
        format!(
            "Cannot run '{name}' in a transaction of a session: a load belongs to a connection, and to the transaction of beginTransaction if there is one"
        ),
    ))
}

fn no_load() -> CommandError {
    CommandError::failed(ErrorCode::CommandFailed, "the connection has no load: beginLoad begins one")
}
