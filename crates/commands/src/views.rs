//! Views: names that stand for a pipeline over a collection or over another view.
//!
//! # Steps of a read
//! 1. A name that no collection has is looked for in `system.views` of its database
//!    ([`find`](ViewReader::find)).
//! 2. [`resolve`](ViewReader::resolve) follows the views below one another down to a collection.
//! 3. The pipelines of all of them, that of the lowest first, and the pipeline of the request become one. The
//!    optimiser sees it as a whole, so that a filter on the view uses the indexes of the collection.
//!
//! # Not here
//! The check of a new definition (`admin`), `find`, `count` and `distinct` as pipelines (`crud`).

use pando_catalog::{
    BlockingMode, Catalog, Collection, Direction, KeyRange, Operation, StorageError, Transaction,
    VIEWS_COLLECTION, view_definition,
};
use pando_collation::TextOrder;
use pando_document::{DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};
use pando_query::QueryError;
use pando_query::time_series::{Series, TimeSpan, UNPACK_STAGE, bucket_filter};

use crate::collation::parse as parse_collation;
use crate::error::Failure;
use crate::reader::HeldReader;
use crate::{CommandError, ErrorCode};

/// The most views over one another, in a definition and in a read; as in MongoDB.
pub(crate) const DEPTH_MAX: usize = 20;

/// The definition of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// The collection or view below.
    pub on: String,
    /// An array of stages.
    pub pipeline: RawDocumentBuf,
    /// The order of strings.
    pub order: TextOrder,
}

impl View {
    /// Reads a document of `system.views`.
    ///
    /// # Errors
    /// The document is no definition.
    pub fn read(definition: &RawDocument) -> Result<View, CommandError> {
        let (Some(RawValue::String(on)), Some(RawValue::Array(pipeline))) =
            (definition.get("viewOn")?, definition.get("pipeline")?)
        else {
            return Err(CommandError::failed(
                ErrorCode::InvalidViewDefinition,
                "Invalid view definition: expected the string 'viewOn' and the array 'pipeline'",
            ));
        };
        let order = match definition.get("collation")? {
            Some(RawValue::Document(collation)) => parse_collation(collation, "collation")?,
            _ => TextOrder::SIMPLE,
        };
        Ok(View { on: on.to_owned(), pipeline: pipeline.as_document().to_owned(), order })
    }

    /// The document of `system.views`.
    pub fn to_document(&self, full_name: &str) -> RawDocumentBuf {
        let mut bytes = Vec::new();
        let mut out = DocumentWriter::begin(&mut bytes);
        out.append_str("_id", full_name);
        self.write_options(&mut out);
        out.finish();
        RawDocumentBuf::from_vec(bytes).unwrap_or_default()
    }

    /// Writes the fields that `create` takes.
    pub fn write_options(&self, out: &mut DocumentWriter<'_>) {
        out.append_str("viewOn", &self.on);
        out.append("pipeline", RawValue::Array(RawArray::from_document(&self.pipeline)));
        if let Some(collation) = self.order.document() {
            out.append("collation", RawValue::Document(collation));
        }
    }

    /// The order of strings of a read for which this one is given.
    ///
    /// # Errors
    /// It is not that of the view.
    pub fn order(&self, given: Option<&TextOrder>) -> Result<TextOrder, CommandError> {
        match given {
            Some(given) if *given != self.order => Err(CommandError::failed(
                ErrorCode::OptionNotSupportedOnView,
                "Cannot override a view's default collation",
            )),
            _ => Ok(self.order.clone()),
        }
    }
}

/// The views that a collection of definitions has, in the order of their names. Blocks.
pub(crate) fn views_of(
    definitions: &Collection,
    transaction: &dyn Transaction,
    operation: &Operation,
) -> Result<Vec<(String, View)>, CommandError> {
    let mut found = Vec::new();
    let mut scan = definitions.scan_documents(KeyRange::all(), Direction::Forward);
    while let Some((_, definition)) = scan.next(transaction, BlockingMode::MayBlock)? {
        operation.check().map_err(QueryError::from)?;
        let definition = RawDocument::from_bytes(definition)?;
        let Some(RawValue::String(full_name)) = definition.get("_id")? else { continue };
        let Some((_, name)) = full_name.split_once('.') else { continue };
        found.push((name.to_owned(), View::read(definition)?));
    }
    Ok(found)
}

/// A collection, and the stages that stand for a view of it.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedView {
    pub collection: String,
    stages: Vec<RawDocumentBuf>,
    /// The order of strings.
    pub order: TextOrder,
}

impl ResolvedView {
    /// Of a view right over a collection.
    pub fn of(View { on, pipeline, order }: View) -> ResolvedView {
        ResolvedView { collection: on, stages: vec![pipeline], order }
    }

    /// Of a time series: the stages that stand for the one that unpacks, if the stage behind it is a filter.
    /// The first leaves out buckets in which no measurement matches it, the second also measurements.
    fn filtered_unpacking(&self, pipeline: &RawArray) -> Result<Option<[RawDocumentBuf; 2]>, CommandError> {
        let mut stages =
            self.stages.iter().map(|part| RawArray::from_document(part)).chain([pipeline]).flatten();
        let mut argument_of_next = |wanted: &str| match stages.next() {
            Some(Ok(RawValue::Document(stage))) => {
                stage.get(wanted).ok().flatten().and_then(|argument| argument.as_document())
            }
            _ => None,
        };
        let Some(options) = argument_of_next(UNPACK_STAGE) else { return Ok(None) };
        let Some(series) = Series::of(options) else { return Ok(None) };
        let Some(filter) = argument_of_next("$match") else { return Ok(None) };
        let Some(buckets) = bucket_filter(&series, filter)? else { return Ok(None) };
        let span = TimeSpan::of_filter(&series, filter)?;
        let mut bytes = Vec::new();
        let mut argument = DocumentWriter::begin(&mut bytes);
        for option in options {
            let (name, value) = option?;
            argument.append(name, value);
        }
        span.write(&mut argument);
        argument.finish();
        let unpacking = stage_of(UNPACK_STAGE, RawDocument::from_bytes(&bytes)?)?;
        Ok(Some([stage_of("$match", &buckets)?, unpacking]))
    }

