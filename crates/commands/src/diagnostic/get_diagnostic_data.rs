//! `getDiagnosticData`: the newest sample of all figures, as monitoring programs ask for it. The sample is
//! taken for the request: none is kept.

use pando_document::{DocumentWriter, RawDocument};
use pando_environment::{MachineFigures, machine_figures};

use super::statistics_document::whole_number;
use super::{replica_set, server_status};
use crate::context::Context;
use crate::persona::Persona;
use crate::{CommandError, Request};

/// Answers the sample.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let now = || context.shared.now_ms();
    let mut data = reply.document("data");
    data.append_date_time("start", now());
    write_part("serverStatus", now, &mut data, |status| {
        server_status::write(context, RawDocument::empty(), status);
        status.append_f64("ok", 1.0);
    });
    let options = &context.shared.options.persona;
    if options.persona == Persona::ReplicaSet {
        write_part("replSetGetStatus", now, &mut data, |status| {
            replica_set::write_status(context, &options.set_name, status);
            status.append_f64("ok", 1.0);
        });
    }
    write_part("systemMetrics", now, &mut data, |machine| write_machine(&machine_figures(), machine));
    data.append_date_time("end", now());
    data.finish();
    Ok(())
}

/// Writes one part of the sample between the times of its begin and its end.
fn write_part(
    name: &str,
    now: impl Fn() -> i64,
    data: &mut DocumentWriter<'_>,
    write: impl FnOnce(&mut DocumentWriter<'_>),
) {
    let mut part = data.document(name);
    part.append_date_time("start", now());
    write(&mut part);
    part.append_date_time("end", now());
    part.finish();
}

/// Writes the figures of the machine, in MongoDB's types.
fn write_machine(figures: &MachineFigures, machine: &mut DocumentWriter<'_>) {
    let mut processors = machine.document("cpu");
    processors.append_i32("num_cpus", i32::try_from(figures.processors).unwrap_or(i32::MAX));
    for (name, millis) in &figures.processor_ms {
        processors.append_f64(&format!("{name}_ms"), *millis as f64);
    }
    write_figures(&figures.system, &mut processors);
    processors.finish();
    let mut memory = machine.document("memory");
    for (name, size) in &figures.memory_kb {
        append_number(&format!("{name}_kb"), *size, &mut memory);
    }
    memory.finish();
    let mut disks = machine.document("disks");
    for (name, counters) in &figures.disks {
        let mut disk = disks.document(name);
        write_figures(counters, &mut disk);
        disk.finish();
    }
    disks.finish();
    let mut events = machine.document("vmstat");
    write_figures(&figures.memory_events, &mut events);
    events.finish();
}

fn write_figures(figures: &[(&'static str, u64)], into: &mut DocumentWriter<'_>) {
    for (name, figure) in figures {
        append_number(name, *figure, into);
    }
}

/// A number in the shortest type that holds it, as MongoDB tells these.
fn append_number(name: &str, number: u64, into: &mut DocumentWriter<'_>) {
    match i32::try_from(number) {
        Ok(short) => into.append_i32(name, short),
        Err(_) => into.append_i64(name, whole_number(number)),
    }
}
