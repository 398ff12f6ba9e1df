//! `$lookup`: each document gets an array of the documents of another collection that belong to it.
//!
//! Two forms, which may be mixed:
//! - `localField` and `foreignField`: those whose foreign field equals the local one (any of its elements, if
//!   it is an array; null, if it is missing);
//! - `pipeline` with `let`: what a pipeline makes of the other collection (or of those
//!   that belong by the fields).
//!
//! The optimiser may put more into the stage: an `$unwind` of the array right behind it, so that the
//! documents go on one by one, and then a filter of them.
//!
//! The array of one document may have as many bytes as a stage without disk use may hold. The documents that
//! a `pipeline` works on may spill. A pipeline without variables is parsed once; with variables it is parsed
//! for each document, since they are constants while one document is at work.
//!
//! # Not here
//! How the documents are found and given: [`run`].

mod block_join;
mod hash_table;
mod joined;
mod run;

use std::collections::BTreeSet;
use std::sync::Arc;

use pando_document::{Document, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue, Value};

use self::run::Run;
use super::unwind::Unwind;
use super::values_at_path::joined_values;
use super::{Definition, ForeignPath, Memory, RunOptions, Stage};
use crate::array_build::build_array;
use crate::error::QueryError;
use crate::expression::{Expression, FieldPath, Frame, ParseScope};
use crate::filter::Filter;
use crate::literal::Literal;
use crate::needs::Needs;
use crate::pipeline::optimiser::{self, Nulls, leaves_alone, lie_apart};
use crate::pipeline::{self, Pipeline, PipelineFault};

pub(super) use self::run::{KEPT_BYTES, with_array};

/// A parsed `$lookup`.
#[derive(Clone, Debug)]
pub(in crate::pipeline) struct Lookup {
    specification: Arc<Specification>,
}

