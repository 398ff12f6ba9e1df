//! `dbHash`: a digest of each collection and of the database, to compare the content of two servers.
//!
//! The digest of a collection is the MD5 of its documents in the order of its index on `_id`, which is that
//! of its collation. The digest of the database is the MD5 of those digests in the order of names, as in
//! MongoDB. All are of one snapshot.

use std::fmt::Write;
use std::sync::Arc;

use md5::{Digest, Md5};
use pando_catalog::{Begin, Collection, Transaction};
use pando_document::{DocumentWriter, RawBinary, RawValue, doc};
use pando_query::execute::Executor;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::plan::{AssumedShares, FindSpecification, plan_at};
use pando_query::sort::Sort;

use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Answers digests. As MongoDB, it passes over fields that it does not know.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let wanted = wanted(request)?;
    let transaction = context.catalog().begin(Begin::READ)?;
    let mut collections = context.catalog().collections(context.database);
    collections.retain(|collection| {
        let name = collection.namespace().collection();
        !collection.namespace().is_system() && (wanted.is_empty() || wanted.contains(&name))
    });
    collections.sort_by(|one, other| one.full_name().cmp(other.full_name()));
    let mut all = Md5::new();
    reply.append_str("host", &context.shared.machine_name());
    let mut digests = reply.document("collections");
    for collection in &collections {
        let digest = hexadecimal(&digest(context, collection, &*transaction)?);
        all.update(&digest);
        digests.append_str(collection.namespace().collection(), &digest);
    }
    digests.finish();
    transaction.rollback();
    let mut capped = reply.array("capped");
    for collection in collections.iter().filter(|collection| collection.capped_limits().is_some()) {
        capped.push(RawValue::String(collection.namespace().collection()));
    }
    capped.finish();
    let mut uuids = reply.document("uuids");
    for collection in &collections {
        let bytes = collection.uuid();
        let uuid = RawValue::Binary(RawBinary { subtype: 4, bytes: &bytes });
        uuids.append(collection.namespace().collection(), uuid);
    }
    uuids.finish();
    reply.append_str("md5", &hexadecimal(&all.finalize()));
    let took = context.shared.environment.clock().monotonic().since(context.began);
    reply.append_i32("timeMillis", i32::try_from(took.as_millis()).unwrap_or(i32::MAX));
    Ok(())
}

/// The names that the request lists; none means all.
fn wanted<'r>(request: &Request<'r>) -> Result<Vec<&'r str>, CommandError> {
    let Some(RawValue::Array(list)) = request.body.get("collections")? else { return Ok(Vec::new()) };
    let name = |one: RawValue<'r>| {
        one.as_str()
            .ok_or_else(|| CommandError::failed(ErrorCode::Untold, "collections entries have to be strings"))
    };
    list.iter().map(|one| name(one?)).collect()
}

fn digest(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    transaction: &dyn Transaction,
) -> Result<Vec<u8>, CommandError> {
    let mut digest = Md5::new();
    // The documents need not lie in the order of `_id`.
    let sort = Sort::parse(&doc! { "_id": 1 }.to_raw())?.collated_by(collection.text_order());
    let filter = Filter::everything();
    let find = FindSpecification { sort: &sort, ..FindSpecification::matching(&filter) };
    let plan = plan_at(&find, collection, transaction.snapshot(), &AssumedShares)?;
    let memory = StageMemory::new(context.query_account(), DiskUse::Allowed);
    let mut executor = Executor::new(Arc::clone(collection), plan, &memory)?;
    while let Some(row) = executor.next(transaction, context.caller())? {
        digest.update(row.document.as_bytes());
    }
    Ok(digest.finalize().to_vec())
}

/// Bytes as digits in base 16.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}
