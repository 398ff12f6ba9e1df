//! `createIndexes`: builds indexes, and the collection where there is none.

use std::sync::Arc;

use pando_catalog::{CatalogError, Collection, IndexDescription};
use pando_document::{Document, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};
use pando_query::shell_text::document_text;

use super::index_specification::{normalise, same_key};
use crate::arguments::{Arguments, collection_name, missing};
use crate::context::Context;
use crate::error::write_failure;
use crate::{CommandError, ErrorCode, Request};

/// Most indexes of a collection, `_id_` included.
const INDEXES_MAX: usize = 64;

/// Builds the indexes, all or none.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_patience()?;
    let name = collection_name(request.command()?.1)?;
    let mut wanted = None;
    for argument in Arguments::new("createIndexes", request.body) {
        let argument = argument?;
        match argument.name {
            "indexes" => wanted = Some(specifications(argument.array()?)?),
            "ignoreUnknownIndexOptions" | "commitQuorum" => {}
            _ => return Err(argument.unknown()),
        }
    }
    let wanted = wanted.ok_or_else(|| missing("createIndexes", "indexes"))?;
    if wanted.is_empty() {
        return Err(CommandError::failed(ErrorCode::BadValue, "Must specify at least one index to create"));
    }
    let namespace = context.namespace(name)?;
    let existed = context.catalog().collection(context.database, name).is_some();
    drop(context.lease_or_create(&namespace)?);
    let Some(collection) = context.catalog().collection(context.database, name) else {
        return Err(CommandError::failed(ErrorCode::NamespaceNotFound, "collection was dropped meanwhile"));
    };
    let new = not_there_yet(&collection, wanted)?;
    let before = collection.indexes().len() + 1;
    if before + new.len() > INDEXES_MAX {
        return Err(CommandError::failed(
            ErrorCode::CannotCreateIndex,
            format!(
                "add index fails, too many indexes for {namespace} key:{}",
                document_text(&new[0].specification)
            ),
        ));
    }
    let all_exist = new.is_empty();
    let after = before + new.len();
    if !all_exist {
        context.catalog().create_indexes(&namespace, new).map_err(|error| match error {
            CatalogError::Write(error) => build_failure(error, &namespace.to_string()),
            other => other.into(),
        })?;
    }
    reply.append("numIndexesBefore", count(before));
    reply.append("numIndexesAfter", count(after));
    if all_exist {
        reply.append("note", RawValue::String("all indexes already exist"));
    }
    reply.append("createdCollectionAutomatically", RawValue::Boolean(!existed));
    Ok(())
}

fn build_failure(error: pando_catalog::WriteError, namespace: &str) -> CommandError {
    match write_failure(error, namespace) {
        CommandError::Failed(mut failure) => {
            failure.message =
                format!("Index build failed: Collection {namespace} :: caused by :: {}", failure.message);
            CommandError::Failed(failure)
        }
        other => other,
    }
}

fn count(number: usize) -> RawValue<'static> {
    RawValue::Int32(i32::try_from(number).unwrap_or(i32::MAX))
}

fn specifications(array: &RawArray) -> Result<Vec<Document>, CommandError> {
    let mut all = Vec::new();
    for value in array.iter() {
        match value? {
            RawValue::Document(given) => all.push(normalise(given)?),
            other => {
                return Err(CommandError::failed(
                    ErrorCode::TypeMismatch,
                    format!(
                        "The elements of the 'indexes' array must be objects, but got {}",
                        other.element_type().alias()
                    ),
                ));
            }
        }
    }
    Ok(all)
}

/// The wanted indexes without those that are there; an error where one is there with another meaning.
fn not_there_yet(
    collection: &Arc<Collection>,
    wanted: Vec<Document>,
) -> Result<Vec<IndexDescription>, CommandError> {
    let mut have: Vec<RawDocumentBuf> =
        collection.describe_indexes().into_iter().map(|index| index.specification).collect();
    let mut new = Vec::new();
    for specification in wanted {
        let raw = specification.to_raw();
        if !is_there(&have, &raw)? {
            let description = IndexDescription::from_specification(&raw)
                .map_err(|reason| CommandError::failed(ErrorCode::CannotCreateIndex, reason))?;
            have.push(raw);
            new.push(description);
        }
    }
    Ok(new)
}

/// Whether an index like this is there: the same key, name and options.
fn is_there(have: &[RawDocumentBuf], wanted: &RawDocument) -> Result<bool, CommandError> {
    let (wanted_key, wanted_name) = key_and_name(wanted);
    // `_id_` is there whatever name it is asked for by.
    if same_key(wanted_key, key_and_name(&have[0]).0) {
        return Ok(true);
    }
    for existing in have {
        let (key, name) = key_and_name(existing);
        let (same_key, same_name) = (same_key(key, wanted_key), name == wanted_name);
        if same_key && same_name {
            if ["unique", "sparse"].iter().all(|option| flag(existing, option) == flag(wanted, option)) {
                return Ok(true);
            }
            return Err(conflict(ErrorCode::IndexKeySpecsConflict, wanted, existing));
        }
        if same_name {
            return Err(conflict(ErrorCode::IndexKeySpecsConflict, wanted, existing));
        }
        if same_key {
            if ["unique", "sparse"].iter().all(|option| flag(existing, option) == flag(wanted, option)) {
                return Err(CommandError::failed(
                    ErrorCode::IndexOptionsConflict,
                    format!("Index already exists with a different name: {name}"),
                ));
            }
            return Err(CommandError::failed(
                ErrorCode::IndexOptionsConflict,
                format!(
                    "An equivalent index already exists with a different name and options. Requested index: {}, existing index: {}",
                    document_text(wanted),
                    document_text(existing)
                ),
            ));
        }
    }
    Ok(false)
}

fn conflict(code: ErrorCode, wanted: &RawDocument, existing: &RawDocument) -> CommandError {
    CommandError::failed(
        code,
        format!(
            "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: {}, existing index: {}",
            document_text(wanted),
            document_text(existing)
        ),
    )
}

fn key_and_name(specification: &RawDocument) -> (&RawDocument, &str) {
    match (specification.get("key"), specification.get("name")) {
        (Ok(Some(RawValue::Document(key))), Ok(Some(RawValue::String(name)))) => (key, name),
        _ => unreachable!("specifications are normalised before they are compared"),
    }
}

fn flag(specification: &RawDocument, name: &str) -> bool {
    matches!(specification.get(name), Ok(Some(value)) if value.to_bool())
}
