//! `listCommands`: the names in the registry.

use pando_document::{DocumentWriter, RawValue};

use crate::command_name::Scope;
use crate::context::Context;
use crate::stable_api;
use crate::{CommandError, Request};

/// Answers a document with a field for each command.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let mut commands = reply.document("commands");
    for command in &context.shared.commands {
        let mut one = commands.document(command.name);
        one.append("help", RawValue::String(""));
        one.append("requiresAuth", RawValue::Boolean(false));
        one.append("secondaryOk", RawValue::Boolean(true));
        one.append("adminOnly", RawValue::Boolean(command.scope == Scope::Admin));
        let mut versions = one.array("apiVersions");
        if stable_api::has_command(command.name) {
            versions.push(RawValue::String(stable_api::VERSION));
        }
        versions.finish();
        one.array("deprecatedApiVersions").finish();
        one.finish();
    }
    commands.finish();
    Ok(())
}
