//! A collection's description: immutable and shared. A new one replaces it when an
//! index or an option changes.
//!
//! A description owns the trees, the indexes and the locks of a collection ([`Parts`]). Flags and locks are
//! shared by all descriptions of one collection, so that a reader of an old one sees the flags that later
//! documents raise.
//!
//! Not here: writing documents (`documents`), scans (`scans`), replacing the description (`catalog`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pando_collation::TextOrder;
use pando_document::{RawDocument, RawDocumentBuf};
use pando_storage::{
    BlockingMode, Bytes, KeyRange, QueryMemory, SharedEngine, SnapshotTimestamp, StorageError, Transaction,
    TreeId, WaitSignal,
};
use parking_lot::{Mutex, RwLock};

use crate::building::BuildingIndex;
use crate::capped::{CappedLimits, CappedState, TailVersion};
use crate::collection_activity::CollectionActivity;
use crate::definition::definition_of;
use crate::index_description::{EntryContents, Truncation, Uniqueness};
use crate::index_filters::IndexFilters;
use crate::layout::{Layout, clustered_name, clustered_specification};
use crate::partition_schedule::PartitionSchedule;
use crate::partitions::{Partition, Partitions};
use crate::publication::Publication;
use crate::record_ids::RecordIds;
use crate::sharing::Sharing;
use crate::store::{NamedTree, Store, TreeNumber};
use crate::{Index, IndexDescription, Namespace};

/// Bytes that a collection takes on the device, after compression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageSize {
    /// Of the documents.
    pub document_bytes: u64,
    /// Of each index, by name, `_id_` first. The index that the documents themselves are takes none of its
    /// own; it is left out where it is that of the option `clusteredIndex`.
    pub index_bytes: Vec<(String, u64)>,
}

impl StorageSize {
    /// Those of several collections of one catalog, in their order. The engine is asked once, since each
    /// question may look at all trees.
    pub fn of_all(collections: &[Arc<Collection>]) -> Result<Vec<StorageSize>, StorageError> {
        let Some(first) = collections.first() else { return Ok(Vec::new()) };
        let trees: Vec<Vec<TreeId>> = collections.iter().map(|one| one.sized_trees()).collect();
        let bytes = first.store.engine.bytes_on_disk_of(&trees.concat())?;
        let mut left = bytes.as_slice();
        let sizes = collections.iter().zip(&trees).map(|(collection, trees)| {
            let (own, rest) = left.split_at(trees.len().min(left.len()));
            left = rest;
            collection.size_of(own)
        });
        Ok(sizes.collect())
    }

