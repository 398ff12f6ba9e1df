//! The documents that `currentOp` shows: one for each connection, one for each idle cursor.
//!
//! The fields and their order are MongoDB's. Behind them stand the fields that Pando alone has: the counters
//! `keysExamined`, `docsExamined`, `writeConflicts`, `pagesRead`, `bytesRead`, `memoryBytes` and
//! `spilledBytes`, and `waitingFor`. `msg` and `progress` tell how far a long operation is.

use std::time::Duration;

use pando_catalog::{Interruption, OperationWait, ProgressFigures};
use pando_document::{DocumentWriter, RawDocumentBuf};
use pando_environment::Monotonic;
use pando_query::explain::PlanSummary;
use pando_query::iso_text;

use super::{ListedConnection, ListedTransaction, RunningRequest};
use crate::cursor_facts::{CursorFacts, Expiry};

/// The values that all documents of one list share.
pub(crate) struct Surroundings<'s> {
    /// The server's address.
    pub host: &'s str,
    pub names: OperationNames,
    pub now: Monotonic,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

/// The names of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationNames {
    /// Their numbers.
    Numbers,
    /// The server before the number, as a mongos names them: other servers have operations of the same
    /// numbers.
    WithServer,
}

/// The document of a connection.
pub(crate) fn connection_document(
    connection: &ListedConnection,
    surroundings: &Surroundings<'_>,
) -> RawDocumentBuf {
    let mut bytes = Vec::with_capacity(1024);
    let mut out = DocumentWriter::begin(&mut bytes);
    let record = &connection.record;
    out.append_str("type", "op");
    out.append_str("host", surroundings.host);
    match record.description() {
        Some(description) => out.append_str("desc", description),
        None => {
            out.append_str("desc", &format!("conn{}", record.id()));
            out.append_i32("connectionId", i32::try_from(record.id()).unwrap_or(i32::MAX));
            out.append_str("client", record.peer());
        }
    }
    if let Some(application) = record.application() {
        out.append_str("appName", application);
    }
    if let Some(client) = record.client() {
        out.append_raw_document("clientMetadata", client);
    }
    out.append_bool("active", connection.running.is_some());
    out.append_str("currentOpTime", &iso_text(surroundings.now_ms).replace('Z', "+00:00"));
    if let (Some(user), Some(_)) = (&connection.user, &connection.running) {
        let mut users = out.array("effectiveUsers");
        let mut one = users.document();
        one.append_str("user", &user.name);
        one.append_str("db", &user.database);
        one.finish();
        users.finish();
    }
    out.append_bool("threaded", true);
    if let Some(running) = &connection.running {
        write_request(connection, running, surroundings, &mut out);
    }
    out.finish();
    RawDocumentBuf::from_vec(bytes).unwrap_or_default()
}

fn write_request(
    connection: &ListedConnection,
    running: &RunningRequest,
    surroundings: &Surroundings<'_>,
    out: &mut DocumentWriter<'_>,
) {
    let operation = connection.record.operation();
    match surroundings.names {
        OperationNames::Numbers => out.append_i32("opid", running.number),
        OperationNames::WithServer => {
            out.append_str("opid", &format!("{}:{}", surroundings.host, running.number));
        }
    }
    if operation.interruption().is_some_and(|reason| reason != Interruption::TimeLimit) {
        out.append_bool("killPending", true);
    }
    if let Some(session) = &running.session {
        session.write("lsid", out);
    }
    let ran = surroundings.now.since(running.began);
    if let Some(transaction) = &running.transaction {
        let mut inner = out.document("transaction");
        write_transaction(transaction, ran, surroundings, &mut inner);
        inner.finish();
    }
    out.append_i64("secs_running", i64::try_from(ran.as_secs()).unwrap_or(i64::MAX));
    out.append_i64("microsecs_running", microseconds(ran));
    out.append_str("op", running.kind);
    out.append_str("ns", &running.namespace);
    out.append_raw_document("command", &running.command);
    write_plan(&running.plan, out);
    let usage = operation.usage().figures();
    if usage.conflicts > 0 {
        out.append_i64("writeConflicts", count(usage.conflicts));
    }
    if let Some(cursor) = &running.cursor {
        write_cursor(cursor, Some(running.number), out);
    }
    if let Some(progress) = operation.progress() {
        write_progress(progress, out);
    }
    let waits_for = operation.wait();
    out.append_i32("numYields", 0);
    out.document("locks").finish();
    out.append_bool("waitingForLock", waits_for.is_some_and(OperationWait::is_for_another));
    out.document("lockStats").finish();
    out.append_bool("waitingForFlowControl", false);
    out.document("flowControlStats").finish();
    if let Some(wait) = waits_for {
        out.append_str("waitingFor", wait.name());
    }
    out.append_i64("keysExamined", count(usage.keys_examined));
    out.append_i64("docsExamined", count(usage.documents_examined));
    let reads = operation.device().reads();
    if reads.bytes > 0 {
        out.append_i64("pagesRead", count(reads.pages));
        out.append_i64("bytesRead", count(reads.bytes));
    }
    if usage.memory_bytes > 0 {
        out.append_i64("memoryBytes", count(usage.memory_bytes));
    }
    if usage.spills > 0 {
        out.append_i64("spills", count(usage.spills));
        out.append_i64("spilledBytes", count(usage.spilled_bytes));
    }
}

