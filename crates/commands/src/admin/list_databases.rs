//! `listDatabases`: the databases that have a collection, and what they take on the device.

use std::collections::HashMap;

use pando_access::{Action, Target};
use pando_catalog::StorageSize;
use pando_document::{DocumentWriter, RawDocument};
use pando_query::filter::Filter;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::{CommandError, Request};

/// How much is said of each database.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    NameOnly,
    Everything,
}

/// Answers the databases.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let mut filter = None;
    let mut detail = Detail::Everything;
    let mut authorized_only = None;
    for argument in Arguments::of_command("listDatabases", request.body) {
        let argument = argument?;
        match argument.name {
            "filter" => {
                if let Some(given) = argument.document()? {
                    filter = Some(Filter::parse(given, &context.parse_scope())?);
                }
            }
            "nameOnly" if argument.lenient_boolean()? == Some(true) => detail = Detail::NameOnly,
            "nameOnly" => {}
            "authorizedDatabases" => authorized_only = argument.boolean()?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    // All of them are for those with the right to see them, unless they ask for less.
    let sees_all = match authorized_only {
        Some(authorized_only) => !authorized_only,
        None => context.may(Action::ListDatabases, Target::Cluster),
    };
    let limit = context.limiting_login().filter(|_| !sees_all);
    let mut total: i64 = 0;
    let mut list = reply.array("databases");
    let mut bytes_of = match detail {
        Detail::NameOnly => HashMap::new(),
        Detail::Everything => bytes_on_disk(context)?,
    };
    for database in context.catalog().databases() {
        context.check()?;
        if limit.is_some_and(|login| !login.authority.reaches_database(&database)) {
            continue;
        }
        let bytes = bytes_of.remove(&database).unwrap_or(0);
        let mut description = Vec::new();
        describe(&database, bytes, detail, &mut description);
        let description = RawDocument::from_bytes(&description)?;
        if filter.as_ref().map_or(Ok(true), |filter| filter.matches(description))? {
            total += bytes;
            list.push_document(description);
        }
    }
    list.finish();
    if detail == Detail::Everything {
        reply.append_i64("totalSize", total);
        reply.append_i64("totalSizeMb", total / (1024 * 1024));
    }
    Ok(())
}

/// The bytes of each database.
fn bytes_on_disk(context: &Context<'_>) -> Result<HashMap<String, i64>, CommandError> {
    let databases = context.catalog().databases();
    let collections: Vec<_> =
        databases.iter().flat_map(|database| context.catalog().collections(database)).collect();
    let mut bytes_of = HashMap::new();
    for (collection, size) in collections.iter().zip(StorageSize::of_all(&collections)?) {
        let bytes = size.document_bytes + size.all_index_bytes();
        *bytes_of.entry(collection.namespace().database().to_owned()).or_insert(0) +=
            i64::try_from(bytes).unwrap_or(i64::MAX);
    }
    Ok(bytes_of)
}

fn describe(database: &str, bytes: i64, detail: Detail, out: &mut Vec<u8>) {
    let mut description = DocumentWriter::begin(out);
    description.append_str("name", database);
    if detail == Detail::Everything {
        description.append_i64("sizeOnDisk", bytes);
        description.append_bool("empty", false);
    }
    description.finish();
}
