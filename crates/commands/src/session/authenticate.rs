//! `authenticate`: the login by a certificate, or by a mechanism from before SCRAM. This server has neither.

use pando_document::DocumentWriter;

use crate::arguments::{Arguments, missing};
use crate::context::Context;
use crate::sasl::authentication_failed;
use crate::{CommandError, ErrorCode, Request};

/// Refuses the login.
pub(crate) fn run(
    _context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let mut mechanism = None;
    for argument in Arguments::of_command("authenticate", request.body) {
        let argument = argument?;
        match argument.name {
            "mechanism" => mechanism = argument.string()?,
            "user" => drop(argument.string()?),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let mechanism = mechanism.ok_or_else(|| missing("authenticate", "mechanism"))?;
    match mechanism {
        "MONGODB-X509" => Err(authentication_failed()),
        "SCRAM-SHA-1" | "SCRAM-SHA-256" => {
            Err(CommandError::failed(ErrorCode::BadValue, format!("Unsupported mechanism: {mechanism}")))
        }
        _ => Err(CommandError::failed(
            ErrorCode::MechanismUnavailable,
            format!("Received authentication for mechanism {mechanism} which is not enabled"),
        )),
    }
}
