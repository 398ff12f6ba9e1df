//! Questions to the other servers of a shared store, and their answers: the operations of a server, and the
//! end of one.
//!
//! ```text
//! { operations: { idleConnections, idleCursors, idleSessions }, user: { user, db } }
//!                                        → { operations: [ … ], leftOut: number }
//! { kill: number, user: { user, db } }   → { outcome: "killed" | "refused" }
//! ```
//!
//! `user` stands there where the client may see or end the operations of this user only. The server that asks
//! has checked the rights of its client. The questions lie in the store, where clients cannot write them.

use pando_access::UserName;
use pando_catalog::{Answers, Asked, Question};
use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue};

use crate::context::Context;
use crate::diagnostic::current_op::{UsersOfOperations, WantedOperations};
use crate::shared_state::SharedState;
use crate::{CommandError, ErrorCode};

/// The most bytes of operations in an answer. Others are counted.
const ANSWER_BYTES_MAX: usize = 12 << 20;

/// The outcome of a `killOp` at another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillOutcome {
    /// The operation is interrupted, or there was none.
    Killed,
    /// It is one of another user.
    Refused,
}

/// Lists the operations of the other servers. A document stands for each server that has not answered.
/// Blocks.
pub(super) fn operations(
    context: &Context<'_>,
    wanted: WantedOperations,
    own: Option<&UserName>,
) -> Result<Vec<RawDocumentBuf>, CommandError> {
    let text = document(|question| {
        let mut options = question.document("operations");
        options.append_bool("idleConnections", wanted.idle_connections);
        options.append_bool("idleCursors", wanted.idle_cursors);
        options.append_bool("idleSessions", wanted.idle_sessions);
        options.finish();
        write_user(own, question);
    });
    let Answers { given, silent } =
        context.catalog().ask(Asked::Others, text.as_bytes(), context.operation)?;
    let mut documents = Vec::new();
    for answer in given {
        let text = RawDocument::from_bytes(&answer.text)?;
        if let Some(RawValue::Array(operations)) = text.get("operations")? {
            for operation in operations.iter() {
                documents.extend(operation?.as_document().map(RawDocument::to_owned));
            }
        }
        if let Some(left_out) = text.get("leftOut")?.and_then(|count| count.as_i64_exact())
            && left_out > 0
        {
            documents.push(incomplete(&answer.server, &format!("{left_out} more operations are left out")));
        }
    }
    documents.extend(silent.iter().map(|server| incomplete(server, "the server has not answered")));
    Ok(documents)
}

/// The document in the place of operations that are not told.
fn incomplete(server: &str, reason: &str) -> RawDocumentBuf {
    document(|out| {
        out.append_str("type", "incomplete");
        out.append_str("host", server);
        out.append_str("desc", reason);
    })
}

/// Interrupts an operation of another server; `own` is the user that may end the own operations only. Blocks.
pub(crate) fn kill(
    context: &Context<'_>,
    (server, number): (&str, i32),
    own: Option<&UserName>,
) -> Result<KillOutcome, CommandError> {
    let text = document(|question| {
        question.append_i32("kill", number);
        write_user(own, question);
    });
    let asked = Asked::Named(server);
    let Answers { given, silent } = context.catalog().ask(asked, text.as_bytes(), context.operation)?;
    if !silent.is_empty() {
        let reason = format!(
            "the server {server} has not answered, and the operation {server}:{number} may go on: try again, \
             or send killOp to that server"
        );
        return Err(CommandError::failed(ErrorCode::HostUnreachable, reason));
    }
    let Some(answer) = given.first() else {
        let reason = format!("no server of the store has the name {server}: currentOp shows the names");
        return Err(CommandError::failed(ErrorCode::BadValue, reason));
    };
    match RawDocument::from_bytes(&answer.text)?.get("outcome")? {
        Some(RawValue::String("refused")) => Ok(KillOutcome::Refused),
        _ => Ok(KillOutcome::Killed),
    }
}

/// Answers a question of another server. `None` for one that this server does not understand: a newer server
/// asks.
pub(crate) fn answer_to(shared: &SharedState, question: &Question) -> Option<RawDocumentBuf> {
    let question = RawDocument::from_bytes(&question.text).ok()?;
    let own = match question.get("user").ok()? {
        None => None,
        Some(user) => {
            let user = user.as_document()?;
            let text = |name| user.get(name).ok()?.and_then(|value| value.as_str());
            Some(UserName::new(text("user")?, text("db")?))
        }
    };
    match question.iter().next()?.ok()? {
        ("operations", RawValue::Document(options)) => {
            let flag = |name| options.get(name).ok().flatten().is_some_and(|value| value.to_bool());
            let wanted = WantedOperations {
                of_users: UsersOfOperations::All,
                idle_connections: flag("idleConnections"),
                idle_cursors: flag("idleCursors"),
                idle_sessions: flag("idleSessions"),
                ..WantedOperations::default()
            };
            Some(operations_told(wanted.list_here(shared, own.as_ref())))
        }
        ("kill", RawValue::Int32(number)) => {
            let is_refused = own.is_some_and(|own| !shared.running.is_of(number, &own));
            if !is_refused {
                shared.running.kill(number);
            }
            let outcome = if is_refused { "refused" } else { "killed" };
            Some(document(|answer| answer.append_str("outcome", outcome)))
        }
        _ => None,
    }
}

/// As many operations as an answer takes.
fn operations_told(documents: Vec<RawDocumentBuf>) -> RawDocumentBuf {
    let (mut bytes, mut left_out) = (0, 0);
    document(|answer| {
        let mut list = answer.array("operations");
        for document in documents {
            bytes += document.as_bytes().len();
            match bytes <= ANSWER_BYTES_MAX {
                true => list.push_document(&document),
                false => left_out += 1,
            }
        }
        list.finish();
        answer.append_i64("leftOut", left_out);
    })
}

fn write_user(user: Option<&UserName>, question: &mut DocumentWriter<'_>) {
    if let Some(user) = user {
        let mut inner = question.document("user");
        inner.append_str("user", &user.name);
        inner.append_str("db", &user.database);
        inner.finish();
    }
}

fn document(write: impl FnOnce(&mut DocumentWriter<'_>)) -> RawDocumentBuf {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    write(&mut writer);
    writer.finish();
    RawDocumentBuf::from_vec(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_as_many_operations_as_it_may_and_counts_the_others() {
        let operation = document(|one| one.append_str("desc", &"x".repeat(5 << 20)));
        let told = operations_told(vec![operation.clone(), operation.clone(), operation]);
        let Ok(Some(RawValue::Array(list))) = told.get("operations") else { panic!("{told:?}") };
        assert_eq!(list.iter().count(), 2);
        assert!(matches!(told.get("leftOut"), Ok(Some(RawValue::Int64(1)))), "{told:?}");
    }
}