    /// Of all indexes together.
    pub fn all_index_bytes(&self) -> u64 {
        self.index_bytes.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// A collection as it is at one moment.
pub struct Collection {
    parts: Parts,
    /// `database.collection`, spelled once: every reply has it.
    full_name: String,
    /// The index that the documents themselves are, without its flag; `None` in a heap.
    primary_index: Option<IndexDescription>,
    /// Of a capped collection.
    capped_limits: Option<CappedLimits>,
    /// Of partitions that follow the time.
    schedule: Option<PartitionSchedule>,
    pub(crate) store: Arc<Store>,
}

/// The parts of a description. The next description is made from them.
#[derive(Clone)]
pub(crate) struct Parts {
    pub namespace: Namespace,
    pub uuid: [u8; 16],
    pub options: RawDocumentBuf,
    pub layout: Layout,
    /// The order of strings that its options name, in primary keys and where a request names none.
    pub text_order: TextOrder,
    /// Of a partitioned collection; shared with later descriptions.
    pub partitions: Option<Arc<Partitions>>,
    /// Of a heap; shared with later descriptions.
    pub record_ids: Arc<RecordIds>,
    /// Of a capped collection; shared with later descriptions.
    pub capped: Option<Arc<CappedState>>,
    pub primary: NamedTree,
    /// Whether some primary key was too long and was cut; shared with later descriptions.
    pub primary_truncated: Arc<AtomicBool>,
    /// The secondary ones. Where `_id` is not the primary key, the first is that on `_id`.
    pub indexes: Vec<Arc<Index>>,
    /// Indexes that are being built: statements that write note their changes for them, readers know nothing
    /// of them.
    pub building: Vec<Arc<BuildingIndex>>,
    /// Held shared by each statement that writes, alone by whoever changes the description; shared with later
    /// descriptions.
    pub latch: Arc<RwLock<()>>,
    /// Held through a whole index build, taken before the latch; shared with later descriptions.
    pub build_turn: Arc<Mutex<()>>,
    /// Whether statements that write keep the counters. Changes only while the latch is held alone; shared
    /// with later descriptions.
    pub counters_kept: Arc<AtomicBool>,
    /// Whether the catalog tree has an entry of the collection; shared with later descriptions.
    pub entry: Arc<EntryState>,
    /// In a shared store: the version of the catalog tree that has all flags that are raised here. Shared
    /// with later descriptions.
    pub flags_version: Arc<AtomicU64>,
    /// Of a collection that was loaded since the store was opened; shared with later descriptions.
    pub publication: Option<Arc<Publication>>,
    /// Shared with later descriptions.
    pub activity: Arc<CollectionActivity>,
    /// Shared with later descriptions.
    pub index_filters: Arc<IndexFilters>,
}

impl Parts {
    /// A collection over a tree, without options and indexes.
    pub fn of_tree(namespace: Namespace, primary: NamedTree) -> Parts {
        Parts {
            namespace,
            uuid: [0; 16],
            options: RawDocumentBuf::new(),
            layout: Layout::Clustered,
            text_order: TextOrder::SIMPLE,
            partitions: None,
            record_ids: Arc::default(),
            capped: None,
            primary,
            primary_truncated: Arc::default(),
            indexes: Vec::new(),
            building: Vec::new(),
            latch: Arc::new(RwLock::new(())),
            build_turn: Arc::default(),
            counters_kept: Arc::default(),
            entry: Arc::default(),
            flags_version: Arc::default(),
            publication: None,
            activity: Arc::default(),
            index_filters: Arc::default(),
        }
    }
}

/// Whether the catalog tree has an entry of a collection. It has none while the transaction that creates the
/// collection is not committed.
#[derive(Debug, Default)]
pub(crate) struct EntryState {
    is_pending: AtomicBool,
}

impl EntryState {
    /// The state of a collection whose entry is committed later.
    pub(crate) fn pending() -> EntryState {
        EntryState { is_pending: AtomicBool::new(true) }
    }
}

impl Collection {
    pub(crate) fn new(mut parts: Parts, store: Arc<Store>) -> Collection {
        let (full_name, primary_index) = (parts.namespace.to_string(), primary_index_of(&parts));
        // An older program made no heaps of collections that called themselves capped.
        let is_heap = parts.layout == Layout::Heap;
        let capped_limits = CappedLimits::of_options(&parts.options).filter(|_| is_heap);
        if capped_limits.is_some() && parts.capped.is_none() {
            parts.capped = Some(Arc::default());
        }
        let schedule = PartitionSchedule::of_options(&parts.options).ok().flatten();
        let schedule = schedule.filter(|_| parts.partitions.is_some());
        Collection { full_name, parts, primary_index, capped_limits, schedule, store }
    }

    /// The parts, to make the next description from.
    pub(crate) fn parts(&self) -> Parts {
        self.parts.clone()
    }

    /// See [`Parts::latch`].
    pub(crate) fn latch(&self) -> &Arc<RwLock<()>> {
        &self.parts.latch
    }

    /// See [`Parts::build_turn`].
    pub(crate) fn build_turn(&self) -> &Arc<Mutex<()>> {
        &self.parts.build_turn
    }

    /// The memory of queries of its store.
    pub fn query_memory(&self) -> &QueryMemory {
        &self.store.query_memory
    }

    /// Its name.
    pub fn namespace(&self) -> &Namespace {
        &self.parts.namespace
    }

    /// Its name as `database.collection`.
    pub fn full_name(&self) -> &str {
        &self.full_name
    }

    /// Its identity, which a rename keeps.
    pub fn uuid(&self) -> [u8; 16] {
        self.parts.uuid
    }

    /// The requests that have used it since the store was opened.
    pub fn activity(&self) -> &CollectionActivity {
        &self.parts.activity
    }

    /// The index filters of its queries.
    #[inline]
    pub fn index_filters(&self) -> &IndexFilters {
        &self.parts.index_filters
    }

    /// The options that it was created with.
    pub fn options(&self) -> &RawDocument {
        &self.parts.options
    }

    /// By which key documents lie in the primary tree.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.parts.layout
    }

    /// The limits of a capped collection; `None` of any other.
    #[inline]
    pub fn capped_limits(&self) -> Option<CappedLimits> {
        self.capped_limits
    }

    /// See [`Parts::capped`].
    #[inline]
    pub(crate) fn capped_state(&self) -> Option<&Arc<CappedState>> {
        self.parts.capped.as_ref()
    }

    /// The version of the tail of a capped collection, for a wait. Ask for it before the snapshot is taken.
    pub fn tail_version(&self) -> TailVersion {
        self.parts.capped.as_ref().map(|state| state.tail_version()).unwrap_or_default()
    }

    /// Fires a signal after the next commit to a capped collection, or at once where the version is not the
    /// newest. In any other collection nothing fires it.
    pub fn when_tail_changes(&self, seen: TailVersion, signal: &Arc<WaitSignal>) {
        if let Some(state) = &self.parts.capped {
            state.when_changed(seen, signal);
        }
    }

    /// The order of strings in primary keys, and where a request names none.
    #[inline]
    pub fn text_order(&self) -> &TextOrder {
        &self.parts.text_order
    }

    /// See [`Parts::partitions`].
    #[inline]
    pub(crate) fn shared_partitions(&self) -> Option<&Arc<Partitions>> {
        self.parts.partitions.as_ref()
    }

    /// Its partitions in the order of their bounds; `None` of a collection without.
    pub fn partitions(&self) -> Option<Vec<Partition>> {
        Some(self.parts.partitions.as_ref()?.list().live.clone())
    }

    /// By which its partitions come and go; `None` where only commands change them.
    #[inline]
    pub fn schedule(&self) -> Option<&PartitionSchedule> {
        self.schedule.as_ref()
    }

    /// Whether it has partitions.
    #[inline]
    pub fn has_partitions(&self) -> bool {
        self.parts.partitions.is_some()
    }

    /// How many of its partitions some ranges of primary keys meet, and how many it has; `None` of a
    /// collection without.
    pub fn partitions_met(&self, keys: &[KeyRange]) -> Option<(usize, usize)> {
        let list = self.parts.partitions.as_ref()?.list();
        let met = (0..list.live.len()).filter(|place| list.is_met_at(*place, keys)).count();
        Some((met, list.live.len()))
    }

    /// See [`Parts::record_ids`].
    pub(crate) fn record_ids(&self) -> &RecordIds {
        &self.parts.record_ids
    }

    /// The secondary index on `_id`; `None` where `_id` is the primary key.
    pub(crate) fn id_index(&self) -> Option<&Arc<Index>> {
        self.parts.indexes.first().filter(|_| !self.parts.layout.is_by_id())
    }

    /// The secondary indexes. That on `_id` is one only where `_id` is not the primary key, and comes first.
    pub fn indexes(&self) -> &[Arc<Index>] {
        &self.parts.indexes
    }

    /// The secondary index of this name.
    pub fn index(&self, name: &str) -> Option<&Arc<Index>> {
        self.parts.indexes.iter().find(|index| index.name() == name)
    }

    /// The names of indexes that are being built.
    pub fn names_being_built(&self) -> impl Iterator<Item = &str> {
        self.parts.building.iter().map(|building| building.index.name())
    }

    /// All indexes, `_id_` first, including hidden ones and new ones that old snapshots may not use.
    pub fn describe_indexes(&self) -> Vec<IndexDescription> {
        self.describe(|_| true)
    }

    /// All indexes as a planner sees them, `_id_` first. The snapshot is the transaction's, which has begun
    /// before: an index that was published later has not all entries for it.
    pub fn describe_indexes_at(&self, snapshot: SnapshotTimestamp) -> Vec<IndexDescription> {
        self.describe(|index| index.is_usable_at(snapshot))
    }

    fn describe(&self, is_wanted: impl Fn(&Index) -> bool) -> Vec<IndexDescription> {
        let mut all = Vec::with_capacity(self.parts.indexes.len() + 1);
        let (of_id, others) = self.parts.indexes.split_at(usize::from(self.id_index().is_some()));
        all.extend(of_id.iter().map(|index| index.describe()));
        all.extend(self.describe_primary());
        let wanted = others.iter().filter(|index| is_wanted(index));
        all.extend(wanted.map(|index| index.describe()));
        all
    }

    /// The index that the documents themselves are, where they are one.
    fn describe_primary(&self) -> Option<IndexDescription> {
        let index = self.primary_index.as_ref()?;
        Some(IndexDescription { truncated: self.primary_truncation(), ..index.clone() })
    }

    /// The document of a primary key.
    pub fn fetch(
        &self,
        transaction: &dyn Transaction,
        key: &[u8],
        blocking: BlockingMode,
    ) -> Result<Option<Bytes>, StorageError> {
        if let Some(publication) = &self.parts.publication
            && !publication.is_seen_by(transaction, blocking)?
        {
            return Ok(None);
        }
        transaction.get(self.parts.primary.id, key, blocking)
    }

    /// Tells the engine that the documents of these primary keys are about to be fetched, a thousand at most.
    /// An engine that sends each request over a network reads them at once.
    pub(crate) fn expect_fetches<'k>(
        &self,
        transaction: &dyn Transaction,
        mut keys: impl ExactSizeIterator<Item = &'k [u8]>,
        blocking: BlockingMode,
    ) -> Result<(), StorageError> {
        match keys.len() {
            0 | 1 => Ok(()),
            _ => transaction.expect_gets(
                self.parts.primary.id,
                &mut keys.by_ref().map(<[u8]>::to_vec),
                blocking,
            ),
        }
    }

