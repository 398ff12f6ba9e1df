//! One update of a batch, or that of a `findAndModify`: a selection of documents and their change.
//!
//! # Steps
//! 1. The keys of the matching documents are collected first, so that a document that the update moves within
//!    an index is not found a second time.
//! 2. Each document is fetched, changed and written with its index entries.
//! 3. Where none matched and an upsert is wanted, the document that the update makes of the filter's
//!    equalities is inserted.

use std::cell::OnceCell;
use std::sync::Arc;

use pando_catalog::{Bytes, Collection, FetchAhead, WriteTransaction};
use pando_document::{RawArray, RawDocument, RawDocumentBuf, RawValue, Timestamp, Value};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::time_series::Series;
use pando_query::update::{Applied, ApplyKind, Update, UpdateContext};

use super::blind_update::Blindness;
use super::keyed_update::KeyedUpdate;
use super::selection::{self, Selection};
use super::steps::{Meter, Written, documents_max, in_steps};
use super::stored_document;
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::error::write_failure;
use crate::operations::statement_of;
use crate::validation::Validator;
use crate::{CommandError, ErrorCode};

/// How many documents an update may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The first that matches.
    One,
    /// All that match.
    Many,
}

/// The treatment of an update that matches no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upsert {
    /// None.
    No,
    /// A document is inserted.
    Yes,
}

/// An update, parsed.
pub(super) struct UpdateStatement<'a> {
    pub query: &'a RawDocument,
    pub selection: Selection,
    pub update: Update,
    pub upsert: Upsert,
    counted: Counted<'a>,
    /// The rule of the collection, once it is known.
    validator: OnceCell<Option<Validator>>,
}

/// The parts of an update as a request gives them.
#[derive(Clone)]
pub(super) struct UpdateParts<'a> {
    pub query: &'a RawDocument,
    pub update: RawValue<'a>,
    /// Variables of an update that is a pipeline.
    pub constants: Option<&'a RawDocument>,
    pub array_filters: Option<&'a RawArray>,
    pub sort: Option<&'a RawDocument>,
    pub hint: Option<RawValue<'a>>,
    pub reach: Reach,
    pub upsert: Upsert,
    /// The scope that the parts are parsed in has it already.
    pub collation: CollationChoice<'a>,
    pub counted: Counted<'a>,
    /// The same update, where it is one by `_id` and another document.
    pub keyed: Option<KeyedUpdate<'a>>,
    pub blindness: Blindness,
}

/// The things that the figures of a statement count.
#[derive(Clone, Copy)]
pub(super) enum Counted<'s> {
    /// Documents.
    Documents,
    /// The measurements in documents that are buckets.
    Measurements(&'s Series),
}

impl Counted<'_> {
    /// The figure of one document.
    pub fn number_in(self, document: &RawDocument) -> Result<u64, CommandError> {
        match self {
            Counted::Documents => Ok(1),
            Counted::Measurements(series) => Ok(series.count(document)? as u64),
        }
    }
}

impl UpdateParts<'_> {
    /// The parts before a request is read.
    pub fn empty() -> Self {
        UpdateParts {
            query: RawDocument::empty(),
            update: RawValue::Null,
            constants: None,
            array_filters: None,
            sort: None,
            hint: None,
            reach: Reach::One,
            upsert: Upsert::No,
            collation: CollationChoice::Inherited,
            counted: Counted::Documents,
            keyed: None,
            blindness: Blindness::Never,
        }
    }

    /// The update as lists of operations show it.
    pub fn shown(&self) -> RawDocumentBuf {
        statement_of(&[
            ("q", RawValue::Document(self.query)),
            ("u", self.update),
            ("multi", RawValue::Boolean(self.reach == Reach::Many)),
            ("upsert", RawValue::Boolean(self.upsert == Upsert::Yes)),
        ])
    }
}

/// The effect of an update.
#[derive(Clone, Debug, Default)]
pub(super) struct UpdateOutcome {
    /// Documents that matched.
    pub matched: u64,
    /// Documents that changed.
    pub modified: u64,
    /// Whether it went down without a read: then all else is not known.
    pub is_blind: bool,
    /// The `_id` of the document that was inserted.
    pub upserted: Option<Value>,
    /// The first document before the update.
    pub before: Option<Bytes>,
    /// The first document after it.
    pub after: Option<RawDocumentBuf>,
}

