//! The document that `currentOp` shows of an open transaction that no request works with.

use std::time::Duration;

use pando_document::{DocumentWriter, RawDocumentBuf};

use crate::operations::{Surroundings, write_transaction};
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
    write_transaction(&open.listed(lifetime), Duration::ZERO, surroundings, &mut transaction);
    transaction.finish();
    out.append_bool("waitingForLock", false);
    out.append_bool("active", false);
    out.document("locks").finish();
    out.document("lockStats").finish();
    out.finish();
    RawDocumentBuf::from_vec(bytes).unwrap_or_default()
}
