//! The stages that write, `$out` and `$merge`: the last stage of a pipeline sends its documents to
//! a collection, and the client gets none.
//!
//! # Steps
//! 1. The last stage is taken off the pipeline and parsed before any document is read.
//! 2. The other stages run to their end. Their documents go to the target as they come.
//! 3. The reply is a cursor without documents.
//!
//! # Not here
//! The two kinds of writing: [`out_stage`](super::out_stage) and [`merge_stage`](super::merge_stage).

use pando_catalog::{Caller, Namespace};
use pando_document::{Document, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};
use pando_query::expression::ParseScope;
use pando_query::pipeline::{Pipeline, PipelineFault};

use super::merge_stage::{Merge, MergeWriter};
use super::out_series::SeriesWriter;
use super::out_stage::{self, OutTarget, OutWriter};
use crate::context::Context;
use crate::cursor_source::CursorSource;
use crate::error::Execution;
use crate::{CommandError, ErrorCode};

/// A parsed stage.
pub(super) enum WriteStage {
    /// `$out` into this collection.
    Out(OutTarget),
    /// `$merge`.
    Merge(Box<Merge>),
}

/// A pipeline without the stage that writes, and that stage.
pub(super) struct SplitPipeline {
    pub rest: RawDocumentBuf,
    pub stage: WriteStage,
}

/// Takes the stage that writes off the end of a pipeline, where there is one.
pub(super) fn split(
    database: &str,
    pipeline: &RawArray,
    scope: &ParseScope,
) -> Result<Option<SplitPipeline>, CommandError> {
    let count = pipeline.iter().count();
    for (at, stage) in pipeline.iter().enumerate() {
        let Some(stage) = stage?.as_document() else { continue };
        let mut fields = stage.iter();
        let (Some(field), None) = (fields.next(), fields.next()) else { continue };
        let (name @ ("$out" | "$merge"), argument) = field? else { continue };
        let rest = stages_before(pipeline, at)?;
        let parsed = parse(database, name, argument, scope);
        if parsed.is_err() || at + 1 < count {
            // A fault of a stage in front of it comes first.
            Pipeline::parse(RawArray::from_document(&rest), scope)?;
        }
        let stage = parsed?;
        if at + 1 < count {
            let sentence = format!("{name} can only be the final stage in the pipeline");
            return Err(PipelineFault::WriteNotLast.error(sentence).into());
        }
        return Ok(Some(SplitPipeline { rest, stage }));
    }
    Ok(None)
}

fn parse(
    database: &str,
    name: &str,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<WriteStage, CommandError> {
    Ok(match name {
        "$out" => WriteStage::Out(out_stage::parse(database, argument)?),
        _ => WriteStage::Merge(Box::new(Merge::parse(database, argument, scope)?)),
    })
}

fn stages_before(pipeline: &RawArray, end: usize) -> Result<RawDocumentBuf, CommandError> {
    let mut rest = Vec::new();
    let mut writer = DocumentWriter::begin(&mut rest);
    for (at, stage) in pipeline.iter().take(end).enumerate() {
        writer.append(&at.to_string(), stage?);
    }
    writer.finish();
    Ok(RawDocumentBuf::from_vec(rest)?)
}

impl WriteStage {
    /// The stage as `explain` shows it.
    pub fn shown(&self) -> Document {
        match self {
            WriteStage::Out(target) => out_stage::shown(target),
            WriteStage::Merge(merge) => merge.shown(),
        }
    }

    /// Checks the target before any document is read, and makes what takes the documents.
    pub fn begin<'s>(
        &'s self,
        context: &mut Context<'_>,
        scope: &'s ParseScope,
    ) -> Result<Writer<'s>, CommandError> {
        let target = match self {
            WriteStage::Out(OutTarget { namespace, series: Some(series) }) => {
                let writer = SeriesWriter::begin(context, namespace, series).map_err(in_execution)?;
                return Ok(Writer::OutSeries(Box::new(writer)));
            }
            WriteStage::Out(target) => &target.namespace,
            WriteStage::Merge(merge) => merge.target(),
        };
        context.no_view(target).map_err(in_execution)?;
        Ok(match self {
            WriteStage::Out(_) => {
                Writer::Out(Box::new(OutWriter::begin(context, target).map_err(in_execution)?))
            }
            WriteStage::Merge(merge) => Writer::Merge(MergeWriter::begin(context, merge, scope)?),
        })
    }
}

/// Takes the documents of a pipeline.
pub(super) enum Writer<'s> {
    Out(Box<OutWriter>),
    OutSeries(Box<SeriesWriter>),
    Merge(MergeWriter<'s>),
}

impl Writer<'_> {
    /// Writes all documents of a source.
    pub fn write_all(
        mut self,
        context: &mut Context<'_>,
        source: &mut dyn CursorSource,
    ) -> Result<(), CommandError> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            if !source.next(context.caller(), &mut bytes).map_err(in_execution)? {
                break;
            }
            let document = RawDocument::from_bytes(&bytes)?;
            match &mut self {
                Writer::Out(out) => out.take(context, document),
                Writer::OutSeries(out) => out.take(context, document),
                Writer::Merge(merge) => merge.take(context, document),
            }
            .map_err(in_execution)?;
        }
        match self {
            Writer::Out(out) => out.finish(context),
            Writer::OutSeries(out) => out.finish(context),
            Writer::Merge(mut merge) => merge.flush(context),
        }
        .map_err(in_execution)
    }
}

fn in_execution(error: CommandError) -> CommandError {
    Execution::Aggregate.fault(error)
}

/// The source of the reply: there are no documents.
pub(super) struct Nothing;

impl CursorSource for Nothing {
    fn next(&mut self, _: Caller<'_>, _: &mut Vec<u8>) -> Result<bool, CommandError> {
        Ok(false)
    }
}

/// The namespace of a target, whose faults have the stage's own words.
pub(super) fn target(database: &str, collection: &str) -> Result<Namespace, CommandError> {
    Ok(Namespace::new(database, collection)?)
}

/// The error of an argument that is no string.
pub(super) fn not_string(field: &str, value: RawValue<'_>) -> CommandError {
    CommandError::failed(
        ErrorCode::TypeMismatch,
        format!(
            "BSON field '{field}' is the wrong type '{}', expected type 'string'",
            value.element_type().alias()
        ),
    )
}
