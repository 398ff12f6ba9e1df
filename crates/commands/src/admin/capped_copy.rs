//! `convertToCapped` and `cloneCollectionAsCapped`: a capped collection of the newest documents of another.

use pando_catalog::{CappedCopy, CatalogError, Collection, Namespace};
use pando_document::{Document, DocumentWriter, RawDocument, RawValue, Value};

use super::capped_options;
use crate::arguments::{Arguments, collection_name, whole};
use crate::context::Context;
use crate::identity::uuid_text;
use crate::{CommandError, ErrorCode, Request};

/// `convertToCapped`.
pub(crate) fn run_convert(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name(request.command()?.1)?;
    let namespace = context.writable(name)?;
    let size = size_of(request.body)?;
    let source = source_of(context, &namespace)?;
    check_size(size)?;
    let options = options_of(source.options(), size, Temporary::No)?.to_raw();
    let copy =
        CappedCopy { source: &namespace, target: &namespace, options, uuid: context.shared.new_uuid() };
    let sentence =
        |collection: &Collection| format!("collection dropped. UUID {}", uuid_text(collection.uuid()));
    let end_users = |collection: &Collection| {
        let sentence = sentence(collection);
        context.shared.running.end_users_of(collection.full_name(), &sentence, context.record);
    };
    let old = context.catalog().replace_by_capped(copy, context.operation, &end_users)?;
    context.cursors().end_users_of(old.full_name(), &sentence(&old));
    Ok(())
}

/// `cloneCollectionAsCapped`.
pub(crate) fn run_clone(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let from = text("cloneCollectionAsCapped", request.command()?.1)?;
    let to = text("toCollection", request.body.get("toCollection")?.unwrap_or(RawValue::Null))?;
    if to.is_empty() {
        return Err(CommandError::failed(
            ErrorCode::InvalidNamespace,
            format!("Invalid target collection name: {to}"),
        ));
    }
    let size = size_of(request.body)?;
    let temporary = match request.body.get("temp")? {
        Some(value) if value.to_bool() => Temporary::Yes,
        _ => Temporary::No,
    };
    let (source, target) = (context.namespace(from)?, context.writable(to)?);
    let found = source_of(context, &source)?;
    let taken = CommandError::failed(
        ErrorCode::NamespaceExists,
        format!(
            "cloneCollectionAsCapped failed - destination collection {target} already exists. source collection: {source}"
        ),
    );
    let is_view = context.view(to)?.is_some();
    if is_view || context.catalog().collection(context.database, to).is_some() {
        return Err(taken);
    }
    check_size(size)?;
    let options = options_of(found.options(), size, temporary)?.to_raw();
    let copy = CappedCopy { source: &source, target: &target, options, uuid: context.shared.new_uuid() };
    let durability = context.concern.durability;
    match context.catalog().copy_as_capped(copy, context.caller(), durability) {
        Ok(receipt) => {
            context.wait_for(receipt);
            Ok(())
        }
        Err(CatalogError::CollectionExists { .. }) => Err(taken),
        Err(error) => Err(error.into()),
    }
}

/// Whether a copy is one that the server removes at its next start, for the lists of clients.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Temporary {
    Yes,
    No,
}

fn source_of(
    context: &Context<'_>,
    namespace: &Namespace,
) -> Result<std::sync::Arc<Collection>, CommandError> {
    context.no_view(namespace)?.ok_or_else(|| {
        CommandError::failed(
            ErrorCode::NamespaceNotFound,
            format!("source collection {namespace} does not exist"),
        )
    })
}

/// The options of a copy: those of the source, but for its layout.
fn options_of(source: &RawDocument, size: i64, temporary: Temporary) -> Result<Document, CommandError> {
    let mut options = Document::new();
    let max = source.get("max")?.and_then(|max| max.as_i64_exact());
    capped_options::push(&mut options, size, max);
    for option in source.iter() {
        let (name, value) = option?;
        let is_of_layout = matches!(
            name,
            "capped"
                | "size"
                | "max"
                | "layout"
                | "primaryKey"
                | "clusteredIndex"
                | "partitioned"
                | "partitionBy"
                | "expireAfterSeconds"
        );
        if !is_of_layout {
            options.push(name, value.to_owned());
        }
    }
    if temporary == Temporary::Yes {
        options.push("temp", Value::Boolean(true));
    }
    Ok(options)
}

fn text<'r>(name: &str, value: RawValue<'r>) -> Result<&'r str, CommandError> {
    value.as_str().ok_or_else(|| {
        CommandError::failed(ErrorCode::TypeMismatch, format!("'{name}' must be of type String"))
    })
}

/// The size in bytes. The other fields of these commands are not looked at, as in MongoDB.
fn size_of(body: &RawDocument) -> Result<i64, CommandError> {
    let mut size = None;
    for argument in Arguments::of_command("convertToCapped", body) {
        let argument = argument?;
        if argument.name == "size" && argument.value.is_number() {
            size = Some(whole(argument.value)).filter(|size| *size != 0);
        }
    }
    size.ok_or_else(|| CommandError::failed(ErrorCode::Untold, "invalid command spec"))
}

/// Refuses a size that no collection has. The source has to be there before, as in MongoDB.
fn check_size(size: i64) -> Result<(), CommandError> {
    let refused = |reason: &str| Err(CommandError::failed(ErrorCode::BadValue, reason));
    match size {
        ..0 => refused("size has to be >= 0"),
        size if size > capped_options::BYTES_MAX => refused("size cannot exceed 1 PB"),
        _ => Ok(()),
    }
}
