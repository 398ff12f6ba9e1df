//! Namespaces, collections and indexes: the one owner of "a document and its index entries change together".
//!
//! The catalog turns documents into the ordered byte keys of the [storage contract](pando_storage) and back:
//! - A collection is a *primary tree*: the document's primary key (order-preserving bytes of `_id`) → the whole document.
//!   A point query by `_id` therefore reads one page, where an index over a heap reads two.
//! - A secondary index is a tree of its own, see [`index_entry`]: field bytes and primary key → the type bits that
//!   order-preserving bytes lose. Inserting an entry needs no read.
//! - What exists is written in the *catalog tree*, one BSON entry a collection, see [`catalog_entry`].
//!
//! # The life of an insert
//! 1. [`Catalog::lease`] gives the collection's description of this moment, and keeps it from changing while it is held.
//! 2. [`Catalog::begin`] gives a transaction.
//! 3. [`Collection::insert`] checks that the primary key is free, derives the index entries ([`index_keys`]), and puts all of
//!    them in the transaction's write set.
//! 4. The caller commits, then lets go of the lease.
//!
//! # Invariants
//! - Every document has, in each index, exactly the entries that [`index_keys`] derives from it, and no entry is without its
//!   document; `verify` checks it.
//! - A tree is created before the catalog entry that refers to it is committed, and dropped after the entry is gone, so a
//!   crash leaves at worst a tree that nothing refers to; [`Catalog::open`] drops those.
//! - The latch of a collection is taken before the catalog's own mutex, never after.
//!
//! # Not here
//! What a filter or an update means (crate `query`); error codes and requests (crate `commands`); pages and logs (engines).

mod building;
mod catalog;
pub mod catalog_entry;
mod collection;
mod definition;
mod documents;
mod error;
pub mod expansion;
mod index;
mod index_build;
pub mod index_entry;
pub mod index_keys;
mod namespace;
mod primary_key;
mod scans;
mod sorter;
mod tree_layout;
mod verify;

pub use building::BuildEnd;
pub use catalog::{Catalog, Lease};
pub use collection::{Collection, CollectionSize};
pub use error::{CatalogError, NameError, WriteError};
pub use index::{
    Index, IndexDescription, IndexField, Multikey, Sparseness, Truncation, Uniqueness, Visibility,
};
pub use index_build::IndexBuildTurn;
pub use namespace::{Namespace, check_database};
pub use primary_key::PrimaryKey;
pub use scans::{DocumentScan, IndexEntry, IndexScan};
pub use verify::{CollectionReport, verify_collection};

// The layers above speak of transactions and errors in the contract's words, and depend on the catalog alone.
pub use pando_storage::emulate::restore_backup as restore_emulated_backup;
pub use pando_storage::{
    BackupExtent, BackupReport, BackupRequest, Begin, BlockingMode, Bytes, CheckRequest, CommitReceipt,
    Cursor, Direction, Durability, DurabilityWaker, Engine, ErrorKind, Estimate, HeldMemory, KeyRange,
    LiveTransaction, Lsn, Mode, Savepoint, SharedEngine, SnapshotTimestamp, Statistics, StorageError,
    Transaction, TreeOptions, Wait,
};
