//! Updates: from the old version of a document to the new one.
//!
//! An update has one of three styles, told apart by its type and its first field:
//! - a document whose first field begins with `$`: operators (`{$set: {"a.b": 1}, $inc: {n: 1}}`);
//! - any other document: a replacement, which keeps `_id`;
//! - an array: a pipeline of `$set`, `$unset`, `$project`, `$replaceRoot` and their other names.
//!
//! 1. [`Update::parse`] checks everything that can be checked without a document: names of operators, paths,
//!    conflicts (`tree`), array filters.
//! 2. [`Update::apply`] makes the new document from the old one (`apply`), or says that nothing would change:
//!    equal bytes are no change. It checks that `_id` stays (`immutable_id`) and the size of the result.
//! 3. [`Update::insert`] makes the document that an upsert inserts: the equalities of the filter are its
//!    *seed* (`upsert`), the update is applied to that, and `_id` comes first.
//!
//! Invariants: an update is immutable and can be applied to any number of documents; it never reads anything
//! but the document, its own text and the [`UpdateContext`]. Fields that it does not name keep their bytes
//! and their order.
//!
//! Not here: which documents are updated, retries, writing (`execute` and `commands`).

mod apply;
mod array_filter;
mod blind;
#[cfg(test)]
mod chance;
mod fault;
mod immutable_id;
mod operator;
mod operators;
mod path;
mod pipeline_update;
mod plain_set;
mod reference;
mod replacement;
mod slot;
mod trail;
mod tree;
mod upsert;
mod value_match;

use pando_document::{
    DOCUMENT_BYTES_MAX, JsonFormat, ObjectId, RawArray, RawDocument, RawDocumentBuf, RawValue, Timestamp,
    to_json,
};

pub use self::blind::{BlindUpdate, Moment, Obstacle};
pub use self::fault::UpdateFault;
pub use self::plain_set::PlainFields;

use self::immutable_id::UpdateStyle;
use self::operators::Operators;
use self::pipeline_update::{PipelineUpdate, refuse_array_filters};
use self::replacement::Replacement;
use crate::error::{ErrorCode, QueryError};
use crate::expression::ParseScope;
use crate::nesting;

/// The most bytes of a document that MongoDB builds at all: the most that it stores, and 16 KiB.
const BUILT_BYTES_MAX: usize = DOCUMENT_BYTES_MAX + (16 << 10);

/// Characters of the first field of such a document that its error shows.
const FIRST_ELEMENT_SHOWN: usize = 150;

/// A parsed update.
#[derive(Debug)]
pub struct Update {
    style: Style,
}

#[derive(Debug)]
enum Style {
    Operators(Operators),
    Replacement(Replacement),
    Pipeline(PipelineUpdate),
}

/// Whether an update changes a document or makes the one that an upsert inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyKind {
    /// The document exists.
    Update,
    /// The document is the seed of an upsert; `$setOnInsert` acts.
    Insert,
}

/// What becomes of a timestamp of zero in a document that is stored as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyTimestamps {
    /// The moment of the write takes its place.
    Filled,
    /// It stays: the request has `bypassEmptyTsReplacement`.
    Kept,
}

/// The surroundings of an update besides the document.
#[derive(Clone, Copy, Debug)]
pub struct UpdateContext {
    /// The array index that `$` stands for: that of the element by which the filter matched, if one did.
    pub matched_index: Option<usize>,
    /// The moment of the update, in milliseconds since 1970 UTC, for `$currentDate`.
    pub now_millis: i64,
    /// The moment of the update as a timestamp, for `$currentDate`.
    pub timestamp: Timestamp,
    /// Update or insert.
    pub kind: ApplyKind,
    /// Those of a replacement.
    pub empty_timestamps: EmptyTimestamps,
}

/// The result of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The new document would have the same bytes as the old one.
    Unchanged,
    /// The new document.
    Changed(RawDocumentBuf),
}

impl Update {
    /// Parses an update: a document or an array.
    ///
    /// `array_filters` is the option `arrayFilters`, where it was given.
    pub fn parse(
        value: RawValue<'_>,
        array_filters: Option<&RawArray>,
        scope: &ParseScope,
    ) -> Result<Update, QueryError> {
        let style = match value {
            RawValue::Document(document) if is_operators(document)? => {
                Style::Operators(Operators::parse(document, array_filters, scope)?)
            }
            RawValue::Document(document) => Style::Replacement(Replacement::parse(document)?),
            RawValue::Array(stages) => {
                refuse_array_filters(array_filters)?;
                Style::Pipeline(PipelineUpdate::parse(stages, scope)?)
            }
            _ => {
                return Err(QueryError::failed_to_parse(
                    "Update argument must be either an object or an array",
                ));
            }
        };
        Ok(Update { style })
    }

    /// Whether this is a replacement: such an update may not touch many documents.
    pub fn is_replacement(&self) -> bool {
        matches!(self.style, Style::Replacement(_))
    }

    /// Whether applying it needs [`UpdateContext::matched_index`].
    pub fn needs_matched_index(&self) -> bool {
        match &self.style {
            Style::Operators(operators) => operators.needs_matched_index(),
            Style::Replacement(_) | Style::Pipeline(_) => false,
        }
    }

