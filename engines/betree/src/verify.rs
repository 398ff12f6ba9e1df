//! The check of a store: every pointer, checksum, counter, order and extent.
//!
//! # Steps
//! 1. Walk from the superblock to the catalog, from there into each tree, down to each page. A block that
//!    cannot be read or decoded is *damage*; the walk goes on beside it.
//! 2. In each node, slice and leaf: check that keys ascend and lie within the child's range, and that the
//!    counters of the parent hold. Filters must have every key. The versions of each key must grow older on
//!    the way down ([`slices`]). Large values are read, piece by piece.
//! 3. Compare the extents that were reached, each once, with those of the space map; the rest of the file is
//!    free.
//! 4. Read the log from the superblock's position to its end.
//!
//! The check changes no file. [`verify`] checks a store that is not open. [`check_open`] checks an open one,
//! on a pinned generation and with a limited rate; it does not include newer commits, which only the log has.

mod large_value_check;
mod slices;
mod throttle;

use std::path::Path;
use std::sync::Arc;

use pando_encryption::Encryption;
use pando_environment::Environment;
use pando_storage::{CheckReport, CheckRequest, CommitTimestamp, Operation, StorageError, TreeId};

use crate::base::{Extent, Pointer, extents_of};
use crate::error::{BetreeError, KeyText};
use crate::format::catalog::{self, StoredTree};
use crate::format::content::Content;
use crate::format::directory::Directory;
use crate::format::filter::KeyHash;
use crate::format::inner_node::StoredInnerNode;
use crate::format::page::Page;
use crate::log::Log;
use crate::space::{BlockStore, PinnedGeneration, SpaceOptions};
use crate::store::Store;
use crate::tree::node::Totals;
use crate::tree::tree_blocks::{Blocks, PageCache};
use crate::verify::throttle::Throttle;
use large_value_check::LargeFound;
use slices::{Above, above_child};

/// The result for a store.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Each tree that the catalog has.
    pub trees: Vec<TreeReport>,
    /// Everything that is wrong; empty for a sound store.
    pub damage: Vec<Damage>,
    /// Where copies of superblocks begin that are damaged, in bytes of the data file. A power cut may leave
    /// such a copy, and the store has others; the next two checkpoints write all of them again.
    pub damaged_superblocks: Vec<u64>,
    /// Whether the engine does not open the store as it is: its list of trees or its log is damaged.
    pub is_closed_by_damage: bool,
    /// Bytes of the data file.
    pub file_bytes: u64,
    /// Bytes of it that the last checkpoint uses.
    pub used_bytes: u64,
    /// Records of the log after that checkpoint.
    pub log_records: u64,
    /// The entries of the tree that the caller wants to see, oldest first: every version that can be read.
    pub kept: Vec<KeptEntry>,
}

/// An entry of a tree, as the check has met it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEntry {
    /// The commit that wrote it.
    pub timestamp: CommitTimestamp,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

impl VerifyReport {
    /// Whether the store has no damage.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }

    /// Whether one of the trees with these names is damaged.
    pub fn is_damaged_in(&self, names: &[&str]) -> bool {
        let named = self.trees.iter().filter(|report| names.contains(&report.name.as_str()));
        let numbers: Vec<u32> = named.map(|report| report.number).collect();
        self.damage.iter().any(|damage| damage.tree.is_some_and(|tree| numbers.contains(&tree.get())))
    }

    /// Each damage in one sentence, with the name of the tree in parentheses.
    pub fn sentences(&self) -> impl Iterator<Item = String> + '_ {
        self.damage.iter().map(|damage| damage.sentence(&self.trees))
    }
}

