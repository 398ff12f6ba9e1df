//! `top`: the time that requests have spent on each collection since the start, by kind.
//!
//! There are no locks here that a request holds for its whole time. `readLock` has all requests that read
//! documents, `writeLock` all that write them.

use pando_catalog::{ActivityKind, Collection, KindFigures, LatencyClass};
use pando_document::DocumentWriter;

use super::coll_stats::scaled;
use crate::context::Context;
use crate::{CommandError, Request};

/// Answers the collections that requests have used.
pub(crate) fn run(
    context: &mut Context<'_>,
    _request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let mut totals = reply.document("totals");
    totals.append_str("note", "all times in microseconds");
    for database in context.catalog().databases() {
        for collection in context.catalog().collections(&database) {
            write_collection(&collection, &mut totals);
        }
    }
    totals.finish();
    Ok(())
}

fn write_collection(collection: &Collection, totals: &mut DocumentWriter<'_>) {
    let activity = collection.activity();
    if activity.kinds(|_| true).is_none() {
        return;
    }
    let mut document = totals.document(collection.full_name());
    let mut write = |name: &str, is_wanted: &dyn Fn(ActivityKind) -> bool| {
        let KindFigures { count, micros } = activity.kinds(is_wanted).unwrap_or_default();
        let mut figures = document.document(name);
        figures.append("time", scaled(micros, 1));
        figures.append("count", scaled(count, 1));
        figures.finish();
    };
    write("total", &|_| true);
    write("readLock", &|kind| kind.class() == LatencyClass::Reads);
    write("writeLock", &|kind| kind.class() == LatencyClass::Writes);
    write("queries", &|kind| kind == ActivityKind::Query);
    write("getmore", &|kind| kind == ActivityKind::GetMore);
    write("insert", &|kind| kind == ActivityKind::Insert);
    write("update", &|kind| kind == ActivityKind::Update);
    write("remove", &|kind| kind == ActivityKind::Remove);
    let commands = [ActivityKind::ReadCommand, ActivityKind::WriteCommand, ActivityKind::OtherCommand];
    write("commands", &|kind| commands.contains(&kind));
    document.finish();
}