    /// Bytes on the device. May read.
    pub fn storage_size(&self) -> Result<StorageSize, StorageError> {
        let bytes = self.store.engine.bytes_on_disk_of(&self.sized_trees())?;
        Ok(self.size_of(&bytes))
    }

    /// The documents' tree, then those of the indexes.
    fn sized_trees(&self) -> Vec<TreeId> {
        let indexes = self.parts.indexes.iter().map(|index| index.tree());
        std::iter::once(self.parts.primary.id).chain(indexes).collect()
    }

    /// The size by the bytes of the [sized trees](Self::sized_trees).
    fn size_of(&self, tree_bytes: &[u64]) -> StorageSize {
        let (document_bytes, index_bytes) = tree_bytes.split_first().unwrap_or((&0, &[]));
        let names = self.parts.indexes.iter().map(|index| index.name().to_owned());
        let mut sizes: Vec<_> = names.zip(index_bytes.iter().copied()).collect();
        if let Some(name) = self.primary_index_name().filter(|_| self.clustered_index_name().is_none()) {
            sizes.insert(usize::from(self.id_index().is_some()), (name.to_owned(), 0));
        }
        StorageSize { document_bytes: *document_bytes, index_bytes: sizes }
    }

    /// The name of the index that the option `clusteredIndex` asks for. Clients take the documents for it,
    /// and do not count it as an index.
    pub fn clustered_index_name(&self) -> Option<&str> {
        clustered_name(&self.parts.options)
    }

