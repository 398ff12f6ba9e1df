//! Run writer: writes runs, the slices of several children side by side, with few calls to the device.
//!
//! 1. The messages of a child become pages. Behind them space is kept for the index of the slice, whose
//!    length is known.
//! 2. Once the run is placed, every page has its address, and the indexes are filled in.
//! 3. The run is written. Each slice begins a unit of its own, so that it can be freed without the others.

use pando_storage::{CommitTimestamp, HeldMemory, TreeId};

use super::leaf_writer::separator;
use super::messages::{Limit, Span};
use super::slice::Slice;
use crate::base::{BlockKind, Extent, extents_of};
use crate::cache::NewPage;
use crate::error::BetreeError;
use crate::format::directory::{Directory, PageEntry, PageSketch};
use crate::format::filter::{Filter, KeyHash};
use crate::format::inner_node::StoredSlice;
use crate::format::page_builder::PageBuilder;
use crate::format::page_columns::columns_of;
use crate::format::slice_index::SliceIndex;
use crate::options::tree_settings::TreeSettings;
use crate::space::{BlockIndex, ExtentWriter};
use crate::tree::tree_blocks::Blocks;

/// Stored bytes after which a run goes to the device in a further call.
const WRITE_BYTES: u64 = 4 << 20;

struct PendingPage {
    separator: Vec<u8>,
    block: BlockIndex,
    entries: u32,
    newest: CommitTimestamp,
    large_bytes: u64,
    raw_bytes: usize,
    /// The page for the cache, if it had room.
    kept: Option<NewPage>,
}

/// A slice whose pages have no addresses yet.
struct PendingSlice {
    pages: Vec<PendingPage>,
    index: BlockIndex,
    filter: Filter,
    entries: u64,
    content_bytes: u64,
    in_page_bytes: u64,
    reach: u64,
    oldest: CommitTimestamp,
    newest: CommitTimestamp,
}

/// See the module's head.
pub(crate) struct RunWriter<'s> {
    blocks: &'s Blocks,
    tree: TreeId,
    settings: TreeSettings,
    extent: ExtentWriter<'s>,
    pending: Vec<PendingSlice>,
    done: Vec<Slice>,
    written: Vec<Extent>,
    /// Memory of pending pages for the cache. `held` counts them and their blocks as working memory.
    kept_bytes: usize,
    held: HeldMemory,
}

