//! `killOp`: interrupts an operation by its number. An operation that is not there is no error.
//!
//! In a shared store operations have names, `host:port:number`, and the operation of another server is ended
//! by that one.

use pando_access::{Action, Target, UserName};
use pando_document::{DocumentWriter, Number, RawValue};
use pando_query::shell_text::value_text;

use crate::context::Context;
use crate::diagnostic::other_servers::{self, KillOutcome};
use crate::rights::not_authorized;
use crate::{CommandError, ErrorCode, Request};

/// Interrupts the operation.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    // Other fields are passed over, as MongoDB does.
    let Some(number) = request.body.get("op")? else {
        return Err(CommandError::failed(ErrorCode::NoSuchKey, "Missing expected field \"op\""));
    };
    let shared = context.shared;
    let limited = context.limiting_login().filter(|_| !context.may(Action::KillOp, Target::Cluster));
    let own = limited.map(|login| &login.user);
    let outcome = match number {
        RawValue::String(name) if shared.catalog.is_shared() => {
            let (server, number) = named_operation(name)?;
            match server == shared.server_name() {
                true => kill(context, number, own),
                false => {
                    context.require_may_block()?;
                    other_servers::kill(context, (server, number), own)?
                }
            }
        }
        number => kill(context, operation_number(number)?, own),
    };
    if outcome == KillOutcome::Refused {
        return Err(not_authorized(request, context.database));
    }
    reply.append_str("info", "attempting to kill op");
    Ok(())
}

/// Interrupts an operation of this server; `own` is the user that may end the own operations only.
fn kill(context: &Context<'_>, number: i32, own: Option<&UserName>) -> KillOutcome {
    let running = &context.shared.running;
    if own.is_some_and(|own| !running.is_of(number, own)) {
        return KillOutcome::Refused;
    }
    running.kill(number);
    KillOutcome::Killed
}

/// The server and the number of an operation by its name, `host:port:number`.
fn named_operation(name: &str) -> Result<(&str, i32), CommandError> {
    let parts = name.rsplit_once(':').and_then(|(server, number)| Some((server, number.parse().ok()?)));
    parts.ok_or_else(|| {
        CommandError::failed(
            ErrorCode::Location(28_625),
            format!("The op argument to killOp must be of the format server:opid but found \"{name}\""),
        )
    })
}

fn operation_number(value: RawValue<'_>) -> Result<i32, CommandError> {
    if !value.is_number() {
        let found = value.element_type().alias();
        return Err(CommandError::failed(
            ErrorCode::TypeMismatch,
            format!("Expected field \"op\" to have numeric type, but found {found}"),
        ));
    }
    let Some(number) = Number::from_value(value).and_then(Number::to_i64_exact) else {
        return Err(CommandError::failed(
            ErrorCode::BadValue,
            format!(
                "Expected field \"op\" to have a value exactly representable as a 64-bit integer, but found op: {}",
                value_text(value)
            ),
        ));
    };
    i32::try_from(number).or_else(|_| {
        // MongoDB takes numbers of 32 bits without a sign, too.
        u32::try_from(number).map(u32::cast_signed).map_err(|_| {
            CommandError::failed(
                ErrorCode::Location(26_823),
                format!("invalid op : {number}. Op ID cannot be represented with 32 bits"),
            )
        })
    })
}
