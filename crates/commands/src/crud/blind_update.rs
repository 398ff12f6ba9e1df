//! Blind updates: those of one document by its `_id` that go down as a patch, without a read.
//!
//! | statement | possible | not possible |
//! |---|---|---|
//! | of a client that waits for no answer (`w: 0`) | blind | as usual |
//! | with `blind: true` | blind | it fails with the reason |
//! | any other | as usual | as usual |
//!
//! The document is not looked at, so it may be missing, and the operators may not fit it. A reply with a
//! blind statement therefore has no counts, and an operator that fails leaves its document as it is.
//!
//! # Not here
//! Which operators are possible, and which indexes are in the way: `pando_query::update`. The patch itself:
//! `pando_document::patch`.

use pando_catalog::{Collection, WriteTransaction};
use pando_document::{RawValue, Timestamp};
use pando_query::plan::point_lookup;
use pando_query::update::{BlindUpdate, Moment, Obstacle};

use super::update_statement::{Counted, Reach, UpdateOutcome, UpdateParts, Upsert};
use crate::collation::CollationChoice;
use crate::context::Context;
use crate::validation::Validator;
use crate::{CommandError, ErrorCode};

/// Whether an update goes down without a read of its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blindness {
    /// It does not.
    Never,
    /// It does if it can: the client waits for no answer.
    IfPossible,
    /// It does, or it fails: the statement has `blind: true`.
    Demanded,
}

/// An update that can go down blindly.
struct Possible<'a> {
    id: RawValue<'a>,
    update: BlindUpdate,
}

/// Carries the update out, if it can go down blindly and should. `None`: it has to be carried out as usual.
pub(super) fn run(
    parts: &UpdateParts<'_>,
    context: &Context<'_>,
    collection: &Collection,
    transaction: &mut WriteTransaction,
) -> Result<Option<UpdateOutcome>, CommandError> {
    if parts.blindness == Blindness::Never {
        return Ok(None);
    }
    context.check()?;
    let obstacle = match possible(parts, context, collection)? {
        Err(obstacle) => obstacle,
        Ok(Possible { id, update }) => {
            if collection.patch(transaction, id, &update.patch, context.blocking)? {
                return Ok(Some(UpdateOutcome { is_blind: true, ..UpdateOutcome::default() }));
            }
            "the _id is too long".to_owned()
        }
    };
    match parts.blindness {
        Blindness::Demanded => Err(refused(&obstacle)),
        Blindness::IfPossible | Blindness::Never => Ok(None),
    }
}

fn refused(obstacle: &str) -> CommandError {
    CommandError::failed(
        ErrorCode::InvalidOptions,
        format!("the update cannot be blind: {obstacle}; send it without blind: true"),
    )
}

/// The reason why the update cannot be blind; `None` if it can.
pub(super) fn obstacle(
    parts: &UpdateParts<'_>,
    context: &Context<'_>,
    collection: &Collection,
) -> Result<Option<Obstacle>, CommandError> {
    Ok(possible(parts, context, collection)?.err())
}

/// Refuses a statement with `blind: true` that cannot be blind in any collection.
pub(super) fn check_without_collection(
    parts: &UpdateParts<'_>,
    context: &Context<'_>,
) -> Result<(), CommandError> {
    match (parts.blindness, statement(parts, context)) {
        (Blindness::Demanded, Err(obstacle)) => Err(refused(&obstacle)),
        _ => Ok(()),
    }
}

/// The update as a patch, whatever the collection.
fn statement<'a>(parts: &UpdateParts<'a>, context: &Context<'_>) -> Result<Possible<'a>, Obstacle> {
    if let Some(obstacle) = obstacle_in_parts(parts) {
        return Err(obstacle.to_owned());
    }
    if context.open_transaction().is_some() {
        return Err("it is part of a transaction".to_owned());
    }
    let Some(id) = point_lookup(parts.query) else {
        return Err("the filter is not equality with _id alone".to_owned());
    };
    let millis = context.shared.now_ms();
    let time = u32::try_from(millis / 1000).unwrap_or(u32::MAX);
    let moment = Moment { millis, timestamp: Timestamp { time, increment: 1 } };
    Ok(Possible { id, update: BlindUpdate::of(parts.update, moment)? })
}

fn possible<'a>(
    parts: &UpdateParts<'a>,
    context: &Context<'_>,
    collection: &Collection,
) -> Result<Result<Possible<'a>, Obstacle>, CommandError> {
    if collection.namespace().is_system() {
        return Ok(Err("the collection belongs to the server".to_owned()));
    }
    if let Some(obstacle) = collection.obstacle_to_patches() {
        return Ok(Err(obstacle.to_owned()));
    }
    if Validator::of(context, collection)?.is_some() {
        return Ok(Err("the collection has a validator".to_owned()));
    }
    Ok(statement(parts, context).and_then(|possible| {
        match collection.indexes().iter().find_map(|index| possible.update.obstacle_in(index)) {
            Some(obstacle) => Err(obstacle),
            None => Ok(possible),
        }
    }))
}

/// The part of an update that needs more than its operators and an `_id`.
fn obstacle_in_parts(parts: &UpdateParts<'_>) -> Option<&'static str> {
    let has_sort = parts.sort.is_some_and(|sort| !sort.is_empty());
    [
        (parts.reach == Reach::Many, "it has multi: true"),
        (parts.upsert == Upsert::Yes, "it has upsert: true"),
        (has_sort, "it has a sort"),
        (parts.hint.is_some(), "it has a hint"),
        (parts.array_filters.is_some(), "it has arrayFilters"),
        (parts.constants.is_some(), "it has constants"),
        (!matches!(parts.collation, CollationChoice::Inherited), "it has a collation"),
        (!matches!(parts.counted, Counted::Documents), "the collection is a time series"),
    ]
    .into_iter()
    .find_map(|(is_there, obstacle)| is_there.then_some(obstacle))
}
