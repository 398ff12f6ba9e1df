//! The document that `currentOp` shows of an open transaction that no request works with.

use std::time::Duration;

use pando_document::{DocumentWriter, RawDocumentBuf};
use pando_query::iso_text;

use crate::operations::Surroundings;
use crate::sessions::OpenTransaction;

/// The document. Its fields and their order are MongoDB's.
pub(crate) fn session_document(
    open: &OpenTransaction,
    lifetime: Duration,
    surroundings: &Surroundings<'_>,
) -> RawDocumentBuf {
    let mut bytes = Vec::with_capacity(1024);
    let mut out = DocumentWriter::begin(&mut bytes);
    let connection = &open.begun.connection;
    out.append_str("type", "idleSession");
    out.append_str("host", surroundings.host);
    out.append_str("desc", "inactive transaction");
    out.append_str("client", connection.peer());
    out.append_i32("connectionId", i32::try_from(connection.id()).unwrap_or(i32::MAX));
    out.append_str("appName", connection.application().unwrap_or_default());
    if let Some(client) = connection.client() {
        out.append_raw_document("clientMetadata", client);
    }
    open.session.write("lsid", &mut out);
    let mut transaction = out.document("transaction");
    write_transaction(open, lifetime, surroundings, &mut transaction);
    transaction.finish();
    out.append_bool("waitingForLock", false);
    out.append_bool("active", false);
    out.document("locks").finish();
    out.document("lockStats").finish();
    out.finish();
    RawDocumentBuf::from_vec(bytes).unwrap_or_default()
}

fn write_transaction(
    open: &OpenTransaction,
    lifetime: Duration,
    surroundings: &Surroundings<'_>,
    out: &mut DocumentWriter<'_>,
) {
    let microseconds = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let iso = |ms: i64| iso_text(ms).replace('Z', "+00:00");
    let mut parameters = out.document("parameters");
    parameters.append_i64("txnNumber", open.number);
    parameters.append_bool("autocommit", false);
    let mut concern = parameters.document("readConcern");
    concern.append_str("level", open.begun.level);
    concern.finish();
    parameters.finish();
    let (ran, active) = (surroundings.now.since(open.begun.at), open.active());
    out.append_str("startWallClockTime", &iso(open.begun.ms));
    out.append_i64("timeOpenMicros", microseconds(ran));
    out.append_i64("timeActiveMicros", microseconds(active));
    out.append_i64("timeInactiveMicros", microseconds(ran.saturating_sub(active)));
    let lifetime_ms = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
    out.append_str("expiryTime", &iso(open.begun.ms.saturating_add(lifetime_ms)));
}
