//! `hello` and its older name `isMaster`: the first thing a driver asks.
//!
//! The reply shows the persona of the server (`persona.rs`). A monitor that knows the topology version
//! already is answered after the time that it names. It holds no thread meanwhile: its request is handled
//! again at the end of the wait. A server that stops ends the wait, and refuses the request as any other of
//! that time. A monitor that allows a stream of replies gets such a reply again and again.

use std::time::Duration;

use pando_document::{DocumentWriter, ObjectId, RawValue};

use super::replica_set::write_operation_time;
use crate::arguments::Argument;
use crate::connection::FurtherReplies;
use crate::context::{Context, Suspension};
use crate::identity::{
    BSON_OBJECT_BYTES_MAX, MAX_WIRE_VERSION, MESSAGE_BYTES_MAX, MIN_WIRE_VERSION, SESSION_TIMEOUT_MINUTES,
    WRITE_BATCH_MAX,
};
use crate::persona::Persona;
use crate::sasl;
use crate::topology_version;
use crate::{CommandError, Request};

/// Compressors that this server speaks, in the order in which it prefers them.
pub(crate) const COMPRESSORS: [&str; 3] = ["zstd", "snappy", "zlib"];

/// `hello`.
pub(crate) fn run_hello(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    answer(context, request, "isWritablePrimary", reply)
}

/// `isMaster`, as clients of before 2021 ask.
pub(crate) fn run_is_master(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    answer(context, request, "ismaster", reply)
}

/// Writes the first fields for both names: that the newer name is known, and the compressors that both sides
/// speak. A connection that has agreed on compressors is told of them in every reply.
fn begin(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    if matches!(request.body.get("helloOk")?, Some(value) if value.to_bool()) {
        reply.append("helloOk", RawValue::Boolean(true));
    }
    if let Some(offered) = request.body.get("compression")? {
        let mut common = Vec::new();
        for name in Argument::of_value("hello", "compression", offered).array()?.iter() {
            if let RawValue::String(name) = name?
                && let Some(known) = COMPRESSORS.iter().find(|known| **known == name)
            {
                common.push(*known);
            }
        }
        context.connection.agree_on_compressors(common);
    }
    if !context.connection.compressors().is_empty() {
        let mut common = reply.array("compression");
        for name in context.connection.compressors() {
            common.push(RawValue::String(name));
        }
        common.finish();
    }
    Ok(())
}

/// Answers; `primary` is the name of the field that tells of a primary.
fn answer(
    context: &mut Context<'_>,
    request: &Request<'_>,
    primary: &str,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let process = context.shared.process_id;
    let mechanisms_of = request.body.get("saslSupportedMechs")?;
    let login = request.body.get("speculativeAuthenticate")?;
    if mechanisms_of.is_some() || login.is_some() {
        // Users are read from the store.
        context.require_may_block()?;
    }
    if let Some(time) = topology_version::awaited(request, process)? {
        context.connection.note_work();
        await_change(context, time)?;
        context.connection.announce(FurtherReplies::Topology);
    }
    begin(context, request, reply)?;
    match context.shared.options.persona.persona {
        Persona::Standalone => {
            reply.append_bool(primary, true);
            topology_version::write(process, reply);
        }
        Persona::Mongos => {
            reply.append_bool(primary, true);
            reply.append_str("msg", "isdbgrid");
            topology_version::write(process, reply);
        }
        Persona::ReplicaSet => {
            topology_version::write(process, reply);
            write_set(context, primary, reply);
        }
    }
    if let Some(RawValue::Document(client)) = request.body.get("client")? {
        context.connection.remember_client(client.to_owned());
    }
    reply.append("maxBsonObjectSize", RawValue::Int32(BSON_OBJECT_BYTES_MAX));
    reply.append("maxMessageSizeBytes", RawValue::Int32(MESSAGE_BYTES_MAX));
    let batch = i32::try_from(WRITE_BATCH_MAX).expect("100,000 fits 32 bits");
    reply.append("maxWriteBatchSize", RawValue::Int32(batch));
    reply.append("localTime", RawValue::DateTime(context.shared.now_ms()));
    reply.append("logicalSessionTimeoutMinutes", RawValue::Int32(SESSION_TIMEOUT_MINUTES));
    let connection = i32::try_from(context.connection.id()).unwrap_or(i32::MAX);
    reply.append("connectionId", RawValue::Int32(connection));
    reply.append("minWireVersion", RawValue::Int32(MIN_WIRE_VERSION));
    reply.append("maxWireVersion", RawValue::Int32(MAX_WIRE_VERSION));
    reply.append("readOnly", RawValue::Boolean(false));
    if let Some(user) = mechanisms_of {
        sasl::write_mechanisms(context, Argument::of_value("hello", "saslSupportedMechs", user), reply)?;
    }
    if let Some(login) = login {
        let asked = Argument::of_value("hello", "speculativeAuthenticate", login);
        sasl::write_speculative(context, asked, reply)?;
    }
    Ok(())
}

/// Waits for a change of the topology, unless the request has done so. Answers `WouldBlock` where the request
/// is handled again after the wait.
fn await_change(context: &mut Context<'_>, time: Duration) -> Result<(), CommandError> {
    let moment = context.began.plus(time);
    if !context.waits_without_thread() {
        context.await_moment(moment);
    } else if !context.connection.end_topology_wait() {
        context.suspend(Suspension::Topology(moment));
        return Err(CommandError::WouldBlock(None));
    }
    Ok(())
}

/// Appends the fields of the only member of a replica set.
pub(super) fn write_set(context: &Context<'_>, primary: &str, reply: &mut DocumentWriter<'_>) {
    let address = context.address();
    let mut hosts = reply.array("hosts");
    hosts.push(RawValue::String(&address));
    hosts.finish();
    reply.append_str("setName", &context.shared.options.persona.set_name);
    reply.append_i32("setVersion", 1);
    reply.append_bool(primary, true);
    reply.append_bool("secondary", false);
    reply.append_str("primary", &address);
    reply.append_str("me", &address);
    // The election of the first term, as MongoDB numbers them.
    reply.append_object_id(
        "electionId",
        ObjectId::from_bytes([0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1]),
    );
    let time = context.shared.operation_time();
    let wall = i64::from(time.time) * 1000;
    let mut last_write = reply.document("lastWrite");
    write_operation_time("opTime", time, &mut last_write);
    last_write.append_date_time("lastWriteDate", wall);
    write_operation_time("majorityOpTime", time, &mut last_write);
    last_write.append_date_time("majorityWriteDate", wall);
    last_write.finish();
}
