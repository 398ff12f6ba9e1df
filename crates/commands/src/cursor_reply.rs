//! The `cursor` field of a reply: one batch, and the number of the cursor for `getMore`.
//!
//! # Steps of a batch
//! 1. Documents that an earlier, interrupted batch had fetched already (the *carry*) come first.
//! 2. Documents are fetched until there are `count_max` of them or the reply is full: 16 MB, or less where
//!    the memory of queries is used up. One that no longer fits goes to the carry.
//! 3. If fetching would block, the fetched documents go to the carry, so that the next request loses none.

use pando_catalog::{Caller, QueryAccount, Reservation, SnapshotTimestamp};
use pando_document::{DocumentWriter, RawDocument, RawValue, Timestamp};
use pando_query::QueryError;
use pando_query::expression::EvaluationWatch;
use pando_query::pipeline::Flow;

use crate::CommandError;
use crate::arguments::Arguments;
use crate::context::Context;
use crate::cursor_facts::{CursorFacts, CursorOpening, Expiry};
use crate::cursor_source::{BatchPlace, CursorSource};
use crate::cursors::{BatchMemory, OpenCursor, Supply};
use crate::document_stream::StreamEnd;
use crate::error::Execution;
use crate::operations::command_copy;

/// Bytes of documents from which on a batch takes the memory of a full one: growing step by step, it would be
/// copied and its memory given back several times.
const LARGE_BATCH_BYTES: usize = 1024 * 1024;
/// Bytes of the name and the type of a document in the array of a reply, at most.
const ELEMENT_BYTES: usize = 12;
/// Bytes of documents in one batch at most; one document always fits.
const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Documents in a first batch where the client does not say.
pub(crate) const FIRST_BATCH_DEFAULT: u64 = 101;

/// Whether more may come after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchEnd {
    /// The batch is full.
    Full,
    /// The source is exhausted.
    Exhausted,
}

/// A batch of this size counts in the memory of its query, and ends where no more is to be had.
const BATCH_BYTES_COUNTED: usize = 1 << 20;

/// A batch of documents, back to back.
pub(crate) struct DocumentBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    reservation: Reservation,
    memory: BatchMemory,
}

