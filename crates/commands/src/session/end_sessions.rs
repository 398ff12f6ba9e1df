//! `endSessions` and `refreshSessions`: lists of sessions. The cursors and open transactions of sessions that
//! end are closed. (MongoDB leaves the transactions to their time limit.)

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Argument, no_more, wrong_type};
use crate::context::Context;
use crate::generic_arguments::check_session_id;
use crate::session_id::SessionId;
use crate::{CommandError, Request};

/// `endSessions`.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let sessions = read(context, "endSessions", request)?;
    if !sessions.is_empty() {
        context.shared.sessions.end_transactions(|session, _| sessions.contains(&session));
        context.cursors().kill_sessions(|session| sessions.contains(&session));
    }
    Ok(())
}

/// `refreshSessions`.
pub(crate) fn run_refresh(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    for session in read(context, "refreshSessions", request)? {
        context.cursors().touch_session(session, || context.shared.now_ms());
    }
    Ok(())
}

fn read(
    context: &Context<'_>,
    command: &'static str,
    request: &Request<'_>,
) -> Result<Vec<SessionId>, CommandError> {
    let mut read = Vec::new();
    let sessions = Argument::of_value(command, command, request.command()?.1).array()?;
    for (at, session) in sessions.iter().enumerate() {
        match session? {
            RawValue::Document(session) => {
                check_session_id(&format!("{command}.{command}FromClient"), session)?;
                read.extend(context.named_session(session)?);
            }
            RawValue::Null | RawValue::Undefined => {}
            other => {
                let place = format!("{command}.{command}FromClient.{at}");
                return Err(wrong_type(&place, other, "type 'object'"));
            }
        }
    }
    no_more(command, request.body)?;
    Ok(read)
}
