//! A query of a collection: `find`, or `explain` of it.
//!
//! The number to return says how the first batch ends:
//!
//! | number | batch | cursor |
//! |---|---|---|
//! | 0 | the server's choice | stays open |
//! | 2 and more | so many documents | stays open |
//! | 1, -1 | one document | closed |
//! | -2 and less | so many documents, without the sign | closed |

use pando_document::DocumentWriter;

use super::modifiers::{QueryParts, Wish};
use super::translation::{command, refusal, write_batch};
use super::{Exchange, LegacyBatch, LegacyQuery, Reply, WouldBlock, write_query_failure};
use crate::ErrorCode;
use crate::last_write::{WriteFailure, command_failure};

/// Answers the first batch, or the plan.
pub(super) fn run(
    exchange: &mut Exchange<'_>,
    (database, collection): (&str, &str),
    query: &LegacyQuery<'_>,
    out: &mut Vec<u8>,
) -> Result<Reply, WouldBlock> {
    let parts = match check_flags(query).and_then(|()| QueryParts::read(query.query)) {
        Ok(parts) => parts,
        Err(failure) => return Ok(write_query_failure(&failure, out).into()),
    };
    match parts.wish {
        Wish::Documents => {
            let body = command(database, |writer| write_find(writer, collection, query, &parts));
            let answer = exchange.ask_body(&body)?;
            Ok(write_batch(answer, "firstBatch", 0, out))
        }
        Wish::Explanation => {
            let body = command(database, |writer| {
                let mut find = writer.document("explain");
                write_find(&mut find, collection, query, &parts);
                find.finish();
                writer.append_str("verbosity", "executionStats");
            });
            let answer = exchange.ask_body(&body)?;
            if let Some(failure) = command_failure(answer.document()) {
                return Ok(write_query_failure(&failure, out).into());
            }
            out.extend_from_slice(&answer.document);
            Ok(LegacyBatch::COMMAND.into())
        }
    }
}

/// Refuses a query whose replies the client would not ask for one by one.
pub(super) fn check_flags(query: &LegacyQuery<'_>) -> Result<(), WriteFailure> {
    if query.flags.exhaust {
        let sentence = "exhaust cursors are not supported: ask for each batch by OP_GET_MORE";
        return Err(refusal(ErrorCode::BadValue, sentence));
    }
    Ok(())
}

/// Writes the fields of `find`.
fn write_find(
    find: &mut DocumentWriter<'_>,
    collection: &str,
    query: &LegacyQuery<'_>,
    parts: &QueryParts<'_>,
) {
    find.append_str("find", collection);
    find.append_raw_document("filter", parts.filter);
    if let Some(projection) = query.projection {
        find.append_raw_document("projection", projection);
    }
    let hint_of_snapshot = parts.is_snapshot && parts.sort.is_none() && parts.hint.is_none();
    for (name, value) in [
        ("sort", parts.sort),
        ("hint", parts.hint),
        ("min", parts.min),
        ("max", parts.max),
        ("maxTimeMS", parts.max_time),
        ("comment", parts.comment),
        ("$readPreference", parts.read_preference),
        ("returnKey", parts.return_key),
        ("showRecordId", parts.show_record_id),
    ] {
        if let Some(value) = value {
            find.append(name, value);
        }
    }
    if hint_of_snapshot {
        let mut hint = find.document("hint");
        hint.append_i32("_id", 1);
        hint.finish();
    }
    if query.skip != 0 {
        find.append_i32("skip", query.skip);
    }
    match query.number_to_return {
        0 => {}
        number @ 2.. => find.append_i32("batchSize", number),
        number => {
            let count = i64::from(number.unsigned_abs());
            find.append_i64("limit", count);
            find.append_i64("batchSize", count);
            find.append_bool("singleBatch", true);
        }
    }
    if query.flags.tailable {
        find.append_bool("tailable", true);
        if query.flags.awaits_data {
            find.append_bool("awaitData", true);
        }
    }
    if query.flags.no_cursor_timeout {
        find.append_bool("noCursorTimeout", true);
    }
}