impl<'s> RunWriter<'s> {
    pub(crate) fn new(blocks: &'s Blocks, tree: TreeId, settings: TreeSettings) -> RunWriter<'s> {
        let extent = blocks.store().extent_writer(tree);
        RunWriter {
            blocks,
            tree,
            settings,
            extent,
            pending: Vec::new(),
            done: Vec::new(),
            written: Vec::new(),
            kept_bytes: 0,
            held: blocks.accounts.hold(0),
        }
    }

    /// Adds the slice of a child, with these messages (at least one).
    pub(crate) fn add(&mut self, messages: Span<'_>) -> Result<(), BetreeError> {
        assert!(!messages.is_empty(), "a slice has a message");
        self.extent.next_unit();
        let (mut pages, mut hashes) = (Vec::<PendingPage>::new(), Vec::new());
        let mut builder = PageBuilder::new();
        let (mut begins, mut reach) = (Vec::new(), 0);
        let mut rest = messages;
        while let Some((key, versions)) = rest.take_key(Limit::Everything) {
            let value_bytes = versions.in_page_bytes().saturating_sub(key.len());
            if let Some(last) = builder.last_key()
                && builder.bytes_with(key, value_bytes) > self.settings.page_bytes
            {
                let next = separator(last, key);
                pages.push(self.finish_page(&mut builder, std::mem::replace(&mut begins, next))?);
            }
            hashes.push(KeyHash::of(key));
            for (key, version) in versions.iter() {
                builder.push(key, version.timestamp, version.content.as_ref());
            }
            reach = reach.max(builder.reach());
        }
        pages.push(self.finish_page(&mut builder, begins)?);
        let filter = Filter::new(&hashes, self.settings.filter_bits);
        let content_bytes = messages.content_bytes();
        let sketches: Vec<PageSketch<'_>> = pages.iter().map(PendingPage::sketch).collect();
        let directory_bytes = Directory::encoded_bytes(&sketches, content_bytes);
        let length = SliceIndex::encoded_bytes(&filter, directory_bytes);
        let index = self.extent.append_blank(BlockKind::RunIndex, length)?;
        let times = || messages.iter().map(|(_, version)| version.timestamp);
        let oldest = times().min().unwrap_or(CommitTimestamp::ZERO);
        let newest = times().max().unwrap_or(CommitTimestamp::ZERO);
        let entries = messages.len() as u64;
        let in_page_bytes = messages.in_page_bytes() as u64;
        self.pending.push(PendingSlice {
            pages,
            index,
            filter,
            entries,
            content_bytes,
            in_page_bytes,
            reach,
            oldest,
            newest,
        });
        if self.extent.stored_bytes() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn finish_page(
        &mut self,
        builder: &mut PageBuilder,
        separator: Vec<u8>,
    ) -> Result<PendingPage, BetreeError> {
        let entries = u32::try_from(builder.len()).expect("a page's entries are counted in 32 bits");
        let (newest, large_bytes) = (builder.newest(), builder.large_bytes());
        let raw = builder.finish();
        let block = self.extent.append_rows(
            BlockKind::RunPage,
            self.settings.run_compression,
            &raw,
            columns_of(&raw),
        )?;
        let tier = self.blocks.cache().tier_with_room_for_run(raw.len());
        let kept = tier.map(|tier| NewPage::for_tier(tier, &raw, self.extent.stored(block)));
        self.kept_bytes += kept.as_ref().map_or(0, NewPage::heap_bytes);
        let bytes = self.extent.stored_bytes() as usize + self.kept_bytes;
        self.blocks.accounts.set(&mut self.held, bytes);
        Ok(PendingPage { separator, block, entries, newest, large_bytes, raw_bytes: raw.len(), kept })
    }

    /// Writes the pending slices.
    fn write(&mut self) -> Result<(), BetreeError> {
        let next = self.blocks.store().extent_writer(self.tree);
        let mut placed = std::mem::replace(&mut self.extent, next).place()?;
        let mut slices = Vec::with_capacity(self.pending.len());
        let mut extents = Vec::new();
        for slice in self.pending.drain(..) {
            let entries: Vec<PageEntry> = slice
                .pages
                .iter()
                .map(|page| PageEntry {
                    pointer: placed.pointer(page.block),
                    entries: page.entries,
                    newest: page.newest,
                    large_bytes: page.large_bytes,
                })
                .collect();
            let separators = slice.pages.iter().map(|page| page.separator.as_slice());
            let pages = Directory::new(separators, entries, slice.content_bytes);
            let index = SliceIndex { pages, filter: slice.filter };
            let pointer = placed.fill(slice.index, &index.encode())?;
            let blocks = index.pages.pages().iter().map(|page| &page.pointer).chain([&pointer]);
            extents.extend(extents_of(blocks));
            let stored = StoredSlice {
                index: pointer,
                entries: slice.entries,
                content_bytes: slice.content_bytes,
                in_page_bytes: slice.in_page_bytes,
                reach: slice.reach,
                oldest: slice.oldest,
                newest: slice.newest,
            };
            slices.push((stored, index, slice.pages));
        }
        placed.finish()?;
        self.written.extend(extents);
        self.kept_bytes = 0;
        self.held.set(0);
        for (stored, index, pages) in slices {
            self.keep(&index, pages);
            self.done.push(Slice::written(stored, index, &self.blocks.index_memory));
        }
        Ok(())
    }

    /// Puts pages into the cache if it had room: every scan reads them, and the next flush.
    fn keep(&self, index: &SliceIndex, pages: Vec<PendingPage>) {
        for (entry, page) in index.pages.pages().iter().zip(pages) {
            if let Some(kept) = page.kept {
                self.blocks.keep_page(&entry.pointer, kept);
            }
        }
    }

    /// Writes the remaining slices. Returns all slices in the order in which they were added.
    ///
    /// # Errors
    /// A read or write failed. The caller frees the extents of [`written`](RunWriter::written).
    pub(crate) fn finish(&mut self) -> Result<Vec<Slice>, BetreeError> {
        if !self.pending.is_empty() {
            self.write()?;
        }
        Ok(std::mem::take(&mut self.done))
    }

    /// The extents that were written.
    pub(crate) fn written(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.written)
    }
}

impl PendingPage {
    fn sketch(&self) -> PageSketch<'_> {
        PageSketch {
            separator: &self.separator,
            entries: self.entries,
            newest: self.newest,
            large_bytes: self.large_bytes,
            raw_bytes: self.raw_bytes,
        }
    }
}
