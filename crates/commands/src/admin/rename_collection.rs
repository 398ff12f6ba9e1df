//! `renameCollection`: another name for a collection, within a database or across two.

use pando_catalog::{CatalogError, NameError, Namespace};
use pando_document::{DocumentWriter, RawBinary, RawValue};

use crate::arguments::{Argument, Arguments, collection_name, missing};
use crate::context::Context;
use crate::identity::uuid_text;
use crate::{CommandError, ErrorCode, Request};

/// The treatment of a collection that has the new name already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Refuse,
    Drop,
}

/// Renames.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let from = source_of(request.command()?.1)?;
    let mut to = None;
    let mut target = Target::Refuse;
    for argument in Arguments::of_command("renameCollection", request.body) {
        let argument = argument?;
        match argument.name {
            "to" => to = argument.string()?,
            "dropTarget" => target = target_of(&argument)?,
            "stayTemp" => {
                argument.lenient_boolean()?;
            }
            _ => argument.refuse_unless_generic()?,
        }
    }
    let to = target_namespace(to.ok_or_else(|| missing("renameCollection", "to"))?)?;
    if from == to {
        return Err(CommandError::failed(ErrorCode::IllegalOperation, "Can't rename a collection to itself"));
    }
    check_writable("source", &from)?;
    check_writable("target", &to)?;
    if from.collection() == "system.users" || to.collection() == "system.users" {
        return Err(CommandError::failed(
            ErrorCode::IllegalOperation,
            "renaming system.users collection or renaming to system.users is not allowed",
        ));
    }
    let collection_or_view = |namespace: &Namespace| context.no_view(namespace);
    if is_view(collection_or_view(&from))? {
        return Err(CommandError::failed(
            ErrorCode::CommandNotSupportedOnView,
            format!("cannot rename view: {from}"),
        ));
    }
    if is_view(collection_or_view(&to))? {
        return Err(CommandError::failed(
            ErrorCode::NamespaceExists,
            format!("a view already exists with that name: {to}"),
        ));
    }
    if context.catalog().collection(from.database(), from.collection()).is_none() {
        return Err(source_missing(&from));
    }
    if target == Target::Drop {
        match context.drop_collection(&to) {
            Ok(_) | Err(CatalogError::CollectionNotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let identity = context.catalog().collection(from.database(), from.collection()).map(|found| found.uuid());
    match context.catalog().rename_collection(&from, &to, context.operation) {
        Ok(()) => {
            let identity = uuid_text(identity.unwrap_or_default());
            let sentence = format!("collection renamed from '{from}' to '{to}'. UUID {identity}");
            context.cursors().end_users_of(&from.to_string(), &sentence);
            Ok(())
        }
        Err(CatalogError::CollectionExists { .. }) => {
            Err(CommandError::failed(ErrorCode::NamespaceExists, "target namespace exists"))
        }
        Err(CatalogError::CollectionNotFound { .. }) => Err(source_missing(&from)),
        Err(error) => Err(error.into()),
    }
}

/// Whether a look for a collection was refused because the name is one of a view.
fn is_view<T>(found: Result<T, CommandError>) -> Result<bool, CommandError> {
    match found {
        Ok(_) => Ok(false),
        Err(CommandError::Failed(failure)) if failure.code == ErrorCode::CommandNotSupportedOnView => {
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

fn source_missing(from: &Namespace) -> CommandError {
    CommandError::failed(ErrorCode::NamespaceNotFound, format!("Source collection {from} does not exist"))
}

fn source_of(value: RawValue<'_>) -> Result<Namespace, CommandError> {
    let full = collection_name(value)?;
    let invalid =
        || CommandError::failed(ErrorCode::InvalidNamespace, format!("Invalid namespace specified '{full}'"));
    let (database, collection) = full.split_once('.').ok_or_else(invalid)?;
    match Namespace::new(database, collection) {
        Err(NameError::Database { .. }) => Err(invalid()),
        // A leading dot is told by the stricter check, as one of the source's name.
        other => Ok(other?),
    }
}

fn target_namespace(full: &str) -> Result<Namespace, CommandError> {
    let invalid =
        || CommandError::failed(ErrorCode::InvalidNamespace, format!("Invalid target namespace: {full}"));
    let (database, collection) = full.split_once('.').ok_or_else(invalid)?;
    match Namespace::new(database, collection) {
        Err(NameError::Database { .. } | NameError::Empty { .. }) => Err(invalid()),
        Err(NameError::LeadingDot { collection }) => Err(CommandError::failed(
            ErrorCode::IllegalOperation,
            format!("error with target namespace: Invalid collection name: {collection}"),
        )),
        other => Ok(other?),
    }
}

/// Checks that a collection may have this name.
fn check_writable(which: &str, namespace: &Namespace) -> Result<(), CommandError> {
    namespace.check_writable().map_err(|error| {
        CommandError::failed(ErrorCode::IllegalOperation, format!("error with {which} namespace: {error}"))
    })
}

/// Replica sets name the collection to drop by its number, others say yes or no.
fn target_of(argument: &Argument<'_>) -> Result<Target, CommandError> {
    match argument.value {
        RawValue::Boolean(true) => Ok(Target::Drop),
        RawValue::Boolean(false) => Ok(Target::Refuse),
        RawValue::Binary(RawBinary { subtype: 4, bytes }) if bytes.len() == 16 => Ok(Target::Drop),
        RawValue::Binary(_) => Err(CommandError::failed(
            ErrorCode::InvalidUuid,
            "uuid must be a 16-byte binary field with UUID (4) subtype",
        )),
        _ => Err(argument.wrong_type("types '[bool, binData']")),
    }
}
