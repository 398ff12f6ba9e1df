//! Queries of `system.indexes` and `system.namespaces`: the lists of indexes and collections before
//! `listIndexes` and `listCollections`.
//!
//! The documents are made of the catalog and come in one batch, as the catalog is small. Filter, order,
//! projection, skip and limit work as for any collection.

use pando_access::{Action, Target};
use pando_catalog::{BlockingMode, Collection};
use pando_document::{DocumentWriter, NESTING_MAX, RawDocument, RawDocumentBuf, RawValue, is_nested_beyond};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::projection::Projection;
use pando_query::sort::Sort;

use super::find_query::check_flags;
use super::modifiers::{QueryParts, Wish};
use super::translation::refusal;
use super::{Exchange, LegacyBatch, LegacyOutcome, LegacyQuery, Reply, WouldBlock, write_query_failure};
use crate::last_write::WriteFailure;
use crate::{CommandError, ErrorCode};

/// The most bytes of a reply.
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Answers descriptions of indexes: `{v, key, name, ..., ns}`.
pub(super) fn run_indexes(
    exchange: &mut Exchange<'_>,
    database: &str,
    query: &LegacyQuery<'_>,
    out: &mut Vec<u8>,
) -> Result<Reply, WouldBlock> {
    if let Some(refused) = refused(exchange, Action::ListIndexes, database, out)? {
        return Ok(refused);
    }
    let mut descriptions = Vec::new();
    for collection in exchange.commands.shared.catalog.collections(database) {
        for index in collection.describe_indexes() {
            let specification = index.specification.as_bytes();
            let mut description = Vec::with_capacity(specification.len() + 64);
            let mut writer = DocumentWriter::begin(&mut description);
            writer.append_raw_fields(&specification[4..specification.len() - 1]);
            writer.append_str("ns", collection.full_name());
            writer.finish();
            descriptions.push(description);
        }
    }
    Ok(answer(exchange, descriptions, query, out))
}

/// Answers collections, `{name, options}`, and indexes, `{name}`.
pub(super) fn run_namespaces(
    exchange: &mut Exchange<'_>,
    database: &str,
    query: &LegacyQuery<'_>,
    out: &mut Vec<u8>,
) -> Result<Reply, WouldBlock> {
    if let Some(refused) = refused(exchange, Action::ListCollections, database, out)? {
        return Ok(refused);
    }
    let mut descriptions = Vec::new();
    let collections = exchange.commands.shared.catalog.collections(database);
    if !collections.is_empty() {
        descriptions.push(named(&format!("{database}.system.indexes"), |_| {}));
    }
    for collection in collections {
        describe_namespaces(&collection, &mut descriptions);
    }
    Ok(answer(exchange, descriptions, query, out))
}

/// The reply to a client that may not do this with the database, or where other servers of the store cannot
/// be asked what they have made.
fn refused(
    exchange: &mut Exchange<'_>,
    action: Action,
    database: &str,
    out: &mut Vec<u8>,
) -> Result<Option<Reply>, WouldBlock> {
    let Exchange { commands, connection, blocking, .. } = exchange;
    let catalog = &commands.shared.catalog;
    let authorized = commands.authorize_action(connection, action, Target::Database(database), *blocking);
    let known = authorized.and_then(|()| match *blocking {
        _ if !catalog.is_shared() => Ok(()),
        BlockingMode::CachedOnly => Err(CommandError::WouldBlock(None)),
        BlockingMode::MayBlock => Ok(catalog.catch_up()?),
    });
    match known {
        Ok(()) => Ok(None),
        Err(CommandError::WouldBlock(missed)) => Err(WouldBlock::Device(missed)),
        Err(CommandError::Failed(failure)) => {
            let failure = WriteFailure { code: failure.code.code(), message: failure.message };
            Ok(Some(write_query_failure(&failure, out).into()))
        }
    }
}

fn describe_namespaces(collection: &Collection, descriptions: &mut Vec<Vec<u8>>) {
    let full_name = collection.full_name();
    descriptions.push(named(full_name, |writer| {
        if !collection.options().is_empty() {
            let mut options = writer.document("options");
            options.append_str("create", collection.namespace().collection());
            for (name, value) in collection.options().iter().map_while(Result::ok) {
                options.append(name, value);
            }
            options.finish();
        }
    }));
    for index in collection.describe_indexes() {
        if let Ok(Some(RawValue::String(name))) = index.specification.get("name") {
            descriptions.push(named(&format!("{full_name}.${name}"), |_| {}));
        }
    }
}

