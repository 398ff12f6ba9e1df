//! `$lookup`: each document gets an array of the documents of another collection that belong to it.
//!
//! Two forms, which may be mixed:
//! - `localField` and `foreignField`: those whose foreign field equals the local one (any of its elements, if
//!   it is an array; null, if it is missing);
//! - `pipeline` with `let`: what a pipeline makes of the other collection (or of those
//!   that belong by the fields).
//!
//! The other collection is asked once for each document, by a filter that its planner can use. The variables
//! of `let` are constants while one document is at work, so the pipeline is parsed anew for each: simple, and
//! measured to be little beside the query.
//!
//! The array of one document may have as many bytes as a stage without disk use may hold. The documents that
//! a `pipeline` works on may spill.

use std::sync::Arc;

use pando_catalog::{Bytes, Reservation};
use pando_document::{
    ArrayWriter, Document, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue,
};

use super::fetched::{self, Fetched};
use super::{Definition, Memory, RunOptions, Searches, Source, Stage, document_in};
use crate::array_build::build_array;
use crate::error::QueryError;
use crate::expression::{Expression, FieldPath, Frame, ParseScope};
use crate::filter::Filter;
use crate::literal::Literal;
use crate::memory::{MEMORY_BYTES_MAX, hold_value};
use crate::needs::Needs;
use crate::pipeline::rewrite::lie_apart;
use crate::pipeline::searches_shown::show;
use crate::pipeline::{Pipeline, PipelineFault};
use crate::projection::Projection;
use crate::sort::Sorter;

/// Bytes that stay reserved from one document to the next.
pub(super) const KEPT_BYTES: usize = 64 << 10;

#[derive(Clone, Debug)]
struct Lookup {
    specification: Arc<Specification>,
}

#[derive(Debug, Default)]
struct Specification {
    from: String,
    target: String,
    fields: Option<(FieldPath, String)>,
    variables: Vec<(String, Expression)>,
    pipeline: Option<RawDocumentBuf>,
    scope: ParseScope,
}

struct Run {
    specification: Arc<Specification>,
    reservation: Reservation,
    options: RunOptions,
    /// Drawn, and not answered yet: the other collection may have said `WouldBlock`.
    pending: Option<Bytes>,
    /// The work in the other collection, where the run is measured.
    searches: Option<Searches>,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::Document(options) = argument else {
        return Err(QueryError::failed_to_parse("the $lookup specification must be an Object"));
    };
    let mut parsed = Specification { scope: scope.clone(), ..Specification::default() };
    let (mut local, mut foreign) = (None, None);
    for option in options.iter() {
        match option? {
            ("from", RawValue::String(name)) => parsed.from = name.to_owned(),
            ("as", RawValue::String(path)) => {
                FieldPath::parse(path)?;
                parsed.target = path.to_owned();
            }
            ("localField", RawValue::String(path)) => local = Some(FieldPath::parse(path)?),
            ("foreignField", RawValue::String(path)) => {
                FieldPath::parse(path)?;
                foreign = Some(path.to_owned());
            }
            ("pipeline", RawValue::Array(stages)) => parsed.pipeline = Some(stages.as_document().to_owned()),
            ("let", RawValue::Document(variables)) => parsed.variables = parse_let(variables, scope)?,
            (name @ ("from" | "as" | "localField" | "foreignField" | "pipeline" | "let"), value) => {
                let message =
                    format!("$lookup argument '{name}' has the wrong type {}", value.element_type().alias());
                return Err(match name {
                    "pipeline" => QueryError::type_mismatch(message),
                    _ => QueryError::failed_to_parse(message),
                });
            }
            (name, _) => {
                return Err(QueryError::failed_to_parse(format!("unknown argument to $lookup: {name}")));
            }
        }
    }
    parsed.fields = match (local, foreign) {
        (Some(local), Some(foreign)) => Some((local, foreign)),
        (None, None) => None,
        _ => {
            return Err(QueryError::failed_to_parse(
                "$lookup requires both or neither of 'localField' and 'foreignField' to be specified",
            ));
        }
    };
    if parsed.target.is_empty() {
        return Err(QueryError::failed_to_parse("must specify 'as' field for a $lookup"));
    }
    if parsed.from.is_empty() && !parsed.begins_with_documents()? {
        return Err(QueryError::failed_to_parse("must specify 'from' field for a $lookup"));
    }
    if parsed.fields.is_none() && parsed.pipeline.is_none() {
        return Err(QueryError::failed_to_parse(
            "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified",
        ));
    }
    parsed.check_pipeline()?;
    Ok(Arc::new(Lookup { specification: Arc::new(parsed) }))
}