impl DocumentBatch {
    /// The number of documents.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    fn new(supply: &Supply) -> DocumentBatch {
        DocumentBatch {
            bytes: Vec::new(),
            ends: Vec::new(),
            reservation: supply.account.reserve(),
            memory: supply.batch_memory,
        }
    }

    /// Whether the last document may stay in the batch. The first one always does. The reply is
    /// a second copy.
    fn is_within_limits(&mut self) -> bool {
        let bytes = self.bytes.len();
        if self.ends.len() <= 1 || bytes <= BATCH_BYTES_COUNTED {
            return true;
        }
        if bytes > BATCH_BYTES_MAX {
            return false;
        }
        let is_granted = self.reservation.grow_to(2 * bytes);
        if !is_granted && self.memory == BatchMemory::Exceeded {
            self.reservation.hold(2 * bytes);
            return true;
        }
        is_granted
    }

    fn push(&mut self, document: &[u8]) {
        self.bytes.extend_from_slice(document);
        self.ends.push(self.bytes.len());
    }

    /// Makes room for a full batch once this one is large.
    fn grow_once(&mut self) {
        if self.bytes.len() > LARGE_BATCH_BYTES && self.bytes.capacity() < BATCH_BYTES_MAX {
            self.bytes.reserve_exact(BATCH_BYTES_MAX - self.bytes.len() + LARGE_BATCH_BYTES);
        }
    }

    /// The documents, for a later batch.
    fn into_carry(self) -> Vec<Vec<u8>> {
        self.documents().map(<[u8]>::to_vec).collect()
    }

    /// Takes the last document out again.
    fn pop(&mut self) -> Vec<u8> {
        self.ends.pop();
        self.bytes.split_off(self.ends.last().copied().unwrap_or(0))
    }

    fn documents(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

/// Fetches a batch.
pub(crate) fn fetch(
    supply: &mut Supply,
    count_max: u64,
    place: BatchPlace,
    caller: Caller<'_>,
) -> Result<(DocumentBatch, BatchEnd), CommandError> {
    let mut batch = DocumentBatch::new(supply);
    let mut carried = std::mem::take(&mut supply.carry).into_iter();
    loop {
        if batch.ends.len() as u64 >= count_max {
            supply.carry.extend(carried);
            let is_over = supply.carry.is_empty() && supply.source.is_exhausted(place);
            return Ok((batch, if is_over { BatchEnd::Exhausted } else { BatchEnd::Full }));
        }
        // A sort in memory gives its documents without looking whether the operation has to end.
        if let Err(interruption) = caller.operation.check() {
            return Err(QueryError::from(interruption).into());
        }
        if let Some(next) = carried.next() {
            batch.push(&next);
        } else if let Some(stream) = supply.source.as_stream() {
            let mut refused = None;
            let end = stream.give(caller, &mut |document| {
                batch.push(document.as_bytes());
                if !batch.is_within_limits() {
                    refused = Some(batch.pop());
                    return Flow::Enough;
                }
                batch.grow_once();
                if batch.len() as u64 >= count_max { Flow::Enough } else { Flow::More }
            });
            match (end, refused) {
                (Ok(StreamEnd::Enough), Some(refused)) => {
                    supply.carry.push(refused);
                    return Ok((batch, BatchEnd::Full));
                }
                (Ok(StreamEnd::Enough), None) => continue,
                (Ok(StreamEnd::Exhausted), _) => return Ok((batch, BatchEnd::Exhausted)),
                (Err(error), _) => {
                    supply.carry = batch.into_carry();
                    return Err(error);
                }
            }
        } else {
            match supply.source.next(caller, &mut batch.bytes) {
                Ok(true) => batch.ends.push(batch.bytes.len()),
                Ok(false) => return Ok((batch, BatchEnd::Exhausted)),
                Err(error) => {
                    supply.carry = batch.into_carry();
                    return Err(error);
                }
            }
        }
        if !batch.is_within_limits() {
            supply.carry.push(batch.pop());
            supply.carry.extend(carried);
            return Ok((batch, BatchEnd::Full));
        }
        batch.grow_once();
    }
}

/// The end of a batch of a cursor that may follow the end of its collection.
pub(crate) fn open_end(supply: &Supply, end: BatchEnd) -> BatchEnd {
    match supply.source.tail() {
        Some(tail) if tail.has_position => BatchEnd::Full,
        _ => end,
    }
}

/// `batchSize` of a command's `cursor` field, whose place is `owner`.
pub(crate) fn cursor_batch_size(
    owner: &'static str,
    cursor: &RawDocument,
) -> Result<Option<u64>, CommandError> {
    let mut size = None;
    for argument in Arguments::inside(owner, cursor) {
        let argument = argument?;
        match argument.name {
            "batchSize" => size = argument.natural()?,
            _ => return Err(argument.unknown()),
        }
    }
    Ok(size)
}

/// Whether a cursor that is not exhausted is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// For `getMore`.
    Keep,
    /// The client wants one batch only.
    SingleBatch,
}

/// A cursor before its first batch.
pub(crate) struct NewCursor<'a> {
    /// The command that opens it.
    pub command: &'a RawDocument,
    pub namespace: String,
    pub source: Box<dyn CursorSource>,
    /// The execution that an error of the first batch is named after.
    pub execution: Option<Execution>,
    /// The memory of its query.
    pub account: QueryAccount,
    pub expiry: Expiry,
    /// Documents in the first batch, where the client says.
    pub first_batch: Option<u64>,
    pub keeping: Keeping,
    /// The watch of its expressions.
    pub watch: Option<EvaluationWatch>,
    /// The `atClusterTime` of its replies.
    pub read_time: Option<Timestamp>,
    /// The snapshot that it reads.
    pub snapshot: Option<SnapshotTimestamp>,
}

impl<'a> NewCursor<'a> {
    /// A cursor that times out.
    pub fn new(
        command: &'a RawDocument,
        namespace: String,
        source: Box<dyn CursorSource>,
        account: QueryAccount,
    ) -> NewCursor<'a> {
        NewCursor {
            command,
            namespace,
            source,
            execution: None,
            account,
            expiry: Expiry::TimesOut,
            first_batch: None,
            keeping: Keeping::Keep,
            watch: None,
            read_time: None,
            snapshot: None,
        }
    }
}

