//! The older operations: requests of clients from before OP_MSG, answered by the commands of today.
//!
//! # Steps
//! 1. An operation is translated into a command: OP_INSERT into `insert`, a query into `find`, and so on. One
//!    module for each operation does that.
//! 2. The command is handled as if it had come by itself, with its limits, its lists and its counters.
//! 3. Its reply is translated back. A batch becomes the documents of an OP_REPLY. The outcome of a write
//!    stays with the connection (`last_write.rs`), where `getLastError` finds it.
//!
//! # Terms
//! - *Modifier*: a field beside `$query` in the document of a query, such as `$orderby`.
//! - *Catalog query*: a query of `system.indexes` or `system.namespaces`. These collections do not exist any
//!   more, and their documents are made of the catalog.
//!
//! # Invariants
//! - A translation is a function of the operation alone. So an operation that is handled again, after
//!   [`Handled::WouldBlock`], is the same command again.
//! - An operation of several commands runs only where it may block, so that none of them is handled twice.
//!
//! # Not here
//! The bytes of the operations: crate `wire`. `getLastError`: `diagnostic/get_last_error.rs`.

mod catalog_query;
mod command_query;
mod delete;
mod find_query;
mod get_more;
mod index_insert;
mod insert;
mod modifiers;
mod query;
mod translation;
mod update;

use std::sync::Arc;

use pando_document::{DocumentWriter, RawDocument};
use pando_environment::MissedRead;

use crate::context::RequestForm;
use crate::last_write::{LastWrite, WriteFailure, WriteKind};
use crate::{BlockingMode, Commands, ConnectionState, DocumentSequence, Handled, ReplyWait, Request};

/// Whether a server takes the operations of clients from before OP_MSG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyProtocol {
    /// It does.
    Answered,
    /// It does not: they are refused as a MongoDB of today refuses them.
    Refused,
}

/// An operation of a client from before OP_MSG.
#[derive(Clone, Copy, Debug)]
pub enum LegacyOperation<'a> {
    /// A query of a collection, or a command.
    Query(LegacyQuery<'a>),
    /// The next batch of a cursor.
    GetMore(LegacyGetMore<'a>),
    /// Documents for a collection.
    Insert(LegacyInsert<'a>),
    /// A change of documents.
    Update(LegacyUpdate<'a>),
    /// A removal of documents.
    Delete(LegacyDelete<'a>),
}

/// A query of a collection, or a command.
#[derive(Clone, Copy, Debug)]
pub struct LegacyQuery<'a> {
    /// `database.collection`, or `database.$cmd` for a command.
    pub namespace: &'a str,
    /// The documents to skip.
    pub skip: i32,
    /// The documents of the first batch: see [`OP_QUERY`](LegacyOperation::Query).
    pub number_to_return: i32,
    /// The filter, or the filter with its modifiers, or the command.
    pub query: &'a RawDocument,
    /// The projection.
    pub projection: Option<&'a RawDocument>,
    /// The flags.
    pub flags: LegacyQueryFlags,
}

/// The flags of a query that have a meaning here.
#[derive(Clone, Copy, Debug, Default)]
pub struct LegacyQueryFlags {
    /// The cursor stays open at the end of its collection.
    pub tailable: bool,
    /// A tailable cursor waits for documents.
    pub awaits_data: bool,
    /// The cursor does not time out.
    pub no_cursor_timeout: bool,
    /// The client wants all batches without asking for them.
    pub exhaust: bool,
}

/// The next batch of a cursor.
#[derive(Clone, Copy, Debug)]
pub struct LegacyGetMore<'a> {
    /// The namespace of the cursor.
    pub namespace: &'a str,
    /// The documents of the batch; 0 leaves it to the server.
    pub number_to_return: i32,
    /// The cursor.
    pub cursor_id: i64,
}

/// Documents for a collection.
#[derive(Clone, Copy, Debug)]
pub struct LegacyInsert<'a> {
    /// `database.collection`.
    pub namespace: &'a str,
    /// Whether the documents behind one that fails are inserted.
    pub continues_on_error: bool,
    /// Whole BSON documents, back to back.
    pub documents: &'a [u8],
}

/// A change of documents.
#[derive(Clone, Copy, Debug)]
pub struct LegacyUpdate<'a> {
    /// `database.collection`.
    pub namespace: &'a str,
    /// Whether a document is inserted where none is found.
    pub is_upsert: bool,
    /// Whether all documents that are found are changed.
    pub is_multi: bool,
    /// The filter.
    pub selector: &'a RawDocument,
    /// The operators, or the replacement.
    pub update: &'a RawDocument,
}

