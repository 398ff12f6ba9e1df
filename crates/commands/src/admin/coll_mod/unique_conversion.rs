//! The conversion of a prepared index into a unique one.
//!
//! # Steps
//! 1. The documents that share keys are listed. Where there are any, the conversion is refused.
//! 2. The unique index is built beside the old one, whose writers are checked all the while. So no key can be
//!    shared any more.
//! 3. One commit puts the new index into the place of the old one. A crash before leaves the old one.
//!
//! The entries of both are of different forms (`index_entry` of crate `catalog`); that is why it is built.

use std::sync::Arc;

use pando_catalog::{BlockingMode, CatalogError, Collection, Index, Namespace, Sharer, Uniqueness};
use pando_document::{Document, RawDocument, Value};

use super::index_change::changed;
use crate::context::Context;
use crate::error::{Failure, write_failure};
use crate::{CommandError, ErrorCode};

/// The most bytes of the elements of the lists of `_id`s in a refusal.
const LISTED_BYTES_MAX: usize = 8 << 20;
/// The bytes of a document without elements.
const EMPTY_DOCUMENT_BYTES: usize = 5;
const CONFLICTS: &str =
    "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.";
const TOO_MANY: &str = "Cannot convert the index to unique. Too many conflicting documents were detected. Please resolve them and rerun collMod.";

/// Builds the unique index in the place of the one of this name, with further changes of its specification.
pub(super) fn carry_out(
    context: &Context<'_>,
    namespace: &Namespace,
    name: &str,
    changes: &Document,
) -> Result<(), CommandError> {
    let turn = context.catalog().index_build_turn(namespace, context.operation)?;
    let collection = context.catalog().collection(namespace.database(), namespace.collection());
    let collection =
        collection.ok_or_else(|| CatalogError::CollectionNotFound { namespace: namespace.to_string() })?;
    let index = collection.index(name);
    let index = index.ok_or_else(|| CatalogError::IndexNotFound { name: name.to_owned() })?;
    let mut changes = changes.clone();
    changes.push("prepareUnique", Value::Boolean(false));
    changes.push("unique", Value::Boolean(true));
    if index.uniqueness() == Uniqueness::Unique {
        // Another request was faster.
        return context.catalog().change_index_specification(namespace, name, context.operation, |index| {
            Ok(changed(context, index.specification(), &changes)?.to_raw())
        });
    }
    check(context, &collection, index)?;
    let specification = changed(context, index.specification(), &changes)?;
    let description = context.catalog().describe_index(&specification.to_raw())?;
    turn.replace(index, description).map_err(|error| match error {
        CatalogError::Write(error) => write_failure(error, &namespace.to_string()),
        other => other.into(),
    })
}

/// Refuses the conversion where documents share keys, and lists them.
pub(super) fn check(
    context: &Context<'_>,
    collection: &Collection,
    index: &Arc<Index>,
) -> Result<(), CommandError> {
    let reader = context.catalog().begin(pando_catalog::Begin::READ)?;
    let mut shared = collection.shared_keys(index, &*reader, context.operation);
    let mut violations: Vec<Vec<Value>> = Vec::new();
    let (mut bytes, mut message) = (0, CONFLICTS);
    while let Some(sharer) = shared.next_sharer()? {
        let found = collection.fetch(&*reader, sharer.primary_key(), BlockingMode::MayBlock)?;
        let Some(found) = found else { continue };
        let Some(id) = RawDocument::from_bytes(&found)?.get("_id")? else { continue };
        if matches!(sharer, Sharer::First(_)) {
            violations.push(Vec::new());
        }
        let Some(ids) = violations.last_mut() else { continue };
        let mut element = Document::new();
        // MongoDB counts them by this name, too.
        element.push("_id", id.to_owned());
        bytes += element.to_raw().as_bytes().len() - EMPTY_DOCUMENT_BYTES;
        if bytes > LISTED_BYTES_MAX {
            message = TOO_MANY;
            break;
        }
        ids.push(id.to_owned());
    }
    violations.retain(|ids| !ids.is_empty());
    if violations.is_empty() {
        return Ok(());
    }
    let listed = violations.into_iter().map(|ids| {
        let mut violation = Document::new();
        violation.push("ids", Value::Array(ids));
        Value::Document(violation)
    });
    let mut failure = Failure::new(ErrorCode::CannotConvertIndexToUnique, message);
    failure.details.push("violations", Value::Array(listed.collect()));
    Err(CommandError::Failed(Box::new(failure)))
}
