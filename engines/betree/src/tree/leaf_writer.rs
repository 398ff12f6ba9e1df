//! Leaf writer: writes leaves from entries that arrive in order, pages one after the other and then the
//! directory, in one extent.
//!
//! 1. An entry that would make the page too large begins the next page. Versions of one key stay in one page.
//! 2. A page that makes the leaf large enough ends the leaf. The leaf is compressed page by page as it grows,
//!    placed, and written with its directory in one device write.
//! 3. The caller learns where each leaf begins: a *separator*, the shortest key that divides it from the keys
//!    before.

use std::sync::Arc;

use pando_storage::{CommitTimestamp, HeldMemory, TreeId};

use super::node::LeafChild;
use crate::base::{BlockKind, Extent, extents_of};
use crate::cache::{NewPage, Tier};
use crate::error::BetreeError;
use crate::format::content::Content;
use crate::format::directory::{Directory, PageEntry};
use crate::format::filter::{Filter, KeyHash};
use crate::format::page_builder::{PageBuilder, shared_prefix};
use crate::format::page_columns::columns_of;
use crate::options::tree_settings::TreeSettings;
use crate::space::{BlockIndex, ExtentWriter};
use crate::tree::tree_blocks::Blocks;

/// Whether a page that is being written goes into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Residency {
    /// The page that it replaces was in memory, in this tier.
    Keep(Tier),
    /// The page that it replaces was not in memory.
    Leave,
}

/// A leaf that was written.
#[derive(Debug)]
pub(crate) struct NewLeaf {
    /// The smallest key that it can hold.
    pub(crate) lower: Box<[u8]>,
    pub(crate) child: LeafChild,
}

struct PendingPage {
    separator: Vec<u8>,
    block: BlockIndex,
    entries: u32,
    newest: CommitTimestamp,
    large_bytes: u64,
    kept: Option<NewPage>,
}

/// The leaf being written.
struct OpenLeaf<'s> {
    extent: ExtentWriter<'s>,
    pages: Vec<PendingPage>,
    raw_bytes: usize,
    /// Memory of the pages that are to be kept.
    kept_bytes: usize,
    content_bytes: u64,
    reach: u64,
    /// The hashes of all keys, for the filter; empty if the tree has no leaf filters.
    hashes: Vec<KeyHash>,
}

/// See the module's head.
pub(crate) struct LeafWriter<'s> {
    blocks: &'s Blocks,
    tree: TreeId,
    settings: TreeSettings,
    page: PageBuilder,
    /// The lower bound of the page being built.
    separator: Vec<u8>,
    page_residency: Residency,
    leaf: Option<OpenLeaf<'s>>,
    /// The bytes of pages that end a leaf.
    target_bytes: usize,
    last_key: Vec<u8>,
    /// The leaves written since [`begin`](LeafWriter::begin).
    leaves: Vec<NewLeaf>,
    /// The open leaf and the list of leaves, counted as working memory.
    held: HeldMemory,
    listed_bytes: usize,
    /// All extents that were written.
    written: Vec<Extent>,
    /// Entries pushed.
    pub(crate) entries: u64,
}

