//! `$out`: the documents of a pipeline become a collection, in the place of the one that has its name.
//!
//! The documents go to a load, which nobody can see. Its publication takes the name over in one commit
//! (`catalog`, `replacement`). A failure before leaves the target as it was.
//!
//! # Not here
//! Measurements of a time series: `out_series`.

use std::sync::Arc;

use pando_catalog::{BulkLoad, CatalogError, Collection, Namespace, WriteError};
use pando_document::{Document, RawDocument, RawValue};

use super::out_series;
use super::stored_document;
use super::write_stage::target;
use crate::context::Context;
use crate::error::write_failure;
use crate::identity::uuid_text;
use crate::validation::Validator;
use crate::{CommandError, ErrorCode};

/// The target of the stage.
pub(super) struct OutTarget {
    pub namespace: Namespace,
    /// The options of the time series that it is to be.
    pub series: Option<Document>,
}

/// Reads the target.
pub(super) fn parse(database: &str, argument: RawValue<'_>) -> Result<OutTarget, CommandError> {
    let mut series = None;
    let (database, collection) = match argument {
        RawValue::String(collection) => (database, collection),
        RawValue::Document(options) => {
            series = options.get("timeseries")?.map(out_series::options_of).transpose()?;
            database_and_collection(options)?
        }
        other => {
            return Err(CommandError::failed(
                ErrorCode::Location(16990),
                format!(
                    "$out only supports a string or object argument, but found {}",
                    other.element_type().alias()
                ),
            ));
        }
    };
    if database.is_empty() || collection.is_empty() {
        return Err(CommandError::failed(
            ErrorCode::InvalidNamespace,
            format!("Invalid $out target namespace, {database}.{collection}"),
        ));
    }
    let refused = |code, sentence: String| Err(CommandError::failed(ErrorCode::Location(code), sentence));
    if collection.starts_with("system.") {
        return refused(17385, format!("Can't $out to special collection: {collection}"));
    }
    if matches!(database, "admin" | "config" | "local") {
        return refused(31321, format!("Can't $out to internal database: {database}"));
    }
    Ok(OutTarget { namespace: target(database, collection)?, series })
}

fn database_and_collection(options: &RawDocument) -> Result<(&str, &str), CommandError> {
    let others = options.iter().filter(|field| !matches!(field, Ok(("timeseries", _)))).count();
    let (Some(database), Some(collection), 2) = (options.get("db")?, options.get("coll")?, others) else {
        return Err(CommandError::failed(
            ErrorCode::Location(16994),
            "If an object is passed to $out it must have exactly 2 fields: 'db' and 'coll', besides 'timeseries'",
        ));
    };
    Ok((string("db", database)?, string("coll", collection)?))
}

fn string<'v>(name: &str, value: RawValue<'v>) -> Result<&'v str, CommandError> {
    value.as_str().ok_or_else(|| {
        CommandError::failed(
            ErrorCode::Location(13111),
            format!("wrong type for field ({name}) {} != string", value.element_type().alias()),
        )
    })
}

/// The stage as `explain` shows it.
pub(super) fn shown(target: &OutTarget) -> Document {
    let mut out = Document::new();
    out.push("coll", target.namespace.collection());
    out.push("db", target.namespace.database());
    if let Some(series) = &target.series {
        out.push("timeseries", series.clone());
    }
    let mut shown = Document::new();
    shown.push("$out", out);
    shown
}

/// Takes the documents. Dropping it leaves the target as it was.
pub(super) struct OutWriter {
    target: Namespace,
    /// The collection that is replaced, as it was when the pipeline began.
    replaced: Option<Arc<Collection>>,
    validator: Option<Validator>,
    load: BulkLoad,
    stored: Vec<u8>,
}

impl OutWriter {
    pub fn begin(context: &mut Context<'_>, target: &Namespace) -> Result<OutWriter, CommandError> {
        if let Err(error) = target.check_writable() {
            return Err(CommandError::failed(
                ErrorCode::IllegalOperation,
                format!("error with target namespace: {error}"),
            ));
        }
        let catalog = context.catalog();
        let replaced = catalog.collection(target.database(), target.collection());
        if replaced.as_ref().is_some_and(|replaced| replaced.capped_limits().is_some()) {
            return Err(CommandError::failed(
                ErrorCode::Location(17_152),
                format!("namespace '{target}' is capped so it can't be used for $out"),
            ));
        }
        let load = catalog.begin_replacement(target, replaced.as_deref(), context.shared.new_uuid())?;
        let validator = match &replaced {
            Some(replaced) => Validator::of(context, replaced)?,
            None => None,
        };
        Ok(OutWriter { target: target.clone(), replaced, validator, load, stored: Vec::new() })
    }

    /// Takes a document.
    pub fn take(&mut self, context: &Context<'_>, document: &RawDocument) -> Result<(), CommandError> {
        stored_document::prepare(context.shared, document, context.empty_timestamps, &mut self.stored)?;
        let stored = RawDocument::from_bytes(&self.stored)?;
        if let Some(validator) = &self.validator {
            validator.check_insert(stored)?;
        }
        let taken = self.load.insert(stored, context.operation);
        taken.map_err(|error| write_error(error, &self.target))
    }

    /// Writes the trees, and takes the place of the old collection.
    pub fn finish(self, context: &mut Context<'_>) -> Result<(), CommandError> {
        let OutWriter { target, replaced, load, .. } = self;
        publish(context, &target, replaced.as_ref(), load)
    }
}

/// The error of a write to a load.
pub(super) fn write_error(error: WriteError, target: &Namespace) -> CommandError {
    write_failure(error, &target.to_string())
}

/// Writes the trees of a load, which takes the place of the old collection.
pub(super) fn publish(
    context: &mut Context<'_>,
    target: &Namespace,
    replaced: Option<&Arc<Collection>>,
    load: BulkLoad,
) -> Result<(), CommandError> {
    let catalog = context.catalog();
    let loaded = load.finish(catalog, context.operation).map_err(|error| match error {
        CatalogError::Write(error) => write_error(error, target),
        other => other.into(),
    })?;
    let sentence =
        |collection: &Collection| format!("collection dropped. UUID {}", uuid_text(collection.uuid()));
    let end_users = |collection: &Collection| {
        let sentence = sentence(collection);
        context.shared.running.end_users_of(collection.full_name(), &sentence, context.record);
    };
    let published = catalog.publish_replacement(loaded, replaced, context.operation, &end_users);
    let old = published.map_err(|error| match error {
        CatalogError::CollectionChanged { .. } => CommandError::failed(
            ErrorCode::Location(28768),
            format!("indexes of target collection {target} changed while processing $out"),
        ),
        other => other.into(),
    })?;
    if let Some(old) = old {
        context.cursors().end_users_of(old.full_name(), &sentence(&old));
    }
    Ok(())
}
