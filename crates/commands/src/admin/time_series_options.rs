//! The option `timeseries` of `create`: its fields, and the collection and the view that a time series is.
//!
//! A time series is a collection of buckets, `system.buckets.NAME`, and a view `NAME` of it that gives the
//! measurements. The buckets come first: a crash in between leaves buckets without a view, which the next
//! `create` removes.

use pando_catalog::{CatalogError, Collection, Namespace};
use pando_collation::TextOrder;
use pando_document::{Document, RawValue, Value, doc};
use pando_query::time_series::{BUCKETS_PREFIX, UNPACK_STAGE};

use super::view_definition;
use crate::arguments::{Argument, Arguments, missing};
use crate::context::Context;
use crate::views::View;
use crate::{CommandError, ErrorCode};

/// The granularities with the lengths of their windows, in seconds.
const GRANULARITIES: [(&str, i64); 3] = [("seconds", 3600), ("minutes", 86_400), ("hours", 2_592_000)];

/// Reads the option. Gives it as it is kept.
pub(super) fn read(argument: &Argument<'_>) -> Result<Option<Document>, CommandError> {
    let Some(given) = argument.document()? else { return Ok(None) };
    let (mut time, mut meta, mut granularity, mut span) = (None, None, None, None);
    for option in Arguments::inside("create.timeseries", given) {
        let option = option?;
        match option.name {
            "timeField" => time = option.string()?,
            "metaField" => meta = option.string()?,
            "granularity" => granularity = option.one_of(&["seconds", "minutes", "hours"])?,
            "bucketMaxSpanSeconds" => span = option.at_least(1)?,
            _ => return Err(option.unknown()),
        }
    }
    let time = time.ok_or_else(|| missing("create.timeseries", "timeField"))?;
    let granularity = granularity.unwrap_or("seconds");
    let default = GRANULARITIES.iter().find(|(name, _)| *name == granularity).map_or(3600, |(_, span)| *span);
    if span.is_some_and(|span| span != default) {
        return Err(CommandError::failed(
            ErrorCode::Location(5_510_500),
            format!(
                "Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default of {default} for the provided granularity"
            ),
        ));
    }
    let mut kept = Document::new();
    kept.push("timeField", time);
    if let Some(meta) = meta {
        kept.push("metaField", meta);
    }
    kept.push("granularity", granularity);
    kept.push("bucketMaxSpanSeconds", i32::try_from(default).map_or(Value::Int64(default), Value::Int32));
    Ok(Some(kept))
}

/// Checks the names of the fields.
pub(super) fn check(namespace: &str, series: &Document) -> Result<(), CommandError> {
    let invalid = |reason: String| Err(CommandError::failed(ErrorCode::InvalidOptions, reason));
    let text = |name| series.get(name).and_then(Value::as_str);
    for name in ["timeField", "metaField"] {
        if text(name).is_some_and(|field| field.contains('.')) {
            return invalid(format!("{namespace}: '{name}' must be a top-level field and not contain a '.'"));
        }
    }
    match text("metaField") {
        Some("_id") => invalid("'metaField' cannot be \"_id\"".to_owned()),
        meta if meta.is_some() && meta == text("timeField") => {
            invalid("'metaField' cannot be the same as 'timeField'".to_owned())
        }
        _ => Ok(()),
    }
}

/// The refusal of another option beside `timeseries`.
pub(super) fn not_allowed(namespace: &str, option: &str) -> CommandError {
    CommandError::failed(
        ErrorCode::InvalidOptions,
        format!("{namespace}: 'timeseries' is not allowed with '{option}'"),
    )
}

/// The option with the settings of engines.
const STORAGE: &str = "storageEngine";

/// The settings of buckets where the user gives none: columns are not small until they are packed well. An
/// engine passes over the settings of another.
fn default_storage() -> Document {
    doc! { "betree": { "compression": "zstd" } }
}

/// Whether an option of the buckets is one that the user has given.
pub(super) fn is_given(name: &str, value: RawValue<'_>) -> bool {
    let is_default = || value.as_document().is_some_and(|value| *value == *default_storage().to_raw());
    name != "clusteredIndex" && (name != STORAGE || !is_default())
}

