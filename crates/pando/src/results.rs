//! The results of writes and index builds.

use std::collections::BTreeMap;

use bson::Bson;

/// The result of an insert of one document.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InsertOneResult {
    /// The `_id` of the document.
    pub inserted_id: Bson,
}

/// The result of an insert of several documents.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InsertManyResult {
    /// The `_id` of each document, by its place in the list.
    pub inserted_ids: BTreeMap<usize, Bson>,
}

/// The result of an update or a replacement.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct UpdateResult {
    /// Documents that the filter matched.
    pub matched_count: u64,
    /// Documents that changed.
    pub modified_count: u64,
    /// The `_id` of the document that was inserted because none matched.
    pub upserted_id: Option<Bson>,
}

/// The result of a delete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteResult {
    /// Documents that are gone.
    pub deleted_count: u64,
}

/// The result of an index build.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateIndexResult {
    /// The name of the index.
    pub index_name: String,
}

/// The result of a build of several indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateIndexesResult {
    /// The names of the indexes.
    pub index_names: Vec<String>,
}

/// The sums of a bulk write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SummaryBulkWriteResult {
    /// Documents that were inserted, other than by upserts.
    pub inserted_count: u64,
    /// Documents that were inserted because an update matched none.
    pub upserted_count: u64,
    /// Documents that the updates matched.
    pub matched_count: u64,
    /// Documents that the updates changed.
    pub modified_count: u64,
    /// Documents that are gone.
    pub deleted_count: u64,
}

/// The result of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupResult {
    /// Bytes that were written.
    pub bytes: u64,
    /// Whether a restore needs earlier backups, too.
    pub incremental: bool,
}
