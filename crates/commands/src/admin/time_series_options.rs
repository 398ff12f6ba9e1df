//! The option `timeseries` of `create`: its fields, and the collection and the view that a time series is.
//!
//! A time series is a collection of buckets, `system.buckets.NAME`, and a view `NAME` of it that gives the
//! measurements. The buckets come first: a crash in between leaves buckets without a view, which the next
//! `create` removes.

use pando_catalog::{CatalogError, Collection, Namespace};
use pando_collation::TextOrder;
use pando_document::{Document, RawDocument, RawValue, Value, doc};
use pando_query::time_series::{BUCKETS_PREFIX, Series, UNPACK_STAGE};

use super::capped_options::shown;
use super::view_definition;
use crate::arguments::{Argument, Arguments, missing};
use crate::context::Context;
use crate::views::View;
use crate::{CommandError, ErrorCode};

/// The granularities with the lengths of their windows, in seconds.
const GRANULARITIES: [(&str, i64); 3] = [("seconds", 3600), ("minutes", 86_400), ("hours", 2_592_000)];

/// The longest window of a series that names its own, in seconds: a year.
const OWN_SPAN_SECONDS_MAX: i64 = 31_536_000;
/// The length of a window, as a series keeps it.
const SPAN: &str = "bucketMaxSpanSeconds";
/// The divisor of the first second of a window, for a series that names its own: always the length.
const ROUNDING: &str = "bucketRoundingSeconds";

/// The length of windows as a request gives it.
#[derive(Default)]
pub(super) struct GivenSpan {
    granularity: Option<&'static str>,
    span: Option<i64>,
    rounding: Option<i64>,
}