/// Writes the step under way of a long operation, in MongoDB's words for it.
fn write_progress(progress: ProgressFigures, out: &mut DocumentWriter<'_>) {
    let ProgressFigures { step, done, total } = progress;
    let percent = (100 * u128::from(done)).checked_div(u128::from(total)).unwrap_or(100).min(100);
    out.append_str("msg", &format!("{step}: {done}/{total} {percent}%"));
    let mut inner = out.document("progress");
    inner.append_i64("done", count(done));
    inner.append_i64("total", count(total));
    inner.finish();
}

/// Writes the fields of a transaction; `under_way` is the time of the request that works with it.
pub(crate) fn write_transaction(
    transaction: &ListedTransaction,
    under_way: Duration,
    surroundings: &Surroundings<'_>,
    out: &mut DocumentWriter<'_>,
) {
    let iso = |ms: i64| iso_text(ms).replace('Z', "+00:00");
    let mut parameters = out.document("parameters");
    parameters.append_i64("txnNumber", transaction.number);
    parameters.append_bool("autocommit", false);
    let mut concern = parameters.document("readConcern");
    concern.append_str("level", transaction.level);
    concern.finish();
    parameters.finish();
    let open = surroundings.now.since(transaction.began);
    let active = transaction.active + under_way;
    out.append_str("startWallClockTime", &iso(transaction.began_ms));
    out.append_i64("timeOpenMicros", microseconds(open));
    out.append_i64("timeActiveMicros", microseconds(active));
    out.append_i64("timeInactiveMicros", microseconds(open.saturating_sub(active)));
    let lifetime_ms = i64::try_from(transaction.lifetime.as_millis()).unwrap_or(i64::MAX);
    out.append_str("expiryTime", &iso(transaction.began_ms.saturating_add(lifetime_ms)));
}

/// The document of a cursor that waits for its next `getMore`.
pub(crate) fn cursor_document(cursor: &CursorFacts, surroundings: &Surroundings<'_>) -> RawDocumentBuf {
    let mut bytes = Vec::with_capacity(1024);
    let mut out = DocumentWriter::begin(&mut bytes);
    out.append_str("type", "idleCursor");
    out.append_str("host", surroundings.host);
    out.append_str("ns", &cursor.namespace);
    if let Some(session) = &cursor.session {
        session.write("lsid", &mut out);
    }
    write_plan(&cursor.plan, &mut out);
    write_cursor(cursor, None, &mut out);
    out.finish();
    RawDocumentBuf::from_vec(bytes).unwrap_or_default()
}

fn write_plan(plan: &PlanSummary, out: &mut DocumentWriter<'_>) {
    if let Some(text) = plan.text() {
        out.append_str("planSummary", text);
    }
}

fn write_cursor(cursor: &CursorFacts, user: Option<i32>, out: &mut DocumentWriter<'_>) {
    let figures = cursor.figures();
    let mut inner = out.document("cursor");
    inner.append_i64("cursorId", figures.id);
    inner.append_date_time("createdDate", cursor.created_ms);
    inner.append_date_time("lastAccessDate", figures.used_ms);
    inner.append_i64("nDocsReturned", figures.returned);
    inner.append_i64("nBatchesReturned", figures.batches);
    inner.append_bool("noCursorTimeout", cursor.expiry != Expiry::TimesOut);
    inner.append_bool("tailable", false);
    inner.append_bool("awaitData", false);
    inner.append_raw_document("originatingCommand", &cursor.command);
    if let Some(number) = user {
        inner.append_i64("operationUsingCursorId", i64::from(number));
    }
    inner.finish();
}

fn microseconds(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
