//! `reIndex`: TokuMX's command that changes the settings of the trees of a collection, or rewrites them.
//!
//! With options the settings change at once, and pages take them when they are written next. Without, the
//! engine rewrites the trees. Reads and writes go on in both cases.
//!
//! `index` names one index by its name or key, or all by `*`. The tree of the documents is that of the index
//! that they are: `_id_`, or the primary key. That of a heap is meant by `*` alone.

use pando_catalog::{Collection, HEAP_TREE, ID_INDEX, Layout};
use pando_document::{Document, DocumentWriter, RawDocument, RawValue, Value};
use pando_query::shell_text::value_text;

use super::index_specification::{UnknownOptions, normalise};
use super::{index_key_pattern, storage_engine_options};
use crate::arguments::{Arguments, collection_name};
use crate::context::Context;
use crate::error::write_failure;
use crate::short_options;
use crate::{CommandError, ErrorCode, Request};

/// Changes or rewrites.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name(request.command()?.1)?;
    let (mut which, mut options) = (RawValue::String("*"), RawDocument::empty());
    for argument in Arguments::of_command("reIndex", request.body) {
        let argument = argument?;
        match argument.name {
            "index" => which = argument.value,
            "options" => options = argument.document()?.unwrap_or(options),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let namespace = context.writable(name)?;
    let Some(collection) = context.no_view(&namespace)? else {
        return Err(CommandError::failed(ErrorCode::NamespaceNotFound, "collection does not exist"));
    };
    let indexes = chosen(&collection, which)?;
    let engine = context.catalog().engine().name();
    let settings = short_options::of_short_options(options, engine)?;
    for index in &indexes {
        if settings.is_empty() {
            let rewritten = collection.compact_tree(index, context.operation);
            rewritten.map_err(|error| write_failure(error.into(), &namespace.to_string()))?;
        } else {
            change(context, &collection, index, &settings)?;
        }
    }
    let have = collection.describe_indexes();
    let count = RawValue::Int32(i32::try_from(have.len()).unwrap_or(i32::MAX));
    reply.append("nIndexesWas", count);
    reply.append("nIndexes", count);
    let mut list = reply.array("indexes");
    for index in &have {
        list.push_document(&index.specification);
    }
    list.finish();
    Ok(())
}

/// The names of the indexes that a request means.
fn chosen(collection: &Collection, which: RawValue<'_>) -> Result<Vec<String>, CommandError> {
    let is_chosen = |name: &str, key: &RawDocument| match which {
        RawValue::String("*") => true,
        RawValue::String(wanted) => name == wanted,
        RawValue::Document(wanted) => index_key_pattern::same(key, wanted),
        _ => false,
    };
    let mut chosen = Vec::new();
    for index in collection.describe_indexes() {
        let (key, name) = super::existing_indexes::key_and_name(&index.specification);
        if is_chosen(name, key) {
            chosen.push(name.to_owned());
        }
    }
    if matches!((which, collection.layout()), (RawValue::String("*"), Layout::Heap)) {
        chosen.push(HEAP_TREE.to_owned());
    }
    if chosen.is_empty() {
        let shown = value_text(which);
        return Err(CommandError::failed(
            ErrorCode::IndexNotFound,
            format!("index not found with name or key [{shown}]"),
        ));
    }
    Ok(chosen)
}

fn change(
    context: &Context<'_>,
    collection: &Collection,
    index: &str,
    settings: &Document,
) -> Result<(), CommandError> {
    let engine = context.catalog().engine().name();
    let mut changes = Document::new();
    changes.push(engine, Value::Document(settings.clone()));
    let (namespace, changes) = (collection.namespace(), changes.to_raw());
    if collection.index(index).is_none() {
        return context.catalog().change_settings(namespace, context.operation, |collection| {
            Ok(storage_engine_options::merged(collection.options(), &changes)?)
        });
    }
    context.catalog().change_index_settings(namespace, index, context.operation, |found| {
        let specification = storage_engine_options::merged(found.specification(), &changes)?;
        // MongoDB's index on `_id` has no settings, so its normal form has none.
        Ok(match index {
            ID_INDEX => specification,
            _ => normalise(&specification, UnknownOptions::Refused, engine)?.to_raw(),
        })
    })
}
