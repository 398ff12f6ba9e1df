//! `buildInfo`: the version of MongoDB that clients may expect, and the version of Pando.

use pando_document::{DocumentWriter, RawValue};

use crate::context::Context;
use crate::identity::{BSON_OBJECT_BYTES_MAX, MONGODB_VERSION, MONGODB_VERSION_PARTS, PANDO_VERSION};
use crate::{CommandError, Request};

/// Answers versions.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    reply.append("version", RawValue::String(MONGODB_VERSION));
    reply.append("gitVersion", RawValue::String("unknown"));
    reply.array("modules").finish();
    reply.append("allocator", RawValue::String("mimalloc"));
    reply.append("javascriptEngine", RawValue::String("none"));
    reply.append("sysInfo", RawValue::String("deprecated"));
    let mut parts = reply.array("versionArray");
    for part in MONGODB_VERSION_PARTS {
        parts.push(RawValue::Int32(part));
    }
    parts.finish();
    reply.append("bits", RawValue::Int32(64));
    reply.append("debug", RawValue::Boolean(cfg!(debug_assertions)));
    reply.append("maxBsonObjectSize", RawValue::Int32(BSON_OBJECT_BYTES_MAX));
    let mut engines = reply.array("storageEngines");
    engines.push(RawValue::String(context.catalog().engine().name()));
    engines.finish();
    let mut pando = reply.document("pando");
    pando.append("version", RawValue::String(PANDO_VERSION));
    pando.finish();
    Ok(())
}