/// Answers a new cursor with its first batch.
pub(crate) fn open(
    context: &Context<'_>,
    new: NewCursor<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let NewCursor { command, namespace, source, account, expiry, first_batch, keeping, watch, .. } = new;
    let (read_time, snapshot, execution) = (new.read_time, new.snapshot, new.execution);
    let mut supply = Supply::new(source, &account, command.as_bytes().len());
    supply.watch = watch;
    if keeping == Keeping::SingleBatch {
        supply.batch_memory = BatchMemory::Exceeded;
    }
    let count_max = first_batch.unwrap_or(FIRST_BATCH_DEFAULT);
    let fetched = fetch(&mut supply, count_max, BatchPlace::First, context.caller());
    let (batch, end) = match execution {
        Some(execution) => fetched.map_err(|error| execution.fault(error))?,
        None => fetched?,
    };
    let end = open_end(&supply, end);
    context.note(|notes| {
        notes.returned = Some(batch.len() as u64);
        notes.is_cursor_exhausted = end == BatchEnd::Exhausted;
        if let Some(execution) = &mut notes.execution {
            execution.figures = supply.source.figures();
        }
    });
    let id = match (end, keeping) {
        (BatchEnd::Full, Keeping::Keep) => {
            let expiry = context.connection.cursor_expiry(expiry);
            let mut facts = CursorFacts::new(namespace.clone(), expiry, context.shared.now_ms());
            facts.session = context.session;
            facts.read_time = read_time;
            facts.snapshot = snapshot;
            facts.opening = context.limiting_login().map(|login| CursorOpening {
                user: login.user.clone(),
                generation: login.generation,
                command: command.to_owned(),
            });
            facts.client = context.record.peer().to_owned();
            if let Some(open) = context.open_transaction() {
                facts.transaction = Some(open.number);
                open.note_cursor();
            }
            facts.command = command_copy(command);
            facts.plan = context.plan_summary();
            facts.stages = context.plan_stages();
            keep(context, OpenCursor::new(facts, supply), batch.len())
        }
        (BatchEnd::Exhausted, _) | (_, Keeping::SingleBatch) => 0,
    };
    let place = CursorPlace { id, namespace: &namespace, read_time };
    write(reply, "firstBatch", &batch, place)
}

/// Keeps a cursor after its first batch of this many documents. Gives its number.
fn keep(context: &Context<'_>, mut cursor: OpenCursor, returned: usize) -> i64 {
    cursor.facts.add_batch(returned);
    // The time limit of a find is not one of later waits.
    if cursor.supply.source.tail().is_none() {
        cursor.time_left = context.operation.time_left();
    }
    cursor.supply.source.rest();
    cursor.supply.hold_memory();
    let id = context.cursors().open(cursor, context.shared.now_ms());
    context.note(|notes| notes.cursor = Some(id));
    id
}

/// The fields of a `cursor` beside its batch.
#[derive(Clone, Copy)]
pub(crate) struct CursorPlace<'a> {
    pub id: i64,
    pub namespace: &'a str,
    pub read_time: Option<Timestamp>,
}

/// Writes the `cursor` field.
pub(crate) fn write(
    reply: &mut DocumentWriter<'_>,
    batch_name: &str,
    batch: &DocumentBatch,
    place: CursorPlace<'_>,
) -> Result<(), CommandError> {
    reply.reserve(batch.bytes.len() + batch.ends.len() * ELEMENT_BYTES);
    let mut cursor = reply.document("cursor");
    let mut documents = cursor.array(batch_name);
    for document in batch.documents() {
        documents.push_document(RawDocument::from_bytes(document)?);
    }
    documents.finish();
    cursor.append_i64("id", place.id);
    cursor.append_str("ns", place.namespace);
    if let Some(time) = place.read_time {
        cursor.append("atClusterTime", RawValue::Timestamp(time));
    }
    cursor.finish();
    Ok(())
}

/// A source over documents that are all in memory.
pub(crate) struct ListSource {
    documents: std::vec::IntoIter<Vec<u8>>,
}

impl ListSource {
    pub fn new(documents: Vec<Vec<u8>>) -> ListSource {
        ListSource { documents: documents.into_iter() }
    }
}

impl CursorSource for ListSource {
    fn next(&mut self, _caller: Caller<'_>, out: &mut Vec<u8>) -> Result<bool, CommandError> {
        match self.documents.next() {
            Some(next) => {
                out.extend_from_slice(&next);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn is_exhausted(&self, _batch: BatchPlace) -> bool {
        self.documents.as_slice().is_empty()
    }
}
