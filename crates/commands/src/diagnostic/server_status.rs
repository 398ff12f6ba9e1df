//! `serverStatus`: the counters of the server since its start, and every statistic of the engine.

use pando_catalog::QueryMemoryFigures;
use pando_document::{DocumentWriter, RawValue};

use super::statistics_document::{write_statistics, write_waits};
use crate::context::Context;
use crate::identity::{MONGODB_VERSION, PANDO_VERSION};
use crate::{CommandError, Request};

/// Answers the figures.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let now = context.shared.now_ms();
    let up = now.saturating_sub(context.shared.started_ms);
    reply.append_str("host", &context.shared.options.address);
    reply.append_str("version", MONGODB_VERSION);
    reply.append_str("process", "pando");
    reply.append_i64("pid", i64::from(std::process::id()));
    reply.append_f64("uptime", (up / 1000) as f64);
    reply.append_i64("uptimeMillis", up);
    reply.append("localTime", RawValue::DateTime(now));
    let running = &context.shared.running;
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let mut connections = reply.document("connections");
    for (name, number) in [
        ("current", count(running.open())),
        ("active", count(running.busy())),
        ("totalCreated", running.ever()),
    ] {
        connections.append_i32(name, i32::try_from(number).unwrap_or(i32::MAX));
    }
    connections.finish();
    let mut operations = reply.document("opcounters");
    for (name, number) in context.shared.operations.iter() {
        operations.append_i64(name, i64::try_from(number).unwrap_or(i64::MAX));
    }
    operations.finish();
    let mut storage = reply.document("storageEngine");
    storage.append_str("name", context.catalog().engine().name());
    storage.append_bool("supportsCommittedReads", true);
    storage.append_bool("persistent", true);
    storage.finish();
    let engine = context.catalog().engine();
    write_statistics(engine.name(), &engine.statistics(), reply);
    write_waits(&engine.waits(), reply);
    write_transactions(context, reply);
    let mut metrics = reply.document("metrics");
    let mut cursors = metrics.document("cursor");
    let mut open = cursors.document("open");
    open.append_i64("total", i64::try_from(context.cursors().len()).unwrap_or(i64::MAX));
    open.finish();
    cursors.finish();
    metrics.finish();
    let mut pando = reply.document("pando");
    pando.append_str("version", PANDO_VERSION);
    let mut engine = pando.document("engine");
    for (name, value) in context.catalog().engine().statistics().iter() {
        engine.append_i64(name, i64::try_from(value).unwrap_or(i64::MAX));
    }
    engine.finish();
    write_housekeeping(context, &mut pando);
    write_query_memory(context.catalog().query_memory().figures(), &mut pando);
    let transactions = context.catalog().engine().live_transactions();
    pando.append_i64("liveTransactions", i64::try_from(transactions.len()).unwrap_or(i64::MAX));
    pando.finish();
    Ok(())
}

/// Writes the counters of transactions and retryable writes.
fn write_transactions(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let sessions = &context.shared.sessions;
    let open = sessions.figures.open().max(0);
    let idle = i64::try_from(sessions.idle().len()).unwrap_or(i64::MAX).min(open);
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
