//! The sections about requests and connections: `asserts`, `connections`, `globalLock`, `network`,
//! `opLatencies`, `opcounters`.

use pando_document::{DocumentWriter, RawDocument, RawValue};

use crate::context::Context;
use crate::diagnostic::latency_document::{self, Histograms};
use crate::diagnostic::statistics_document::whole_number;
use crate::server_counters::Figure;

fn short(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Failures. Those of a client's making are `user`; the server has no others that it survives.
pub(super) fn write_asserts(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let failures = short(context.shared.counters.figure(Figure::Failures));
    let mut asserts = reply.document("asserts");
    for name in ["regular", "warning", "msg"] {
        asserts.append_i32(name, 0);
    }
    asserts.append_i32("user", failures);
    for name in ["tripwire", "rollovers"] {
        asserts.append_i32(name, 0);
    }
    asserts.finish();
}

pub(super) fn write_connections(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let running = &context.shared.running;
    let current = running.open();
    let available = context.shared.options.connections_max.saturating_sub(current);
    let mut connections = reply.document("connections");
    connections.append_i32("current", short(current as u64));
    connections.append_i32("available", short(available as u64));
    connections.append_i32("totalCreated", short(running.ever().unsigned_abs()));
    connections.append_i32("rejected", short(context.shared.counters.figure(Figure::RejectedConnections)));
    connections.append_i32("active", short(running.busy() as u64));
    connections.finish();
}

/// Requests under way, and those of them that wait. A request that is answered from the cache is not listed.
pub(super) fn write_global_lock(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    #[derive(Default)]
    struct Requests {
        readers: i32,
        writers: i32,
    }
    let (mut active, mut waiting) = (Requests::default(), Requests::default());
    for connection in context.shared.running.connections() {
        let Some(running) = &connection.running else { continue };
        let is_waiting = connection.record.operation().wait().is_some();
        let requests = if is_waiting { &mut waiting } else { &mut active };
        match running.kind {
            "query" | "getmore" => requests.readers += 1,
            "insert" | "update" | "remove" => requests.writers += 1,
            _ => {}
        }
    }
    let up = context.shared.uptime_ms();
    let mut lock = reply.document("globalLock");
    lock.append_i64("totalTime", up.saturating_mul(1000));
    for (name, requests) in [("currentQueue", waiting), ("activeClients", active)] {
        let mut document = lock.document(name);
        document.append_i32("total", requests.readers + requests.writers);
        document.append_i32("readers", requests.readers);
        document.append_i32("writers", requests.writers);
        document.finish();
    }
    lock.finish();
}

pub(super) fn write_network(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let mut network = reply.document("network");
    for (name, figure) in [
        ("bytesIn", Figure::NetworkIn),
        ("bytesOut", Figure::NetworkOut),
        ("physicalBytesIn", Figure::NetworkPhysicalIn),
        ("physicalBytesOut", Figure::NetworkPhysicalOut),
        ("numRequests", Figure::NetworkRequests),
    ] {
        network.append_i64(name, whole_number(context.shared.counters.figure(figure)));
    }
    network.finish();
}

/// Times by class; by bucket, too, if the request says `{opLatencies: {histograms: true}}`.
pub(super) fn write_latencies(context: &Context<'_>, request: &RawDocument, reply: &mut DocumentWriter<'_>) {
    let option = match request.get("opLatencies") {
        Ok(Some(RawValue::Document(options))) => options.get("histograms").ok().flatten(),
        _ => None,
    };
    let histograms =
        if option.is_some_and(|option| option.to_bool()) { Histograms::Shown } else { Histograms::Hidden };
    let mut latencies = reply.document("opLatencies");
    let counters = &context.shared.counters;
    latency_document::write_latencies(|class| counters.latencies(class), histograms, &mut latencies);
    latencies.finish();
}

pub(super) fn write_operations(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let mut operations = reply.document("opcounters");
    for (name, number) in context.shared.operations.iter() {
        operations.append_i64(name, whole_number(number));
    }
    operations.finish();
}

/// Operations that came from another member. There is none.
pub(super) fn write_replicated_operations(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let mut operations = reply.document("opcountersRepl");
    for (name, _) in context.shared.operations.iter() {
        operations.append_i64(name, 0);
    }
    operations.finish();
}
