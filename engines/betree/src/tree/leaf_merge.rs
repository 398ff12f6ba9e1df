//! Leaf merge: merges messages into leaves.
//!
//! 1. If all messages for a leaf lie beyond its last key and the leaf is nearly full, the leaf stays, and
//!    new full leaves follow it ([`append`](LeafMerge::append)).
//! 2. Otherwise the whole leaf is read and written anew with the messages, in as many equal pieces as it
//!    takes: [`begin`](LeafMerge::begin), [`add`](LeafMerge::add), [`end`](LeafMerge::end).
//! 3. While the last piece is small ([`can_take`](LeafMerge::can_take)), a small leaf that follows is added
//!    to it.
//!
//! Merge operators end at a leaf, the lowest level: each is applied to the version below it. A large value is
//! read for it, and the result may be a large value itself.
//!
//! Existing blocks are never changed. The caller frees the written ones if it fails later.

use bytes::Bytes;
use pando_storage::{BlockingMode, TreeId};

use super::large_value_writer::{LargeValueWriter, LargeValues};
use super::leaf_writer::{LeafWriter, NewLeaf, Residency, separator};
use super::messages::{Limit, Span};
use super::node::LeafChild;
use crate::base::{Extent, Pointer};
use crate::error::BetreeError;
use crate::format::content::{Content, merges_of};
use crate::format::directory::Directory;
use crate::format::page::Page;
use crate::options::tree_settings::TreeSettings;
use crate::tree::tree_blocks::Blocks;
use crate::tree::value_merge::{MergeOutcome, apply, combine};
use crate::tree::version_retention::{
    Dropped, KeyVersion, Retained, add_range_deletes, retain_needed, settle,
};

/// See the module's head.
pub(crate) struct LeafMerge<'m> {
    blocks: &'m Blocks,
    tree: TreeId,
    settings: TreeSettings,
    retained: &'m Retained,
    writer: LeafWriter<'m>,
    /// Blocks of leaves that were rewritten: pages and directory of each.
    replaced: Vec<Vec<Pointer>>,
    /// Large values that no version refers to any more.
    dropped: Dropped,
    /// Large values that merge operators made.
    large: LargeValues,
    /// Scratch: the versions of one key.
    versions: Vec<KeyVersion>,
    figures: LeafFigures,
}

/// Counts of the messages merged into leaves, and of the result.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeafFigures {
    /// Leaves written, and entries in them.
    pub(crate) leaves: u64,
    pub(crate) entries: u64,
    /// Entries of the leaves that they replace.
    pub(crate) entries_before: u64,
    /// Messages that were merged into them.
    pub(crate) messages: u64,
}

/// The extents that were written for leaves, and the blocks that they replace.
pub(crate) struct LeafParts {
    /// Extents of leaves.
    pub(crate) written: Vec<Extent>,
    /// Blocks of old leaves that were replaced.
    pub(crate) replaced: Vec<Vec<Pointer>>,
    /// Large values that merge operators made.
    pub(crate) large: LargeValues,
    /// Large values that no version refers to any more.
    pub(crate) dropped: Dropped,
}

