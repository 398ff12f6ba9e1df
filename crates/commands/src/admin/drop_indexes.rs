//! `dropIndexes`: one index by name or key, several by names, or all but `_id_` for `'*'`.

use pando_catalog::Collection;
use pando_document::{DocumentWriter, RawDocument, RawValue};

use crate::arguments::{Arguments, collection_name, missing};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Drops the indexes.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_patience()?;
    let name = collection_name(request.command()?.1)?;
    let mut wanted = None;
    for argument in Arguments::new("dropIndexes", request.body) {
        let argument = argument?;
        match argument.name {
            "index" => wanted = Some(argument.value),
            _ => return Err(argument.unknown()),
        }
    }
    let wanted = wanted.ok_or_else(|| missing("dropIndexes", "index"))?;
    let namespace = context.namespace(name)?;
    let Some(collection) = context.catalog().collection(context.database, name) else {
        return Err(CommandError::failed(ErrorCode::NamespaceNotFound, format!("ns not found {namespace}")));
    };
    let names = names_of(&collection, wanted)?;
    for name in &names {
        context.catalog().drop_index(&namespace, name)?;
    }
    let before = i32::try_from(collection.indexes().len() + 1).unwrap_or(i32::MAX);
    reply.append("nIndexesWas", RawValue::Int32(before));
    if matches!(wanted, RawValue::String("*")) {
        reply.append("msg", RawValue::String("non-_id indexes dropped for collection"));
    }
    Ok(())
}

/// The names of the indexes that are meant.
fn names_of(collection: &Collection, wanted: RawValue<'_>) -> Result<Vec<String>, CommandError> {
    match wanted {
        RawValue::String("*") => {
            Ok(collection.indexes().iter().map(|index| index.name().to_owned()).collect())
        }
        RawValue::String(name) => Ok(vec![by_name(collection, name)?]),
        RawValue::Document(key) => Ok(vec![by_key(collection, key)?]),
        RawValue::Array(names) => {
            let mut found = Vec::new();
            for name in names.iter() {
                match name? {
                    RawValue::String(name) => found.push(by_name(collection, name)?),
                    other => {
                        return Err(CommandError::failed(
                            ErrorCode::TypeMismatch,
                            format!(
                                "BSON field 'dropIndexes.index.0' is the wrong type '{}', expected type 'string'",
                                other.element_type().alias()
                            ),
                        ));
                    }
                }
            }
            Ok(found)
        }
        other => Err(CommandError::failed(
            ErrorCode::TypeMismatch,
            format!(
                "BSON field 'dropIndexes.index' is the wrong type '{}', expected types '[array, string, object']",
                other.element_type().alias()
            ),
        )),
    }
}

fn by_name(collection: &Collection, name: &str) -> Result<String, CommandError> {
    if name == "_id_" {
        return Err(CommandError::failed(ErrorCode::InvalidOptions, "cannot drop _id index"));
    }
    match collection.index(name) {
        Some(_) => Ok(name.to_owned()),
        None => {
            Err(CommandError::failed(ErrorCode::IndexNotFound, format!("index not found with name [{name}]")))
        }
    }
}

fn by_key(collection: &Collection, key: &RawDocument) -> Result<String, CommandError> {
    for index in collection.describe_indexes() {
        if let Ok(Some(RawValue::Document(have))) = index.specification.get("key")
            && super::index_specification::same_key(have, key)
        {
            return by_name(collection, &index.name);
        }
    }
    Err(CommandError::failed(
        ErrorCode::IndexNotFound,
        format!("can't find index with key: {}", pando_query::shell_text::document_text(key)),
    ))
}
