//! A command that came as a query of `database.$cmd`.
//!
//! It may stand in a `$query` beside a `$readPreference`. An `aggregate` without `cursor` is answered as
//! before cursors: `{result: [...], ok: 1}`.

use pando_document::{DocumentError, DocumentWriter, RawDocument, RawValue};

use super::translation::{command, copy_fields, unreadable};
use super::{Answer, Exchange, LegacyBatch, LegacyQuery, Reply, WouldBlock};
use crate::ErrorCode;
use crate::error::Failure;
use crate::last_write::{LastWrite, WriteFailure, WriteKind, command_failure};

/// The fields of a `$query` document that are not fields of its command.
const WRAPPERS: [&str; 2] = ["$query", "query"];

/// Runs a command.
pub(super) fn run(
    exchange: &mut Exchange<'_>,
    database: &str,
    query: &LegacyQuery<'_>,
    out: &mut Vec<u8>,
) -> Result<Reply, WouldBlock> {
    if !matches!(query.number_to_return, 1 | -1) {
        let number = query.number_to_return;
        let sentence = format!("Bad numberToReturn ({number}) for $cmd type ns - can only be 1 or -1");
        return Ok(write_refusal(exchange, &WriteFailure { code: 16_979, message: sentence }, out));
    }
    let translated = unwrapped(query.query).and_then(|(body, preference)| {
        let result_form = result_form(body)?;
        let copied = copied(database, body, preference, result_form)?;
        Ok((copied, write_kind(body), result_form))
    });
    let (body, kind, result_form) = match translated {
        Ok(translated) => translated,
        Err(error) => return Ok(write_refusal(exchange, &unreadable(&error), out)),
    };
    let mut answer = exchange.ask_body(&body)?;
    if let Some(kind) = kind {
        exchange.note(LastWrite::of_reply(kind, answer.document()));
    }
    if result_form == ResultForm::Array {
        rewrite_as_result(exchange, &mut answer);
    }
    out.extend_from_slice(&answer.document);
    Ok(Reply { batch: LegacyBatch::COMMAND, wait: answer.wait })
}

/// Runs the command that has taken the place of a pseudo-collection.
pub(super) fn run_pseudo(
    exchange: &mut Exchange<'_>,
    name: &str,
    query: &LegacyQuery<'_>,
    out: &mut Vec<u8>,
) -> Result<Reply, WouldBlock> {
    let mut copied = Ok(());
    let body = command("admin", |writer| {
        writer.append_i32(name, 1);
        copied = copy_fields(query.query, &["$db", name], writer);
    });
    if let Err(error) = copied {
        return Ok(write_refusal(exchange, &unreadable(&error), out));
    }
    let answer = exchange.ask_body(&body)?;
    out.extend_from_slice(&answer.document);
    Ok(Reply { batch: LegacyBatch::COMMAND, wait: answer.wait })
}

/// The form in which a command answers its documents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResultForm {
    /// A cursor, or none at all.
    AsToday,
    /// An array with all of them.
    Array,
}

fn result_form(body: &RawDocument) -> Result<ResultForm, DocumentError> {
    let is_aggregate = matches!(body.iter().next(), Some(Ok(("aggregate", _))));
    let is_explain = matches!(body.get("explain")?, Some(explain) if explain.to_bool());
    Ok(match is_aggregate && !is_explain && body.get("cursor")?.is_none() {
        true => ResultForm::Array,
        false => ResultForm::AsToday,
    })
}

/// The command of a query document, and the read preference beside it.
fn unwrapped(query: &RawDocument) -> Result<(&RawDocument, Option<RawValue<'_>>), DocumentError> {
    match query.iter().next().transpose()? {
        Some((name, RawValue::Document(inner))) if WRAPPERS.contains(&name) => {
            Ok((inner, query.get("$readPreference")?))
        }
        _ => Ok((query, None)),
    }
}

/// The command with the `$db` that every request of today has.
fn copied(
    database: &str,
    body: &RawDocument,
    preference: Option<RawValue<'_>>,
    result_form: ResultForm,
) -> Result<Vec<u8>, DocumentError> {
    let mut outcome = Ok(());
    let without: &[&str] = if is_preallocation(body)? { &["$db", "size"] } else { &["$db"] };
    let bytes = command(database, |writer| {
        outcome = copy_fields(body, without, writer);
        if let (Some(preference), Ok(None)) = (preference, body.get("$readPreference")) {
            writer.append("$readPreference", preference);
        }
        if result_form == ResultForm::Array {
            let mut cursor = writer.document("cursor");
            cursor.append_i32("batchSize", i32::MAX);
            cursor.finish();
        }
    });
    outcome.map(|()| bytes)
}

/// Whether it makes a collection for which room was to be set aside, which has no meaning any more.
fn is_preallocation(body: &RawDocument) -> Result<bool, DocumentError> {
    let makes = matches!(body.iter().next(), Some(Ok(("create", _))));
    Ok(makes && !body.get("capped")?.is_some_and(|capped| capped.to_bool()))
}

/// The kind of write that a command is, for `getLastError`.
fn write_kind(body: &RawDocument) -> Option<WriteKind> {
    match body.iter().next()?.ok()?.0 {
        "insert" => Some(WriteKind::Insert),
        "update" => Some(WriteKind::Update),
        "delete" => Some(WriteKind::Delete),
        "findAndModify" | "findandmodify" => Some(WriteKind::FindAndModify),
        _ => None,
    }
}

/// Turns the reply `{cursor: {firstBatch, id, ns}, ok}` into `{result: [...], ok}`.
fn rewrite_as_result(exchange: &mut Exchange<'_>, answer: &mut Answer) {
    if command_failure(answer.document()).is_some() {
        return;
    }
    let cursor = answer.document().get("cursor").ok().flatten();
    let Some(cursor) = cursor.and_then(|cursor| cursor.as_document()) else { return };
    let id = cursor.get("id").ok().flatten().and_then(|id| id.as_i64_exact()).unwrap_or_default();
    let mut rewritten = Vec::new();
    if id == 0 {
        let mut writer = DocumentWriter::begin(&mut rewritten);
        if let Ok(Some(documents)) = cursor.get("firstBatch") {
            writer.append("result", documents);
        }
        writer.append_f64("ok", 1.0);
        writer.finish();
    } else {
        exchange.commands.kill_cursors(exchange.connection, std::iter::once(id));
        let sentence = "aggregation result exceeds maximum document size (16MB)";
        let failure = Failure::new(ErrorCode::Location(16_389), sentence);
        exchange.commands.write_failure(&mut rewritten, &failure);
    }
    answer.document = rewritten;
}

/// Appends the reply of a command that was refused before it ran.
fn write_refusal(exchange: &Exchange<'_>, failure: &WriteFailure, out: &mut Vec<u8>) -> Reply {
    let code = match failure.code {
        code if code == ErrorCode::InvalidBson.code() => ErrorCode::InvalidBson,
        code => ErrorCode::Location(code),
    };
    exchange.commands.write_failure(out, &Failure::new(code, failure.message.as_str()));
    LegacyBatch::COMMAND.into()
}
