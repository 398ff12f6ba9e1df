//! Namespaces, collections and indexes: the one owner of "a document and its index entries change together".
//!
//! The catalog turns documents into the ordered byte keys of the [storage contract](pando_storage) and back:
//! - A collection is a *primary tree*: its key is the document's primary key, its value the whole document.
//!   The primary key is order-preserving bytes of `_id`, unless the collection has another [layout](Layout).
//!   A point query by `_id` therefore reads one page, where an index over a heap reads two.
//! - A secondary index is a tree of its own ([`index_entry`]). Its key is the field bytes and the primary
//!   key. Its value is the type bits that order-preserving bytes lose. The insert of an entry needs no read.
//! - The *catalog tree* has one BSON entry for each collection ([`catalog_entry`]).
//! - The *counters* are exact: documents and bytes of each collection, entries of each index
//!   (`counters`).
//! - The *records of sessions* tell the newest transaction or retryable write of each session
//!   (`session_records`).
//!
//! # The life of an insert
//! 1. [`Catalog::lease`] gives the collection's current description, and keeps it from
//!    changing while it is held.
//! 2. [`Catalog::begin_write`] gives a transaction.
//! 3. [`Collection::insert`] checks that the `_id` is free, derives the index entries ([`index_keys`]),
//!    and puts all of them into the transaction's write set. It notes the change of the counters.
//! 4. The caller commits, which merges the changes of the counters, and then drops the lease.
//!
//! A session's transaction takes a lease for each statement, and those of all its collections for its commit
//! (`session_transaction`).
//!
//! A bulk load sorts the documents of a new collection first, and publishes it with all of its trees full
//! (`bulk_load`).
//!
//! # Rooms
//! A room is a top module with what lies in its folder. `cargo xtask layers` holds the rooms to these arrows.
//!
//! ```arrows
//! namespace -> error
//! error -> expansion, stamps
//! index_description -> multikey
//! index_entry -> partitions, primary_key
//! index_keys -> index_entry
//! index_kind -> definition, index_keys
//! store -> index_kind
//! index -> index_entry, index_keys, index_kind, partitions, store
//! building -> index, index_entry, index_keys, partitions, store
//! layout -> definition
//! collection -> building, definition, index, index_filters, layout, partition_schedule, partitions, store
//! document_key -> collection, index_keys, layout, primary_key
//! fetch_ahead -> collection
//! id_lookup -> collection, index_entry, partitions, primary_key
//! counters -> collection, store
//! write_transaction -> counters, store
//! catalog_entry -> collection, index, index_kind, layout, partitions
//! flag_log -> catalog_entry, collection, index
//! tree_settings -> collection
//! truncation -> collection, counters, write_transaction
//! partitions -> primary_key
//! partition_schedule -> layout, partitions
//! partitioned_scan -> partitions
//! scans -> collection, index, index_entry, partitioned_scan, partitions
//! shared_keys -> collection, index, scans
//! sorted_entries -> building, documents, index
//! bulk_load -> building, catalog, collection, counters, index, index_keys, partitions, sorted_entries
//! bulk_load -> documents, layout, store, write_transaction
//! documents -> building, collection, counters, index, index_entry, index_keys, partitions, primary_key
//! documents -> write_transaction
//! verify -> collection, index
//! tree_owners -> catalog, catalog_entry
//! early_write -> catalog, write_transaction
//! key_owners -> catalog, collection, layout, partitions
//! session_records -> collection, primary_key, store, write_transaction
//! catalog -> catalog_entry, collection, counters, index, index_kind, layout, session_records, store
//! catalog -> building, partition_schedule, partitions, tree_settings, write_transaction
//! index_build -> building, catalog, collection, counters, documents, index, index_keys, sorted_entries
//! first_count -> catalog, collection, counters
//! session_transaction -> bulk_load, catalog, collection, counters, seen_names, store, write_transaction
//! replacement -> bulk_load, catalog, collection, counters
//! capped_copy -> bulk_load, catalog, collection
//! partitioned_copy -> bulk_load, catalog, collection, layout
//! seen_names -> catalog, collection
//! sharing -> error
//! leaves: capped, collection_activity, error, expansion, index_description, multikey, namespace, publication
//! leaves: record_ids, sharing, stamps
//! ```
//!
//! # Invariants
//! - Every document has, in each index, exactly the entries of the keys that the index's methods give it
//!   ([`index_kind`]). No entry is without its document. [`verify_collection`] checks both.
//! - In a collection with partitions an entry stands behind the number of its document's partition
//!   (`partitions`).
//! - Counters equal a scan at every snapshot that sees the collection's mark (`counters`).
//! - A tree is created before the catalog entry that refers to it is committed, and dropped after the
//!   entry is gone. A crash therefore leaves at worst a tree that no entry refers to.
//!   [`Catalog::open`] drops such trees.
//! - The latch of a collection is taken before the catalog's own mutex, never after.
//! - In a store that several servers have open, the same holds for the writers of all of them (`sharing`).
//!
//! # Not here
//! The meaning of filters and updates (crate `query`), error codes and requests (crate `commands`), pages and
//! logs (engines).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod building;
mod bulk_load;
mod capped;
mod capped_copy;
mod catalog;
pub mod catalog_entry;
mod collection;
mod collection_activity;
mod counters;
mod definition;
mod document_key;
mod documents;
mod early_write;
mod error;
pub mod expansion;
mod fetch_ahead;
mod first_count;
mod flag_log;
mod id_lookup;
mod index;
mod index_build;
mod index_description;
pub mod index_entry;
mod index_filters;
pub mod index_keys;
pub mod index_kind;
mod key_owners;
mod layout;
mod multikey;
mod namespace;
mod partition_schedule;
mod partitioned_copy;
mod partitioned_scan;
mod partitions;
mod primary_key;
mod publication;
mod record_ids;
mod replacement;
mod scans;
mod seen_names;
mod session_records;
mod session_transaction;
mod shared_keys;
mod sharing;
mod sorted_entries;
mod stamps;
mod store;
mod tree_owners;
mod tree_settings;
mod truncation;
mod verify;
mod write_transaction;