/// Creates the buckets and the view.
pub(super) fn create(
    context: &mut Context<'_>,
    namespace: &Namespace,
    series: &Document,
    kept: &Document,
) -> Result<(), CommandError> {
    if context.open_transaction().is_some() {
        return Err(CommandError::failed(
            ErrorCode::OperationNotSupportedInTransaction,
            "Cannot create a time-series collection in a multi-document transaction.",
        ));
    }
    let exists = |reason: String| Err(CommandError::failed(ErrorCode::NamespaceExists, reason));
    if context.catalog().collection(namespace.database(), namespace.collection()).is_some() {
        return exists(format!("Collection {namespace} already exists."));
    }
    let has_buckets = context.series(namespace.collection())?.is_some();
    if context.view(namespace.collection())?.is_some() {
        let kind = if has_buckets { "timeseries collection" } else { "view" };
        return exists(format!("A {kind} already exists. NS: {namespace}"));
    }
    let buckets =
        Namespace::new(namespace.database(), &format!("{BUCKETS_PREFIX}{}", namespace.collection()))?;
    if has_buckets {
        context.drop_collection(&buckets)?;
    }
    let mut options = kept.clone();
    if options.get(STORAGE).is_none() {
        options.push(STORAGE, default_storage());
    }
    options.push("clusteredIndex", Value::Boolean(true));
    options.push("timeseries", series.clone());
    match context.create_collection(&buckets, options.to_raw()) {
        Err(CatalogError::CollectionExists { .. }) => {
            return exists(format!("Collection {buckets} already exists."));
        }
        other => other?,
    }
    let created = view_definition::create(context, namespace, &view_of(&buckets, series));
    if created.is_err() {
        context.drop_collection(&buckets)?;
    }
    created
}

/// The view that gives the measurements.
fn view_of(buckets: &Namespace, series: &Document) -> View {
    let mut stage = Document::new();
    stage.push(UNPACK_STAGE, unpack_argument(series));
    let pipeline: Document = [("0".to_owned(), Value::Document(stage))].into_iter().collect();
    View { on: buckets.collection().to_owned(), pipeline: pipeline.to_raw(), order: TextOrder::SIMPLE }
}

/// Makes the granularity coarser, or leaves it. The view goes first: it may look for longer windows than
/// there are.
pub(super) fn make_coarser(
    context: &mut Context<'_>,
    namespace: &Namespace,
    buckets: &Collection,
    granularity: &str,
) -> Result<(), CommandError> {
    let options = Document::from_raw(buckets.options())?;
    let Some(Value::Document(series)) = options.get("timeseries") else { return Ok(()) };
    let place = |wanted: &str| GRANULARITIES.iter().position(|(name, _)| *name == wanted);
    let place_of =
        |series: &Document| place(series.get("granularity").and_then(Value::as_str).unwrap_or("seconds"));
    let (Some(now), Some(wanted)) = (place_of(series), place(granularity)) else { return Ok(()) };
    if wanted == now {
        return Ok(());
    }
    if wanted < now {
        return Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            "Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or 'minutes' to 'hours'.",
        ));
    }
    let mut series = series.clone();
    let span = GRANULARITIES[wanted].1;
    series.insert("granularity", granularity);
    series.insert("bucketMaxSpanSeconds", i32::try_from(span).map_or(Value::Int64(span), Value::Int32));
    view_definition::replace(context, namespace, &view_of(buckets.namespace(), &series))?;
    context.catalog().change_options(buckets.namespace(), context.operation, |buckets| {
        let mut options = Document::from_raw(buckets.options())?;
        let now = match options.get("timeseries") {
            Some(Value::Document(series)) => place_of(series),
            _ => None,
        };
        // Another request may have made it coarser still.
        if now < Some(wanted) {
            options.insert("timeseries", Value::Document(series));
        }
        Ok(options.to_raw())
    })
}

/// The fields that the stage needs.
fn unpack_argument(series: &Document) -> Document {
    let wanted = series.iter().filter(|(name, _)| *name != "granularity");
    wanted.map(|(name, value)| (name.to_owned(), value.clone())).collect()
}