    /// The name of the index that the documents themselves are, where they are one.
    pub fn primary_index_name(&self) -> Option<&str> {
        match self.layout() {
            Layout::Heap => None,
            layout => Some(clustered_name(&self.parts.options).unwrap_or_else(|| layout.documents_name())),
        }
    }

    /// The membership in a shared store.
    pub(crate) fn sharing(&self) -> Option<&Arc<Sharing>> {
        self.store.sharing.as_ref()
    }

    /// See [`Parts::flags_version`].
    pub(crate) fn flags_version(&self) -> &AtomicU64 {
        &self.parts.flags_version
    }

    pub(crate) fn building(&self) -> &[Arc<BuildingIndex>] {
        &self.parts.building
    }

    pub(crate) fn engine(&self) -> &SharedEngine {
        &self.store.engine
    }

    pub(crate) fn primary_tree(&self) -> TreeId {
        self.parts.primary.id
    }

    pub(crate) fn primary_tree_name(&self) -> &str {
        &self.parts.primary.name
    }

    /// The number by which its counters go.
    pub(crate) fn number(&self) -> TreeNumber {
        self.parts.primary.number
    }

    /// See [`Parts::counters_kept`].
    pub(crate) fn keeps_counters(&self) -> bool {
        self.parts.counters_kept.load(Ordering::Acquire)
    }

