//! The section `metrics`: requests by command, cursors, blind updates, damage, documents, scans, waits for
//! claimed keys, expiry, and the figures of replication, which are all zero: there is no other member.

use pando_document::DocumentWriter;

use crate::context::Context;
use crate::diagnostic::statistics_document::whole_number;
use crate::persona::Persona;
use crate::server_counters::{CommandFigures, Figure, ServerCounters};

/// Writes the section.
pub(super) fn write(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let mut metrics = reply.document("metrics");
    write_commands(context, &mut metrics);
    write_cursors(context, &mut metrics);
    let counters = &context.shared.counters;
    let blind = [("performed", Figure::BlindUpdates), ("read", Figure::ReadUpdates)];
    write_figures("blindUpdates", &blind, counters, &mut metrics);
    write_figures("damage", &[("requests", Figure::Damage)], counters, &mut metrics);
    let documents = [
        ("deleted", Figure::DocumentsDeleted),
        ("inserted", Figure::DocumentsInserted),
        ("returned", Figure::DocumentsReturned),
        ("updated", Figure::DocumentsUpdated),
    ];
    write_figures("document", &documents, counters, &mut metrics);
    write_waits_for_members(&mut metrics);
    let operations = [("scanAndOrder", Figure::Sorts), ("writeConflicts", Figure::WriteConflicts)];
    write_figures("operation", &operations, counters, &mut metrics);
    let mut executor = metrics.document("queryExecutor");
    let figure = |figure| whole_number(counters.figure(figure));
    executor.append_i64("scanned", figure(Figure::KeysExamined));
    executor.append_i64("scannedObjects", figure(Figure::DocumentsExamined));
    let mut scans = executor.document("collectionScans");
    // There are no tailable cursors.
    scans.append_i64("nonTailable", figure(Figure::CollectionScans));
    scans.append_i64("total", figure(Figure::CollectionScans));
    scans.finish();
    executor.finish();
    if context.shared.options.persona.persona == Persona::ReplicaSet {
        write_replication(&mut metrics);
    }
    let mut waits = metrics.document("intentWaits");
    for (name, number) in context.shared.wait_figures.iter() {
        waits.append_i64(name, whole_number(number));
    }
    waits.finish();
    let mut ttl = metrics.document("ttl");
    ttl.append_i64("deletedDocuments", whole_number(context.shared.ttl.removed()));
    ttl.append_i64("passes", whole_number(context.shared.ttl.passes()));
    ttl.finish();
    metrics.finish();
}

fn write_figures(
    name: &str,
    figures: &[(&str, Figure)],
    counters: &ServerCounters,
    metrics: &mut DocumentWriter<'_>,
) {
    let mut document = metrics.document(name);
    for (name, figure) in figures {
        document.append_i64(name, whole_number(counters.figure(*figure)));
    }
    document.finish();
}

/// Writes for which a client waited until other members had them.
fn write_waits_for_members(metrics: &mut DocumentWriter<'_>) {
    let mut waits = metrics.document("getLastError");
    let mut time = waits.document("wtime");
    time.append_i32("num", 0);
    time.append_i32("totalMillis", 0);
    time.finish();
    waits.append_i64("wtimeouts", 0);
    write_zeros("default", &["unsatisfiable", "wtimeouts"], &mut waits);
    waits.finish();
}

/// Operations that came from another member.
fn write_replication(metrics: &mut DocumentWriter<'_>) {
    let mut replication = metrics.document("repl");
    let mut executor = replication.document("executor");
    write_zeros("queues", &["networkInProgress", "sleepers"], &mut executor);
    executor.append_i32("unsignaledEvents", 0);
    executor.finish();
    let mut applied = replication.document("apply");
    write_zeros("batches", &["num", "totalMillis"], &mut applied);
    applied.append_i64("ops", 0);
    applied.finish();
    write_zeros("buffer", &["count", "maxSizeBytes", "sizeBytes"], &mut replication);
    let mut network = replication.document("network");
    network.append_i64("bytes", 0);
    write_zeros("getmores", &["num", "totalMillis"], &mut network);
    network.append_i64("ops", 0);
    network.append_i64("readersCreated", 0);
    network.finish();
    replication.finish();
}

fn write_zeros(name: &str, fields: &[&str], into: &mut DocumentWriter<'_>) {
    let mut document = into.document(name);
    for field in fields {
        document.append_i64(field, 0);
    }
    document.finish();
}

/// Requests by command. An older spelling counts as the command.
fn write_commands(context: &Context<'_>, metrics: &mut DocumentWriter<'_>) {
    let counters = &context.shared.counters;
    let names = &context.shared.commands;
    let mut commands = metrics.document("commands");
    commands.append_i64("<UNKNOWN>", whole_number(counters.figure(Figure::UnknownCommands)));
    let is_older_spelling = |name: &str| {
        let is_lower = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase());
        is_lower(name)
            && names.iter().any(|other| other.name.eq_ignore_ascii_case(name) && !is_lower(other.name))
    };
    for command in names.iter().filter(|command| !is_older_spelling(command.name)) {
        let spellings =
            names.iter().enumerate().filter(|(_, other)| other.name.eq_ignore_ascii_case(command.name));
        let figures = spellings.fold(CommandFigures::default(), |sum, (position, _)| {
            let figures = counters.command(position);
            CommandFigures {
                requests: sum.requests + figures.requests,
                failures: sum.failures + figures.failures,
            }
        });
        let mut document = commands.document(command.name);
        document.append_i64("failed", whole_number(figures.failures));
        document.append_i64("total", whole_number(figures.requests));
        document.finish();
    }
    commands.finish();
}

fn write_cursors(context: &Context<'_>, metrics: &mut DocumentWriter<'_>) {
    let figures = context.cursors().figures();
    let mut cursors = metrics.document("cursor");
    cursors.append_i64("moreThanOneBatch", whole_number(figures.several_batches));
    cursors.append_i64("timedOut", whole_number(figures.timed_out));
    cursors.append_i64("totalOpened", whole_number(figures.opened));
    let mut open = cursors.document("open");
    open.append_i64("noTimeout", whole_number(figures.without_timeout));
    open.append_i64("pinned", whole_number(figures.in_use));
    open.append_i64("total", whole_number(figures.open));
    open.finish();
    cursors.finish();
}
