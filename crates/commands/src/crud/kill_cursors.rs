//! `killCursors`: closes open cursors.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Arguments, collection_name, missing};
use crate::context::Context;
use crate::rights::not_authorized;
use crate::{CommandError, Request};

/// Closes the cursors that the request names.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.namespace(collection_name(request.command()?.1)?)?;
    let mut cursors = None;
    for argument in Arguments::of_command("killCursors", request.body) {
        let argument = argument?;
        match argument.name {
            "cursors" => cursors = Some(argument.longs()?),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let cursors = cursors.ok_or_else(|| missing("killCursors", "cursors"))?;
    // None of them is killed if one is another user's.
    if cursors.iter().any(|id| !may_kill(context, *id)) {
        return Err(not_authorized(request, context.database));
    }
    let mut killed = Vec::new();
    let mut not_found = Vec::new();
    for id in cursors {
        if context.cursors().kill(id) {
            killed.push(id);
        } else {
            not_found.push(id);
        }
    }
    for (name, ids) in [
        ("cursorsKilled", killed),
        ("cursorsNotFound", not_found),
        ("cursorsAlive", vec![]),
        ("cursorsUnknown", vec![]),
    ] {
        let mut list = reply.array(name);
        for id in ids {
            list.push(RawValue::Int64(id));
        }
        list.finish();
    }
    Ok(())
}

/// Whether the client may kill a cursor: its own, or with the right to kill those of others. One that is not
/// there is no matter of rights.
fn may_kill(context: &Context<'_>, id: i64) -> bool {
    let Some(login) = context.limiting_login() else { return true };
    let Some(facts) = context.cursors().facts(id) else { return true };
    facts.is_killable_by(&login.user, &login.authority)
}
