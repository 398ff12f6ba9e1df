//! `renameCollection`: another name for a collection, within a database or across two.

use pando_catalog::{CatalogError, Collection, NameError, Namespace, Renaming, TakenName};
use pando_document::{DocumentWriter, RawBinary, RawValue};
use pando_query::time_series::BUCKETS_PREFIX;

use crate::arguments::{Argument, Arguments, collection_name, missing};
use crate::context::Context;
use crate::identity::uuid_text;
use crate::{CommandError, ErrorCode, Request};

/// Renames.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let from = source_of(request.command()?.1)?;
    let mut to = None;
    let mut target = TakenName::Refused;
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
    context.note_target(&from);
    context.note_target(&to);
    if from.collection() == "system.users" || to.collection() == "system.users" {
        return Err(CommandError::failed(
            ErrorCode::IllegalOperation,
            "renaming system.users collection or renaming to system.users is not allowed",
        ));
    }
    let is_of_buckets = |namespace: &Namespace| namespace.collection().starts_with(BUCKETS_PREFIX);
    if is_of_buckets(&from) && !is_of_buckets(&to) {
        return Err(CommandError::failed(
            ErrorCode::IllegalOperation,
            format!(
                "Cannot rename time-series buckets collection {{{from}}} to a non-time-series buckets namespace {{{to}}}"
            ),
        ));
    }
    let collection_or_view = |namespace: &Namespace| context.no_view(namespace);
    if is_view(collection_or_view(&from))? {
        return Err(CommandError::failed(
            ErrorCode::CommandNotSupportedOnView,
            format!("cannot rename view: {from}"),
        ));
    }
    if context.catalog().collection(from.database(), from.collection()).is_none() {
        return Err(source_missing(&from));
    }
    if is_view(collection_or_view(&to))? {
        return Err(CommandError::failed(
            ErrorCode::NamespaceExists,
            format!("a view already exists with that name: {to}"),
        ));
    }
    carry_out(context, &from, &to, target)
}

/// Renames in one commit, and tells the cursors of both collections.
fn carry_out(
    context: &Context<'_>,
    from: &Namespace,
    to: &Namespace,
    taken: TakenName,
) -> Result<(), CommandError> {
    let changes_database = from.database() != to.database();
    let renaming = Renaming {
        from,
        to,
        // As in MongoDB, a collection that leaves its database is another one.
        uuid: changes_database.then(|| context.shared.new_uuid()),
        taken,
    };
    let identity = context.catalog().collection(from.database(), from.collection()).map(|found| found.uuid());
    let dropped =
        |collection: &Collection| format!("collection dropped. UUID {}", uuid_text(collection.uuid()));
    let end_users = |collection: &Collection| {
        let sentence = dropped(collection);
        context.shared.running.end_users_of(collection.full_name(), &sentence, context.record);
    };
    match context.catalog().rename(&renaming, context.operation, &end_users) {
        Ok(replaced) => {
            if let Some(replaced) = replaced {
                context.cursors().end_users_of(replaced.full_name(), &dropped(&replaced));
            }
            let identity = uuid_text(identity.unwrap_or_default());
            let sentence = format!("collection renamed from '{from}' to '{to}'. UUID {identity}");
            context.cursors().end_users_of(&from.to_string(), &sentence);
            Ok(())
        }
        Err(CatalogError::CollectionExists { .. }) => {
            Err(CommandError::failed(ErrorCode::NamespaceExists, "target namespace exists"))
        }
        Err(CatalogError::CollectionNotFound { .. }) => Err(source_missing(from)),
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
fn target_of(argument: &Argument<'_>) -> Result<TakenName, CommandError> {
    match argument.value {
        RawValue::Boolean(true) => Ok(TakenName::Replaced),
        RawValue::Boolean(false) => Ok(TakenName::Refused),
        RawValue::Binary(RawBinary { subtype: 4, bytes }) if bytes.len() == 16 => Ok(TakenName::Replaced),
        RawValue::Binary(_) => Err(CommandError::failed(
            ErrorCode::InvalidUuid,
            "uuid must be a 16-byte binary field with UUID (4) subtype",
        )),
        _ => Err(argument.wrong_type("types '[bool, binData']")),
    }
}
