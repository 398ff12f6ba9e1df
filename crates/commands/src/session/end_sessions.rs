//! `endSessions` and `refreshSessions`: lists of sessions, checked and then forgotten.

use pando_document::{DocumentWriter, RawValue};

use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// `endSessions`.
pub(crate) fn run(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    check(request)
}

/// `refreshSessions`.
pub(crate) fn run_refresh(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    check(request)
}

fn check(request: &Request<'_>) -> Result<(), CommandError> {
    let (name, value) = request.command()?;
    match value {
        RawValue::Array(_) => Ok(()),
        other => Err(CommandError::failed(
            ErrorCode::TypeMismatch,
            format!(
                "BSON field '{name}.{name}' is the wrong type '{}', expected type 'array'",
                other.element_type().alias()
            ),
        )),
    }
}