    /// The hint to the collection below: a pattern of a time series is another one of its buckets.
    pub fn hint_below(&self, hint: RawValue<'_>) -> Result<Option<RawDocumentBuf>, CommandError> {
        let RawValue::Document(pattern) = hint else { return Ok(None) };
        let first = self.stages.first().and_then(|part| part.iter().next()).transpose()?;
        let Some((_, RawValue::Document(stage))) = first else { return Ok(None) };
        let Some(RawValue::Document(options)) = stage.get(UNPACK_STAGE)? else { return Ok(None) };
        let is_natural = pattern.get("$natural")?.is_some();
        let series = Series::of(options).filter(|_| !is_natural);
        Ok(series.map(|series| series.bucket_key_pattern(pattern)))
    }

    /// The stages of the view, and the given ones behind them, as an array.
    pub fn followed_by(&self, pipeline: &RawArray) -> Result<RawDocumentBuf, CommandError> {
        let mut bytes = Vec::new();
        let mut out = DocumentWriter::begin(&mut bytes);
        let filtered = self.filtered_unpacking(pipeline)?;
        let replaced = usize::from(filtered.is_some());
        let given = filtered.iter().flatten().map(|stage| Ok(RawValue::Document(stage)));
        let parts = self.stages.iter().map(|part| RawArray::from_document(part)).chain([pipeline]);
        for (at, stage) in given.chain(parts.flatten().skip(replaced)).enumerate() {
            out.append(&at.to_string(), stage?);
        }
        out.finish();
        Ok(RawDocumentBuf::from_vec(bytes)?)
    }
}

fn stage_of(name: &str, argument: &RawDocument) -> Result<RawDocumentBuf, CommandError> {
    let mut bytes = Vec::new();
    let mut stage = DocumentWriter::begin(&mut bytes);
    stage.append_raw_document(name, argument);
    stage.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

/// Where views are looked for.
#[derive(Clone, Copy)]
pub(crate) struct ViewReader<'r> {
    pub catalog: &'r Catalog,
    pub held: &'r HeldReader<'r>,
    pub database: &'r str,
    pub blocking: BlockingMode,
}

impl ViewReader<'_> {
    /// The view of this name.
    pub fn find(&self, name: &str) -> Result<Option<View>, CommandError> {
        let Some(definitions) = self.held.collection(self.catalog, self.database, VIEWS_COLLECTION)? else {
            return Ok(None);
        };
        let found = view_definition(&definitions, name, self.held.transaction(), self.blocking)?;
        found.map(|bytes| View::read(RawDocument::from_bytes(&bytes)?)).transpose()
    }

    /// The collection below the view of this name; `None` if there is no such view.
    pub fn resolve(&self, name: &str) -> Result<Option<ResolvedView>, CommandError> {
        self.find(name)?.map(|view| self.follow(view)).transpose()
    }

    /// The collection below a view.
    pub fn follow(&self, view: View) -> Result<ResolvedView, CommandError> {
        let mut followed = ResolvedView::of(view);
        while self.held.collection(self.catalog, self.database, &followed.collection)?.is_none()
            && let Some(View { on, pipeline, .. }) = self.find(&followed.collection)?
        {
            followed.stages.insert(0, pipeline);
            if followed.stages.len() >= DEPTH_MAX {
                return Err(too_deep());
            }
            followed.collection = on;
        }
        Ok(followed)
    }
}

/// The error of a view within a pipeline that compares strings in another order.
pub(crate) fn other_collation(name: &str) -> CommandError {
    CommandError::failed(
        ErrorCode::OptionNotSupportedOnView,
        format!("View {name} has a collation which conflicts with the collation of the pipeline"),
    )
}

/// The error of views over too many views.
pub(crate) fn too_deep() -> CommandError {
    CommandError::failed(
        ErrorCode::ViewDepthLimitExceeded,
        format!("View depth too deep or view cycle detected; maximum depth is {DEPTH_MAX}"),
    )
}

/// The error of commands that are for collections.
pub(crate) fn not_a_collection(namespace: &impl std::fmt::Display) -> CommandError {
    CommandError::failed(
        ErrorCode::CommandNotSupportedOnView,
        format!("Namespace {namespace} is a view, not a collection"),
    )
}

/// The error of commands that are not for time series.
pub(crate) fn not_a_plain_collection(namespace: &impl std::fmt::Display) -> CommandError {
    CommandError::failed(
        ErrorCode::CommandNotSupportedOnView,
        format!("Namespace {namespace} is a timeseries collection"),
    )
}

/// The error of a search in a view as one of the query that makes it.
pub(crate) fn as_query_error(error: CommandError) -> QueryError {
    match error {
        CommandError::WouldBlock(_) => QueryError::from(StorageError::would_block()),
        CommandError::Failed(failure) => {
            let Failure { code, message, .. } = *failure;
            QueryError::Refused { code, message }
        }
    }
}
