//! `killOp`: interrupts an operation by its number. An operation that is not there is no error.

use pando_access::{Action, Target};
use pando_document::{DocumentWriter, Number, RawValue};
use pando_query::shell_text::value_text;

use crate::context::Context;
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
    let number = match number {
        RawValue::String(name) if context.shared.catalog.is_shared() => named_operation(context, name)?,
        number => operation_number(number)?,
    };
    if let Some(login) = context.limiting_login()
        && !login.authority.allows(Action::KillOp, Target::Cluster)
        && !context.shared.running.is_of(number, &login.user)
    {
        return Err(not_authorized(request, context.database));
    }
    reply.append_str("info", "attempting to kill op");
    context.shared.running.kill(number);
    Ok(())
}

/// The number of an operation of this server by its name, `host:port:number`.
fn named_operation(context: &Context<'_>, name: &str) -> Result<i32, CommandError> {
    let parts = name.rsplit_once(':').and_then(|(server, number)| Some((server, number.parse().ok()?)));
    let Some((server, number)) = parts else {
        return Err(CommandError::failed(
            ErrorCode::Location(28_625),
            format!("The op argument to killOp must be of the format server:opid but found \"{name}\""),
        ));
    };
    if server != context.shared.server_name() {
        return Err(CommandError::failed(
            ErrorCode::BadValue,
            format!("the operation {name} is one of the server {server}: send killOp to that one"),
        ));
    }
    Ok(number)
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