/// A removal of documents.
#[derive(Clone, Copy, Debug)]
pub struct LegacyDelete<'a> {
    /// `database.collection`.
    pub namespace: &'a str,
    /// Whether one document at most is removed.
    pub is_single: bool,
    /// The filter.
    pub selector: &'a RawDocument,
}

/// The meaning of the documents of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyOutcome {
    /// They are a batch, or the reply of a command.
    Documents,
    /// The one document tells why the query failed.
    Failed,
    /// There is no such cursor, and no document.
    CursorNotFound,
}

/// The fields of a reply in front of its documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegacyBatch {
    /// The meaning of the documents.
    pub outcome: LegacyOutcome,
    /// The cursor; 0 where there is none, or none any more.
    pub cursor_id: i64,
    /// The documents of the cursor that came in earlier replies.
    pub starting_from: i64,
    /// The documents of this reply.
    pub returned: usize,
}

impl LegacyBatch {
    /// The reply of a command.
    const COMMAND: LegacyBatch =
        LegacyBatch { outcome: LegacyOutcome::Documents, cursor_id: 0, starting_from: 0, returned: 1 };
    /// The reply of a query that failed.
    const FAILED: LegacyBatch = LegacyBatch { outcome: LegacyOutcome::Failed, ..LegacyBatch::COMMAND };
    /// The reply where there is no such cursor.
    const CURSOR_NOT_FOUND: LegacyBatch =
        LegacyBatch { outcome: LegacyOutcome::CursorNotFound, cursor_id: 0, starting_from: 0, returned: 0 };
}

/// The outcome of an operation, with the fields of its reply. A write has no reply, and the fields mean
/// nothing.
pub struct LegacyHandled {
    /// See [`Commands::handle`].
    pub handled: Handled,
    /// The fields of the reply.
    pub batch: LegacyBatch,
}

/// There is no answer yet.
enum WouldBlock {
    /// It needs the device: see [`Handled::WouldBlock`].
    Device(Option<Arc<dyn MissedRead>>),
    /// See [`Handled::Again`].
    Again(Box<dyn ReplyWait>),
}

/// The reply document of a command.
struct Answer {
    document: Vec<u8>,
    /// The reply must not be sent before this is over.
    wait: Option<Box<dyn ReplyWait>>,
}

impl Answer {
    fn document(&self) -> &RawDocument {
        RawDocument::from_bytes(&self.document).expect("this server writes whole documents")
    }
}

/// A batch of a reply whose documents stand in the output, and the wait before it is sent.
struct Reply {
    batch: LegacyBatch,
    wait: Option<Box<dyn ReplyWait>>,
}

impl From<LegacyBatch> for Reply {
    fn from(batch: LegacyBatch) -> Reply {
        Reply { batch, wait: None }
    }
}

/// An operation under way.
struct Exchange<'a> {
    commands: &'a Commands,
    connection: &'a mut ConnectionState,
    blocking: BlockingMode,
    form: RequestForm,
}

impl Exchange<'_> {
    /// Handles a command.
    fn ask(&mut self, body: &RawDocument, sequences: &[DocumentSequence<'_>]) -> Result<Answer, WouldBlock> {
        let request = Request { body, sequences };
        let mut document = Vec::new();
        let Exchange { commands, connection, blocking, form } = self;
        match commands.handle_for(connection, &request, *form, *blocking, &mut document) {
            Handled::Reply => Ok(Answer { document, wait: None }),
            Handled::ReplyLater(wait) => Ok(Answer { document, wait: Some(wait) }),
            Handled::WouldBlock(missed) => Err(WouldBlock::Device(missed)),
            Handled::Again(wait) => Err(WouldBlock::Again(wait)),
        }
    }

    /// Handles a command without document sequences.
    fn ask_body(&mut self, body: &[u8]) -> Result<Answer, WouldBlock> {
        let body = RawDocument::from_bytes(body).expect("a translation writes whole documents");
        self.ask(body, &[])
    }

    /// Answers `WouldBlock` where the caller must not block: before an operation of several commands.
    fn require_may_block(&self) -> Result<(), WouldBlock> {
        match self.blocking {
            BlockingMode::MayBlock => Ok(()),
            BlockingMode::CachedOnly => Err(WouldBlock::Device(None)),
        }
    }

    /// Keeps the outcome of a write for `getLastError`.
    fn note(&mut self, write: LastWrite) {
        self.connection.note_last_write(write);
    }

    /// Keeps a write that was refused before it became a command.
    fn note_refusal(&mut self, kind: WriteKind, failure: WriteFailure) {
        self.connection.note_last_write(LastWrite::failed(kind, failure));
    }
}

