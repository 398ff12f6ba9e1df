//! `setDefaultRWConcern` and `getDefaultRWConcern`: the concerns of requests that name none.

use std::sync::Arc;

use pando_document::{Document, DocumentWriter, RawDocument, RawValue, Value};

use crate::arguments::{Arguments, no_more};
use crate::context::Context;
use crate::default_concerns::{ConcernChange, DefaultConcerns};
use crate::generic_arguments::{ClusterTimes, Promise, ReadLevel, WriteConcern, level_of};
use crate::persona::Persona;
use crate::{CommandError, ErrorCode, Request};

/// `getDefaultRWConcern`.
pub(crate) fn run_get(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    refuse_standalone("getDefaultRWConcern", context, request)?;
    let is_in_memory = matches!(request.body.get("inMemory")?, Some(value) if value.to_bool());
    write(&context.shared.default_concerns.load(), is_in_memory.then_some("inMemory"), reply);
    Ok(())
}

/// `setDefaultRWConcern`.
pub(crate) fn run_set(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    refuse_standalone("setDefaultRWConcern", context, request)?;
    let (mut read, mut write_concern) = (None, None);
    for argument in Arguments::of_command("setDefaultRWConcern", request.body) {
        let argument = argument?;
        match argument.name {
            "defaultReadConcern" => read = argument.document()?,
            "defaultWriteConcern" => write_concern = argument.document()?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    if read.is_none() && write_concern.is_none() {
        return Err(bad_value(
            "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present",
        ));
    }
    context.require_may_block()?;
    let _turn = context.shared.default_concerns_turn.lock();
    let mut defaults = DefaultConcerns::clone(&context.shared.default_concerns.load());
    if let Some(read) = read {
        defaults.read_level = checked_level(read)?;
    }
    if let Some(given) = write_concern {
        change_write(&mut defaults, given)?;
    }
    let now = context.shared.now_ms();
    defaults.changed = Some(ConcernChange { time: context.shared.operation_time(), ms: now });
    defaults.read_ms = now;
    let uuid = context.shared.new_uuid();
    let receipt = defaults.store(context.catalog(), uuid, context.operation, context.concern.durability)?;
    context.wait_for(receipt);
    write(&defaults, None, reply);
    context.shared.default_concerns.store(Arc::new(defaults));
    Ok(())
}

fn refuse_standalone(
    command: &'static str,
    context: &Context<'_>,
    request: &Request<'_>,
) -> Result<(), CommandError> {
    if context.shared.options.persona.persona != Persona::Standalone {
        return Ok(());
    }
    if command == "getDefaultRWConcern" {
        no_more(command, request.body)?;
    }
    Err(CommandError::failed(
        ErrorCode::Location(51_300),
        format!("'{command}' is not supported on standalone nodes."),
    ))
}

/// The level of a read concern that may be a default; `None` takes the default back.
fn checked_level(concern: &RawDocument) -> Result<Option<String>, CommandError> {
    match level_of(concern)? {
        Some(level @ (ReadLevel::Snapshot | ReadLevel::Linearizable)) => {
            let level = level.name();
            Err(bad_value(&format!("level: '{level}' is not suitable for the default read concern")))
        }
        level => Ok(level.map(|level| level.name().to_owned())),
    }
}

fn change_write(defaults: &mut DefaultConcerns, given: &RawDocument) -> Result<(), CommandError> {
    if given.is_empty() {
        if defaults.write.is_none() {
            return Ok(());
        }
        return Err(CommandError::failed(
            ErrorCode::IllegalOperation,
            "The global default write concern cannot be unset once it is set.",
        ));
    }
    let concern = WriteConcern::read(RawValue::Document(given), ClusterTimes::Known)?;
    let Some(w) = given.get("w")? else {
        return Err(bad_value("Default write concern must have 'w' field."));
    };
    if concern.is_unacknowledged() {
        return Err(bad_value("Unacknowledged write concern is not suitable for the default write concern"));
    }
    if matches!(concern.promise, Promise::UnknownMode | Promise::UnknownTag) {
        return Err(concern.promise.failure(given).into());
    }
    let mut kept = Document::new();
    kept.push("w", w.to_owned());
    if let Some(journal) = given.get("j")? {
        kept.push("j", Value::Boolean(journal.to_bool()));
    }
    kept.push("wtimeout", given.get("wtimeout")?.map_or(Value::Int32(0), |timeout| timeout.to_owned()));
    defaults.write = Some(kept);
    defaults.concern = concern;
    Ok(())
}

fn write(defaults: &DefaultConcerns, flag: Option<&str>, reply: &mut DocumentWriter<'_>) {
    let source = |is_set: bool| if is_set { "global" } else { "implicit" };
    let mut read = reply.document("defaultReadConcern");
    read.append_str("level", defaults.read_level.as_deref().unwrap_or("local"));
    read.finish();
    match &defaults.write {
        Some(write) => reply.append_value("defaultWriteConcern", &Value::Document(write.clone())),
        None => {
            let mut write = reply.document("defaultWriteConcern");
            write.append_i32("w", 1);
            write.append_i32("wtimeout", 0);
            write.finish();
        }
    }
    if let Some(ConcernChange { time, ms }) = defaults.changed {
        reply.append("updateOpTime", RawValue::Timestamp(time));
        reply.append_date_time("updateWallClockTime", ms);
    }
    reply.append_str("defaultWriteConcernSource", source(defaults.write.is_some()));
    reply.append_str("defaultReadConcernSource", source(defaults.read_level.is_some()));
    if let Some(flag) = flag {
        reply.append_bool(flag, true);
    }
    reply.append_date_time("localUpdateWallClockTime", defaults.read_ms);
}

fn bad_value(reason: &str) -> CommandError {
    CommandError::failed(ErrorCode::BadValue, reason)
}
