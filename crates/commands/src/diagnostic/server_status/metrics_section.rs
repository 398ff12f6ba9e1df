//! The section `metrics`: requests by command, cursors, documents, scans, waits for claimed keys, expiry.

use pando_document::DocumentWriter;

use crate::context::Context;
use crate::diagnostic::statistics_document::whole_number;
use crate::server_counters::{CommandFigures, Figure};

/// Writes the section.
pub(super) fn write(context: &Context<'_>, reply: &mut DocumentWriter<'_>) {
    let mut metrics = reply.document("metrics");
    write_commands(context, &mut metrics);
    write_cursors(context, &mut metrics);
    let counters = &context.shared.counters;
    let mut write = |name: &str, figures: &[(&str, Figure)]| {
        let mut document = metrics.document(name);
        for (name, figure) in figures {
            document.append_i64(name, whole_number(counters.figure(*figure)));
        }
        document.finish();
    };
    write(
        "document",
        &[
            ("deleted", Figure::DocumentsDeleted),
            ("inserted", Figure::DocumentsInserted),
            ("returned", Figure::DocumentsReturned),
            ("updated", Figure::DocumentsUpdated),
        ],
    );
    write("operation", &[("scanAndOrder", Figure::Sorts), ("writeConflicts", Figure::WriteConflicts)]);
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
