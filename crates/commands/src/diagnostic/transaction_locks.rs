//! `showLiveTransactions` and `showPendingLockRequests`, as TokuMX had them: the transactions that are open
//! with the keys that they have claimed, and the statements that wait for a key.
//!
//! Both answer an array, or a cursor where the request has the field `cursor`.

use std::collections::BTreeMap;

use pando_catalog::{Contest, HeldKey, Intents, KeyOwners, OwnedKey, TransactionId, WaitRequest};
use pando_document::{Binary, Document, DocumentWriter, Value};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::cursor_reply::{self, ListSource, NewCursor, cursor_batch_size};
use crate::{CommandError, Request};

/// Claimed keys and waits that one answer has at most.
const LISTED_MAX: usize = 10_000;

/// Answers the transactions.
pub(crate) fn run_transactions(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    // There may be many claims and waits.
    context.require_may_block()?;
    let list = List { command: "showLiveTransactions", field: "transactions" };
    let documents = match context.catalog().engine().intents() {
        Some(intents) => live_transactions(context, intents),
        None => Vec::new(),
    };
    list.answer(context, request, documents, reply)
}

/// Answers the waits.
pub(crate) fn run_requests(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    // There may be many claims and waits.
    context.require_may_block()?;
    let list = List { command: "showPendingLockRequests", field: "requests" };
    let documents = match context.catalog().engine().intents() {
        Some(intents) => pending_requests(context, intents),
        None => Vec::new(),
    };
    list.answer(context, request, documents, reply)
}

/// A list that a command answers.
struct List {
    command: &'static str,
    field: &'static str,
}

impl List {
    fn answer(
        &self,
        context: &mut Context<'_>,
        request: &Request<'_>,
        documents: Vec<Document>,
        reply: &mut DocumentWriter<'_>,
    ) -> Result<(), CommandError> {
        let mut batch_size = None;
        let mut wants_cursor = false;
        for argument in Arguments::of_command(self.command, request.body) {
            let argument = argument?;
            match argument.name {
                "cursor" => {
                    wants_cursor = true;
                    if let Some(cursor) = argument.document()? {
                        batch_size = cursor_batch_size(self.command, cursor)?;
                    }
                }
                _ => argument.refuse_unless_generic()?,
            }
        }
        if wants_cursor {
            let documents = documents.iter().map(|document| document.to_raw().into_vec()).collect();
            let namespace = format!("{}.$cmd.{}", context.database, self.command);
            let source = Box::new(ListSource::new(documents));
            let cursor = NewCursor {
                first_batch: batch_size.or(Some(u64::MAX)),
                ..NewCursor::new(request.body, namespace, source, context.query_account())
            };
            return cursor_reply::open(context, cursor, reply);
        }
        let mut list = reply.array(self.field);
        for document in &documents {
            list.push_document(&document.to_raw());
        }
        list.finish();
        Ok(())
    }
}

/// The open transactions of sessions, and every other one that has claimed a key, in the order of their
/// begin.
fn live_transactions(context: &Context<'_>, intents: &Intents) -> Vec<Document> {
    let owners = KeyOwners::of_catalog(context.catalog());
    let mut claimed: BTreeMap<TransactionId, Vec<HeldKey>> = BTreeMap::new();
    for key in intents.held_keys(LISTED_MAX) {
        claimed.entry(key.owner).or_default().push(key);
    }
    let mut sessions = BTreeMap::new();
    for open in context.shared.sessions.open() {
        if let Some(id) = open.id {
            claimed.entry(id).or_default();
            sessions.insert(id, open);
        }
    }
    let document = |(id, keys): (TransactionId, Vec<HeldKey>)| {
        let mut document = Document::new();
        document.push("txnid", number(id));
        if let Some(open) = sessions.get(&id) {
            let mut session = Document::new();
            let bytes = open.session.number().to_vec();
            session.push("id", Value::Binary(Binary { subtype: 4, bytes }));
            document.push("lsid", Value::Document(session));
            document.push("txnNumber", Value::Int64(open.number));
            document.push("client", Value::String(open.begun.connection.peer().to_owned()));
            document.push("started", Value::DateTime(open.begun.ms));
        }
        let locks = keys.iter().map(|key| {
            let OwnedKey { index, values } = owners.describe(key.tree, &key.start);
            let mut lock = Document::new();
            lock.push("index", Value::String(index));
            lock.push("bounds", bounds(values));
            if !key.is_whole {
                lock.push("truncated", Value::Boolean(true));
            }
            Value::Document(lock)
        });
        document.push("rowLocks", Value::Array(locks.collect()));
        document
    };
    claimed.into_iter().map(document).collect()
}

/// The statements that wait, the earliest first.
fn pending_requests(context: &Context<'_>, intents: &Intents) -> Vec<Document> {
    let owners = KeyOwners::of_catalog(context.catalog());
    let document = |(wait, holder): &(WaitRequest, Option<TransactionId>)| {
        let contested = &wait.contested;
        let mut document = Document::new();
        let OwnedKey { index, values } = owners.describe(contested.tree, &contested.key);
        document.push("index", Value::String(index));
        document.push("requestingTxnid", number(contested.requester));
        let held_before = match contested.contest {
            Contest::Held(holder) => Some(holder),
            Contest::Reserved | Contest::Committed => None,
        };
        if let Some(holder) = holder.or(held_before) {
            document.push("blockingTxnid", number(holder));
        }
        document.push("started", Value::DateTime(wait.started_ms));
        document.push("bounds", bounds(values));
        document
    };
    intents.waits().iter().take(LISTED_MAX).map(document).collect()
}

/// A key as both ends of a range.
fn bounds(key: Document) -> Value {
    let end = Value::Document(key);
    Value::Array(vec![end.clone(), end])
}

fn number(id: TransactionId) -> Value {
    Value::Int64(i64::try_from(id.get()).unwrap_or(i64::MAX))
}