pub use bulk_load::{BulkLoad, LoadedCollection};
pub use capped::{CappedLimits, TailVersion, capped_size};
pub use capped_copy::CappedCopy;
pub use catalog::opening::TREES_READ_AT_OPENING;
pub use catalog::partition_keeping::{Drops, KeptPartitions};
pub use catalog::partitioning::{DroppedPartitions, PartitionChoice};
pub use catalog::renaming::{Renaming, TakenName};
pub use catalog::views::{VIEWS_COLLECTION, ViewChange, view_definition};
pub use catalog::{Catalog, Lease};
pub use collection::{Collection, StorageSize};
pub use collection_activity::{
    ActivityKind, CollectionActivity, KindFigures, LatencyClass, LatencyFigures, LatencyHistogram,
};
pub use counters::CollectionCounts;
pub use early_write::EarlyWrite;
pub use error::{BuildEnd, CatalogError, GeometryFault, NameError, PartitionFault, WriteError};
pub use fetch_ahead::{FetchAhead, FetchedKeys};
pub use id_lookup::IdKey;
pub use index::Index;
pub use index_build::IndexBuildTurn;
pub use index_description::{
    EntryContents, FieldKind, IndexDescription, IndexField, Sparseness, Truncation, Uniqueness, Visibility,
    WILDCARD, is_wildcard,
};
pub use index_filters::{IndexFilter, IndexFilters};
pub use key_owners::{KeyOwners, OwnedKey};
pub use layout::{HEAP_TREE, ID_INDEX, Layout, PRIMARY_KEY_INDEX, is_partitioned};
pub use multikey::Multikey;
pub use namespace::{Namespace, check_database};
pub use partition_schedule::PartitionSchedule;
pub use partitioned_copy::PartitionedCopy;
pub use partitions::{PARTITIONS_MAX, Partition, PartitionBound};
pub use primary_key::{PRIMARY_KEY_BYTES_MAX, PrimaryKey};
pub use scans::{DocumentScan, IndexEntry, IndexScan};
pub use seen_names::SeenNames;
pub use session_transaction::{CommitLeases, SessionTransaction};
pub use shared_keys::{SharedKeys, Sharer};
pub use sharing::{Answer, Answers, Asked, Question};
pub use stamps::StampKind;
pub use tree_owners::TreeOwners;
pub use truncation::RangeStep;
pub use verify::{CollectionReport, verify_collection};
pub use write_transaction::{WriteSavepoint, WriteTransaction};

// The layers above speak of transactions and errors in the contract's words, and depend on the catalog alone.
pub use pando_storage::emulate::restore_backup as restore_emulated_backup;
pub use pando_storage::{
    BackupExtent, BackupReport, BackupRequest, Begin, BlockingMode, ByteSize, ByteSizeError, Bytes,
    CachedReads, Caller, CheckRequest, CommitReceipt, Contest, Contested, Cursor, DeviceAccount, DeviceReads,
    Direction, Durability, DurabilityWaker, Engine, ErrorKind, Estimate, EstimateOrigin, HeldKey, HeldMemory,
    Intents, Interruption, KeyRange, KeySet, LiveTransaction, Lsn, Mode, Operation, OperationWait,
    Persistence, ProgressFigures, QUERY_MEMORY_MIN, QueryAccount, QueryMemory, QueryMemoryFigures,
    ReadClaiming, Reservation, Savepoint, ScratchFigures, ScratchSpace, SharedEngine, SharedTime, Sharing,
    SnapshotTimestamp, Sorter, StageFigures, StageUsage, Statistics, StorageError, Ticket, Transaction,
    TransactionId, TreeId, TreeOptions, Usage, UsageFigures, Wait, WaitRequest, WaitSignal,
};