fn named(name: &str, write: impl FnOnce(&mut DocumentWriter<'_>)) -> Vec<u8> {
    let mut description = Vec::new();
    let mut writer = DocumentWriter::begin(&mut description);
    writer.append_str("name", name);
    write(&mut writer);
    writer.finish();
    description
}

/// Answers the descriptions that the query wants.
fn answer(
    exchange: &mut Exchange<'_>,
    descriptions: Vec<Vec<u8>>,
    query: &LegacyQuery<'_>,
    out: &mut Vec<u8>,
) -> Reply {
    exchange.connection.forget_last_write();
    let start = out.len();
    let now_ms = exchange.commands.shared.now_ms();
    match check_flags(query).and_then(|()| select(descriptions, query, now_ms, out)) {
        Ok(returned) => {
            let outcome = LegacyOutcome::Documents;
            LegacyBatch { outcome, cursor_id: 0, starting_from: 0, returned }.into()
        }
        Err(failure) => {
            out.truncate(start);
            write_query_failure(&failure, out).into()
        }
    }
}

/// Appends the descriptions that the query wants. Gives their number.
fn select(
    descriptions: Vec<Vec<u8>>,
    query: &LegacyQuery<'_>,
    now_ms: i64,
    out: &mut Vec<u8>,
) -> Result<usize, WriteFailure> {
    // These become no command, whose nesting is looked at.
    let mut given = query.projection.into_iter().chain([query.query]);
    if given.any(|part| is_nested_beyond(part, NESTING_MAX)) {
        let sentence = format!("BSONObj exceeds maximum nested object depth: {NESTING_MAX}");
        return Err(refusal(ErrorCode::Overflow, sentence));
    }
    let parts = QueryParts::read(query.query)?;
    if parts.wish == Wish::Explanation {
        let sentence = "a query of the catalog has no plan to explain";
        return Err(refusal(ErrorCode::CommandNotSupported, sentence));
    }
    let wanted = sorted(filtered(descriptions, parts.filter, now_ms)?, parts.sort)?;
    let projection = match query.projection.filter(|projection| !projection.is_empty()) {
        Some(projection) => Some(told(Projection::parse(projection, &ParseScope::at(now_ms)))?),
        None => None,
    };
    let Ok(skip) = usize::try_from(query.skip) else {
        return Err(refusal(ErrorCode::BadValue, "the number to skip must not be negative"));
    };
    let limit = match query.number_to_return {
        0 | 2.. => usize::MAX,
        number => usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX),
    };
    let start = out.len();
    let mut returned = 0;
    for description in wanted.iter().skip(skip).take(limit) {
        match &projection {
            Some(projection) => out.extend_from_slice(told(projection.project(description))?.as_bytes()),
            None => out.extend_from_slice(description.as_bytes()),
        }
        returned += 1;
        if out.len() - start > REPLY_BYTES_MAX {
            let sentence = "the list is longer than a reply may be: ask with a filter";
            return Err(refusal(ErrorCode::BsonObjectTooLarge, sentence));
        }
    }
    Ok(returned)
}

fn filtered(
    descriptions: Vec<Vec<u8>>,
    filter: &RawDocument,
    now_ms: i64,
) -> Result<Vec<RawDocumentBuf>, WriteFailure> {
    let filter = told(Filter::parse(filter, &ParseScope::at(now_ms)))?;
    let mut wanted = Vec::new();
    for description in descriptions {
        let description = told(RawDocumentBuf::from_vec(description))?;
        if told(filter.matches(&description))? {
            wanted.push(description);
        }
    }
    Ok(wanted)
}

fn sorted(
    mut wanted: Vec<RawDocumentBuf>,
    order: Option<RawValue<'_>>,
) -> Result<Vec<RawDocumentBuf>, WriteFailure> {
    let order = match order {
        Some(RawValue::Document(order)) if !order.is_empty() => told(Sort::parse(order))?,
        _ => return Ok(wanted),
    };
    if let Some(pattern) = order.pattern() {
        let mut keyed = Vec::with_capacity(wanted.len());
        for description in wanted {
            let mut key = Vec::new();
            told(pattern.append_key(&description, &mut key))?;
            keyed.push((key, description));
        }
        keyed.sort_by(|left, right| left.0.cmp(&right.0));
        wanted = keyed.into_iter().map(|(_, description)| description).collect();
    }
    Ok(wanted)
}

/// An error of the query layer as the failure that the client is told.
fn told<T, E: Into<CommandError>>(outcome: Result<T, E>) -> Result<T, WriteFailure> {
    outcome.map_err(|error| match error.into() {
        CommandError::Failed(failure) => WriteFailure { code: failure.code.code(), message: failure.message },
        CommandError::WouldBlock(_) => refusal(
            ErrorCode::InternalError,
            "the catalog was to be read from the device: report this defect",
        ),
    })
}
