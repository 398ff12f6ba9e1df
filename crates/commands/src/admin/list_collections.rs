//! `listCollections`: the collections of a database, with their options.

use pando_access::Target;
use pando_catalog::Collection;
use pando_document::{DocumentWriter, RawBinary, RawDocument, RawValue};
use pando_query::filter::Filter;
use pando_query::time_series::BUCKETS_PREFIX;

use super::time_series_options;
use crate::arguments::Arguments;
use crate::context::Context;
use crate::cursor_reply::{self, ListSource, NewCursor, cursor_batch_size};
use crate::views::View;
use crate::{CommandError, Request};

/// How much is said of each collection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    NameOnly,
    Everything,
}

/// Answers a cursor over descriptions.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let mut filter = None;
    let mut detail = Detail::Everything;
    let mut batch_size = None;
    let mut authorized_only = false;
    for argument in Arguments::of_command("listCollections", request.body) {
        let argument = argument?;
        match argument.name {
            "filter" => {
                if let Some(given) = argument.document()? {
                    filter = Some(Filter::parse(given, &context.parse_scope())?);
                }
            }
            "nameOnly" if argument.boolean()? == Some(true) => detail = Detail::NameOnly,
            "nameOnly" => {}
            "cursor" => {
                if let Some(cursor) = argument.document()? {
                    batch_size = cursor_batch_size("listCollections.cursor", cursor)?;
                }
            }
            "authorizedCollections" => authorized_only = argument.boolean()? == Some(true),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let mut descriptions = Vec::new();
    let limit = context.limiting_login().filter(|_| authorized_only);
    let is_visible = |collection: &str| {
        let target = Target::Collection { database: context.database, collection };
        limit.is_none_or(|login| login.authority.allows_any_action(target))
    };
    for collection in context.catalog().collections(context.database) {
        context.check()?;
        if !is_visible(collection.namespace().collection()) {
            continue;
        }
        let mut description = Vec::new();
        describe(&collection, detail, &mut description);
        if is_wanted(filter.as_ref(), &description)? {
            descriptions.push(description);
        }
    }
    for (name, view) in context.views()? {
        if !is_visible(&name) {
            continue;
        }
        let mut description = Vec::new();
        match context.series(&name)? {
            Some((buckets, _)) if view.on.starts_with(BUCKETS_PREFIX) => {
                describe_series(&name, &buckets, detail, &mut description)?;
            }
            _ => describe_view(&name, &view, detail, &mut description),
        }
        if is_wanted(filter.as_ref(), &description)? {
            descriptions.push(description);
        }
    }
    let namespace = format!("{}.$cmd.listCollections", context.database);
    let source = Box::new(ListSource::new(descriptions));
    let first_batch = batch_size.or(Some(u64::MAX));
    let cursor =
        NewCursor { first_batch, ..NewCursor::new(request.body, namespace, source, context.query_account()) };
    cursor_reply::open(context, cursor, reply)
}

fn is_wanted(filter: Option<&Filter>, description: &[u8]) -> Result<bool, CommandError> {
    match filter {
        Some(filter) => Ok(filter.matches(RawDocument::from_bytes(description)?)?),
        None => Ok(true),
    }
}

fn describe_view(name: &str, view: &View, detail: Detail, out: &mut Vec<u8>) {
    let mut description = DocumentWriter::begin(out);
    description.append_str("name", name);
    description.append_str("type", "view");
    if detail == Detail::Everything {
        let mut options = description.document("options");
        view.write_options(&mut options);
        options.finish();
        let mut info = description.document("info");
        info.append_bool("readOnly", true);
        info.finish();
    }
    description.finish();
}

/// A time series has the options of its buckets, but for that by which they lie by `_id`.
fn describe_series(
    name: &str,
    buckets: &Collection,
    detail: Detail,
    out: &mut Vec<u8>,
) -> Result<(), CommandError> {
    let mut description = DocumentWriter::begin(out);
    description.append_str("name", name);
    description.append_str("type", "timeseries");
    if detail == Detail::Everything {
        let mut options = description.document("options");
        for option in buckets.options().iter() {
            let (name, value) = option?;
            if time_series_options::is_given(name, value) {
                options.append(name, value);
            }
        }
        options.finish();
        let mut info = description.document("info");
        info.append_bool("readOnly", false);
        info.finish();
    }
    description.finish();
    Ok(())
}

fn describe(collection: &Collection, detail: Detail, out: &mut Vec<u8>) {
    let mut description = DocumentWriter::begin(out);
    description.append_str("name", collection.namespace().collection());
    description.append_str("type", "collection");
    if detail == Detail::Everything {
        description.append_raw_document("options", collection.options());
        let mut info = description.document("info");
        info.append_bool("readOnly", false);
        info.append("uuid", RawValue::Binary(RawBinary { subtype: 4, bytes: &collection.uuid() }));
        info.finish();
        if collection.clustered_index_name().is_none() {
            let primary = &collection.describe_indexes()[0];
            description.append_raw_document("idIndex", &primary.specification);
        }
    }
    description.finish();
}
