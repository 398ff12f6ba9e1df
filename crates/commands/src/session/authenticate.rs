//! `authenticate`: the login by a certificate. The mechanisms from before SCRAM are refused.

use pando_document::DocumentWriter;

use crate::access::Place;
use crate::arguments::{Arguments, missing};
use crate::context::Context;
use crate::sasl::by_certificate;
use crate::{CommandError, ErrorCode, Request};

/// Logs the user of the certificate in.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let (mut mechanism, mut user) = (None, None);
    for argument in Arguments::of_command("authenticate", request.body) {
        let argument = argument?;
        match argument.name {
            "mechanism" => mechanism = argument.string()?,
            "user" => user = argument.string()?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    let mechanism = mechanism.ok_or_else(|| missing("authenticate", "mechanism"))?;
    match mechanism {
        by_certificate::MECHANISM => {
            let database = context.database;
            let user = by_certificate::log_in(context, database, user, Place::Command)?;
            by_certificate::write(&user, reply);
            Ok(())
        }
        "SCRAM-SHA-1" | "SCRAM-SHA-256" => {
            Err(CommandError::failed(ErrorCode::BadValue, format!("Unsupported mechanism: {mechanism}")))
        }
        _ => Err(CommandError::failed(
            ErrorCode::MechanismUnavailable,
            format!("Received authentication for mechanism {mechanism} which is not enabled"),
        )),
    }
}
