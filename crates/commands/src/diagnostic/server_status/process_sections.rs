//! The sections about the process: `mem`, `extra_info`.

use pando_document::DocumentWriter;
use pando_environment::ProcessFigures;

use crate::diagnostic::statistics_document::whole_number;

/// Bytes of a megabyte.
const MEGABYTE: u64 = 1 << 20;

/// The memory of the process, in megabytes.
pub(super) fn write_memory(process: &ProcessFigures, reply: &mut DocumentWriter<'_>) {
    let megabytes = |bytes: u64| i32::try_from(bytes / MEGABYTE).unwrap_or(i32::MAX);
    let mut memory = reply.document("mem");
    memory.append_i32("bits", 64);
    memory.append_i32("resident", megabytes(process.resident_bytes));
    memory.append_i32("virtual", megabytes(process.virtual_bytes));
    memory.append_bool("supported", true);
    memory.finish();
}

/// Times, faults and switches of the process.
pub(super) fn write_extra_info(process: &ProcessFigures, reply: &mut DocumentWriter<'_>) {
    let mut extra = reply.document("extra_info");
    extra.append_str("note", "fields vary by platform");
    for (name, figure) in [
        ("user_time_us", process.user_micros),
        ("system_time_us", process.system_micros),
        ("maximum_resident_set_kb", process.resident_bytes_max / 1024),
        ("input_blocks", process.input_blocks),
        ("output_blocks", process.output_blocks),
        ("page_reclaims", process.minor_faults),
        ("page_faults", process.major_faults),
        ("voluntary_context_switches", process.voluntary_switches),
        ("involuntary_context_switches", process.involuntary_switches),
        ("threads", process.threads),
    ] {
        extra.append_i64(name, whole_number(figure));
    }
    extra.finish();
}
