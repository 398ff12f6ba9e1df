//! `listCollections`: the collections of a database, with their options.

use pando_catalog::Collection;
use pando_document::{DocumentWriter, RawBinary, RawDocument, RawValue};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;

use super::list_indexes::cursor_batch_size;
use crate::arguments::Arguments;
use crate::context::Context;
use crate::cursor_reply::{self, Keeping, ListSource};
use crate::cursors::OpenCursor;
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
    for argument in Arguments::new("listCollections", request.body) {
        let argument = argument?;
        match argument.name {
            "filter" => {
                filter = Some(Filter::parse(argument.document()?, &ParseScope::at(context.shared.now_ms()))?)
            }
            "nameOnly" if argument.lenient_boolean()? => detail = Detail::NameOnly,
            "nameOnly" | "authorizedCollections" => {}
            "cursor" => batch_size = cursor_batch_size(argument.document()?)?,
            _ => return Err(argument.unknown()),
        }
    }
    let mut descriptions = Vec::new();
    for collection in context.catalog().collections(context.database) {
        let mut description = Vec::new();
        describe(&collection, detail, &mut description);
        let wanted = match &filter {
            Some(filter) => filter.matches(RawDocument::from_bytes(&description)?)?,
            None => true,
        };
        if wanted {
            descriptions.push(description);
        }
    }
    let namespace = format!("{}.$cmd.listCollections", context.database);
    let cursor = OpenCursor::new(namespace, Box::new(ListSource::new(descriptions)));
    cursor_reply::open(context, cursor, batch_size.or(Some(u64::MAX)), Keeping::Keep, reply)
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
        let primary = &collection.describe_indexes()[0];
        description.append_raw_document("idIndex", &primary.specification);
    }
    description.finish();
}
