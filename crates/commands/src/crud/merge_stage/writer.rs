//! The writer of a `$merge`: it makes a statement of each document, and carries them out in batches.

use pando_document::{Document, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::expression::{FieldPath, ParseScope};

use super::{Merge, WhenMatched, WhenNotMatched, fault};
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::crud::insert::insert_batch;
use crate::crud::keyed_update::{KeyedUpdate, OnMatch};
use crate::crud::update::update_batch;
use crate::crud::update_statement::{UpdateParts, Upsert};
use crate::crud::write_reply::{FailedWrite, Order};
use crate::{CommandError, ErrorCode};

/// A batch has so many documents at most, and ends when it has so many bytes.
const BATCH_DOCUMENTS: usize = 500;
const BATCH_BYTES: usize = 1 << 20;

/// Takes the documents.
pub(in crate::crud) struct MergeWriter<'m> {
    merge: &'m Merge,
    /// The scope of the request, for the pipeline of `whenMatched`.
    scope: &'m ParseScope,
    on: Vec<(&'m str, FieldPath)>,
    batch: Vec<Statement>,
    batch_bytes: usize,
}

/// What one document asks for.
struct Statement {
    document: RawDocumentBuf,
    query: RawDocumentBuf,
    /// The update; the document itself where there is none.
    update: Option<RawDocumentBuf>,
    constants: Option<RawDocumentBuf>,
}

impl<'m> MergeWriter<'m> {
    pub fn begin(
        context: &Context<'_>,
        merge: &'m Merge,
        scope: &'m ParseScope,
    ) -> Result<MergeWriter<'m>, CommandError> {
        merge.check_unique(context, scope.text_order())?;
        let on = merge.on.iter().map(|path| Ok((path.as_str(), FieldPath::parse(path)?)));
        let on = on.collect::<Result<_, CommandError>>()?;
        Ok(MergeWriter { merge, scope, on, batch: Vec::new(), batch_bytes: 0 })
    }

    /// Takes a document; writes when a batch is full.
    pub fn take(&mut self, context: &mut Context<'_>, document: &RawDocument) -> Result<(), CommandError> {
        let needs_id = self.merge.on.iter().any(|path| path == "_id") && document.get("_id")?.is_none();
        let document = match needs_id {
            true => with_new_id(context, document)?,
            false => document.to_owned(),
        };
        self.batch_bytes += document.as_bytes().len();
        let statement = self.statement(document)?;
        self.batch.push(statement);
        if self.batch.len() >= BATCH_DOCUMENTS || self.batch_bytes >= BATCH_BYTES {
            self.flush(context)?;
        }
        Ok(())
    }

    fn statement(&self, document: RawDocumentBuf) -> Result<Statement, CommandError> {
        let query = self.query(&document)?;
        let update = match &self.merge.matched {
            WhenMatched::Merge => Some(fields_of("$set", &document)?),
            WhenMatched::KeepExisting => Some(fields_of("$setOnInsert", &document)?),
            WhenMatched::Replace | WhenMatched::Fail | WhenMatched::Pipeline(_) => None,
        };
        let constants = match &self.merge.matched {
            WhenMatched::Pipeline(_) => Some(self.constants(&document)?),
            _ => None,
        };
        Ok(Statement { document, query, update, constants })
    }

    /// The filter for the document of the target that belongs to one.
    fn query(&self, document: &RawDocument) -> Result<RawDocumentBuf, CommandError> {
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        for (text, path) in &self.on {
            let evaluated = path.evaluate(document)?;
            // A path through an array gives an array, which is no value of the document.
            match evaluated.raw() {
                Some(RawValue::Array(_)) if path.names().len() == 1 => {
                    return Err(fault(51185, format!("$merge write error: 'on' field '{text}' is an array")));
                }
                None | Some(RawValue::Null | RawValue::Undefined | RawValue::Array(_)) => {
                    return Err(fault(
                        51132,
                        format!(
                            "$merge write error: 'on' field '{text}' cannot be missing, null, undefined or an array"
                        ),
                    ));
                }
                Some(value) => {
                    let mut condition = writer.document(text);
                    condition.append("$eq", value);
                    condition.finish();
                }
            }
        }
        writer.finish();
        Ok(RawDocumentBuf::from_vec(bytes)?)
    }

    /// The variables of the pipeline. One whose expression gives nothing is not defined.
    fn constants(&self, document: &RawDocument) -> Result<RawDocumentBuf, CommandError> {
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        writer.append("new", RawValue::Document(document));
        for (name, expression) in &self.merge.variables {
            if let Some(value) = expression.evaluate(document)?.raw() {
                writer.append(name, value);
            }
        }
        writer.finish();
        Ok(RawDocumentBuf::from_vec(bytes)?)
    }

    /// Writes the documents so far.
    pub fn flush(&mut self, context: &mut Context<'_>) -> Result<(), CommandError> {
        self.batch_bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return Ok(());
        }
        context.check_writable(&self.merge.target)?;
        let batch: Vec<&Statement> = batch.iter().collect();
        if matches!(self.merge.matched, WhenMatched::Fail) {
            let failed = self.insert(context, &batch)?;
            return self.first_failure(failed);
        }
        let taken = self.update(context, &batch)?;
        if taken.is_empty() {
            return Ok(());
        }
        // The documents that took the keys are there now, so these match them.
        let again: Vec<&Statement> = taken.iter().map(|failed| batch[failed.index]).collect();
        let still_taken = self.update(context, &again)?;
        self.first_failure(still_taken)
    }

    fn insert(
        &self,
        context: &mut Context<'_>,
        batch: &[&Statement],
    ) -> Result<Vec<FailedWrite>, CommandError> {
        let documents: Vec<&RawDocument> = batch.iter().map(|statement| &*statement.document).collect();
        let (_, failed) = insert_batch(context, &self.merge.target, &documents, Order::Unordered)?;
        Ok(failed)
    }

    /// Gives the inserts that failed because their key was taken after the update had looked for it: by an
    /// earlier document of the batch, or by another client.
    fn update<'b>(
        &'b self,
        context: &mut Context<'_>,
        batch: &[&'b Statement],
    ) -> Result<Vec<FailedWrite>, CommandError> {
        let stages = match &self.merge.matched {
            WhenMatched::Pipeline(stages) => Some(RawValue::Array(RawArray::from_document(stages))),
            _ => None,
        };
        let upsert = match (self.merge.not_matched, &stages) {
            (WhenNotMatched::Insert, None) => Upsert::Yes,
            _ => Upsert::No,
        };
        // As in MongoDB, the simple collation gives way to that of the target.
        let collation = match self.scope.text_order().is_simple() {
            true => CollationChoice::Inherited,
            false => CollationChoice::OfScope,
        };
        let on_match = self.keyed_change();
        let of_statement = |statement: &&'b Statement| -> Result<UpdateParts<'b>, CommandError> {
            let keyed = on_match.map(|on_match| KeyedUpdate::of(&statement.document, on_match));
            Ok(UpdateParts {
                query: &statement.query,
                update: stages.unwrap_or_else(|| {
                    RawValue::Document(statement.update.as_deref().unwrap_or(&statement.document))
                }),
                constants: statement.constants.as_deref(),
                upsert,
                collation,
                keyed: keyed.transpose()?.flatten(),
                ..UpdateParts::empty()
            })
        };
        let parts = batch.iter().map(of_statement).collect::<Result<Vec<_>, _>>()?;
        let mut updated = update_batch(context, &self.merge.target, &parts, self.scope, Order::Unordered)?;
        let failed = self.first_failure(std::mem::take(&mut updated.failed));
        let unmatched = updated.outcomes.iter().filter(|one| one.outcome.matched == 0);
        match (self.merge.not_matched, upsert) {
            (WhenNotMatched::Discard, _) | (WhenNotMatched::Insert, Upsert::Yes) => failed?,
            (WhenNotMatched::Insert, Upsert::No) => {
                let unmatched: Vec<usize> = unmatched.map(|one| one.index).collect();
                let inserts: Vec<&Statement> = unmatched.iter().map(|at| batch[*at]).collect();
                if !inserts.is_empty() {
                    let not_inserted = self.insert(context, &inserts)?;
                    let (taken, others) = not_inserted.into_iter().partition(|one| self.is_taken(one));
                    self.first_failure(others)?;
                    failed?;
                    let of_batch = |one: FailedWrite| FailedWrite { index: unmatched[one.index], ..one };
                    return Ok(Vec::into_iter(taken).map(of_batch).collect());
                }
                failed?;
            }
            (WhenNotMatched::Fail, _) => {
                failed?;
                if unmatched.count() > 0 {
                    return Err(CommandError::failed(
                        ErrorCode::MergeStageNoMatchingDocument,
                        "$merge could not find a matching document in the target collection for at least one document in \
                         the source collection",
                    ));
                }
            }
        }
        Ok(Vec::new())
    }

    /// The change by which each statement is a keyed update, where the stage makes such.
    fn keyed_change(&self) -> Option<OnMatch> {
        let is_by_id = self.merge.on == ["_id"] && self.scope.text_order().is_simple();
        match &self.merge.matched {
            WhenMatched::Merge if is_by_id => Some(OnMatch::Set),
            WhenMatched::KeepExisting if is_by_id => Some(OnMatch::Keep),
            _ => None,
        }
    }

    /// Whether an insert failed by the fields of `on`.
    fn is_taken(&self, failed: &FailedWrite) -> bool {
        failed.failure.code == ErrorCode::DuplicateKey && self.is_key_of_on(&failed.failure.details)
    }

    /// The first failure of a batch, in the words of the stage.
    fn first_failure(&self, failed: Vec<FailedWrite>) -> Result<(), CommandError> {
        let Some(first) = failed.into_iter().next() else { return Ok(()) };
        let mut failure = first.failure;
        let words = match failure.code {
            ErrorCode::DuplicateKey
                if matches!(self.merge.matched, WhenMatched::Fail) && self.is_key_of_on(&failure.details) =>
            {
                "$merge with whenMatched: fail found an existing document with the same values for the 'on' fields"
            }
            ErrorCode::DuplicateKey => "$merge failed due to a DuplicateKey error",
            ErrorCode::ImmutableField => {
                "$merge failed to update the matching document, did you attempt to modify the _id or the shard key?"
            }
            _ => return Err(failure.into()),
        };
        failure.message = format!("{words} :: caused by :: {}", failure.message);
        Err(failure.into())
    }

    /// Whether a duplicate key is that of the fields of `on`.
    fn is_key_of_on(&self, details: &Document) -> bool {
        let pattern = match details.get("keyPattern") {
            Some(Value::Document(pattern)) => pattern,
            _ => return false,
        };
        pattern.len() == self.on.len() && self.on.iter().all(|(path, _)| pattern.get(path).is_some())
    }
}

/// The document with a new `_id` in front.
fn with_new_id(context: &Context<'_>, document: &RawDocument) -> Result<RawDocumentBuf, CommandError> {
    let mut bytes = Vec::with_capacity(document.as_bytes().len() + 17);
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append("_id", RawValue::ObjectId(context.shared.new_object_id()));
    for field in document.iter() {
        let (name, value) = field?;
        writer.append(name, value);
    }
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

/// `{operator: document}`.
fn fields_of(operator: &str, document: &RawDocument) -> Result<RawDocumentBuf, CommandError> {
    let mut bytes = Vec::with_capacity(document.as_bytes().len() + 32);
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append(operator, RawValue::Document(document));
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}
