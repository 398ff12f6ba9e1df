//! `hostInfo`: the machine.

use pando_document::{DocumentWriter, RawValue};
use pando_environment::machine_figures;

use crate::arguments::no_more;
use crate::context::Context;
use crate::{CommandError, Request};

/// Answers processors, memory and operating system.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    no_more("hostInfo", request.body)?;
    // The processors come from a file of the kernel.
    context.require_may_block()?;
    let options = &context.shared.options;
    let host = &options.host;
    let available = match host.processors {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        known => known,
    };
    let cores = usize::try_from(machine_figures().processors).unwrap_or(0).max(available);
    let short = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let mut system = reply.document("system");
    system.append("currentTime", RawValue::DateTime(context.shared.now_ms()));
    system.append_str("hostname", &context.shared.machine_name());
    system.append_i32("cpuAddrSize", 64);
    if host.memory_bytes > 0 {
        system.append_i64("memSizeMB", megabytes(host.memory_bytes));
        system.append_i64("memLimitMB", megabytes(host.memory_limit_bytes));
    }
    system.append_i32("numCores", short(cores));
    system.append_i32("numCoresAvailableToProcess", short(available));
    system.append_str("cpuArch", std::env::consts::ARCH);
    system.append_bool("numaEnabled", false);
    system.finish();
    let mut os = reply.document("os");
    os.append_str("type", "Linux");
    os.append_str("name", if host.system_name.is_empty() { std::env::consts::OS } else { &host.system_name });
    os.append_str("version", &host.kernel_version);
    os.finish();
    let mut extra = reply.document("extra");
    if !host.kernel_version.is_empty() {
        extra.append_str("kernelVersion", &host.kernel_version);
        extra.append_str("cpuString", &host.processor);
        extra.append_i64("maxOpenFiles", i64::try_from(host.open_files_max).unwrap_or(i64::MAX));
    }
    extra.finish();
    Ok(())
}

fn megabytes(bytes: u64) -> i64 {
    i64::try_from(bytes >> 20).unwrap_or(i64::MAX)
}
