//! A check of one collection: each document has its entries, no entry is without its document, and the
//! counters are right.
//!
//! 1. Look up every entry that each document should have.
//! 2. Count the entries of each index. If there are as many as were looked up, there is no other.
//! 3. Compare the counters of the same snapshot. A collection that is not counted yet has none.

use pando_document::RawDocument;
use pando_storage::{BlockingMode, Direction, KeyRange, Operation, Transaction};

use crate::index::Owner;
use crate::{Collection, WriteError};

/// The result of a check of one collection.
#[derive(Clone, Debug, Default)]
pub struct CollectionReport {
    /// Documents read.
    pub documents: u64,
    /// Bytes of the documents.
    pub data_bytes: u64,
    /// Entries read, by index.
    pub entries: Vec<(String, u64)>,
    /// Problems, a sentence each; empty if documents and entries agree. At most [`PROBLEMS_MAX`],
    /// the rest are counted only.
    pub problems: Vec<String>,
    /// Problems found in all.
    pub problem_count: u64,
}

/// Problems that are described; more are only counted.
pub const PROBLEMS_MAX: usize = 100;

impl CollectionReport {
    fn problem(&mut self, sentence: String) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(sentence);
        }
    }
}

/// Checks a collection within one snapshot. Blocks; reads everything, unless the operation is interrupted.
pub fn verify_collection(
    collection: &Collection,
    transaction: &dyn Transaction,
    operation: &Operation,
) -> Result<CollectionReport, WriteError> {
    let mut report = CollectionReport::default();
    let mut expected = vec![0_u64; collection.indexes().len()];
    let mut scan = collection.scan_documents(KeyRange::all(), Direction::Forward);
    while let Some((key, bytes)) = scan.next(transaction, BlockingMode::MayBlock)? {
        operation.check()?;
        report.documents += 1;
        report.data_bytes += bytes.len() as u64;
        let document = match RawDocument::from_bytes(bytes) {
            Ok(document) => document,
            Err(error) => {
                report.problem(format!("the document of key {key:02x?} is not BSON: {error}"));
                continue;
            }
        };
        if !collection.is_key_of(key, document) {
            report.problem(format!("the document of key {key:02x?} has another key"));
        }
        check_entries(collection, transaction, document, key, &mut expected, &mut report)?;
    }
    for (index, expected) in collection.indexes().iter().zip(expected) {
        let mut entries = 0;
        let mut scan = collection.scan_index(index, KeyRange::all(), Direction::Forward);
        while scan.next(transaction, BlockingMode::MayBlock)?.is_some() {
            operation.check()?;
            entries += 1;
        }
        if entries != expected {
            report.problem(format!(
                "index {} has {entries} entries, and the documents have {expected}",
                index.name()
            ));
        }
        report.entries.push((index.name().to_owned(), entries));
    }
    check_counters(collection, transaction, &mut report)?;
    Ok(report)
}

/// Compares the counters with what was read.
fn check_counters(
    collection: &Collection,
    transaction: &dyn Transaction,
    report: &mut CollectionReport,
) -> Result<(), WriteError> {
    let Some(counts) = collection.counts(transaction, BlockingMode::MayBlock)? else { return Ok(()) };
    let mut of_collection = vec![("documents".to_owned(), counts.documents, report.documents)];
    // Patches change documents by an unknown number of bytes.
    if counts.patches == 0 {
        of_collection.push(("bytes of documents".to_owned(), counts.data_bytes, report.data_bytes));
    }
    let of_indexes = counts.index_entries.iter().map(|(name, counter)| {
        let found = report.entries.iter().find(|(index, _)| index == name).map_or(0, |(_, entries)| *entries);
        (format!("entries of index {name}"), *counter, found)
    });
    let compared: Vec<_> = of_collection.into_iter().chain(of_indexes).collect();
    for (counted, counter, found) in compared {
        if counter != found {
            report.problem(format!("the counter of {counted} says {counter}, and there are {found}"));
        }
    }
    Ok(())
}

/// Looks up every entry that a document should have.
fn check_entries(
    collection: &Collection,
    transaction: &dyn Transaction,
    document: &RawDocument,
    primary_key: &[u8],
    expected: &mut [u64],
    report: &mut CollectionReport,
) -> Result<(), WriteError> {
    for (index, expected) in collection.indexes().iter().zip(expected) {
        for key in index.keys_of(document)?.keys {
            *expected += 1;
            let entry = index.entry(&key, Owner { primary_key, document });
            match transaction.get(index.tree(), &entry.key, BlockingMode::MayBlock)? {
                Some(value) if value == entry.value => {}
                Some(_) => {
                    report.problem(format!("index {} has another value for {primary_key:02x?}", index.name()))
                }
                None => {
                    report.problem(format!("index {} lacks the entry of {primary_key:02x?}", index.name()))
                }
            }
        }
    }
    Ok(())
}