/// The result for a tree. Commits that only the log has are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeReport {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Levels of inner nodes.
    pub height: u8,
    /// Inner nodes.
    pub inner_nodes: u64,
    /// Leaves.
    pub leaves: u64,
    /// Slices of runs, which are pending in inner nodes.
    pub slices: u64,
    /// Entries in slices.
    pub pending_entries: u64,
    /// Pages.
    pub pages: u64,
    /// Entries of leaves: versions of keys.
    pub entries: u64,
    /// Bytes of the pages of leaves before compression.
    pub raw_bytes: u64,
    /// Bytes of pages, directories and slices as stored.
    pub stored_bytes: u64,
    /// Large values, of leaves and of slices.
    pub large_values: u64,
    /// Bytes of them before compression.
    pub large_bytes: u64,
    /// Fragments of range deletes that are not applied yet.
    pub deleted_ranges: u64,
}

/// One damage: the problem, and the keys that it concerns.
#[derive(Debug)]
pub struct Damage {
    /// The tree, if it is in one.
    pub tree: Option<TreeId>,
    /// The smallest key that may be concerned.
    pub from: KeyText,
    /// The key before which it ends.
    pub to: KeyText,
    /// A description of the damage.
    pub problem: String,
}

/// Checks the store in a folder.
///
/// # Errors
/// The store is open elsewhere, or its superblock or space map cannot be read. All other problems are in the
/// report.
pub fn verify(environment: &Environment, folder: &Path) -> Result<VerifyReport, StorageError> {
    verify_keeping(environment, folder, None, "")
}

/// The same for a store that may be encrypted, and keeps the entries of the tree of this name, for a caller
/// that knows what they mean.
///
/// # Errors
/// As for [`verify`]; and a key that is missing, or not the one of the store.
pub fn verify_keeping(
    environment: &Environment,
    folder: &Path,
    encryption: Option<&Encryption>,
    kept_tree: &str,
) -> Result<VerifyReport, StorageError> {
    let (store, state) = BlockStore::open(environment, folder, SpaceOptions::read_only(encryption.cloned()))?;
    let blocks = Blocks::new(Arc::new(store), PageCache::new(1 << 20, 16 << 10));
    let mut walk = Walk { kept_tree, ..Walk::new(blocks.store(), &[], Throttle::none()) };
    if let Some(pointer) = state.superblock.catalog() {
        walk.catalog(&pointer);
    }
    let Walk { mut report, reached, .. } = walk;
    report.kept.sort_by_key(|entry| entry.timestamp);
    report.damaged_superblocks = state.damaged_superblocks;
    report.file_bytes = blocks.store().statistics().file_bytes;
    match blocks.store().audit(&reached) {
        Ok(audit) => report.used_bytes = audit.used_units * crate::base::UNIT_BYTES,
        // The pages of an unreadable directory are missing from the walk: that is no second damage.
        Err(_) if !report.damage.is_empty() => {}
        Err(error) => report.damage.push(outside_trees(error.to_string())),
    }
    let superblock = &state.superblock;
    let (from, must_reach) = (superblock.log_position(), superblock.log_synced_to());
    let keys = blocks.store().vault().map(AsRef::as_ref);
    match Log::check(environment, folder, (superblock.store(), keys), from, must_reach) {
        Ok(records) => report.log_records = records,
        Err(error) => {
            report.is_closed_by_damage = true;
            report.damage.push(outside_trees(error.to_string()));
        }
    }
    Ok(report)
}

fn outside_trees(problem: String) -> Damage {
    Damage { tree: None, from: KeyText::of_lower(None), to: KeyText::of_upper(None), problem }
}

/// The keys that a child may hold.
#[derive(Clone, Copy)]
struct Range<'k> {
    lower: Option<&'k [u8]>,
    upper: Option<&'k [u8]>,
}

impl Range<'_> {
    fn contains(&self, key: &[u8]) -> bool {
        self.lower.is_none_or(|lower| lower <= key) && self.upper.is_none_or(|upper| key < upper)
    }
}

/// The most damage in a report: a store may be damaged at every entry.
const DAMAGE_MAX: usize = 10_000;