fn parse_let(variables: &RawDocument, scope: &ParseScope) -> Result<Vec<(String, Expression)>, QueryError> {
    let mut parsed = Vec::new();
    for variable in variables.iter() {
        let (name, value) = variable?;
        crate::expression::check_user_name(name)?;
        parsed.push((name.to_owned(), Expression::of_pipeline(value, scope)?));
    }
    Ok(parsed)
}

impl Specification {
    /// Whether the pipeline makes its own documents.
    fn begins_with_documents(&self) -> Result<bool, QueryError> {
        let first = self.pipeline.as_deref().and_then(|stages| stages.iter().next()).transpose()?;
        match first.and_then(|(_, stage)| stage.as_document()) {
            Some(stage) => Ok(stage.get("$documents")?.is_some()),
            None => Ok(false),
        }
    }

    /// Faults of the pipeline are told before any document is read.
    fn check_pipeline(&self) -> Result<(), QueryError> {
        let scope = self.scope_for(RawDocument::empty())?;
        if let Some(stages) = &self.pipeline {
            let stages = RawArray::from_document(stages);
            super::refuse_writes(stages, PipelineFault::WriteInLookup, "$lookup")?;
            Pipeline::parse(stages, &scope.within_stage()?)?;
        }
        Ok(())
    }

    /// The scope with the variables of one document.
    fn scope_for(&self, root: &RawDocument) -> Result<ParseScope, QueryError> {
        let mut constants = Vec::with_capacity(self.variables.len());
        let mut frame = Frame::new(root);
        for (name, expression) in &self.variables {
            constants.push((name.as_str(), expression.run(&mut frame)?.raw().map(Literal::new)));
        }
        Ok(self.scope.with_constants(constants))
    }

    /// Which documents of the other collection are asked for.
    fn filter_for(&self, root: &RawDocument, pushed: &RawDocument) -> Result<RawDocumentBuf, QueryError> {
        let mut clauses = Vec::new();
        let by_fields;
        if let Some((local, foreign)) = &self.fields {
            by_fields = equality(foreign, local.evaluate(root)?.raw_or_null())?;
            clauses.push(RawValue::Document(&by_fields));
        }
        if !pushed.is_empty() {
            clauses.push(RawValue::Document(pushed));
        }
        let clauses = build_array(clauses);
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        if !clauses.is_empty() {
            writer.append("$and", RawValue::Array(RawArray::from_document(&clauses)));
        }
        writer.finish();
        Ok(RawDocumentBuf::from_vec(bytes)?)
    }

    /// Appends the documents of the other collection that belong to a document, as an array.
    fn answer(
        &self,
        root: &RawDocument,
        run: Answering<'_>,
        input: &mut dyn Source,
    ) -> Result<(), QueryError> {
        let Answering { options, reservation, array } = run;
        let mut answer = Answer { from: &self.from, writer: ArrayWriter::begin(array) };
        let Some(stages) = &self.pipeline else {
            let filter = Filter::parse(&self.filter_for(root, RawDocument::empty())?, &self.scope)?;
            input.find_in(&self.from, &filter, &mut |found| answer.push(found.as_bytes(), reservation))?;
            answer.writer.finish();
            return Ok(());
        };
        let scope = self.scope_for(root)?;
        let pipeline = Pipeline::parse(RawArray::from_document(stages), &scope.within_stage()?)?;
        let mut documents =
            self.documents_for(root, Parsed { pipeline: &pipeline, scope: &scope }, options, input)?;
        let mut documents = Fetched { documents: &mut documents, others: input };
        let mut stages = pipeline.start(options);
        // Documents that the pipeline makes itself are looked at behind it.
        let belonging = match pipeline.makes_documents() {
            true => Some(Filter::parse(&self.filter_for(root, RawDocument::empty())?, &scope)?),
            false => None,
        };
        while let Some(bytes) = stages.next(&mut documents)? {
            if belonging.as_ref().map_or(Ok(true), |filter| filter.matches(document_in(&bytes)?))? {
                answer.push(&bytes, reservation)?;
            }
        }
        answer.writer.finish();
        Ok(())
    }

