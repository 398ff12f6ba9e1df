//! `hostInfo`: the machine, as far as clients show it.

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, Request};

/// Answers processors and operating system.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    no_more("hostInfo", request.body)?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cores = i32::try_from(cores).unwrap_or(i32::MAX);
    let mut system = reply.document("system");
    system.append("currentTime", RawValue::DateTime(context.shared.now_ms()));
    system.append_str("hostname", &context.shared.options.address);
    system.append_i32("cpuAddrSize", 64);
    system.append_i32("numCores", cores);
    system.append_str("cpuArch", std::env::consts::ARCH);
    system.append_bool("numaEnabled", false);
    system.finish();
    let mut os = reply.document("os");
    os.append_str("type", "Linux");
    os.append_str("name", std::env::consts::OS);
    os.append_str("version", "");
    os.finish();
    reply.document("extra").finish();
    Ok(())
}