#[derive(Clone, Debug, Default)]
struct Specification {
    from: String,
    target: String,
    fields: Option<(FieldPath, String)>,
    variables: Vec<(String, Expression)>,
    pipeline: Option<RawDocumentBuf>,
    /// The pipeline, where it has no variables.
    parsed: Option<Pipeline>,
    scope: ParseScope,
    unwinding: Option<Unwind>,
    /// A filter of the joined documents, where they are unwound.
    matching: Option<(RawDocumentBuf, Filter)>,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::Document(options) = argument else {
        return Err(QueryError::failed_to_parse("the $lookup specification must be an Object"));
    };
    let mut parsed = Specification { scope: scope.clone(), ..Specification::default() };
    let (mut local, mut foreign, mut has_variables) = (None, None, false);
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
            ("let", RawValue::Document(variables)) => {
                has_variables = true;
                parsed.variables = parse_let(variables, scope)?;
            }
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
    if has_variables && parsed.pipeline.is_none() {
        return Err(QueryError::failed_to_parse(
            "$lookup with a 'let' argument must also specify 'pipeline'",
        ));
    }
    parsed.parse_pipeline()?;
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
    fn parse_pipeline(&mut self) -> Result<(), QueryError> {
        let scope = self.scope_for(RawDocument::empty())?;
        if let Some(stages) = &self.pipeline {
            let stages = RawArray::from_document(stages);
            super::refuse_writes(stages, PipelineFault::WriteInLookup, "$lookup")?;
            let pipeline = Pipeline::parse(stages, &scope.within_stage()?)?;
            if pipeline.near().is_some() && self.fields.is_some() {
                return Err(pipeline::near_not_first());
            }
            self.parsed = self.variables.is_empty().then_some(pipeline);
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
            by_fields = equality(foreign, joined_values(root, local)?.raw_or_null())?;
            clauses.push(RawValue::Document(&by_fields));
        }
        if !pushed.is_empty() {
            clauses.push(RawValue::Document(pushed));
        }
        // Behind a pipeline the joined documents are other ones.
        if let (Some((matching, _)), None) = (&self.matching, &self.pipeline) {
            clauses.push(RawValue::Document(matching));
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
}

/// Whether `$in` does not simply compare with a value.
fn means_more_within_in(value: RawValue<'_>) -> bool {
    match value {
        RawValue::Regex(_) => true,
        RawValue::Document(document) => {
            matches!(document.iter().next(), Some(Ok((name, _))) if name.starts_with('$'))
        }
        _ => false,
    }
}

/// `{foreign: {$eq: value}}`, or `$in` for the elements of an array.
fn equality(foreign: &str, value: RawValue<'_>) -> Result<RawDocumentBuf, QueryError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    if let RawValue::Array(array) = value
        && array.iter().flatten().any(means_more_within_in)
    {
        // Within $in a regular expression would be matched, and a document with an operator refused.
        let mut either = writer.array("$or");
        for element in array.iter() {
            let mut clause = either.document();
            let mut condition = clause.document(foreign);
            condition.append("$eq", element?);
            condition.finish();
            clause.finish();
        }
        either.finish();
        writer.finish();
        return Ok(RawDocumentBuf::from_vec(bytes)?);
    }
    let mut condition = writer.document(foreign);
    match value {
        // An empty array belongs with null, as a missing field does.
        RawValue::Array(array) if array.is_empty() => condition.append("$eq", RawValue::Null),
        RawValue::Array(array) => {
            let mut wanted = condition.array("$in");
            for element in array.iter() {
                wanted.push(element?);
            }
            wanted.finish();
        }
        single => condition.append("$eq", single),
    }
    condition.finish();
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

impl Lookup {
    /// The collection and the path that are searched by fields.
    pub fn searched(&self) -> Option<(&str, &str)> {
        let specification = &*self.specification;
        let (_, foreign) = specification.fields.as_ref()?;
        (!specification.from.is_empty()).then_some((&*specification.from, foreign))
    }

    /// The name of the strategy that is taken from the second document on.
    pub fn strategy_by(&self, by: ForeignPath) -> &'static str {
        let specification = &*self.specification;
        let makes_documents = specification.parsed.as_ref().is_some_and(Pipeline::makes_documents);
        match by {
            ForeignPath::Index => "IndexedLoopJoin",
            ForeignPath::Scan if makes_documents => "NestedLoopJoin",
            ForeignPath::Scan => "HashJoin",
        }
    }

    /// The same stage with an `$unwind` of its array; `None` where that is of another one.
    pub fn unwinding(&self, unwind: &Unwind) -> Option<Arc<dyn Definition>> {
        let specification = &*self.specification;
        if specification.unwinding.is_some() || unwind.path() != specification.target {
            return None;
        }
        // An index within the array's own path would be lost with it.
        if unwind.index_path().is_some_and(|index| !lie_apart(&index, &specification.target)) {
            return None;
        }
        let specification = Specification { unwinding: Some(unwind.clone()), ..specification.clone() };
        Some(Arc::new(Lookup { specification: Arc::new(specification) }))
    }

    /// The same stage with a filter of the documents that it unwinds; `None` where the filter is about
    /// others, or where a document without any goes on.
    pub fn matching(
        &self,
        filter: &RawDocument,
        paths: &BTreeSet<String>,
        scope: &ParseScope,
    ) -> Result<Option<Arc<dyn Definition>>, QueryError> {
        let specification = &*self.specification;
        let counts_elements = |unwind: &Unwind| unwind.preserves() || unwind.index_path().is_some();
        if specification.unwinding.as_ref().is_none_or(counts_elements) || paths.is_empty() {
            return Ok(None);
        }
        let below =
            |path: &str| path.strip_prefix(&specification.target)?.strip_prefix('.').map(str::to_owned);
        let Some(filter) = optimiser::renamed(filter, &below, Nulls::Kept)? else { return Ok(None) };
        let mut together = Vec::new();
        together.extend(specification.matching.as_ref().map(|(before, _)| before.clone()));
        together.push(filter);
        let filter = optimiser::all_of(&together)?;
        let parsed = Filter::parse(&filter, scope)?;
        let specification = Specification { matching: Some((filter, parsed)), ..specification.clone() };
        Ok(Some(Arc::new(Lookup { specification: Arc::new(specification) })))
    }
}

impl Definition for Lookup {
    fn as_lookup(&self) -> Option<&Lookup> {
        Some(self)
    }

    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    /// As MongoDB shows the stage with another one in it.
    fn shown(&self, text: &RawDocument) -> Document {
        let mut shown = Document::from_raw(text).unwrap_or_default();
        let specification = &*self.specification;
        let Some(Value::Document(lookup)) = shown.get_mut("$lookup") else { return shown };
        if let Some((filter, _)) = &specification.matching {
            let mut stages = match lookup.get("pipeline") {
                Some(Value::Array(stages)) => stages.clone(),
                _ => Vec::new(),
            };
            let mut stage = Document::new();
            stage.push("$match", Document::from_raw(filter).unwrap_or_default());
            stages.push(Value::Document(stage));
            lookup.insert("pipeline", Value::Array(stages));
        }
        if let Some(unwind) = &specification.unwinding {
            let mut options = Document::new();
            options.push("preserveNullAndEmptyArrays", unwind.preserves());
            if let Some(index) = unwind.index_path() {
                options.push("includeArrayIndex", index);
            }
            lookup.insert("unwinding", options);
        }
        shown
    }

    fn is_transparent(&self) -> bool {
        true
    }

    fn passes(&self, path: &str) -> bool {
        let index = self.specification.unwinding.as_ref().and_then(Unwind::index_path);
        leaves_alone(&self.specification.target, path) && index.is_none_or(|index| leaves_alone(&index, path))
    }

    fn is_one_to_one(&self) -> bool {
        self.specification.unwinding.is_none()
    }

    fn needs(&self, mut behind: Needs) -> Needs {
        if let Some((local, _)) = &self.specification.fields {
            behind.add(&local.text());
        }
        self.specification.variables.iter().for_each(|(_, variable)| variable.add_needs(&mut behind));
        behind
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run::new(&self.specification, options))
    }
}
