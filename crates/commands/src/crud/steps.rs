//! Updates and deletes of more documents than one transaction should hold.
//!
//! A statement is one transaction with the rest of its batch, as long as it is about few documents. One that turns out to be about
//! more is undone and begun again in *steps*, as MongoDB carries out all of them, one document a step:
//! 1. What the batch did before it is committed.
//! 2. The documents are found in one snapshot, so that what the steps write is not found again, some thousands at a time.
//! 3. Each step is a transaction: its documents are looked at again, for they may have changed, and written. A conflict repeats the
//!    step; an error ends the statement, and what was done before it stays.
//!
//! So neither the write set nor the list of keys grows with the collection.

use std::sync::Arc;

use pando_catalog::{Begin, Bytes, Collection, Savepoint, Transaction};
use pando_document::RawDocument;

use super::insert::ends_transaction;
use super::retry;
use super::selection::{KeyWalk, Selection};
use crate::CommandError;
use crate::context::Context;

/// Documents of one transaction at most, and of one look into the snapshot.
pub(super) const STEP_DOCUMENTS: usize = 10_000;
/// Bytes of documents that a transaction changes at most, as they were and as they become, unless it is one document.
const STEP_BYTES: usize = 16 << 20;

/// How much of a step is done.
#[derive(Default)]
pub(super) struct Meter {
    documents: usize,
    bytes: usize,
}

impl Meter {
    /// Counts a document that is going to be changed.
    pub fn add(&mut self, document: &Bytes) {
        self.documents += 1;
        self.bytes += document.len();
    }

    /// Counts what a document became: it may be much longer.
    pub fn add_written(&mut self, written: Written) {
        self.bytes += written.0;
    }

    /// Whether another document belongs to another step.
    pub fn is_full(&self) -> bool {
        self.documents >= STEP_DOCUMENTS || self.bytes >= STEP_BYTES
    }
}

/// Bytes of what was written in the place of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written(pub usize);

/// What a statement does to a document that it has found; it notes what it did.
pub(super) type Change<'c, T> =
    dyn Fn(&Context<'_>, &mut dyn Transaction, &[u8], Bytes, &mut T) -> Result<Written, CommandError> + 'c;

/// One step, done.
struct Step<T> {
    keys: usize,
    noted: T,
    failure: Option<CommandError>,
}

/// Carries a change out for every document that is selected; `add` gets what each step has noted once it is committed. The caller
/// may block, and no transaction with writes.
pub(super) fn in_steps<T: Default>(
    context: &mut Context<'_>,
    selection: &Selection,
    collection: &Arc<Collection>,
    change: &Change<'_, T>,
    mut add: impl FnMut(T),
) -> Result<(), CommandError> {
    let reader = context.begin_read()?;
    let mut walk = KeyWalk::new(selection, collection, &*reader)?;
    let mut keys = Vec::new();
    loop {
        if keys.is_empty() {
            keys = walk.next(&*reader, context.blocking, STEP_DOCUMENTS)?;
        }
        if keys.is_empty() {
            return Ok(());
        }
        let step =
            retry::on_conflict(context, |context| take_step(context, selection, collection, change, &keys))?;
        keys.drain(..step.keys);
        add(step.noted);
        if let Some(failure) = step.failure {
            return Err(failure);
        }
    }
}

fn take_step<T: Default>(
    context: &mut Context<'_>,
    selection: &Selection,
    collection: &Arc<Collection>,
    change: &Change<'_, T>,
    keys: &[Vec<u8>],
) -> Result<Step<T>, CommandError> {
    let mut transaction = context.catalog().begin(Begin::WRITE)?;
    let mut meter = Meter::default();
    let mut step = Step { keys: 0, noted: T::default(), failure: None };
    for key in keys {
        if meter.is_full() {
            break;
        }
        step.keys += 1;
        let Some(old) = collection.fetch(&*transaction, key, context.blocking)? else { continue };
        if !selection.filter.matches(RawDocument::from_bytes(&old)?)? {
            continue;
        }
        meter.add(&old);
        let before: Savepoint = transaction.savepoint();
        match change(context, &mut *transaction, key, old, &mut step.noted) {
            Ok(written) => meter.add_written(written),
            Err(CommandError::Failed(failure)) if !ends_transaction(&failure) => {
                transaction.rollback_to(before);
                step.failure = Some(CommandError::Failed(failure));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    context.commit(transaction)?;
    Ok(step)
}
