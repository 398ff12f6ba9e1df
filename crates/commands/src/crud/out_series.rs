//! `$out` with `timeseries`: the documents of a pipeline become the measurements of a time series.
//!
//! As with a plain `$out` the documents go to a load, which nobody can see: here packed into buckets. The
//! load takes the place of the collection of buckets in one commit. A new series gets its view after its
//! buckets, as by `create`. A failure before leaves the target as it was.

use std::collections::HashMap;
use std::sync::Arc;

use pando_catalog::{BulkLoad, CatalogError, Collection, Namespace};
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue};
use pando_query::time_series::{ROWS_MAX, Series};

use super::out_stage::{publish, write_error};
use super::time_series::{BYTES_MAX, append_key, buckets_of, checked_time};
use crate::admin::time_series_options;
use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// The most bytes of the measurements that wait for others of their window.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// The measurements of a meta value and a window that wait.
#[derive(Default)]
struct Waiting {
    rows: Vec<RawDocumentBuf>,
    bytes: usize,
}

/// Takes the measurements. Dropping it leaves the target as it was.
pub(super) struct SeriesWriter {
    target: Namespace,
    options: Document,
    series: Series,
    /// The buckets that are replaced, as they were when the pipeline began.
    replaced: Option<Arc<Collection>>,
    load: BulkLoad,
    waiting: HashMap<(i64, Vec<u8>), Waiting>,
    waiting_bytes: usize,
}

impl SeriesWriter {
    /// Checks the target, and begins its load.
    pub fn begin(
        context: &mut Context<'_>,
        target: &Namespace,
        options: &Document,
    ) -> Result<SeriesWriter, CommandError> {
        if let Err(error) = target.check_writable() {
            return Err(CommandError::failed(
                ErrorCode::IllegalOperation,
                format!("error with target namespace: {error}"),
            ));
        }
        time_series_options::check(&target.to_string(), options)?;
        let catalog = context.catalog();
        let buckets = buckets_of(target)?;
        let refused = |code, reason: String| Err(CommandError::failed(ErrorCode::Location(code), reason));
        if catalog.collection(target.database(), target.collection()).is_some() {
            return refused(
                7_268_700,
                format!("Cannot create a time-series collection in the place of '{target}', which is none"),
            );
        }
        let mut replaced = catalog.collection(buckets.database(), buckets.collection());
        // Buckets without their view are those of a series whose creation was cut off.
        if replaced.is_some() && !context.is_series_view(target)? {
            context.refuse_view(target)?;
            context.drop_collection(&buckets)?;
            replaced = None;
        }
        let uuid = context.shared.new_uuid();
        let load = match &replaced {
            Some(replaced) => {
                let has = replaced.options().get("timeseries")?;
                let has = has.and_then(|has| has.as_document()).map(Document::from_raw).transpose()?;
                if has.as_ref() != Some(options) {
                    return refused(
                        7_406_103,
                        format!(
                            "The options 'timeseries' of $out are not those of the time-series collection '{target}'"
                        ),
                    );
                }
                catalog.begin_replacement(&buckets, Some(replaced), uuid)?
            }
            None => {
                context.refuse_view(target)?;
                let kept = time_series_options::of_buckets(options, &Document::new());
                catalog.begin_load(&buckets, kept.to_raw(), uuid, Vec::new())?
            }
        };
        let series = Series::of(&options.to_raw()).ok_or_else(|| {
            CommandError::failed(ErrorCode::InvalidOptions, "a time series needs a 'timeField' and windows")
        })?;
        Ok(SeriesWriter {
            target: target.clone(),
            options: options.clone(),
            series,
            replaced,
            load,
            waiting: HashMap::new(),
            waiting_bytes: 0,
        })
    }

    /// Takes a measurement.
    pub fn take(&mut self, context: &Context<'_>, document: &RawDocument) -> Result<(), CommandError> {
        let window = self.series.window_of(checked_time(&self.series, document)?);
        let mut meta = Vec::new();
        if let Some(value) = self.series.meta_of(document)? {
            append_key(value, &mut meta)?;
        }
        let key = (window, meta);
        let bytes = document.as_bytes().len();
        let waiting = self.waiting.entry(key.clone()).or_default();
        if waiting.rows.len() == ROWS_MAX || (waiting.bytes > 0 && waiting.bytes + bytes > BYTES_MAX) {
            let full = std::mem::take(waiting);
            self.write(context, &key, full)?;
        }
        let waiting = self.waiting.entry(key).or_default();
        waiting.rows.push(document.to_owned());
        waiting.bytes += bytes;
        self.waiting_bytes += bytes;
        match self.waiting_bytes > WAITING_BYTES_MAX {
            true => self.write_all(context),
            false => Ok(()),
        }
    }

    fn write_all(&mut self, context: &Context<'_>) -> Result<(), CommandError> {
        for (key, waiting) in std::mem::take(&mut self.waiting) {
            self.write(context, &key, waiting)?;
        }
        Ok(())
    }

    fn write(
        &mut self,
        context: &Context<'_>,
        (window, meta): &(i64, Vec<u8>),
        waiting: Waiting,
    ) -> Result<(), CommandError> {
        if waiting.rows.is_empty() {
            return Ok(());
        }
        self.waiting_bytes -= waiting.bytes;
        let id = self.series.bucket_id(*window, context.shared.new_object_id());
        let meta = match meta.as_slice() {
            [] => None,
            meta => RawDocument::from_bytes(meta)?.get("")?,
        };
        let bucket = self.series.pack(id, meta, &waiting.rows)?;
        self.load.insert(&bucket, context.operation).map_err(|error| write_error(error, &self.target))
    }

    /// Writes the trees, and publishes them.
    pub fn finish(mut self, context: &mut Context<'_>) -> Result<(), CommandError> {
        self.write_all(context)?;
        let SeriesWriter { target, options, replaced, load, .. } = self;
        if replaced.is_some() {
            return publish(context, &target, replaced.as_ref(), load);
        }
        let catalog = context.catalog();
        let loaded = load.finish(catalog, context.operation).map_err(|error| match error {
            CatalogError::Write(error) => write_error(error, &target),
            other => other.into(),
        })?;
        let receipt = catalog.publish_load(loaded, context.caller(), context.concern.durability)?;
        context.wait_for(receipt);
        time_series_options::create_view(context, &target, &options)
    }
}

/// The argument `timeseries`, as a series keeps it.
pub(super) fn options_of(argument: RawValue<'_>) -> Result<Document, CommandError> {
    time_series_options::of_value("$out", argument)
}