impl<'s> LeafWriter<'s> {
    pub(crate) fn new(blocks: &'s Blocks, tree: TreeId, settings: TreeSettings) -> LeafWriter<'s> {
        LeafWriter {
            blocks,
            tree,
            settings,
            page: PageBuilder::new(),
            separator: Vec::new(),
            page_residency: Residency::Leave,
            leaf: None,
            target_bytes: settings.leaf_bytes,
            last_key: Vec::new(),
            leaves: Vec::new(),
            held: blocks.accounts.hold(0),
            listed_bytes: 0,
            written: Vec::new(),
            entries: 0,
        }
    }

    /// Begins a sequence of leaves: the first one begins at `lower`, each ends once it has `target_bytes`.
    pub(crate) fn begin(&mut self, lower: &[u8], target_bytes: usize) {
        assert!(
            self.leaf.is_none() && self.page.is_empty(),
            "a sequence of leaves begins after the one before has ended"
        );
        self.separator = lower.to_vec();
        self.target_bytes = target_bytes;
    }

    /// Adds a version of a key, in the order of the page builder.
    pub(crate) fn push(
        &mut self,
        key: &[u8],
        timestamp: CommitTimestamp,
        content: Content<&[u8]>,
        residency: Residency,
    ) -> Result<(), BetreeError> {
        let value_len = content.in_page().len();
        if self.page.last_key().is_some_and(|last| last != key)
            && self.page.bytes_with(key, value_len) > self.settings.page_bytes
        {
            self.finish_page()?;
            if self.open_bytes() >= self.target_bytes {
                self.finish_leaf()?;
            }
            self.separator = separator(&self.last_key, key);
        }
        if self.page.is_empty() {
            self.page_residency = residency;
        }
        let is_new_key = self.page.last_key() != Some(key);
        self.page.push(key, timestamp, content);
        self.entries += 1;
        let leaf = self.leaf.get_or_insert_with(|| OpenLeaf {
            extent: self.blocks.store().extent_writer(self.tree),
            pages: Vec::new(),
            raw_bytes: 0,
            kept_bytes: 0,
            content_bytes: 0,
            reach: 0,
            hashes: Vec::new(),
        });
        leaf.content_bytes += key.len() as u64 + content.value_bytes();
        leaf.reach = leaf.reach.max(self.page.reach());
        if is_new_key && self.settings.leaf_filter_bits > 0 {
            leaf.hashes.push(KeyHash::of(key));
        }
        Ok(())
    }

    /// Bytes of the pages of the leaf being written.
    pub(crate) fn open_bytes(&self) -> usize {
        self.leaf.as_ref().map_or(0, |leaf| leaf.raw_bytes)
    }

    /// Whether an entry is in no finished leaf yet.
    pub(crate) fn is_open(&self) -> bool {
        self.leaf.is_some()
    }

    /// Ends the sequence and returns its leaves.
    pub(crate) fn end(&mut self) -> Result<Vec<NewLeaf>, BetreeError> {
        if !self.page.is_empty() {
            self.finish_page()?;
        }
        if self.leaf.is_some() {
            self.finish_leaf()?;
        }
        self.listed_bytes = 0;
        self.held.set(0);
        Ok(std::mem::take(&mut self.leaves))
    }

    /// All extents that were written.
    pub(crate) fn into_written(self) -> Vec<Extent> {
        self.written
    }

    /// The extents written so far, which the caller frees after an error.
    pub(crate) fn written(&self) -> &[Extent] {
        &self.written
    }

    fn finish_page(&mut self) -> Result<(), BetreeError> {
        let leaf = self.leaf.as_mut().expect("a page that has entries belongs to a leaf");
        self.last_key.clear();
        self.last_key.extend_from_slice(self.page.last_key().expect("only pages with entries are finished"));
        let entries = u32::try_from(self.page.len()).expect("a page's entries are counted in 32 bits");
        let (newest, large_bytes) = (self.page.newest(), self.page.large_bytes());
        let raw = self.page.finish();
        leaf.raw_bytes += raw.len();
        let block =
            leaf.extent.append_rows(BlockKind::Page, self.settings.compression, &raw, columns_of(&raw))?;
        let tier = match self.page_residency {
            Residency::Keep(tier) => Some(tier),
            Residency::Leave => self.blocks.cache().tier_with_room(raw.len()),
        };
        let kept = tier.map(|tier| NewPage::for_tier(tier, &raw, leaf.extent.stored(block)));
        leaf.kept_bytes += kept.as_ref().map_or(0, NewPage::heap_bytes);
        let bytes = leaf.extent.stored_bytes() as usize + leaf.kept_bytes + self.listed_bytes;
        self.blocks.accounts.set(&mut self.held, bytes);
        let separator = std::mem::take(&mut self.separator);
        leaf.pages.push(PendingPage { separator, block, entries, newest, large_bytes, kept });
        Ok(())
    }

    fn finish_leaf(&mut self) -> Result<(), BetreeError> {
        let leaf = self.leaf.take().expect("a leaf is finished once it was begun");
        let separators: usize = leaf.pages.iter().skip(1).map(|page| page.separator.len()).sum();
        let filter = Filter::new(&leaf.hashes, self.settings.leaf_filter_bits);
        let room = Directory::encoded_bytes_max(leaf.pages.len(), separators, &filter);
        let placed = leaf.extent.place_with_directory(room)?;
        let entry_of = |page: &PendingPage| PageEntry {
            pointer: placed.pointer(page.block),
            entries: page.entries,
            newest: page.newest,
            large_bytes: page.large_bytes,
        };
        let separators = leaf.pages.iter().skip(1).map(|page| page.separator.as_slice());
        let separators = std::iter::once(&[][..]).chain(separators);
        let directory =
            Directory::new(separators, leaf.pages.iter().map(entry_of).collect(), leaf.content_bytes)
                .with_filter(filter);
        let compression = self.settings.compression;
        let (pointer, pages) =
            placed.finish_with_directory(BlockKind::LeafDirectory, compression, &directory.encode())?;
        self.written.extend(extents_of(pages.iter().chain([&pointer])));
        let child = LeafChild {
            directory: pointer,
            entries: directory.entries(),
            content_bytes: leaf.content_bytes,
            reach: leaf.reach,
        };
        let lower = leaf.pages[0].separator.as_slice().into();
        for (page, pointer) in leaf.pages.into_iter().zip(&pages) {
            if let Some(kept) = page.kept {
                self.blocks.keep_page(pointer, kept);
            }
        }
        self.blocks.keep_directory(&pointer, Arc::new(directory));
        let leaf = NewLeaf { lower, child };
        self.listed_bytes += size_of::<NewLeaf>() + leaf.lower.len() + size_of::<Extent>();
        self.held.set(self.listed_bytes);
        self.leaves.push(leaf);
        Ok(())
    }
}

/// The shortest key that is greater than `before` and not greater than `key`.
pub(crate) fn separator(before: &[u8], key: &[u8]) -> Vec<u8> {
    assert!(before < key, "a separator stands between two different keys in order");
    key[..=shared_prefix(before, key)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separator_is_as_short_as_can_be() {
        assert_eq!(separator(b"abcd", b"abxyz"), b"abx");
        assert_eq!(separator(b"ab", b"abc"), b"abc");
        assert_eq!(separator(b"", b"q"), b"q");
    }
}
