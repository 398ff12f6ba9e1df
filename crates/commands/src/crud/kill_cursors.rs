//! `killCursors`: forgets open cursors.

use pando_document::{DocumentWriter, RawArray, RawValue};

use crate::arguments::{Arguments, collection_name, missing};
use crate::context::Context;
use crate::{CommandError, Request};

/// Forgets the cursors that the request names.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    collection_name(request.command()?.1)?;
    let mut cursors: Option<&RawArray> = None;
    for argument in Arguments::new("killCursors", request.body) {
        let argument = argument?;
        match argument.name {
            "cursors" => cursors = Some(argument.array()?),
            _ => return Err(argument.unknown()),
        }
    }
    let cursors = cursors.ok_or_else(|| missing("killCursors", "cursors"))?;
    let mut killed = Vec::new();
    let mut not_found = Vec::new();
    for id in cursors.iter() {
        let id = id?.as_i64_exact().unwrap_or(0);
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
