//! `killSessions`, `killAllSessions` and `killAllSessionsByPattern`: end the operations, the transactions and
//! the cursors of sessions.
//!
//! With access control a session belongs to a user. `killSessions` without names then kills those of the own
//! user only. A pattern of users or roles matches no session.

use pando_access::UserName;
use pando_document::{DocumentWriter, RawBinary, RawDocument, RawValue};

use crate::accounts::store;
use crate::arguments::{Argument, missing, unknown_field, wrong_type};
use crate::context::Context;
use crate::generic_arguments::check_session_id;
use crate::session_id::{SessionId, SessionOwner};
use crate::{CommandError, ErrorCode, Request};

/// `killSessions`: the named ones; all if none is named.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let place = "KillSessionsCmd.killSessions";
    let mut wanted = Vec::new();
    for session in documents("KillSessionsCmd", "killSessions", request)? {
        check_session_id(place, session)?;
        wanted.extend(context.named_session(session)?);
    }
    let own = context.session_owner();
    kill(context, |session| match wanted.is_empty() {
        true => session.owner() == own,
        false => wanted.contains(&session),
    });
    Ok(())
}

/// `killAllSessions`: those of the named users; all if none is named.
pub(crate) fn run_all(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let place = "KillAllSessionsCmd.killAllSessions";
    let mut owners = Vec::new();
    for user in documents("KillAllSessionsCmd", "killAllSessions", request)? {
        let (name, database) = user_of(place, user)?;
        context.require_may_block()?;
        let user = UserName::new(name, database);
        if store::user(context.catalog(), &user)?.is_none() {
            return Err(CommandError::failed(
                ErrorCode::UserNotFound,
                format!("Could not find user \"{name}\" for db \"{database}\""),
            ));
        }
        owners.push(SessionOwner::of_digest(user.digest()));
    }
    kill(context, |session| owners.is_empty() || owners.contains(&session.owner()));
    Ok(())
}

/// `killAllSessionsByPattern`: those that one of the patterns matches; all if there is no pattern.
pub(crate) fn run_by_pattern(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let documents = documents("KillAllSessionsByPatternCmd", "killAllSessionsByPattern", request)?;
    let patterns = documents.into_iter().map(Pattern::read).collect::<Result<Vec<_>, _>>()?;
    kill(context, |session| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(session)));
    Ok(())
}

fn kill(context: &Context<'_>, is_wanted: impl Fn(SessionId) -> bool) {
    context.shared.running.kill_sessions(context.record, &is_wanted);
    context.shared.sessions.end_transactions(|session, _| is_wanted(session));
    context.cursors().kill_sessions(&is_wanted);
}

fn documents<'a>(
    owner: &'static str,
    field: &'static str,
    request: &Request<'a>,
) -> Result<Vec<&'a RawDocument>, CommandError> {
    Argument::of_value(owner, field, request.command()?.1).documents()
}

/// The name and the database of a user.
fn user_of<'a>(place: &str, user: &'a RawDocument) -> Result<(&'a str, &'a str), CommandError> {
    let (mut name, mut database) = (None, None);
    for field in user.iter() {
        match field? {
            ("user", RawValue::String(text)) => name = Some(text),
            ("db", RawValue::String(text)) => database = Some(text),
            (field @ ("user" | "db"), other) => {
                return Err(wrong_type(&format!("{place}.{field}"), other, "type 'string'"));
            }
            (field, _) => return Err(unknown_field(place, field)),
        }
    }
    Ok((name.ok_or_else(|| missing(place, "user"))?, database.ok_or_else(|| missing(place, "db"))?))
}

/// A pattern of sessions.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// All sessions.
    All,
    /// No session.
    None,
    /// Those of one user.
    Of(SessionOwner),
    /// One session.
    One(SessionId),
}

impl Pattern {
    fn read(pattern: &RawDocument) -> Result<Pattern, CommandError> {
        let place = "KillAllSessionsByPatternCmd.killAllSessionsByPattern";
        let mut read = Pattern::All;
        for field in pattern.iter() {
            match field? {
                ("lsid", RawValue::Document(session)) => {
                    let place = format!("{place}.lsid");
                    check_session_id(&place, session)?;
                    let digest = session.get("uid")?.ok_or_else(|| missing(&place, "uid"))?;
                    let owner = owner_of(digest);
                    let session = owner.and_then(|owner| SessionId::of(session, owner));
                    read = session.map_or(Pattern::None, Pattern::One);
                }
                ("lsid", other) => {
                    return Err(wrong_type(&format!("{place}.lsid"), other, "type 'object'"));
                }
                ("uid", digest @ RawValue::Binary(_)) => {
                    read = owner_of(digest).map_or(Pattern::None, Pattern::Of);
                }
                ("uid", other) => {
                    return Err(wrong_type(&format!("{place}.uid"), other, "type 'binData'"));
                }
                ("users" | "roles", RawValue::Array(users)) if users.is_empty() => {}
                ("users" | "roles", RawValue::Array(_)) => read = Pattern::None,
                (name @ ("users" | "roles"), other) => {
                    return Err(wrong_type(&format!("{place}.{name}"), other, "type 'array'"));
                }
                (name, _) => return Err(unknown_field(place, name)),
            }
        }
        Ok(read)
    }

    fn matches(self, session: SessionId) -> bool {
        match self {
            Pattern::All => true,
            Pattern::None => false,
            Pattern::Of(owner) => session.owner() == owner,
            Pattern::One(wanted) => wanted == session,
        }
    }
}

fn owner_of(digest: RawValue<'_>) -> Option<SessionOwner> {
    match digest {
        RawValue::Binary(RawBinary { bytes, .. }) => SessionOwner::of_bytes(bytes),
        _ => None,
    }
}