impl GivenSpan {
    /// Takes an option over; false for one of another kind.
    pub fn take(&mut self, option: &Argument<'_>) -> Result<bool, CommandError> {
        let seconds = || match option.at_least(1)? {
            Some(seconds) if seconds > OWN_SPAN_SECONDS_MAX => {
                Err(option.out_of_range(format_args!("<= {OWN_SPAN_SECONDS_MAX}"), seconds))
            }
            seconds => Ok(seconds),
        };
        match option.name {
            "granularity" => self.granularity = option.one_of(&["seconds", "minutes", "hours"])?,
            SPAN => self.span = seconds()?,
            ROUNDING => self.rounding = seconds()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The windows that are wanted; `None` where the request says nothing of them.
    fn checked(&self) -> Result<Option<Windows>, CommandError> {
        let invalid = |reason: &str| Err(CommandError::failed(ErrorCode::InvalidOptions, reason));
        match (self.granularity, self.span, self.rounding) {
            (None, None, None) => Ok(None),
            (Some(_), _, Some(_)) => {
                invalid("Timeseries 'bucketRoundingSeconds' cannot be given together with 'granularity'")
            }
            (None, Some(span), Some(rounding)) if span == rounding => Ok(Some(Windows::Own(span))),
            (None, _, Some(_)) => invalid(
                "Timeseries 'bucketRoundingSeconds' needs 'bucketMaxSpanSeconds' beside it, and has to be equal to it",
            ),
            (granularity, span, None) => {
                let windows = Windows::Of(granularity.unwrap_or("seconds"));
                let default = windows.span();
                match span {
                    Some(span) if span != default => Err(CommandError::failed(
                        ErrorCode::Location(5_510_500),
                        format!(
                            "Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default of {default} for the provided granularity"
                        ),
                    )),
                    _ => Ok(Some(windows)),
                }
            }
        }
    }
}

/// The windows of a series.
#[derive(Clone, Copy)]
enum Windows {
    /// Those of a granularity.
    Of(&'static str),
    /// Of so many seconds.
    Own(i64),
}

impl Windows {
    fn span(self) -> i64 {
        match self {
            Windows::Of(wanted) => {
                GRANULARITIES.iter().find(|(name, _)| *name == wanted).map_or(3600, |(_, span)| *span)
            }
            Windows::Own(span) => span,
        }
    }

    /// Writes the options.
    fn put(self, series: &mut Document) {
        for name in ["granularity", SPAN, ROUNDING] {
            series.remove(name);
        }
        if let Windows::Of(granularity) = self {
            series.push("granularity", granularity);
        }
        series.push(SPAN, shown(self.span()));
        if let Windows::Own(span) = self {
            series.push(ROUNDING, shown(span));
        }
    }
}

/// Reads the option. Gives it as it is kept.
pub(super) fn read(argument: &Argument<'_>) -> Result<Option<Document>, CommandError> {
    argument.document()?.map(of_document).transpose()
}

/// Reads the option as the argument of another command.
pub(crate) fn of_value(owner: &'static str, value: RawValue<'_>) -> Result<Document, CommandError> {
    of_document(Argument::of_value(owner, "timeseries", value).object()?)
}

fn of_document(given: &RawDocument) -> Result<Document, CommandError> {
    let (mut time, mut meta, mut span) = (None, None, GivenSpan::default());
    for option in Arguments::inside("create.timeseries", given) {
        let option = option?;
        match option.name {
            "timeField" => time = option.string()?,
            "metaField" => meta = option.string()?,
            _ if span.take(&option)? => {}
            _ => return Err(option.unknown()),
        }
    }
    let time = time.ok_or_else(|| missing("create.timeseries", "timeField"))?;
    let mut kept = Document::new();
    kept.push("timeField", time);
    if let Some(meta) = meta {
        kept.push("metaField", meta);
    }
    span.checked()?.unwrap_or(Windows::Of("seconds")).put(&mut kept);
    Ok(kept)
}

/// Checks the names of the fields.
pub(crate) fn check(namespace: &str, series: &Document) -> Result<(), CommandError> {
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
    match context.create_collection(&buckets, of_buckets(series, kept).to_raw()) {
        Err(CatalogError::CollectionExists { .. }) => {
            return exists(format!("Collection {buckets} already exists."));
        }
        other => other?,
    }
    create_view(context, namespace, series)
}

/// The options of the collection of buckets.
pub(crate) fn of_buckets(series: &Document, kept: &Document) -> Document {
    let mut options = kept.clone();
    if options.get(STORAGE).is_none() {
        options.push(STORAGE, default_storage());
    }
    options.push("clusteredIndex", Value::Boolean(true));
    options.push("timeseries", series.clone());
    options
}

/// Creates the view of buckets that were loaded, or drops these.
pub(crate) fn create_view(
    context: &mut Context<'_>,
    namespace: &Namespace,
    series: &Document,
) -> Result<(), CommandError> {
    let buckets =
        Namespace::new(namespace.database(), &format!("{BUCKETS_PREFIX}{}", namespace.collection()))?;
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

/// Makes the windows longer, or leaves them. The view goes first: it may look for longer windows than there
/// are.
pub(super) fn make_coarser(
    context: &mut Context<'_>,
    namespace: &Namespace,
    buckets: &Collection,
    wanted: &GivenSpan,
) -> Result<(), CommandError> {
    if let GivenSpan { granularity: None, span: Some(_), rounding: None } = wanted {
        return Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            "Timeseries 'bucketMaxSpanSeconds' needs 'bucketRoundingSeconds' beside it, and has to be equal to it",
        ));
    }
    let Some(wanted) = wanted.checked()? else { return Ok(()) };
    let options = Document::from_raw(buckets.options())?;
    let Some(Value::Document(series)) = options.get("timeseries") else { return Ok(()) };
    let mut changed = series.clone();
    wanted.put(&mut changed);
    if changed == *series {
        return Ok(());
    }
    if wanted.span() < span_of(series) {
        let reason = match wanted {
            Windows::Of(_) => {
                "Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or 'minutes' to 'hours'."
            }
            Windows::Own(_) => {
                "Invalid transition for timeseries.bucketMaxSpanSeconds and timeseries.bucketRoundingSeconds: they can only grow"
            }
        };
        return Err(CommandError::failed(ErrorCode::InvalidOptions, reason));
    }
    view_definition::replace(context, namespace, &view_of(buckets.namespace(), &changed))?;
    context.catalog().change_options(buckets.namespace(), context.operation, |buckets| {
        let mut options = Document::from_raw(buckets.options())?;
        // Another request may have made it coarser still.
        if let Some(Value::Document(series)) = options.get("timeseries")
            && span_of(series) <= wanted.span()
        {
            options.insert("timeseries", Value::Document(changed));
        }
        Ok(options.to_raw())
    })
}

fn span_of(series: &Document) -> i64 {
    Series::of(&series.to_raw()).map_or(0, |series| series.span_seconds)
}

/// The fields that the stage needs.
fn unpack_argument(series: &Document) -> Document {
    let wanted = series.iter().filter(|(name, _)| !matches!(*name, "granularity" | ROUNDING));
    wanted.map(|(name, value)| (name.to_owned(), value.clone())).collect()
}
