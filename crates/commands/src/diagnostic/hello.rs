//! `hello` and its older name `isMaster`: the first thing a driver asks.
//!
//! The persona is a standalone server. `topologyVersion` is left out, so that drivers poll instead of holding
//! a request open.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::Argument;
use crate::context::Context;
use crate::identity::{
    BSON_OBJECT_BYTES_MAX, MAX_WIRE_VERSION, MESSAGE_BYTES_MAX, MIN_WIRE_VERSION, SESSION_TIMEOUT_MINUTES,
    WRITE_BATCH_MAX,
};
use crate::{CommandError, Request};

/// Compressors that this server speaks, in the order in which it prefers them.
pub(crate) const COMPRESSORS: [&str; 3] = ["zstd", "snappy", "zlib"];

/// `hello`.
pub(crate) fn run_hello(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    begin(context, request, reply)?;
    reply.append("isWritablePrimary", RawValue::Boolean(true));
    answer(context, request, reply)
}

/// `isMaster`, as clients of before 2021 ask.
pub(crate) fn run_is_master(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    begin(context, request, reply)?;
    reply.append("ismaster", RawValue::Boolean(true));
    answer(context, request, reply)
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

fn answer(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
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
    Ok(())
}
