//! `getLastError`: the outcome of the connection's last write, for clients from before write commands; and
//! `resetError`, which forgets it.
//!
//! The write concern stands beside the name: `{getLastError: 1, w: 1, j: true}`. A concern that waits for the
//! device waits for the last commit of the connection. A write that has failed is told at once.
//!
//! Clients of today have neither: a message is refused in the words of MongoDB.

use pando_catalog::Durability;
use pando_document::{Document, DocumentWriter, RawDocument, RawValue};

use crate::context::{Context, RequestForm};
use crate::generic_arguments::{ClusterTimes, Promise, WriteConcern};
use crate::{CommandError, ErrorCode, Request};

/// The fields of the request that make its write concern.
const CONCERN_FIELDS: [&str; 6] = ["w", "j", "fsync", "wtimeout", "wOpTime", "wElectionId"];

/// Answers the outcome of the last write.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    if context.form == RequestForm::Message {
        let code = ErrorCode::Location(5_739_000);
        return Err(CommandError::failed(code, "getLastError command is not supported"));
    }
    let times = context.shared.cluster_clock.as_ref().map_or(ClusterTimes::Unknown, |_| ClusterTimes::Known);
    let concern = read_concern(request, times)?;
    let write = context.connection.last_write().cloned();
    if let Some(write) = &write {
        if let Some(updated_existing) = write.updated_existing() {
            reply.append_bool("updatedExisting", updated_existing);
        }
        if let Some(upserted) = &write.upserted {
            reply.append_value("upserted", upserted);
        }
    }
    let documents = write.as_ref().map_or(0, |write| write.documents);
    match i32::try_from(documents) {
        Ok(documents) => reply.append_i32("n", documents),
        Err(_) => reply.append_i64("n", documents),
    }
    reply.append_i32("connectionId", i32::try_from(context.connection.id()).unwrap_or(i32::MAX));
    match write.and_then(|write| write.failure) {
        Some(failure) => {
            reply.append_str("err", &failure.message);
            reply.append_i32("code", failure.code);
        }
        None => {
            reply.append_null("err");
            if concern.durability == Durability::Synced {
                context.await_last_commit(Durability::Synced);
            }
        }
    }
    Ok(())
}

/// Forgets the last write.
pub(crate) fn run_reset(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_legacy_query(request)?;
    context.connection.forget_last_write();
    Ok(())
}

/// The write concern. One that this server cannot keep is shown in the error, as `badGLE`.
fn read_concern(request: &Request<'_>, times: ClusterTimes) -> Result<WriteConcern, CommandError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    for name in CONCERN_FIELDS {
        match request.body.get(name)? {
            None | Some(RawValue::Null) => {}
            Some(value) => writer.append(name, value),
        }
    }
    writer.finish();
    let concern = RawDocument::from_bytes(&bytes)?;
    let concern =
        WriteConcern::read(RawValue::Document(concern), times).and_then(|read| match read.promise {
            Promise::Kept => Ok(read),
            promise => Err(promise.failure(concern).into()),
        });
    concern.map_err(|error| match error {
        CommandError::Failed(mut failure) => {
            if let Ok(mut asked) = Document::from_raw(request.body) {
                asked.remove("$db");
                failure.details.push("badGLE", asked);
            }
            CommandError::Failed(failure)
        }
        other => other,
    })
}
