//! `serverStatus`: the counters of the server since its start, and every statistic of the engine.
//!
//! The reply consists of sections. A request leaves a section out by its name and a value that is false:
//! `{serverStatus: 1, metrics: 0}`.

mod metrics_section;
mod process_sections;
mod request_sections;
mod security_section;

use std::sync::atomic::Ordering;

use pando_catalog::{Persistence, QueryMemoryFigures, Statistics};
use pando_document::{DocumentWriter, RawDocument, RawValue};
use pando_environment::process_figures;

use super::statistics_document::{whole_number, write_statistics, write_waits};
use crate::context::Context;
use crate::identity::{MONGODB_VERSION, PANDO_VERSION};
use crate::persona::Persona;
use crate::snapshot_watch;
use crate::{CommandError, Request};

/// Answers the figures.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    // The figures of the process come from files of the kernel.
    context.require_may_block()?;
    write(context, request.body, reply);
    Ok(())
}

/// Writes all sections that the request does not leave out.
pub(crate) fn write(context: &Context<'_>, request: &RawDocument, reply: &mut DocumentWriter<'_>) {
    let is_wanted = |section: &str| !matches!(request.get(section), Ok(Some(value)) if !value.to_bool());
    let process = process_figures();
    write_identity(context, reply);
    if is_wanted("asserts") {
        request_sections::write_asserts(context, reply);
    }
    if is_wanted("backgroundFlushing") {
        write_checkpoints(&context.catalog().engine().statistics(), reply);
    }
    if is_wanted("connections") {
        request_sections::write_connections(context, reply);
    }
    if is_wanted("extra_info") {
        process_sections::write_extra_info(&process, reply);
    }
    if is_wanted("globalLock") {
        request_sections::write_global_lock(context, reply);
    }
    if is_wanted("network") {
        request_sections::write_network(context, reply);
    }
    if is_wanted("opLatencies") {
        request_sections::write_latencies(context, request, reply);
    }
    if is_wanted("opcounters") {
        request_sections::write_operations(context, reply);
    }
    if is_wanted("opcountersRepl") {
        request_sections::write_replicated_operations(context, reply);
    }
    let engine = context.catalog().engine();
    if is_wanted("security") {
        security_section::write_security(context, reply);
    }
    if is_wanted("storageEngine") {
        let mut storage = reply.document("storageEngine");
        storage.append_str("name", engine.name());
        storage.append_bool("supportsCommittedReads", true);
        storage.append_bool("persistent", engine.capabilities().durable == Persistence::Durable);
        storage.finish();
    }
    if is_wanted(engine.name()) {
        write_statistics(engine.name(), &engine.statistics(), reply);
    }
    if is_wanted("waits") {
        write_waits(&engine.waits(), reply);
    }
    if is_wanted("repl") && context.shared.options.persona.persona == Persona::ReplicaSet {
        let mut replication = reply.document("repl");
        super::hello::write_set(context, "isWritablePrimary", &mut replication);
        replication.append_i32("rbid", 1);
        replication.finish();
    }
    if is_wanted("transactions") {
        write_transactions(context, reply);
    }
    if is_wanted("transportSecurity") {
        security_section::write_transport(context, reply);
    }
    if is_wanted("mem") {
        process_sections::write_memory(&process, reply);
    }
    if is_wanted("metrics") {
        metrics_section::write(context, reply);
    }
    if is_wanted("pando") {
        write_pando(context, reply);
    }
}

/// Writes the checkpoints of the engine, where it counts them, in the section in which MongoDB told the
/// flushes of its first engine. mongostat takes its column `flushes` from it where the engine is not
/// WiredTiger.
fn write_checkpoints(statistics: &Statistics, reply: &mut DocumentWriter<'_>) {
    let figure = |wanted: &str| statistics.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value);
    let Some(count) = figure("checkpoints.count") else { return };
    let millis = figure("checkpoints.nanos").unwrap_or(0) / 1_000_000;
    let mut flushing = reply.document("backgroundFlushing");
    flushing.append_i64("flushes", whole_number(count));
    flushing.append_i64("total_ms", whole_number(millis));
    flushing.append_f64("average_ms", if count == 0 { 0.0 } else { millis as f64 / count as f64 });
    if let (Some(nanos), Some(ended)) =
        (figure("checkpoints.last_nanos"), figure("checkpoints.last_ended_millis"))
        && count > 0
    {
        flushing.append_i64("last_ms", whole_number(nanos / 1_000_000));
        flushing.append_date_time("last_finished", whole_number(ended));
    }
    flushing.finish();
}