impl<'a> UpdateStatement<'a> {
    /// Parses the parts.
    pub fn parse(parts: UpdateParts<'a>, scope: &ParseScope) -> Result<UpdateStatement<'a>, CommandError> {
        let scope = &with_constants(scope, &parts)?;
        let update = Update::parse(parts.update, parts.array_filters, scope)?;
        if parts.reach == Reach::Many && update.is_replacement() {
            return Err(CommandError::failed(
                ErrorCode::FailedToParse,
                "multi update is not supported for replacement-style update",
            ));
        }
        if parts.reach == Reach::Many && parts.sort.is_some_and(|sort| !sort.is_empty()) {
            return Err(CommandError::failed(
                ErrorCode::FailedToParse,
                "Cannot specify sort with multi=true",
            ));
        }
        let filter = match parts.upsert {
            Upsert::Yes => Filter::parse_for_plan(parts.query, &scope.of_upsert())?,
            Upsert::No => Filter::parse_for_plan(parts.query, scope)?,
        };
        let limit = match parts.reach {
            Reach::One => Some(1),
            Reach::Many => None,
        };
        let selection =
            Selection::new(filter, parts.sort.map(|sort| (sort, scope.text_order())), parts.hint, limit)?;
        let UpdateParts { query, upsert, counted, .. } = parts;
        Ok(UpdateStatement { query, selection, update, upsert, counted, validator: OnceCell::new() })
    }

    /// The rule of the collection, which stays the same for the length of a statement.
    fn validator(
        &self,
        context: &Context<'_>,
        collection: &Collection,
    ) -> Result<Option<&Validator>, CommandError> {
        if self.validator.get().is_none() {
            let validator = Validator::of(context, collection)?;
            self.validator.get_or_init(|| validator);
        }
        Ok(self.validator.get().and_then(Option::as_ref))
    }

    /// Carries the update out. `None`: it concerns too many documents for one transaction. Then the caller
    /// rolls its writes back, and [`run_in_steps`](UpdateStatement::run_in_steps) does it.
    pub fn run(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
    ) -> Result<Option<UpdateOutcome>, CommandError> {
        let selection = &self.selection;
        let keys = selection::keys(selection, collection, &**transaction, context, documents_max(context))?;
        let Some(keys) = keys else { return Ok(None) };
        let mut outcome = UpdateOutcome::default();
        let mut meter = Meter::of(context);
        let mut documents = FetchAhead::default();
        for (place, key) in keys.iter().enumerate() {
            context.check()?;
            if meter.is_full(transaction) {
                return Ok(None);
            }
            let old = documents.fetch(&*keys, place, collection, &**transaction, context.blocking)?;
            let Some(old) = old else { continue };
            meter.add(&old);
            let written = self.change(context, collection, transaction, key, old, &mut outcome)?;
            meter.add_written(written);
        }
        if outcome.matched == 0 && self.upsert == Upsert::Yes {
            self.insert(context, collection, transaction, &mut outcome)?;
        }
        Ok(Some(outcome))
    }

    /// Carries the update out in several transactions, see [`super::steps`].
    pub fn run_in_steps(
        &self,
        context: &mut Context<'_>,
        collection: &Arc<Collection>,
    ) -> Result<UpdateOutcome, CommandError> {
        let mut all = UpdateOutcome::default();
        let change = |context: &Context<'_>,
                      transaction: &mut WriteTransaction,
                      key: &[u8],
                      old: Bytes,
                      outcome: &mut UpdateOutcome| {
            self.change(context, collection, transaction, key, old, outcome)
        };
        in_steps(context, &self.selection, collection, &change, |outcome: UpdateOutcome| {
            all.matched += outcome.matched;
            all.modified += outcome.modified;
        })?;
        Ok(all)
    }

    fn change(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
        key: &[u8],
        old: Bytes,
        outcome: &mut UpdateOutcome,
    ) -> Result<Written, CommandError> {
        let document = RawDocument::from_bytes(&old)?;
        let matched_index = match self.update.needs_matched_index() {
            true => self.selection.filter.matches_with_position(document)?.1,
            false => None,
        };
        let number = self.counted.number_in(document)?;
        outcome.matched += number;
        let applied =
            self.update.apply(document, &update_context(context, ApplyKind::Update, matched_index))?;
        let mut written = Written(0);
        let after = match applied {
            Applied::Unchanged => document.to_owned(),
            Applied::Changed(new) => {
                let validator = self.validator(context, collection)?;
                let change = Change { key, old: document, new: &new };
                replace_document(change, validator, context, collection, transaction)?;
                outcome.modified += number;
                written = Written(new.as_bytes().len());
                new
            }
        };
        if outcome.before.is_none() {
            outcome.after = Some(after);
            outcome.before = Some(old);
        }
        Ok(written)
    }

    fn insert(
        &self,
        context: &Context<'_>,
        collection: &Arc<Collection>,
        transaction: &mut WriteTransaction,
        outcome: &mut UpdateOutcome,
    ) -> Result<(), CommandError> {
        let new_id = context.shared.new_object_id();
        let made =
            self.update.insert(self.query, &update_context(context, ApplyKind::Insert, None), new_id)?;
        let validator = self.validator(context, collection)?;
        let stored = insert_made(&made, validator, context, collection, transaction)?;
        outcome.upserted = stored.get("_id")?.map(|id| id.to_owned());
        outcome.after = Some(stored);
        Ok(())
    }
}

/// The documents of a key before and after a change.
pub(super) struct Change<'a> {
    pub key: &'a [u8],
    pub old: &'a RawDocument,
    pub new: &'a RawDocument,
}

