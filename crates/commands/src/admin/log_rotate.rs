//! `logRotate`: the audit trail begins a new file. The log of the server goes to standard error, which has no
//! file of its own.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Rotates the files that the client means: all of them, or one by its name.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    _reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    for argument in Arguments::of_command("logRotate", request.body) {
        argument?.refuse_unless_generic()?;
    }
    let named = match request.command()?.1 {
        RawValue::String(name) => Some(name),
        RawValue::Boolean(_) => None,
        value if value.is_number() => None,
        value => {
            let sentence = format!(
                "BSON field 'logRotate.logRotate' is the wrong type '{}', expected types '[bool, string']",
                value.element_type().alias()
            );
            return Err(CommandError::failed(ErrorCode::TypeMismatch, sentence));
        }
    };
    let failed = |code| CommandError::failed(code, "Log rotation failed due to one or more errors");
    match (named, &context.shared.options.audit) {
        (Some("server"), _) | (None, None) => Ok(()),
        (Some("audit") | None, Some(trail)) => {
            context.require_may_block()?;
            trail.rotate().map_err(|fault| {
                tracing::warn!("{fault}; the audit trail goes on in the same file");
                failed(ErrorCode::FileRenameFailed)
            })
        }
        (Some(_), _) => Err(failed(ErrorCode::NoSuchKey)),
    }
}
