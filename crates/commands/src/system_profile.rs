//! The collection `system.profile` of each database that is profiled: the newest entries, up to one megabyte.
//!
//! Entries wait in a queue until they are written together. One thread writes at a time. The collection is
//! capped. One that an older program has made is not: there the oldest entries are deleted in the same
//! transaction. Each entry has an `_id` that grows, so that the order of the collection is that of time.

use std::collections::BTreeMap;

use pando_catalog::{
    BlockingMode, Caller, CatalogError, Collection, Direction, Durability, KeyRange, Namespace, Operation,
    Transaction, WriteTransaction,
};
use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, doc};

use crate::CommandError;
use crate::error::write_failure;
use crate::shared_state::SharedState;

/// The name of the collection.
pub(crate) const PROFILE_COLLECTION: &str = "system.profile";
/// Bytes of documents in a collection.
const COLLECTION_BYTES_MAX: usize = 1 << 20;
/// Bytes that a collection is cut down to once it is too large, so that few transactions delete.
const COLLECTION_BYTES_AFTER_CUT: usize = COLLECTION_BYTES_MAX / 10 * 9;
/// The bytes of the collections, by database; held by the thread that writes.
pub(crate) type ProfileBytes = BTreeMap<String, usize>;

/// Forgets the entries of a database whose collection is dropped.
pub(crate) fn forget(shared: &SharedState, database: &str) {
    let mut written = shared.profile_bytes.lock();
    shared.profiler.queue.forget(database);
    written.remove(database);
}

/// Creates the collection of a database, unless it is there.
pub(crate) fn create_collection(shared: &SharedState, database: &str) -> Result<(), CommandError> {
    let namespace = Namespace::new(database, PROFILE_COLLECTION)?;
    let size = i32::try_from(COLLECTION_BYTES_MAX).expect("a megabyte fits 32 bits");
    let options = doc! { "capped": true, "size": size }.to_raw();
    match shared.catalog.create_collection_of_server(&namespace, options, shared.new_uuid()) {
        Ok(_) | Err(CatalogError::CollectionExists { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Creates the collection of a database as its administrator asks: capped, of another size. One that is there
/// is an error.
pub(crate) fn create_of_size(
    shared: &SharedState,
    database: &str,
    options: RawDocumentBuf,
) -> Result<(), CommandError> {
    let namespace = Namespace::new(database, PROFILE_COLLECTION)?;
    shared.catalog.create_collection_of_server(&namespace, options, shared.new_uuid())?;
    Ok(())
}

/// Writes the entries that wait. Blocks. Entries that cannot be written are lost, and the log says why.
pub(crate) fn write_queue(shared: &SharedState) {
    let mut written = shared.profile_bytes.lock();
    let mut by_database = BTreeMap::<String, Vec<RawDocumentBuf>>::new();
    for (database, entry) in shared.profiler.queue.take() {
        by_database.entry(database).or_default().push(entry);
    }
    for (database, entries) in by_database {
        if let Err(error) = write_entries(shared, &mut written, &database, &entries) {
            tracing::warn!(%error, database, entries = entries.len(), "cannot write entries of the profiler");
        }
    }
}

fn write_entries(
    shared: &SharedState,
    written: &mut ProfileBytes,
    database: &str,
    entries: &[RawDocumentBuf],
) -> Result<(), CommandError> {
    let operation = Operation::default();
    let caller = Caller::may_block(&operation);
    if shared.catalog.collections(database).is_empty() {
        // The database was dropped, or never made. MongoDB does not make it for the profiler.
        return Ok(());
    }
    create_collection(shared, database)?;
    let Some(lease) = shared.catalog.lease(database, PROFILE_COLLECTION, caller)? else { return Ok(()) };
    let mut transaction = shared.catalog.begin_write()?;
    let mut bytes = match written.get(database) {
        Some(bytes) => *bytes,
        None => bytes_of(&lease, &*transaction)?,
    };
    // Entries beyond the size of the collection would be deleted at once.
    let kept = newest_that_fit(entries);
    for entry in kept {
        let document = with_id(shared, entry);
        bytes += document.as_bytes().len();
        lease
            .insert(&mut transaction, &document, BlockingMode::MayBlock)
            .map_err(|error| write_failure(error, lease.full_name()))?;
    }
    if bytes > COLLECTION_BYTES_MAX && lease.capped_limits().is_none() {
        bytes -= delete_oldest(&lease, &mut transaction, bytes - COLLECTION_BYTES_AFTER_CUT)?;
    }
    transaction.commit(Durability::None)?;
    written.insert(database.to_owned(), bytes);
    Ok(())
}

/// The newest entries, as many as a collection holds.
fn newest_that_fit(entries: &[RawDocumentBuf]) -> &[RawDocumentBuf] {
    let mut bytes = 0;
    let too_old = entries.iter().rposition(|entry| {
        bytes += entry.as_bytes().len();
        bytes > COLLECTION_BYTES_AFTER_CUT
    });
    &entries[too_old.map_or(0, |at| at + 1)..]
}

fn with_id(shared: &SharedState, entry: &RawDocument) -> RawDocumentBuf {
    let mut bytes = Vec::with_capacity(entry.as_bytes().len() + 17);
    let mut out = DocumentWriter::begin(&mut bytes);
    out.append_object_id("_id", shared.new_object_id());
    for (name, value) in entry.iter().map_while(Result::ok) {
        out.append(name, value);
    }
    out.finish();
    RawDocumentBuf::from_vec(bytes).unwrap_or_default()
}

/// The bytes of all documents of a collection.
fn bytes_of(collection: &Collection, transaction: &dyn Transaction) -> Result<usize, CommandError> {
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    let mut bytes = 0;
    while let Some((_, document)) = scan.next(transaction, BlockingMode::MayBlock)? {
        bytes += document.len();
    }
    Ok(bytes)
}

/// Deletes the oldest documents, of at least this many bytes. Gives their bytes.
fn delete_oldest(
    collection: &Collection,
    transaction: &mut WriteTransaction,
    wanted: usize,
) -> Result<usize, CommandError> {
    let mut oldest = Vec::new();
    let mut bytes = 0;
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    while bytes < wanted
        && let Some((key, document)) = scan.next(&**transaction, BlockingMode::MayBlock)?
    {
        bytes += document.len();
        oldest.push((key.to_vec(), document.to_vec()));
    }
    for (key, document) in oldest {
        collection
            .remove(transaction, &key, RawDocument::from_bytes(&document)?, BlockingMode::MayBlock)
            .map_err(|error| write_failure(error, collection.full_name()))?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_entries_the_newest_are_kept() {
        let entry = doc! { "x": "y".repeat(400_000) }.to_raw();
        let entries = vec![entry; 5];
        assert_eq!(newest_that_fit(&entries).len(), 2);
        assert_eq!(newest_that_fit(&entries[..1]).len(), 1);
        assert_eq!(newest_that_fit(&[]).len(), 0);
    }
}
