//! Building an index over documents that are there already.
//!
//! # Steps
//! 1. The collection is taken alone: no statement writes while the build runs, readers go on.
//! 2. A tree is created; the catalog does not refer to it yet.
//! 3. Documents are read in order from one snapshot. Their entries are gathered, sorted, and put in chunks, each chunk a
//!    transaction, so that the engine sees runs of neighbouring keys and no transaction grows with the collection.
//! 4. The description with the new index is committed. A crash before this leaves a tree that the next start drops.
//!
//! An error (a duplicate in a unique index, parallel arrays) drops the tree and leaves the collection as it was.
//!
//! # Not here
//! Building while others write: the engine's ordering by commit time allows it, and the hot build is to use it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pando_document::RawDocument;
use pando_storage::{Begin, Direction, Durability, KeyRange, Patience};

use crate::documents::{put_entry, with_truncation};
use crate::index::RaisedFlags;
use crate::index_keys::{self, IndexKey};
use crate::tree_layout::tree_options;
use crate::{Catalog, CatalogError, Collection, Index, IndexDescription, Namespace, WriteError};

/// Entries that are gathered before they are sorted and put: at ~100 bytes each a few megabytes.
const CHUNK_ENTRIES: usize = 50_000;
/// Bytes of keys after which a chunk is put, however few they are.
const CHUNK_BYTES: usize = 16 * 1024 * 1024;
/// How often the log says how far a build has got.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

impl Catalog {
    /// Builds indexes and adds them to the collection, all or none. Blocks until all are built.
    pub fn create_indexes(
        &self,
        namespace: &Namespace,
        descriptions: Vec<IndexDescription>,
    ) -> Result<(), CatalogError> {
        let alone = self.exclusive(namespace)?;
        let mut parts = alone.collection.parts();
        let mut built: Vec<Arc<Index>> = Vec::with_capacity(descriptions.len());
        for description in descriptions {
            match self.build(&alone.collection, description) {
                Ok(index) => built.push(index),
                Err(error) => {
                    for index in built {
                        self.engine().drop_tree(index.tree())?;
                    }
                    return Err(error);
                }
            }
        }
        parts.indexes.extend(built);
        self.replace(parts)
    }

    /// Builds one index into a tree that nothing refers to yet.
    fn build(
        &self,
        collection: &Collection,
        description: IndexDescription,
    ) -> Result<Arc<Index>, CatalogError> {
        let layout = tree_options(&description.specification, self.engine().name())?;
        let (tree_name, tree) = self.store().create_tree("index", &layout)?;
        let index = Arc::new(Index::new(description, tree, tree_name));
        match (Build { catalog: self, collection, index: &index }).run() {
            Ok(()) => Ok(index),
            Err(error) => {
                self.engine().drop_tree(tree)?;
                Err(error.into())
            }
        }
    }
}

struct Build<'b> {
    catalog: &'b Catalog,
    collection: &'b Collection,
    index: &'b Index,
}

impl Build<'_> {
    fn run(&self) -> Result<(), WriteError> {
        let began = Instant::now();
        let mut said = began;
        let expected = self.catalog.engine().tree_estimate(self.collection.primary_tree())?.entries;
        let snapshot = self.catalog.begin(Begin::READ)?;
        let mut scan = self.collection.scan_documents(KeyRange::all(), Direction::Forward);
        let mut flags = RaisedFlags::none(self.index.fields().len());
        let mut chunk = Chunk::default();
        let mut documents: u64 = 0;
        while let Some((primary_key, bytes)) = scan.next(&*snapshot, Patience::MayBlock)? {
            let derived = index_keys::keys_of(self.index, RawDocument::from_bytes(bytes)?)?;
            let raised = with_truncation(derived.flags, &derived.keys);
            merge_flags(&mut flags, &raised);
            for key in derived.keys {
                chunk.push(key, primary_key);
            }
            documents += 1;
            if chunk.is_full() {
                self.put(&mut chunk)?;
                if said.elapsed() >= PROGRESS_EVERY {
                    said = Instant::now();
                    tracing::info!(collection = %self.collection.namespace(), index = self.index.name(), documents, expected, "building index");
                }
            }
        }
        self.put(&mut chunk)?;
        snapshot.rollback();
        // Nothing refers to the index yet: its flags go to the catalog with its first entry there.
        self.index.raise(&flags);
        let seconds = began.elapsed().as_secs_f64();
        tracing::info!(collection = %self.collection.namespace(), index = self.index.name(), documents, seconds, "built index");
        Ok(())
    }

    /// Puts a chunk in order and commits it.
    fn put(&self, chunk: &mut Chunk) -> Result<(), WriteError> {
        chunk.entries.sort_unstable();
        let mut transaction = self.catalog.begin(Begin::WRITE)?;
        for (key, primary_key) in chunk.entries.drain(..) {
            put_entry(self.index, &mut *transaction, &key, &primary_key, Patience::MayBlock)?;
        }
        chunk.bytes = 0;
        transaction.commit(Durability::None)?;
        Ok(())
    }
}

/// Entries gathered from neighbouring documents.
#[derive(Default)]
struct Chunk {
    entries: Vec<(IndexKey, Box<[u8]>)>,
    bytes: usize,
}

impl Chunk {
    fn push(&mut self, key: IndexKey, primary_key: &[u8]) {
        self.bytes += key.fields.len() + key.type_bits.len() + primary_key.len();
        self.entries.push((key, primary_key.into()));
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= CHUNK_ENTRIES || self.bytes >= CHUNK_BYTES
    }
}

fn merge_flags(all: &mut RaisedFlags, one: &RaisedFlags) {
    for (have, want) in all.multikey.iter_mut().zip(&one.multikey) {
        if *want == crate::Multikey::Yes {
            *have = crate::Multikey::Yes;
        }
    }
    if one.truncated == crate::Truncation::Truncated {
        all.truncated = crate::Truncation::Truncated;
    }
}
