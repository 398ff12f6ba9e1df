//! `filemd5`: the MD5 of a file of GridFS, which drivers of the time of MongoDB 2.4 compare with their own
//! after an upload. Drivers of today compute none.
//!
//! The chunks of the file are read in the order of their numbers, which have to be 0, 1, 2 and so on.

use std::sync::Arc;

use md5::{Digest, Md5};
use pando_catalog::Collection;
use pando_document::{Document, DocumentWriter, Number, RawBinary, RawValue, Value, doc};
use pando_query::execute::Executor;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::plan::{AssumedShares, FindSpecification, plan_at};
use pando_query::sort::Sort;

use super::db_hash::hexadecimal;
use crate::context::Context;
use crate::grid_fs::chunks_of;
use crate::{CommandError, ErrorCode, Request};

/// The subtype of binary data whose bytes begin with their length.
const LENGTH_PREFIXED: u8 = 2;

/// Answers the digest. As MongoDB, it passes over fields that it does not know.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let root = request.body.get("root")?;
    if root.is_some_and(|root| root.as_str().is_none()) {
        return Err(CommandError::failed(ErrorCode::InvalidNamespace, "'root' must be of type String"));
    }
    let namespace = context.readable(&chunks_of(root))?;
    let mut digest = Md5::new();
    let mut chunks = 0;
    if let Some(collection) = context.no_view(&namespace)? {
        chunks = add_chunks(context, &collection, request.command()?.1, &mut digest)?;
    }
    reply.append_i32("numChunks", chunks);
    reply.append_str("md5", &hexadecimal(&digest.finalize()));
    Ok(())
}

/// Adds the data of a file's chunks to its digest, and gives their number.
fn add_chunks(
    context: &Context<'_>,
    collection: &Arc<Collection>,
    file: RawValue<'_>,
    digest: &mut Md5,
) -> Result<i32, CommandError> {
    let mut of_file = Document::new();
    of_file.push("files_id", Value::from_raw(file)?);
    let filter = Filter::parse(&of_file.to_raw(), &context.parse_scope())?;
    let sort = Sort::parse(&doc! { "files_id": 1, "n": 1 }.to_raw())?;
    let find = FindSpecification { sort: &sort, ..FindSpecification::matching(&filter) };
    let transaction = context.begin_read()?;
    let plan = plan_at(&find, collection, transaction.snapshot(), &AssumedShares)?;
    let memory = StageMemory::new(context.query_account(), DiskUse::Allowed);
    let mut executor = Executor::new(Arc::clone(collection), plan, &memory)?;
    let mut chunks = 0;
    while let Some(row) = executor.next(&*transaction, context.caller())? {
        let number = row.document.get("n")?.and_then(Number::from_value).and_then(Number::to_i64_exact);
        if number != Some(i64::from(chunks)) {
            return Err(refused(10_040, "chunks out of order"));
        }
        match row.document.get("data")? {
            Some(RawValue::Binary(data)) => digest.update(content(data)),
            Some(_) => return Err(refused(50_849, "the field data of a chunk is not binary")),
            None => return Err(refused(50_848, "a chunk lacks the field data")),
        }
        chunks += 1;
    }
    transaction.rollback();
    Ok(chunks)
}

/// The bytes without the length that stands in front of them in the oldest subtype.
fn content(data: RawBinary<'_>) -> &[u8] {
    match data.subtype {
        LENGTH_PREFIXED => data.bytes.get(size_of::<i32>()..).unwrap_or_default(),
        _ => data.bytes,
    }
}

fn refused(code: i32, reason: &str) -> CommandError {
    CommandError::failed(ErrorCode::Location(code), reason)
}