/// Writes the fields that no request leaves out.
fn write_identity(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let (now, up) = (context.shared.now_ms(), context.shared.uptime_ms());
    reply.append_str("host", &context.shared.machine_name());
    reply.append_str("version", MONGODB_VERSION);
    reply.append_str("process", "pando");
    reply.append_i64("pid", i64::from(std::process::id()));
    reply.append_f64("uptime", (up / 1000) as f64);
    reply.append_i64("uptimeMillis", up);
    reply.append_i64("uptimeEstimate", up / 1000);
    reply.append("localTime", RawValue::DateTime(now));
}

/// Writes the figures that no other database has.
fn write_pando(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let mut pando = reply.document("pando");
    pando.append_str("version", PANDO_VERSION);
    let mut engine = pando.document("engine");
    for (name, value) in context.catalog().engine().statistics().iter() {
        engine.append_i64(name, whole_number(value));
    }
    engine.finish();
    write_housekeeping(context, &mut pando);
    write_query_memory(context.catalog().query_memory().figures(), &mut pando);
    let mut scans = pando.document("rangedScans");
    scans.append_i64("scans", whole_number(context.shared.ranged_scans.load(Ordering::Relaxed)));
    scans.append_i64("ranges", whole_number(context.shared.scanned_ranges.load(Ordering::Relaxed)));
    scans.finish();
    let transactions = context.catalog().engine().live_transactions();
    pando.append_i64("liveTransactions", whole_number(transactions.len() as u64));
    write_snapshots(context, &mut pando);
    pando.finish();
}

/// Writes the figures of open snapshots and the history that they pin.
fn write_snapshots(context: &Context<'_>, pando: &mut DocumentWriter<'_>) {
    // A closed engine has no figures.
    let figures = snapshot_watch::figures(context.shared).unwrap_or_default();
    let held = &context.shared.held_snapshots;
    let mut snapshots = pando.document("snapshots");
    for (name, number) in [
        ("open", whole_number(figures.open)),
        ("oldestSeconds", whole_number(figures.oldest_age.as_secs())),
        ("held", whole_number(held.all().len() as u64)),
        ("heldWindowSeconds", whole_number(held.window().as_secs())),
        ("tooOld", held.too_old()),
    ] {
        snapshots.append_i64(name, number);
    }
    // The timestamps of some engines do not count commits.
    if let Some(pinned) = figures.pinned_commits {
        snapshots.append_i64("pinnedCommits", whole_number(pinned));
    }
    snapshots.finish();
}

/// Writes the counters of transactions and retryable writes.
fn write_transactions(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let sessions = &context.shared.sessions;
    let open = sessions.figures.open().max(0);
    let waiting = context.shared.running.waiting_sessions();
    let idle = sessions.idle().iter().filter(|open| !waiting.contains(&open.session)).count();
    let idle = i64::try_from(idle).unwrap_or(i64::MAX).min(open);
    let mut transactions = reply.document("transactions");
    for (name, number) in sessions.figures.iter() {
        transactions.append_i64(name, number);
    }
    for (name, number) in [
        ("currentActive", open - idle),
        ("currentInactive", idle),
        ("currentOpen", open),
        ("totalPrepared", 0),
        ("totalPreparedThenCommitted", 0),
        ("totalPreparedThenAborted", 0),
        ("currentPrepared", 0),
    ] {
        transactions.append_i64(name, number);
    }
    transactions.finish();
}

/// Writes the figures of the periodic work.
fn write_housekeeping(context: &Context<'_>, pando: &mut DocumentWriter<'_>) {
    let now = context.shared.environment.clock().monotonic();
    let millis = |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut chores = pando.document("housekeeping");
    for figures in context.shared.housekeeping.iter() {
        let mut chore = chores.document(figures.name);
        chore.append_i64("runs", count(figures.runs()));
        chore.append_i64("failures", count(figures.failures()));
        chore.append_i64("lastMicroseconds", i64::try_from(figures.last().as_micros()).unwrap_or(i64::MAX));
        chore.append_i64("nextInMillis", millis(figures.next().since(now)));
        chore.finish();
    }
    chores.finish();
}

/// The budget of queries and their scratch files.
fn write_query_memory(figures: QueryMemoryFigures, pando: &mut DocumentWriter<'_>) {
    let mut memory = pando.document("queryMemory");
    for (name, figure) in [
        ("heldBytes", figures.held_bytes),
        ("peakBytes", figures.peak_bytes),
        ("limitBytes", figures.limit_bytes),
        ("spills", figures.spills),
        ("spilledBytes", figures.spilled_bytes),
        ("scratchFiles", figures.scratch.files),
        ("scratchBytes", figures.scratch.file_bytes),
        ("scratchWrittenBytes", figures.scratch.written_bytes),
        ("scratchReadBytes", figures.scratch.read_bytes),
    ] {
        memory.append_i64(name, i64::try_from(figure).unwrap_or(i64::MAX));
    }
    memory.finish();
}
