//! Many writes of several kinds in one call.
//!
//! Neighbours of one kind and one collection go into one command, so that a list of inserts costs what
//! `insert_many` costs. Writes are carried out in the order of the list.

use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, doc};

use super::options;
use crate::client_session::SessionState;
use crate::reply::{number, refused_writes, write_errors};
use crate::results::SummaryBulkWriteResult;
use crate::write_model::{Statement, StatementKind};
use crate::{ClientSession, Error, Namespace, Pando, WriteModel};

/// Statements of one command at most, as drivers batch them.
const STATEMENTS_MAX: usize = 1_000;
/// Bytes of one command about.
const BYTES_MAX: usize = 16 << 20;

/// Writes of several kinds, to one or several collections.
#[must_use = "an action does nothing until it is run"]
pub struct BulkWrite<'s> {
    store: &'s Pando,
    models: Vec<WriteModel>,
    ordered: bool,
    session: Option<Arc<SessionState>>,
    /// The fields of each command beside its statements.
    command: Document,
}

/// Statements that one command can hold.
struct Group {
    kind: StatementKind,
    namespace: Namespace,
    /// The place of the first in the caller's list.
    first: usize,
    statements: Vec<Bson>,
    bytes: usize,
}

impl<'s> BulkWrite<'s> {
    pub(crate) fn new(store: &'s Pando, models: Vec<WriteModel>) -> BulkWrite<'s> {
        BulkWrite { store, models, ordered: true, session: None, command: Document::new() }
    }

    /// Whether the first failure ends the call, which is so unless `false` is said here.
    pub fn ordered(mut self, ordered: bool) -> Self {
        self.ordered = ordered;
        self
    }

    options! { command:
        /// The time after which a write ends with an error, also while it waits for a transaction that has
        /// taken the same document. The writes go in several parts, each of which may take as long. Zero is
        /// no limit.
        max_time(Duration) => "maxTimeMS";
    }

    /// Makes the writes some of the session: they belong to the transaction that the session has open.
    pub fn session(mut self, session: &mut ClientSession) -> Self {
        self.session = Some(session.state());
        self
    }

    /// Writes.
    ///
    /// # Errors
    /// A model that is wrong in itself, before anything is written. [`Error::BulkWrite`] with the places of
    /// the writes that failed and the counts of the others. A refusal of the first command comes as
    /// itself, unless later ones were tried; some of its writes may have an effect. A closed store.
    pub fn run(self) -> Result<SummaryBulkWriteResult, Error> {
        let mut done = SummaryBulkWriteResult::default();
        let mut errors = Vec::new();
        // A failure ends a transaction, so that nothing of it has an effect.
        let is_in_transaction = self.session.as_ref().is_some_and(|session| session.transaction().is_some());
        let ends_at_first = self.ordered || is_in_transaction;
        let groups = groups(self.models)?;
        let is_single = groups.len() == 1;
        for group in groups {
            let mut database = self.store.database(&group.namespace.db);
            if let Some(session) = &self.session {
                database = database.in_session(Arc::clone(session));
            }
            let (verb, list) = group.kind.words();
            let (first, sent) = (group.first, group.statements.len());
            let mut command =
                doc! { verb: group.namespace.coll, list: group.statements, "ordered": self.ordered };
            command.extend(self.command.clone());
            let failed = match database.write(command) {
                Ok(reply) => {
                    add(&mut done, group.kind, &reply);
                    write_errors(&reply, |place| first + place)
                }
                Err(error @ Error::Closed) if first == 0 => return Err(error),
                Err(error) if first == 0 && (ends_at_first || is_single) => return Err(error),
                Err(error) if ends_at_first => refused_writes(error, first..first + 1)?,
                Err(error) => refused_writes(error, first..first + sent)?,
            };
            debug_assert!(failed.len() <= sent);
            errors.extend(failed);
            if ends_at_first && !errors.is_empty() {
                break;
            }
        }
        if errors.is_empty() {
            return Ok(done);
        }
        let done = if is_in_transaction { SummaryBulkWriteResult::default() } else { done };
        Err(Error::BulkWrite { errors, done })
    }
}

/// The writes as commands, in their order.
fn groups(models: Vec<WriteModel>) -> Result<Vec<Group>, Error> {
    let mut groups: Vec<Group> = Vec::new();
    if models.is_empty() {
        return Err(Error::InvalidArgument("bulk_write needs at least one write".to_owned()));
    }
    for (place, model) in models.into_iter().enumerate() {
        let Statement { kind, namespace, document } =
            model.into_statement().map_err(|error| match error {
                Error::InvalidArgument(message) => {
                    Error::InvalidArgument(format!("write {place} of the list: {message}"))
                }
                other => other,
            })?;
        let bytes = bson::serialize_to_vec(&document)?.len();
        match groups.last_mut() {
            Some(group)
                if group.kind == kind
                    && group.namespace == namespace
                    && group.statements.len() < STATEMENTS_MAX
                    && group.bytes + bytes <= BYTES_MAX =>
            {
                group.bytes += bytes;
                group.statements.push(Bson::Document(document));
            }
            _ => {
                let statements = vec![Bson::Document(document)];
                groups.push(Group { kind, namespace, first: place, statements, bytes });
            }
        }
    }
    Ok(groups)
}

/// Adds the counts of a reply.
fn add(done: &mut SummaryBulkWriteResult, kind: StatementKind, reply: &Document) {
    let n = number(reply, "n");
    match kind {
        StatementKind::Insert => done.inserted_count += n,
        StatementKind::Delete => done.deleted_count += n,
        StatementKind::Update => {
            let upserted = reply.get_array("upserted").map_or(0, |upserted| upserted.len() as u64);
            done.upserted_count += upserted;
            done.matched_count += n - upserted;
            done.modified_count += number(reply, "nModified");
        }
    }
}
