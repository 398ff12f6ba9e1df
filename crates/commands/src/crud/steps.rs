//! Steps: the transactions of an update or delete that concerns too many documents for one transaction.
//!
//! A statement that concerns few documents shares a transaction with the rest of its batch. One that concerns
//! more is rolled back and begun again in *steps*. (MongoDB carries out every statement in steps of one
//! document.)
//! 1. The statements of the batch before it are committed.
//! 2. The documents are found in one snapshot, ten thousand at a time. So the writes of the steps are not
//!    found again.
//! 3. Each step is a transaction; a shorter one where it is [large](pando_catalog::Transaction::is_large) for
//!    the engine before. It checks the filter again, because its documents may have changed, and
//!    writes them. A conflict repeats the step. An error ends the statement, and the earlier steps stay.
//!
//! In a session's transaction there are no steps: the statement takes part in that transaction as a whole.
//! Nor are there with the parameter `atomicStatements`: the statement is one transaction, whatever its size.
//!
//! So the write set and the list of keys stay bounded, however large the collection is.

use std::sync::Arc;

use pando_catalog::{Bytes, Collection, FetchAhead, WriteTransaction};
use pando_document::RawDocument;

use super::insert::ends_transaction;
use super::selection::{KeyScan, Selection};
use crate::context::Context;
use crate::{CommandError, unit_of_work};

/// The most documents of one transaction, and of one search in the snapshot.
pub(super) const STEP_DOCUMENTS: usize = 10_000;
/// The most bytes of the documents that one transaction changes, old and new ones together, unless it is one
/// document.
pub(super) const STEP_BYTES: usize = 16 << 20;

/// The documents and bytes of a step so far.
#[derive(Default)]
pub(super) struct Meter {
    reach: MeterReach,
    documents: usize,
    bytes: usize,
}

/// The work that a meter measures.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum MeterReach {
    /// A step, which ends where it is large.
    #[default]
    Step,
    /// A statement of a session's transaction, or one that is atomic: it has no steps.
    Statement,
}

/// The most documents that a statement searches for before it is carried out in steps.
pub(super) fn documents_max(context: &Context<'_>) -> usize {
    if context.is_atomic() { usize::MAX - 1 } else { STEP_DOCUMENTS }
}

impl Meter {
    /// The meter of a statement.
    pub fn of(context: &Context<'_>) -> Meter {
        let reach = if context.is_atomic() { MeterReach::Statement } else { MeterReach::Step };
        Meter { reach, ..Meter::default() }
    }

    /// Counts a document that is going to be changed.
    pub fn add(&mut self, document: &Bytes) {
        self.documents += 1;
        self.bytes += document.len();
    }

    /// Counts the new form of a document, which may be much longer.
    pub fn add_written(&mut self, written: Written) {
        self.bytes += written.0;
    }

    /// Whether the next document belongs to the next step.
    pub fn is_full(&self, transaction: &WriteTransaction) -> bool {
        self.reach == MeterReach::Step
            && (self.documents >= STEP_DOCUMENTS || self.bytes >= STEP_BYTES || transaction.is_large())
    }
}

/// Bytes of what was written in the place of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written(pub usize);

/// The change of one document that a statement has found. It notes its effect in the last argument.
pub(super) type Change<'c, T> =
    dyn Fn(&Context<'_>, &mut WriteTransaction, &[u8], Bytes, &mut T) -> Result<Written, CommandError> + 'c;

/// One step, done.
struct Step<T> {
    keys: usize,
    /// The keys among them whose document was gone.
    gone: u64,
    noted: T,
    failure: Option<CommandError>,
}

/// Carries a change out for every selected document. `add` gets the notes of each step once it is committed.
/// Gives the number of the selected ones that were gone when their step came. The caller may block and has no
/// open transaction with writes.
pub(super) fn in_steps<T: Default>(
    context: &mut Context<'_>,
    selection: &Selection,
    collection: &Arc<Collection>,
    change: &Change<'_, T>,
    mut add: impl FnMut(T),
) -> Result<u64, CommandError> {
    let mut gone = 0;
    let reader = context.begin_read()?;
    let mut scan = KeyScan::new(selection, collection, &*reader, context)?;
    let mut keys = Vec::new();
    loop {
        if keys.is_empty() {
            keys = scan.next(&*reader, context.caller(), STEP_DOCUMENTS)?;
        }
        if keys.is_empty() {
            return Ok(gone);
        }
        let step =
            unit_of_work::run(context, |context| take_step(context, selection, collection, change, &keys))?;
        keys.drain(..step.keys);
        gone += step.gone;
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
    let mut work = context.begin_work()?;
    let transaction = work.writer();
    let mut meter = Meter::default();
    let mut step = Step { keys: 0, gone: 0, noted: T::default(), failure: None };
    let mut documents = FetchAhead::default();
    for (place, key) in keys.iter().enumerate() {
        if meter.is_full(transaction) {
            break;
        }
        context.check()?;
        step.keys += 1;
        let Some(old) = documents.fetch(keys, place, collection, &**transaction, context.blocking)? else {
            step.gone += 1;
            continue;
        };
        if !selection.filter.matches(RawDocument::from_bytes(&old)?)? {
            continue;
        }
        meter.add(&old);
        let before = transaction.savepoint();
        match change(context, transaction, key, old, &mut step.noted) {
            Ok(written) => meter.add_written(written),
            Err(CommandError::Failed(failure)) if !ends_transaction(&failure) => {
                transaction.rollback_to(before);
                step.failure = Some(CommandError::Failed(failure));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    context.commit_work(work)?;
    Ok(step)
}
