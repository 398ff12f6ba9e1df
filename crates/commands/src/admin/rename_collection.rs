//! `renameCollection`: another name for a collection, within a database or across two.

use pando_catalog::{CatalogError, Namespace};
use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Arguments, missing};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// What happens to a collection that has the new name already.
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
    context.require_patience()?;
    let from = parse("renameCollection", request.command()?.1)?;
    let mut to = None;
    let mut target = Target::Refuse;
    for argument in Arguments::new("renameCollection", request.body) {
        let argument = argument?;
        match argument.name {
            "to" => to = Some(parse("to", argument.value)?),
            "dropTarget" if argument.value.to_bool() => target = Target::Drop,
            "dropTarget" | "stayTemp" => {}
            _ => return Err(argument.unknown()),
        }
    }
    let to = to.ok_or_else(|| missing("renameCollection", "to"))?;
    if from == to {
        return Err(CommandError::failed(ErrorCode::IllegalOperation, "Can't rename a collection to itself"));
    }
    if context.catalog().collection(from.database(), from.collection()).is_none() {
        return Err(source_missing(&from));
    }
    if target == Target::Drop {
        match context.catalog().drop_collection(&to) {
            Ok(_) | Err(CatalogError::CollectionNotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match context.catalog().rename_collection(&from, &to) {
        Ok(()) => Ok(()),
        Err(CatalogError::CollectionExists { .. }) => {
            Err(CommandError::failed(ErrorCode::NamespaceExists, "target namespace exists"))
        }
        Err(CatalogError::CollectionNotFound { .. }) => Err(source_missing(&from)),
        Err(error) => Err(error.into()),
    }
}

fn source_missing(from: &Namespace) -> CommandError {
    CommandError::failed(ErrorCode::NamespaceNotFound, format!("Source collection {from} does not exist"))
}

fn parse(field: &str, value: RawValue<'_>) -> Result<Namespace, CommandError> {
    let RawValue::String(full) = value else {
        return Err(CommandError::failed(
            ErrorCode::TypeMismatch,
            format!(
                "BSON field 'renameCollection.{field}' is the wrong type '{}', expected type 'string'",
                value.element_type().alias()
            ),
        ));
    };
    let Some((database, collection)) = full.split_once('.') else {
        return Err(CommandError::failed(
            ErrorCode::InvalidNamespace,
            format!("Invalid namespace specified '{full}'"),
        ));
    };
    Ok(Namespace::new(database, collection)?)
}
