//! `saslContinue`: a further message of a login. The last one logs the user in.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Arguments, missing};
use crate::context::Context;
use crate::sasl::{self, Payload};
use crate::{CommandError, ErrorCode, Request};

/// Goes on with the login of the connection.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let (mut conversation, mut payload) = (None, None);
    for argument in Arguments::of_command("saslContinue", request.body) {
        let argument = argument?;
        match (argument.name, argument.value) {
            ("conversationId", RawValue::Int32(number)) => conversation = Some(number),
            ("conversationId", RawValue::Null | RawValue::Undefined) => {}
            ("conversationId", _) => return Err(argument.wrong_type("type 'int'")),
            ("payload", value) => payload = Some(value),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let conversation = conversation.ok_or_else(|| missing("saslContinue", "conversationId"))?;
    let payload = Payload::read(payload.ok_or_else(|| missing("saslContinue", "payload"))?)?;
    if conversation != sasl::CONVERSATION {
        // Any error ends the conversation.
        let under_way = context.connection.take_conversation();
        return Err(match under_way {
            None => sasl::no_conversation(),
            Some(_) => CommandError::failed(ErrorCode::ProtocolError, "sasl: Mismatched conversation id"),
        });
    }
    let outcome = sasl::go_on(context, &payload)?;
    outcome.write(reply);
    Ok(())
}
