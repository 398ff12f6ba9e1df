//! `convertToPartitioned`: TokuMX's command that makes a plain collection a partitioned one, with its
//! documents, indexes and options.
//!
//! In TokuMX the documents become one partition, by `_id`. Here `primaryKey` and `partitionBy` may say more.

use pando_catalog::{CatalogError, Collection, PartitionedCopy, is_partitioned};
use pando_document::{Document, DocumentWriter, RawDocument, Value};

use super::create;
use crate::arguments::{Arguments, collection_name};
use crate::context::Context;
use crate::error::write_failure;
use crate::identity::uuid_text;
use crate::{CommandError, ErrorCode, Request};

/// Converts the collection.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name(request.command()?.1)?;
    let (mut primary_key, mut partition_by) = (None, None);
    for argument in Arguments::of_command("convertToPartitioned", request.body) {
        let argument = argument?;
        match argument.name {
            "primaryKey" => primary_key = argument.document()?,
            "partitionBy" => partition_by = argument.document()?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    let namespace = context.writable(name)?;
    let source = context.no_view(&namespace)?.ok_or_else(|| {
        CommandError::failed(ErrorCode::NamespaceNotFound, format!("ns not found: {namespace}"))
    })?;
    let wanted = options_of(&source, primary_key, partition_by)?;
    let options = create::checked_options(context, &namespace, &wanted.to_raw())?;
    let (uuid, now_ms) = (context.shared.new_uuid(), context.shared.now_ms());
    let copy = PartitionedCopy { namespace: &namespace, options, uuid, now_ms };
    let sentence =
        |collection: &Collection| format!("collection dropped. UUID {}", uuid_text(collection.uuid()));
    let end_users = |collection: &Collection| {
        let sentence = sentence(collection);
        context.shared.running.end_users_of(collection.full_name(), &sentence, context.record);
    };
    let old = context.catalog().replace_by_partitioned(copy, context.operation, &end_users);
    let old = old.map_err(|error| match error {
        CatalogError::Write(error) => write_failure(error, &namespace.to_string()),
        other => other.into(),
    })?;
    context.cursors().end_users_of(old.full_name(), &sentence(&old));
    context.shared.ttl.tell_new_schedule();
    Ok(())
}

/// The options of the partitioned collection, in the words of `create`.
fn options_of(
    source: &Collection,
    primary_key: Option<&RawDocument>,
    partition_by: Option<&RawDocument>,
) -> Result<Document, CommandError> {
    if source.capped_limits().is_some() {
        let sentence = "a capped collection cannot become a partitioned one";
        return Err(CommandError::failed(ErrorCode::Location(17_266), sentence));
    }
    if is_partitioned(source.options()) && primary_key.is_none() && partition_by.is_none() {
        let sentence = format!("{} is partitioned already", source.full_name());
        return Err(CommandError::failed(ErrorCode::IllegalOperation, sentence));
    }
    let mut options = Document::from_raw(source.options())?;
    for name in ["partitioned", "partitionBy", "layout"] {
        options.remove(name);
    }
    options.push("partitioned", Value::Boolean(true));
    for (name, given) in [("primaryKey", primary_key), ("partitionBy", partition_by)] {
        if let Some(given) = given {
            options.remove(name);
            options.push(name, Value::Document(Document::from_raw(given)?));
        }
    }
    Ok(options)
}