struct Walk<'b> {
    store: &'b BlockStore,
    report: VerifyReport,
    reached: Vec<Extent>,
    /// The trees to check; empty for all.
    only: &'b [TreeId],
    throttle: Throttle,
    /// The operation that the walk is.
    operation: Option<&'b Operation>,
    /// Bytes of the blocks that were read.
    bytes: u64,
    /// The tree whose entries are kept; empty for none.
    kept_tree: &'b str,
}

/// Checks an open store as of its newest durable generation, which is pinned meanwhile.
pub(crate) fn check_open(store: &Store, request: &CheckRequest<'_>) -> Result<CheckReport, BetreeError> {
    store.gate.check_open()?;
    let pin = PinnedGeneration::newest(store.blocks.store());
    let throttle = Throttle::new(&store.environment, request.bytes_per_second);
    let mut walk = Walk { operation: request.operation, ..Walk::new(pin.store(), request.trees, throttle) };
    if let Some(pointer) = pin.superblock().catalog() {
        walk.catalog(&pointer);
    }
    store.gate.check_open()?;
    // Blocks that were not read for an interruption are no damage.
    walk.check_operation()?;
    let Walk { mut report, reached, bytes, .. } = walk;
    if request.trees.is_empty()
        && report.is_sound()
        && let Err(error) = pin.check_reached(&reached)
    {
        report.damage.push(outside_trees(error.to_string()));
    }
    let told = report.damage.iter().take(CheckReport::PROBLEMS_MAX);
    Ok(CheckReport {
        trees: report.trees.len() as u64,
        entries: report.trees.iter().map(|tree| tree.entries + tree.pending_entries).sum(),
        bytes,
        problems: told.map(|damage| damage.sentence(&report.trees)).collect(),
    })
}

impl Damage {
    /// The damage in one sentence.
    fn sentence(&self, trees: &[TreeReport]) -> String {
        let Some(tree) = self.tree else { return self.problem.clone() };
        let name = trees.iter().find(|report| report.number == tree.get()).map_or("", |report| &report.name);
        format!("{tree} ({name}), keys from {} to {}: {}", self.from, self.to, self.problem)
    }
}

impl<'b> Walk<'b> {
    fn new(store: &'b BlockStore, only: &'b [TreeId], throttle: Throttle) -> Walk<'b> {
        Walk {
            store,
            report: VerifyReport::default(),
            reached: Vec::new(),
            only,
            throttle,
            operation: None,
            bytes: 0,
            kept_tree: "",
        }
    }
}