    /// The documents that the pipeline begins with.
    fn documents_for(
        &self,
        root: &RawDocument,
        parsed: Parsed<'_>,
        options: &RunOptions,
        input: &mut dyn Source,
    ) -> Result<Sorter, QueryError> {
        if parsed.pipeline.makes_documents() {
            return Ok(fetched::none(&options.memory));
        }
        let pushed = parsed.pipeline.clone().split_pushdown().filter;
        let filter = Filter::parse(&self.filter_for(root, &pushed)?, parsed.scope)?;
        fetched::fetch(&self.from, &filter, &options.memory, input)
    }
}

/// The pipeline with the variables of one document.
struct Parsed<'p> {
    pipeline: &'p Pipeline,
    scope: &'p ParseScope,
}

/// The parts of a run that an answer needs.
struct Answering<'r> {
    options: &'r RunOptions,
    reservation: &'r mut Reservation,
    array: &'r mut Vec<u8>,
}

/// The array of an answer, as it grows.
struct Answer<'a> {
    from: &'a str,
    writer: ArrayWriter<'a>,
}

impl Answer<'_> {
    fn push(&mut self, document: &[u8], reservation: &mut Reservation) -> Result<(), QueryError> {
        let bytes = self.writer.bytes_so_far() + document.len();
        if bytes > MEMORY_BYTES_MAX {
            return Err(PipelineFault::LookupTooLarge.error(format!(
                "Total size of documents in {} matching pipeline's $lookup stage exceeds {MEMORY_BYTES_MAX} bytes",
                self.from
            )));
        }
        hold_value(reservation, bytes, "$lookup")?;
        self.writer.push_document_bytes(document);
        Ok(())
    }
}

/// `{foreign: {$eq: value}}`, or `$in` for the elements of an array and the array itself.
fn equality(foreign: &str, value: RawValue<'_>) -> Result<RawDocumentBuf, QueryError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    let mut condition = writer.document(foreign);
    match value {
        // An empty array belongs with null, as a missing field does.
        RawValue::Array(array) if array.is_empty() => condition.append("$eq", RawValue::Null),
        RawValue::Array(array) => {
            let mut wanted = condition.array("$in");
            for element in array.iter() {
                // A regular expression within $in would be matched, not compared.
                let element = element?;
                if !matches!(element, RawValue::Regex(_)) {
                    wanted.push(element);
                }
            }
            wanted.finish();
        }
        single => condition.append("$eq", single),
    }
    condition.finish();
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

impl Definition for Lookup {
    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    fn is_transparent(&self) -> bool {
        true
    }

    fn passes(&self, path: &str) -> bool {
        lie_apart(&self.specification.target, path)
    }

    fn is_one_to_one(&self) -> bool {
        true
    }

    fn needs(&self, mut behind: Needs) -> Needs {
        if let Some((local, _)) = &self.specification.fields {
            behind.add(&local.text());
        }
        self.specification.variables.iter().for_each(|(_, variable)| variable.add_needs(&mut behind));
        behind
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run {
            specification: Arc::clone(&self.specification),
            reservation: options.memory.account.reserve(),
            options: options.unmeasured(),
            pending: None,
            searches: options.clock.as_ref().map(|_| Searches::default()),
        })
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.pending.is_none() {
            self.pending = input.next()?;
        }
        let Some(bytes) = self.pending.clone() else { return Ok(None) };
        let root = document_in(&bytes)?;
        let mut array = Vec::with_capacity(64);
        let run = Answering { options: &self.options, reservation: &mut self.reservation, array: &mut array };
        self.specification.answer(root, run, input)?;
        if let Some(searches) = &mut self.searches {
            searches.add(input.take_searches());
        }
        self.pending = None;
        let answer = with_array(root, &self.specification.target, array);
        self.reservation.shrink_to(KEPT_BYTES);
        answer.map(Some)
    }

    fn explain(&self, shown: &mut Document) {
        show(self.searches.as_ref(), shown);
    }
}

/// The document with an array at a path.
pub(super) fn with_array(root: &RawDocument, target: &str, array: Vec<u8>) -> Result<Bytes, QueryError> {
    let array = RawDocumentBuf::from_vec(array)?;
    let placed = Projection::placing(target, RawValue::Array(RawArray::from_document(&array)))?;
    Ok(Bytes::from(placed.project(root)?.into_vec()))
}