    /// Has statements that write keep the counters. The caller holds the latch alone.
    pub(crate) fn keep_counters(&self) {
        self.parts.counters_kept.store(true, Ordering::Release);
    }

    /// Whether the catalog tree has no entry of it yet.
    pub(crate) fn is_entry_pending(&self) -> bool {
        self.parts.entry.is_pending.load(Ordering::Acquire)
    }

    /// See [`Parts::publication`].
    pub(crate) fn publication(&self) -> Option<&Arc<Publication>> {
        self.parts.publication.as_ref()
    }

    /// The entry is committed.
    pub(crate) fn entry_committed(&self) {
        self.parts.entry.is_pending.store(false, Ordering::Release);
    }

    pub(crate) fn is_primary_truncated(&self) -> bool {
        self.parts.primary_truncated.load(Ordering::Acquire)
    }

    /// Whether some primary key was too long and was cut.
    pub(crate) fn primary_truncation(&self) -> Truncation {
        if self.is_primary_truncated() { Truncation::Truncated } else { Truncation::Whole }
    }

    pub(crate) fn raise_primary_truncated(&self) {
        self.parts.primary_truncated.store(true, Ordering::Release);
    }

    /// Every tree of this collection, by the engine's name.
    pub(crate) fn tree_names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.parts.primary.name.as_str())
            .chain(self.parts.indexes.iter().map(|index| index.tree_name()))
    }

    /// The trees of the builds that its entry names, by the engine's names: in a shared store.
    pub(crate) fn names_of_trees_being_built(&self) -> impl Iterator<Item = &str> {
        self.parts.building.iter().flat_map(|one| [one.index.tree_name(), one.changes_name.as_str()])
    }

    /// Every tree of this collection.
    pub(crate) fn trees(&self) -> impl Iterator<Item = TreeId> + '_ {
        std::iter::once(self.parts.primary.id).chain(self.parts.indexes.iter().map(|index| index.tree()))
    }
}

/// The index that the documents themselves are, as long as no key was cut.
fn primary_index_of(parts: &Parts) -> Option<IndexDescription> {
    let specification = match clustered_name(&parts.options) {
        Some(name) => clustered_specification(&parts.options, name, &parts.text_order),
        None => parts.layout.primary_specification(&parts.text_order)?,
    };
    let description = definition_of(&specification).expect("the catalog's own specification is right");
    let contents = EntryContents::Document;
    Some(IndexDescription { unique: Uniqueness::Unique, contents, ..description })
}

impl std::fmt::Debug for Collection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collection")
            .field("namespace", &self.parts.namespace)
            .field("primary", &self.parts.primary)
            .field("indexes", &self.parts.indexes)
            .finish_non_exhaustive()
    }
}