impl Walk<'_> {
    fn damage(&mut self, tree: TreeId, range: Range<'_>, problem: impl ToString) {
        if self.report.damage.len() >= DAMAGE_MAX {
            if self.report.damage.len() == DAMAGE_MAX {
                self.report.damage.push(outside_trees("there is more damage than is told here".to_owned()));
            }
            return;
        }
        self.report.damage.push(Damage {
            tree: Some(tree),
            from: KeyText::of_lower(range.lower),
            to: KeyText::of_upper(range.upper),
            problem: problem.to_string(),
        });
    }

    /// Keeps an entry, if it is of the tree whose entries are kept.
    fn keep(&mut self, tree: &TreeReport, timestamp: CommitTimestamp, key: &[u8], content: &Content<&[u8]>) {
        if tree.name == self.kept_tree
            && let Content::Value(value) = content
        {
            self.report.kept.push(KeptEntry { timestamp, key: key.to_vec(), value: value.to_vec() });
        }
    }

    /// Fails if the operation has to end.
    fn check_operation(&self) -> Result<(), BetreeError> {
        let interrupted = self.operation.map_or(Ok(()), Operation::check_now);
        interrupted.map_err(|interruption| BetreeError::Substrate(interruption.into()))
    }

    /// Reads and decodes a block.
    fn read<T>(
        &mut self,
        pointer: &Pointer,
        decode: impl FnOnce(bytes::Bytes) -> Result<T, crate::FormatError>,
    ) -> Result<T, BetreeError> {
        self.check_operation()?;
        self.bytes += u64::from(pointer.disk_length());
        self.throttle.spend(u64::from(pointer.disk_length()));
        let bytes = self.store.read_block(pointer)?;
        let offset = pointer.address().byte_offset();
        decode(bytes).map_err(|source| BetreeError::Format { offset, source })
    }

    fn catalog(&mut self, pointer: &Pointer) {
        self.reached.extend(extents_of([pointer]));
        match self.read(pointer, |bytes| catalog::decode(&bytes)) {
            Ok(trees) => {
                let only = self.only;
                let wanted = trees.iter().filter(|tree| only.is_empty() || only.contains(&tree.id));
                wanted.for_each(|tree| self.tree(tree));
            }
            Err(error) => {
                self.report.is_closed_by_damage = true;
                self.report.damage.push(outside_trees(error.to_string()));
            }
        }
    }

    fn tree(&mut self, stored: &StoredTree) {
        let mut report =
            TreeReport { number: stored.id.get(), name: stored.name.clone(), ..TreeReport::default() };
        report.deleted_ranges = stored.ranges.fragments().len() as u64;
        if let Some(root) = stored.root {
            report.height = root.height;
            let everything = Range { lower: None, upper: None };
            let said =
                Totals { entries: stored.entries, content_bytes: stored.content_bytes, reach: stored.reach };
            self.child(stored.id, &root.pointer, root.height, everything, said, &Above::new(), &mut report);
        }
        self.report.trees.push(report);
    }

    /// Checks a subtree; `said` are the counters in its parent.
    fn child(
        &mut self,
        tree: TreeId,
        pointer: &Pointer,
        height: u8,
        range: Range<'_>,
        said: Totals,
        above: &Above,
        report: &mut TreeReport,
    ) {
        let before = self.report.damage.len();
        let found = match height {
            0 => self.leaf(tree, pointer, range, above, report),
            _ => self.inner_node(tree, pointer, height, range, above, report),
        };
        if self.report.damage.len() == before && found != said {
            self.damage(tree, range, format!("{said:?} said, {found:?} found"));
        }
    }

    fn inner_node(
        &mut self,
        tree: TreeId,
        pointer: &Pointer,
        height: u8,
        range: Range<'_>,
        above: &Above,
        report: &mut TreeReport,
    ) -> Totals {
        self.reached.extend(extents_of([pointer]));
        report.inner_nodes += 1;
        let node = self.read(pointer, |bytes| StoredInnerNode::decode(&bytes)?.check_height(height));
        let node = match node {
            Ok(node) => node,
            Err(error) => {
                self.damage(tree, range, error);
                return Totals::default();
            }
        };
        let mut sum = Totals::default();
        for (at, child) in node.children.iter().enumerate() {
            if at > 0 && !range.contains(&child.pivot) {
                self.damage(tree, range, "a pivot lies outside its node's range");
            }
            let lower = if at == 0 { range.lower } else { Some(&*child.pivot) };
            let upper = node.children.get(at + 1).map(|next| &*next.pivot).or(range.upper);
            let said =
                Totals { entries: child.entries, content_bytes: child.content_bytes, reach: child.reach };
            let range = Range { lower, upper };
            let mut above = above_child(above, range);
            self.slices(tree, &child.slices, range, &mut above, report);
            self.child(tree, &child.pointer, height - 1, range, said, &above, report);
            let pending = child.slices.iter().map(|slice| Totals {
                entries: slice.entries,
                content_bytes: slice.content_bytes,
                reach: slice.reach,
            });
            sum = pending.chain([said]).fold(sum, Totals::with);
        }
        sum
    }

    fn leaf(
        &mut self,
        tree: TreeId,
        pointer: &Pointer,
        range: Range<'_>,
        above: &Above,
        report: &mut TreeReport,
    ) -> Totals {
        report.leaves += 1;
        report.stored_bytes += u64::from(pointer.disk_length());
        let directory = match self.read(pointer, |bytes| Directory::decode(&bytes)) {
            Ok(directory) => directory,
            Err(error) => {
                self.reached.extend(extents_of([pointer]));
                self.damage(tree, range, error);
                return Totals::default();
            }
        };
        let blocks = directory.pages().iter().map(|page| &page.pointer).chain([pointer]);
        self.reached.extend(extents_of(blocks));
        let mut found = Totals { entries: directory.entries(), ..Totals::default() };
        for at in 0..directory.pages().len() {
            let lower = if at == 0 { range.lower } else { Some(directory.separator(at)) };
            let last = at + 1 == directory.pages().len();
            let upper = if last { range.upper } else { Some(directory.separator(at + 1)) };
            if at > 0 && !range.contains(directory.separator(at)) {
                self.damage(tree, range, "a separator lies outside its leaf's range");
            }
            found = found.with(self.page(tree, &directory, at, Range { lower, upper }, above, report));
        }
        let content_bytes = found.content_bytes;
        if content_bytes != directory.content_bytes() {
            let problem = format!("{} bytes counted, {content_bytes} found", directory.content_bytes());
            self.damage(tree, range, problem);
        }
        Totals { content_bytes: directory.content_bytes(), ..found }
    }

    /// Checks a page of a leaf. Returns the bytes of its keys and values, and its reach.
    fn page(
        &mut self,
        tree: TreeId,
        directory: &Directory,
        at: usize,
        range: Range<'_>,
        above: &Above,
        report: &mut TreeReport,
    ) -> Totals {
        let entry = &directory.pages()[at];
        report.pages += 1;
        report.raw_bytes += u64::from(entry.pointer.raw_length());
        report.stored_bytes += u64::from(entry.pointer.disk_length());
        let page = match self.read(&entry.pointer, Page::decode) {
            Ok(page) => page,
            Err(error) => {
                self.damage(tree, range, error);
                return Totals::default();
            }
        };
        report.entries += page.len() as u64;
        if let Err(error) = page.check_order() {
            self.damage(tree, range, error);
        }
        if page.has_merges() {
            self.damage(tree, range, "a leaf has merge operators, which should have been applied");
        }
        let (mut key, mut content_bytes, mut newest) = (Vec::new(), 0, CommitTimestamp::ZERO);
        let mut large = LargeFound::default();
        for at in 0..page.len() {
            page.key_into(at, &mut key);
            let entry = page.entry(at);
            let content = page.content(&entry);
            content_bytes += key.len() as u64 + content.value_bytes();
            self.keep(report, entry.timestamp(), &key, &content);
            self.large_value(tree, &key, content, &mut large, report);
            newest = newest.max(entry.timestamp());
            if !range.contains(&key) {
                self.damage(tree, range, format!("entry {at} of a page lies outside the page's range"));
            }
            if !directory.filter().is_empty() && !directory.filter().may_contain(KeyHash::of(&key)) {
                self.damage(tree, range, format!("the filter of a leaf misses entry {at} of a page"));
            }
            if above.get(&key).is_some_and(|oldest| *oldest <= entry.timestamp()) {
                self.damage(tree, range, format!("entry {at} of a page is not older than one above it"));
            }
        }
        if large.bytes != entry.large_bytes {
            let problem =
                format!("{} bytes of large values counted, {} found", entry.large_bytes, large.bytes);
            self.damage(tree, range, problem);
        }
        if page.len() != entry.entries as usize || newest != entry.newest {
            let problem = format!(
                "{} entries up to {:?} counted, {} up to {newest:?} found",
                entry.entries,
                entry.newest,
                page.len()
            );
            self.damage(tree, range, problem);
        }
        Totals { entries: 0, content_bytes, reach: large.reach }
    }
}

#[cfg(test)]
mod tests;