    /// Applies the update to a document.
    pub fn apply(&self, document: &RawDocument, context: &UpdateContext) -> Result<Applied, QueryError> {
        let applied = self.run(document, context)?;
        if let Applied::Changed(new) = &applied {
            if let (false, Some(id)) = (matches!(self.style, Style::Operators(_)), new.get("_id")?) {
                upsert::check_id_type(id)?;
            }
            self.check_id(document, new)?;
            check_result(new)?;
        }
        Ok(applied)
    }

    /// The document that an upsert with this update inserts.
    ///
    /// `new_id` becomes `_id` where neither filter nor update give one. `context.kind` must be
    /// [`ApplyKind::Insert`].
    pub fn insert(
        &self,
        filter: &RawDocument,
        context: &UpdateContext,
        new_id: ObjectId,
    ) -> Result<RawDocumentBuf, QueryError> {
        assert_eq!(context.kind, ApplyKind::Insert, "an upsert inserts with the context of an insert");
        let seed = match &self.style {
            Style::Replacement(_) => upsert::seed_id(filter)?,
            Style::Operators(_) | Style::Pipeline(_) => upsert::seed(filter)?,
        };
        let document = match (self.run(&seed, context)?, &self.style) {
            // A pipeline that does nothing leaves the filter's `_id` to the check of every `_id`.
            (Applied::Unchanged, Style::Pipeline(_)) => seed.clone(),
            (Applied::Unchanged, _) => {
                self.refuse_array_as_id(&seed)?;
                seed.clone()
            }
            (Applied::Changed(new), _) => {
                self.refuse_array_as_id(&new)?;
                new
            }
        };
        self.check_id(&seed, &document)?;
        if matches!(&self.style, Style::Operators(operators) if operators.appends_to_id()) {
            return Err(QueryError::new(
                ErrorCode::NotSingleValueField,
                "After applying the update to the document, the field '_id' was found to be an array or array descendant.",
            ));
        }
        if let Some(RawValue::Document(id)) = document.get("_id")? {
            reference::check_id(id)?;
        }
        let document = upsert::with_id_first(&document, new_id)?;
        check_result(&document)?;
        Ok(document)
    }

    /// An `_id` that an upsert takes whole from its update is no list, whatever the filter says.
    fn refuse_array_as_id(&self, document: &RawDocument) -> Result<(), QueryError> {
        let is_whole = !matches!(self.style, Style::Operators(_));
        if is_whole && matches!(document.get("_id")?, Some(RawValue::Array(_))) {
            return Err(QueryError::new(
                ErrorCode::NotSingleValueField,
                "After applying the update to the document, the (immutable) field '_id' was found to be an array or array \
                 descendant.",
            ));
        }
        Ok(())
    }

    fn run(&self, document: &RawDocument, context: &UpdateContext) -> Result<Applied, QueryError> {
        match &self.style {
            Style::Operators(operators) => operators.apply(document, context),
            Style::Replacement(replacement) => {
                if context.kind == ApplyKind::Update {
                    replacement.check_names()?;
                }
                replacement.apply(document, context)
            }
            Style::Pipeline(pipeline) => pipeline.apply(document),
        }
    }

    fn check_id(&self, old: &RawDocument, new: &RawDocument) -> Result<(), QueryError> {
        match &self.style {
            Style::Operators(operators) => {
                immutable_id::check(old, new, UpdateStyle::Operators, operators.id_path())
            }
            Style::Replacement(_) | Style::Pipeline(_) => {
                immutable_id::check(old, new, UpdateStyle::WholeDocument, None)
            }
        }
    }
}

fn is_operators(document: &RawDocument) -> Result<bool, QueryError> {
    match document.iter().next() {
        Some(first) => Ok(first?.0.starts_with('$')),
        None => Ok(false),
    }
}

/// Refuses a document that is too large or nested too deep to be stored.
fn check_result(document: &RawDocument) -> Result<(), QueryError> {
    if document.as_bytes().len() <= DOCUMENT_BYTES_MAX {
        return nesting::check_stored(document);
    }
    check_built(document)?;
    Err(UpdateFault::DocumentTooLarge
        .error(format!("Resulting document after update is larger than {DOCUMENT_BYTES_MAX}")))
}

/// Refuses a document that MongoDB does not even build: its command fails as a whole.
pub fn check_built(document: &RawDocument) -> Result<(), QueryError> {
    let bytes = document.as_bytes().len();
    if bytes <= BUILT_BYTES_MAX {
        return Ok(());
    }
    let first = document.iter().find_map(Result::ok).map_or_else(String::new, |(name, value)| {
        let mut shown = to_json(value, JsonFormat::Relaxed);
        if shown.len() > FIRST_ELEMENT_SHOWN {
            shown.truncate(shown.floor_char_boundary(FIRST_ELEMENT_SHOWN));
            shown.push_str("...");
        }
        format!(" First element: {name}: {shown}")
    });
    Err(QueryError::new(
        ErrorCode::BsonObjectTooLarge,
        format!(
            "BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and {BUILT_BYTES_MAX}(16MB){first}"
        ),
    ))
}
