//! `getParameter`: settings by name, or all of them for `'*'`.

use std::sync::atomic::Ordering;

use pando_document::{DocumentWriter, RawValue};

use super::set_parameter::{
    ATOMIC_STATEMENTS, QUERY_MEMORY, SNAPSHOT_WINDOW, TRANSACTION_LIFETIME, TRANSACTION_WAIT, TTL_ENABLED,
    TTL_SLEEP, parameter_name, wants_help, write_help,
};
use crate::accounts::store::SCHEMA_VERSION;
use crate::context::Context;
use crate::fail_points::TestCommands;
use crate::identity::FEATURE_COMPATIBILITY_VERSION;
use crate::{CommandError, ErrorCode, Request};

/// Whether the server has commands for tests: the suites of drivers ask.
const TEST_COMMANDS: &str = "enableTestCommands";
/// The version of the schema of users and roles: mongorestore asks.
const SCHEMA: &str = "authSchemaVersion";
const PARAMETERS: [&str; 3] = [SCHEMA, TEST_COMMANDS, "featureCompatibilityVersion"];

/// Answers the parameters that the request names.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    if wants_help(request)? {
        write_help("getParameter gets parameters of the running server", context, reply);
        return Ok(());
    }
    let all = match request.command()?.1 {
        RawValue::String("*") => true,
        RawValue::Document(options) => {
            matches!(options.get("allParameters")?, Some(value) if value.to_bool())
        }
        _ => false,
    };
    let mut found = 0;
    for name in PARAMETERS {
        if all || request.body.get(name)?.is_some() {
            found += 1;
            write_parameter(context, name, reply);
        }
    }
    if all || request.body.get(QUERY_MEMORY)?.is_some() {
        found += 1;
        let limit = context.catalog().query_memory().limit();
        reply.append_i64(QUERY_MEMORY, i64::try_from(limit).unwrap_or(i64::MAX));
    }
    if all || request.body.get(TRANSACTION_LIFETIME)?.is_some() {
        found += 1;
        let seconds = context.shared.sessions.lifetime().as_secs();
        reply.append_i32(TRANSACTION_LIFETIME, i32::try_from(seconds).unwrap_or(i32::MAX));
    }
    if all || request.body.get(TRANSACTION_WAIT)?.is_some() {
        found += 1;
        reply.append_i32(TRANSACTION_WAIT, context.shared.sessions.wait_ms());
    }
    if all || request.body.get(ATOMIC_STATEMENTS)?.is_some() {
        found += 1;
        reply.append_bool(ATOMIC_STATEMENTS, context.shared.atomic_statements.load(Ordering::Relaxed));
    }
    if all || request.body.get(SNAPSHOT_WINDOW)?.is_some() {
        found += 1;
        let seconds = context.shared.held_snapshots.window().as_secs();
        reply.append_i32(SNAPSHOT_WINDOW, i32::try_from(seconds).unwrap_or(i32::MAX));
    }
    if all || request.body.get(TTL_SLEEP)?.is_some() {
        found += 1;
        let seconds = context.shared.ttl.sleep().as_secs();
        reply.append_i32(TTL_SLEEP, i32::try_from(seconds).unwrap_or(i32::MAX));
    }
    if all || request.body.get(TTL_ENABLED)?.is_some() {
        found += 1;
        reply.append_bool(TTL_ENABLED, context.shared.ttl.is_enabled());
    }
    let engine = context.catalog().engine();
    for (setting, value) in engine.settings() {
        let name = parameter_name(engine.name(), setting);
        if all || request.body.get(&name)?.is_some() {
            found += 1;
            write_setting(&name, &value, reply);
        }
    }
    if found == 0 {
        return Err(CommandError::failed(ErrorCode::Untold, "no option found to get"));
    }
    Ok(())
}

/// A setting of the engine; numbers are numbers.
fn write_setting(name: &str, value: &str, reply: &mut DocumentWriter<'_>) {
    match value.parse::<i64>() {
        Ok(number) => reply.append_i64(name, number),
        Err(_) => reply.append_str(name, value),
    }
}

fn write_parameter(context: &Context<'_>, name: &str, reply: &mut DocumentWriter<'_>) {
    if name == TEST_COMMANDS {
        return reply.append_bool(name, context.shared.options.test_commands == TestCommands::On);
    }
    if name == SCHEMA {
        return reply.append_i32(name, SCHEMA_VERSION);
    }
    let mut parameter = reply.document(name);
    parameter.append("version", RawValue::String(FEATURE_COMPATIBILITY_VERSION));
    parameter.finish();
}
