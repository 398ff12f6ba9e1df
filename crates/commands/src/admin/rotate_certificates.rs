//! `rotateCertificates`: new connections get the certificates that are in the files now. A server without TLS
//! answers as if it had done so, as MongoDB's does.

use pando_document::DocumentWriter;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Reads the files again.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let mut message = None;
    for argument in Arguments::of_command("rotateCertificates", request.body) {
        let argument = argument?;
        match argument.name {
            "message" => message = argument.string()?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    let Some(certificates) = &context.shared.options.certificates else { return Ok(()) };
    context.require_may_block()?;
    tracing::info!(
        "{} asks to read the certificates again: {}",
        context.connection.peer(),
        message.unwrap_or("no message")
    );
    certificates.rotate().map_err(|fault| CommandError::failed(ErrorCode::InvalidSslConfiguration, fault))
}