/// Replaces the document of a key by another, if that keeps the rule of the collection.
pub(super) fn replace_document(
    Change { key, old, new }: Change<'_>,
    validator: Option<&Validator>,
    context: &Context<'_>,
    collection: &Arc<Collection>,
    transaction: &mut WriteTransaction,
) -> Result<(), CommandError> {
    if let Some(validator) = validator {
        validator.check_update(old, new)?;
    }
    collection
        .replace(transaction, key, old, new, context.blocking)
        .map_err(|error| write_failure(error, &collection.namespace().to_string()))
}

/// Inserts the document that an upsert has made, if it keeps the rule of the collection. Gives it as it is
/// stored.
pub(super) fn insert_made(
    made: &RawDocument,
    validator: Option<&Validator>,
    context: &Context<'_>,
    collection: &Arc<Collection>,
    transaction: &mut WriteTransaction,
) -> Result<RawDocumentBuf, CommandError> {
    let mut stored = Vec::new();
    stored_document::prepare_upserted(context.shared, made, &mut stored)?;
    let stored = RawDocumentBuf::from_vec(stored)?;
    if let Some(validator) = validator {
        validator.check_insert(&stored)?;
    }
    collection
        .insert(transaction, &stored, context.blocking)
        .map_err(|error| write_failure(error, &collection.namespace().to_string()))?;
    Ok(stored)
}

/// The scope in which an update's constants are variables.
fn with_constants(scope: &ParseScope, parts: &UpdateParts<'_>) -> Result<ParseScope, CommandError> {
    let Some(constants) = parts.constants else { return Ok(scope.clone()) };
    if !matches!(parts.update, RawValue::Array(_)) {
        return Err(CommandError::failed(
            ErrorCode::Location(51_198),
            "Constant values may only be specified for pipeline updates",
        ));
    }
    Ok(scope.with_update_constants(constants)?)
}

fn update_context(context: &Context<'_>, kind: ApplyKind, matched_index: Option<usize>) -> UpdateContext {
    let now_millis = context.shared.now_ms();
    let time = u32::try_from(now_millis / 1000).unwrap_or(u32::MAX);
    let timestamp = Timestamp { time, increment: 1 };
    let empty_timestamps = context.empty_timestamps;
    UpdateContext { matched_index, now_millis, timestamp, kind, empty_timestamps }
}
