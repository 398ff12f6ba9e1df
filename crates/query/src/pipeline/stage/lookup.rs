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

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};

use super::{Definition, RunOptions, Source, Stage, document_in};
use crate::array_build::build_array;
use crate::error::QueryError;
use crate::expression::{Expression, FieldPath, Frame, ParseScope};
use crate::filter::Filter;
use crate::literal::Literal;
use crate::pipeline::Pipeline;
use crate::projection::Projection;

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
    options: RunOptions,
    /// Drawn, and not answered yet: the other collection may have said `WouldBlock`.
    pending: Option<Bytes>,
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
    if parsed.from.is_empty() {
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
    /// Faults of the pipeline are told before any document is read.
    fn check_pipeline(&self) -> Result<(), QueryError> {
        let scope = self.scope_for(RawDocument::empty())?;
        if let Some(stages) = &self.pipeline {
            Pipeline::parse(RawArray::from_document(stages), &scope)?;
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

    fn answer(
        &self,
        root: &RawDocument,
        options: &RunOptions,
        input: &mut dyn Source,
    ) -> Result<Vec<Bytes>, QueryError> {
        let Some(stages) = &self.pipeline else {
            let filter = Filter::parse(&self.filter_for(root, RawDocument::empty())?, &self.scope)?;
            return input.find_in(&self.from, &filter);
        };
        let scope = self.scope_for(root)?;
        let pipeline = Pipeline::parse(RawArray::from_document(stages), &scope)?;
        let pushed = pipeline.clone().split_pushdown().filter;
        let filter = Filter::parse(&self.filter_for(root, &pushed)?, &scope)?;
        let mut documents =
            Fetched { documents: input.find_in(&self.from, &filter)?.into_iter(), others: input };
        let mut run = pipeline.start(options);
        let mut answer = Vec::new();
        while let Some(bytes) = run.next(&mut documents)? {
            answer.push(bytes);
        }
        Ok(answer)
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

/// The documents found, as the source of the pipeline.
struct Fetched<'f> {
    documents: std::vec::IntoIter<Bytes>,
    others: &'f mut dyn Source,
}

impl Source for Fetched<'_> {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        self.others.check()?;
        Ok(self.documents.next())
    }

    fn find_in(&mut self, collection: &str, filter: &Filter) -> Result<Vec<Bytes>, QueryError> {
        self.others.find_in(collection, filter)
    }

    fn check(&self) -> Result<(), QueryError> {
        self.others.check()
    }
}

impl Definition for Lookup {
    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run { specification: Arc::clone(&self.specification), options: *options, pending: None })
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.pending.is_none() {
            self.pending = input.next()?;
        }
        let Some(bytes) = self.pending.clone() else { return Ok(None) };
        let root = document_in(&bytes)?;
        let found = self.specification.answer(root, &self.options, input)?;
        self.pending = None;
        with_array(root, &self.specification.target, &found).map(Some)
    }
}

/// The document with an array at a path.
fn with_array(root: &RawDocument, target: &str, found: &[Bytes]) -> Result<Bytes, QueryError> {
    let mut array = Vec::new();
    let mut writer = pando_document::ArrayWriter::begin(&mut array);
    found.iter().for_each(|document| writer.push_document_bytes(document));
    writer.finish();
    let array = RawDocumentBuf::from_vec(array)?;
    let placed = Projection::placing(target, RawValue::Array(RawArray::from_document(&array)))?;
    Ok(Bytes::from(placed.project(root)?.into_vec()))
}