impl<'m> LeafMerge<'m> {
    pub(crate) fn new(
        blocks: &'m Blocks,
        tree: TreeId,
        settings: TreeSettings,
        retained: &'m Retained,
    ) -> LeafMerge<'m> {
        let writer = LeafWriter::new(blocks, tree, settings);
        LeafMerge {
            blocks,
            tree,
            settings,
            retained,
            writer,
            replaced: Vec::new(),
            dropped: Dropped::new(),
            large: LargeValues::default(),
            versions: Vec::new(),
            figures: LeafFigures::default(),
        }
    }

    /// Writes the messages as leaves, where there is no leaf yet.
    pub(crate) fn grow_from_nothing(
        &mut self,
        lower: &[u8],
        mut messages: Span<'_>,
    ) -> Result<Vec<NewLeaf>, BetreeError> {
        self.figures.messages += messages.len() as u64;
        self.writer.begin(lower, self.settings.leaf_bytes);
        self.push_messages(&mut messages, Limit::Everything, Residency::Leave)?;
        self.end()
    }

    /// Whether all messages for a leaf lie beyond its last key. If the call may not block, the answer for a
    /// leaf that is not in memory is no.
    pub(crate) fn appends(
        &self,
        leaf: &LeafChild,
        first_key: &[u8],
        blocking: BlockingMode,
    ) -> Result<bool, BetreeError> {
        let directory = match self.blocks.directory(&leaf.directory, blocking) {
            Err(BetreeError::WouldBlock(_)) => return Ok(false),
            directory => directory?,
        };
        Ok(self.append_separator(&directory, first_key)?.is_some())
    }

    /// The separator between a leaf and a key beyond its last one; `None` if the key is not beyond.
    fn append_separator(
        &self,
        directory: &Directory,
        first_key: &[u8],
    ) -> Result<Option<Vec<u8>>, BetreeError> {
        let last = directory.pages().len() - 1;
        if directory.page_of(first_key) != last {
            return Ok(None);
        }
        let pages = self.blocks.pages_once(directory.pages()[last..].iter().map(|entry| &entry.pointer))?;
        let mut last_key = Vec::new();
        if let Some(at) = pages[0].len().checked_sub(1) {
            pages[0].key_into(at, &mut last_key);
        }
        Ok((*first_key > *last_key).then(|| separator(&last_key, first_key)))
    }

    /// Writes new leaves after a leaf that stays, if it is nearly full and all messages lie beyond its last
    /// key. The leaf itself is the first of the result.
    pub(crate) fn append(
        &mut self,
        lower: &[u8],
        leaf: &LeafChild,
        mut messages: Span<'_>,
    ) -> Result<Option<Vec<NewLeaf>>, BetreeError> {
        let Some(first_key) = messages.first_key() else { return Ok(None) };
        let directory = self.blocks.directory(&leaf.directory, BlockingMode::MayBlock)?;
        if raw_bytes(&directory) < self.settings.leaf_bytes / 4 * 3 {
            return Ok(None);
        }
        let Some(separator) = self.append_separator(&directory, first_key)? else { return Ok(None) };
        let residency = match directory.pages().last() {
            Some(last) => self.residency(&last.pointer),
            None => Residency::Leave,
        };
        self.figures.messages += messages.len() as u64;
        self.writer.begin(&separator, self.settings.leaf_bytes);
        self.push_messages(&mut messages, Limit::Everything, residency)?;
        let mut leaves = vec![NewLeaf { lower: lower.into(), child: *leaf }];
        leaves.extend(self.end()?);
        Ok(Some(leaves))
    }

    /// Begins to rewrite a leaf in pieces of equal size. If the messages only append, the pieces are full,
    /// since more appends are likely.
    pub(crate) fn begin(
        &mut self,
        lower: &[u8],
        leaf: &LeafChild,
        messages: Span<'_>,
    ) -> Result<(), BetreeError> {
        let directory = self.blocks.directory(&leaf.directory, BlockingMode::MayBlock)?;
        let leaf_bytes = self.settings.leaf_bytes;
        let bytes = raw_bytes(&directory) + messages.bytes();
        let pieces = bytes.div_ceil(leaf_bytes).max(1);
        let is_append = match messages.first_key() {
            Some(first) if pieces > 1 => self.append_separator(&directory, first)?.is_some(),
            _ => false,
        };
        let target = if pieces == 1 || is_append { leaf_bytes } else { bytes.div_ceil(pieces) };
        self.writer.begin(lower, target);
        Ok(())
    }

    /// Adds the entries of a leaf, merged with the messages for it.
    pub(crate) fn add(&mut self, leaf: &LeafChild, mut messages: Span<'_>) -> Result<(), BetreeError> {
        let directory = self.blocks.directory(&leaf.directory, BlockingMode::MayBlock)?;
        self.figures.messages += messages.len() as u64;
        self.figures.entries_before += directory.entries();
        let _held = self.blocks.accounts.hold(raw_bytes(&directory));
        let pages = self.blocks.pages_once(directory.pages().iter().map(|entry| &entry.pointer))?;
        let mut key = Vec::new();
        let mut residency = Residency::Leave;
        for (entry, page) in directory.pages().iter().zip(&pages) {
            residency = self.residency(&entry.pointer);
            let mut at = 0;
            while at < page.len() {
                page.key_into(at, &mut key);
                self.push_messages(&mut messages, Limit::Before(&key), residency)?;
                let same = messages.take_key(Limit::Exactly(&key)).map(|(_, versions)| versions);
                at = self.push_key(&key, same, page, at, residency)?;
            }
        }
        self.push_messages(&mut messages, Limit::Everything, residency)?;
        self.replaced.push(blocks_of_leaf(leaf, &directory));
        Ok(())
    }

    /// Whether the next leaf is added to the one being written: both are small.
    pub(crate) fn can_take(&self, next: &LeafChild) -> Result<bool, BetreeError> {
        let (leaf_bytes, open) = (self.settings.leaf_bytes, self.writer.open_bytes());
        if !self.writer.is_open() || open >= leaf_bytes / 4 {
            return Ok(false);
        }
        let next_bytes = match next.reach {
            0 => usize::try_from(next.content_bytes).unwrap_or(usize::MAX),
            // Most of its content may stand in blocks of large values.
            _ => raw_bytes(&*self.blocks.directory(&next.directory, BlockingMode::MayBlock)?),
        };
        Ok(next_bytes.saturating_add(open) <= leaf_bytes / 4 * 3)
    }

    /// Ends the leaves that were begun. There are none if no entry is left.
    pub(crate) fn end(&mut self) -> Result<Vec<NewLeaf>, BetreeError> {
        let leaves = self.writer.end()?;
        self.figures.leaves += leaves.len() as u64;
        Ok(leaves)
    }

    /// The counts so far.
    pub(crate) fn figures(&self) -> LeafFigures {
        LeafFigures { entries: self.writer.entries, ..self.figures }
    }

    /// Extents written so far.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Extent> {
        self.writer.written().iter().chain(&self.large.written)
    }

    /// The extents that were written, and the blocks that they replace.
    pub(crate) fn into_parts(self) -> LeafParts {
        LeafParts {
            written: self.writer.into_written(),
            replaced: self.replaced,
            large: self.large,
            dropped: self.dropped,
        }
    }

    fn push_messages(
        &mut self,
        messages: &mut Span<'_>,
        limit: Limit<'_>,
        residency: Residency,
    ) -> Result<(), BetreeError> {
        while let Some((key, versions)) = messages.take_key(limit) {
            self.versions.clear();
            self.versions.extend(versions.iter().map(|(_, version)| version.clone()));
            self.push_versions(key, residency)?;
        }
        Ok(())
    }

    /// Pushes all versions of a key: those of messages, if any, then those of the page from `at` on. Returns
    /// the index of the page's next key.
    fn push_key(
        &mut self,
        key: &[u8],
        above: Option<Span<'_>>,
        page: &Page,
        at: usize,
        residency: Residency,
    ) -> Result<usize, BetreeError> {
        let first = page.entry(at);
        let ends = at + 1 == page.len() || first.timestamp().get() == 0 || !page.same_key(at, at + 1);
        let is_settled = above.is_none() && ends && first.timestamp().get() == 0;
        if is_settled && self.retained.deletes_over(key).is_empty() {
            // The usual case: all snapshots see the entry, and no message changes it.
            self.writer.push(key, first.timestamp(), page.content(&first), residency)?;
            return Ok(at + 1);
        }
        self.versions.clear();
        self.versions.extend(above.into_iter().flat_map(Span::iter).map(|(_, version)| version.clone()));
        let mut next = at;
        while next < page.len() && (next == at || page.same_key(at, next)) {
            let entry = page.entry(next);
            if self.versions.last().is_some_and(|last| last.timestamp <= entry.timestamp()) {
                return Err(BetreeError::VersionOrder);
            }
            let content = page.content(&entry).to_owned();
            self.versions.push(KeyVersion { timestamp: entry.timestamp(), content });
            next += 1;
        }
        self.push_versions(key, residency)?;
        Ok(next)
    }

    fn push_versions(&mut self, key: &[u8], residency: Residency) -> Result<(), BetreeError> {
        add_range_deletes(key, &mut self.versions, self.retained);
        retain_needed(&mut self.versions, self.retained, &mut self.dropped);
        self.apply_operators()?;
        settle(key, &mut self.versions, self.retained);
        for version in &self.versions {
            self.writer.push(key, version.timestamp, version.content.as_ref(), residency)?;
        }
        Ok(())
    }

    /// Applies every merge operator to the version below it, the oldest first.
    fn apply_operators(&mut self) -> Result<(), BetreeError> {
        for at in (0..self.versions.len()).rev() {
            let Content::Merge(merges) = &self.versions[at].content else { continue };
            let merges = merges_of(merges);
            let below = self.versions.get(at + 1).map_or(Content::Deleted, |below| below.content.as_ref());
            let combined = match (combine(merges, &below), below) {
                (MergeOutcome::Apart, Content::Large(reference)) => {
                    apply(merges, &self.blocks.large_value(&reference.to_owned(), BlockingMode::MayBlock)?)
                }
                (combined, _) => combined,
            };
            match combined {
                MergeOutcome::One(content) => self.versions[at].content = self.content_to_store(content)?,
                // A snapshot that sees the operators sees the version below, which has the same value.
                MergeOutcome::Below => drop(self.versions.remove(at)),
                MergeOutcome::Apart => unreachable!("the version below is a value or a delete by now"),
            }
        }
        Ok(())
    }

    /// The content for the page. A large value made by merge operators is written into blocks of its own.
    fn content_to_store(&mut self, content: Content<Bytes>) -> Result<Content<Bytes>, BetreeError> {
        if !self.settings.is_large(&content) {
            return Ok(content);
        }
        let mut writer = LargeValueWriter::new(self.blocks, self.tree, self.settings);
        let value = content.in_page();
        let outcome = writer.add(value).and_then(|()| writer.finish());
        let content = outcome.map(|()| Content::Large(writer.take(value.len())));
        self.large.written.extend(writer.into_written());
        self.large.count += 1;
        content
    }

    fn residency(&self, page: &Pointer) -> Residency {
        self.blocks.tier_of(page).map_or(Residency::Leave, Residency::Keep)
    }
}

/// Bytes of a leaf's pages before compression.
fn raw_bytes(directory: &Directory) -> usize {
    directory.pages().iter().map(|page| page.pointer.raw_length() as usize).sum()
}

/// The blocks of a leaf: its pages, and the directory itself.
pub(crate) fn blocks_of_leaf(leaf: &LeafChild, directory: &Directory) -> Vec<Pointer> {
    directory.pages().iter().map(|page| page.pointer).chain([leaf.directory]).collect()
}