impl Commands {
    /// Handles one operation of a client from before OP_MSG. The documents of the reply are appended to
    /// `reply`, unless this answers [`Handled::WouldBlock`].
    pub fn handle_legacy(
        &self,
        connection: &mut ConnectionState,
        operation: &LegacyOperation<'_>,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> LegacyHandled {
        let form = match operation {
            LegacyOperation::Query(_) | LegacyOperation::GetMore(_) => RequestForm::LegacyQuery,
            LegacyOperation::Insert(_) | LegacyOperation::Update(_) | LegacyOperation::Delete(_) => {
                RequestForm::LegacyWrite
            }
        };
        let start = reply.len();
        let mut exchange = Exchange { commands: self, connection, blocking, form };
        let outcome = match operation {
            LegacyOperation::Query(query) => query::run(&mut exchange, query, reply),
            LegacyOperation::GetMore(more) => get_more::run(&mut exchange, more, reply),
            LegacyOperation::Insert(insert) => insert::run(&mut exchange, insert),
            LegacyOperation::Update(update) => update::run(&mut exchange, update),
            LegacyOperation::Delete(delete) => delete::run(&mut exchange, delete),
        };
        match outcome {
            Ok(Reply { batch, wait: None }) => LegacyHandled { handled: Handled::Reply, batch },
            Ok(Reply { batch, wait: Some(wait) }) => {
                LegacyHandled { handled: Handled::ReplyLater(wait), batch }
            }
            Err(not_yet) => {
                reply.truncate(start);
                let handled = match not_yet {
                    WouldBlock::Device(missed) => Handled::WouldBlock(missed),
                    WouldBlock::Again(wait) => Handled::Again(wait),
                };
                LegacyHandled { handled, batch: LegacyBatch::COMMAND }
            }
        }
    }

    /// Closes cursors, as OP_KILL_CURSORS asks. Those that do not exist are left out without a
    /// word, and so are those that the client may not kill. The rights of a login that is not renewed yet may
    /// have ended, so that it kills the cursors of its own user only.
    pub fn kill_cursors(&self, connection: &ConnectionState, cursors: impl Iterator<Item = i64>) {
        let access = &self.shared.access;
        let login = connection.login();
        let rights = login.filter(|login| login.generation == access.generation());
        for id in cursors {
            let is_allowed = || {
                let (Some(login), Some(facts)) = (login, self.shared.cursors.facts(id)) else { return false };
                match rights {
                    Some(rights) => facts.is_killable_by(&rights.user, &rights.authority),
                    None => facts.is_of(&login.user),
                }
            };
            if !access.is_on() || is_allowed() {
                self.shared.cursors.kill(id);
            }
        }
    }
}

/// The database and the collection of a namespace.
fn split_namespace(namespace: &str) -> Result<(&str, &str), WriteFailure> {
    match namespace.split_once('.') {
        Some((database, collection)) if !database.is_empty() && !collection.is_empty() => {
            Ok((database, collection))
        }
        _ => Err(WriteFailure { code: 16_256, message: format!("Invalid ns [{namespace}]") }),
    }
}

/// Appends the document of a query that failed.
fn write_query_failure(failure: &WriteFailure, out: &mut Vec<u8>) -> LegacyBatch {
    let mut document = DocumentWriter::begin(out);
    document.append_str("$err", &failure.message);
    document.append_i32("code", failure.code);
    document.finish();
    LegacyBatch::FAILED
}
