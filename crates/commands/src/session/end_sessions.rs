//! `endSessions` and `refreshSessions`: lists of sessions, checked and then forgotten.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Argument, no_more, wrong_type};
use crate::context::Context;
use crate::generic_arguments::check_session_id;
use crate::{CommandError, Request};

/// `endSessions`.
pub(crate) fn run(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    check("endSessions", request)
}

/// `refreshSessions`.
pub(crate) fn run_refresh(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    check("refreshSessions", request)
}

fn check(command: &'static str, request: &Request<'_>) -> Result<(), CommandError> {
    let sessions = Argument::of_value(command, command, request.command()?.1).array()?;
    for (at, session) in sessions.iter().enumerate() {
        match session? {
            RawValue::Document(session) => {
                check_session_id(&format!("{command}.{command}FromClient"), session)?
            }
            RawValue::Null | RawValue::Undefined => {}
            other => {
                let place = format!("{command}.{command}FromClient.{at}");
                return Err(wrong_type(&place, other, "type 'object'"));
            }
        }
    }
    no_more(command, request.body)
}
