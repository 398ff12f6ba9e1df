//! Merges a frozen buffer into the leaves that it touches.
//!
//! 1. The first key of the buffer that is not merged yet leads to its leaf. Where all that goes there lies beyond the leaf's
//!    last key and the leaf is nearly full, the leaf stays, and new full leaves follow it (*append*).
//! 2. Else the leaf is read whole and written anew with the buffer's entries, in as many equal pieces as it takes.
//! 3. While the last piece is small and the next leaf under the same parent is small too, that one is taken in.
//! 4. The result is a list of *edits*: which leaf makes way for which. [`super::rebuild`] turns them into a version.
//!
//! Nothing that exists is changed: a merge that fails gives back what it wrote, and is tried again later.
//!
//! # Invariants
//! - Of one tree, one merge is under way at a time, so that the version it starts from is the newest when it ends.
//! - A leaf is only ever united with one under the same parent: keys then find it without any other node changing.

use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use pando_storage::{Patience, TreeId};

use super::buffer::{Buffer, Chain};
use super::leaf_writer::{LeafWriter, NewLeaf, Residency, separator};
use super::node::{LeafChild, NodeSlot};
use super::path::{LeafPlace, Target, find_leaf};
use super::retain::{MergedVersion, Retained, retain};
use super::settings::TreeSettings;
use super::view::Version;
use crate::cache::{Blocks, Retention};
use crate::error::BetreeError;
use crate::format::directory::Directory;
use crate::format::page::Page;
use crate::space::{Extent, Pointer};

/// A leaf and what takes its place; nothing if it has become empty.
#[derive(Debug)]
pub(crate) struct LeafEdit {
    /// The old leaf's lower bound: empty for the leftmost.
    pub(crate) lower: Box<[u8]>,
    pub(crate) leaves: Vec<NewLeaf>,
}

/// What a merge has written.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// Ascending by lower bound.
    pub(crate) edits: Vec<LeafEdit>,
    /// Room taken by new leaves.
    pub(crate) written: Vec<Extent>,
    /// Blocks of leaves that were replaced: pages and directory of each.
    pub(crate) replaced: Vec<Vec<Pointer>>,
    /// Entries written.
    pub(crate) entries: u64,
}

/// What a merge works on.
#[derive(Clone, Copy)]
pub(crate) struct MergeInput<'m> {
    pub(crate) blocks: &'m Blocks,
    pub(crate) tree: TreeId,
    pub(crate) settings: TreeSettings,
    pub(crate) version: &'m Version,
    pub(crate) buffer: &'m Buffer,
    pub(crate) retained: &'m Retained,
}

/// Runs a merge. After an error nothing of it remains.
pub(crate) fn merge(input: MergeInput<'_>) -> Result<Merged, BetreeError> {
    let mut merge = Merge {
        writer: LeafWriter::new(input.blocks, input.tree, input.settings),
        input,
        edits: Vec::new(),
        replaced: Vec::new(),
        versions: Vec::new(),
    };
    match merge.run() {
        Ok(()) => Ok(Merged {
            edits: merge.edits,
            replaced: merge.replaced,
            entries: merge.writer.entries,
            written: merge.writer.into_written(),
        }),
        Err(error) => {
            for extent in merge.writer.written() {
                input.blocks.store().abandon(*extent);
            }
            Err(error)
        }
    }
}

type Entries<'m, I> = Peekable<I>;

struct Merge<'m> {
    input: MergeInput<'m>,
    writer: LeafWriter<'m>,
    edits: Vec<LeafEdit>,
    replaced: Vec<Vec<Pointer>>,
    /// Scratch: the versions of one key.
    versions: Vec<MergedVersion>,
}

impl<'m> Merge<'m> {
    fn run(&mut self) -> Result<(), BetreeError> {
        let buffer = self.input.buffer;
        let mut entries = buffer.range(Bound::Unbounded, Bound::Unbounded).peekable();
        while let Some((key, _)) = entries.peek() {
            let target = Target::Covering(key);
            match find_leaf(self.input.version, self.input.blocks, target, Patience::MayBlock)? {
                None => self.grow_from_nothing(&mut entries)?,
                Some(place) => self.merge_leaf(place, &mut entries)?,
            }
        }
        Ok(())
    }

    /// The first leaves of a tree.
    fn grow_from_nothing<I>(&mut self, entries: &mut Entries<'m, I>) -> Result<(), BetreeError>
    where
        I: Iterator<Item = (&'m [u8], &'m Chain)>,
    {
        self.writer.begin(&[], self.input.settings.leaf_bytes);
        self.push_buffered(entries, None, Residency::Leave)?;
        let leaves = self.writer.end()?;
        self.edits.push(LeafEdit { lower: Box::default(), leaves });
        Ok(())
    }

    fn merge_leaf<I>(&mut self, place: LeafPlace<'m>, entries: &mut Entries<'m, I>) -> Result<(), BetreeError>
    where
        I: Iterator<Item = (&'m [u8], &'m Chain)>,
    {
        let blocks = self.input.blocks;
        let directory = blocks.directory(&place.leaf.directory, Patience::MayBlock)?;
        if let Some(leaves) = self.append(&place, &directory, entries)? {
            self.edits.push(LeafEdit { lower: place.lower.unwrap_or_default().into(), leaves });
            return Ok(());
        }
        let target = self.piece_bytes(&place, &directory);
        self.writer.begin(place.lower.unwrap_or_default(), target);
        let first_edit = self.edits.len();
        let mut place = place;
        let mut directory = directory;
        loop {
            self.rewrite(&place, &directory, entries)?;
            self.edits.push(LeafEdit { lower: place.lower.unwrap_or_default().into(), leaves: Vec::new() });
            match self.small_neighbour(&place)? {
                Some(next) => place = next,
                None => break,
            }
            directory = blocks.directory(&place.leaf.directory, Patience::MayBlock)?;
        }
        self.edits[first_edit].leaves = self.writer.end()?;
        Ok(())
    }

    /// New leaves behind a leaf that stays, if all entries for it lie beyond its last key; the leaf itself is the first.
    fn append<I>(
        &mut self,
        place: &LeafPlace<'m>,
        directory: &Directory,
        entries: &mut Entries<'m, I>,
    ) -> Result<Option<Vec<NewLeaf>>, BetreeError>
    where
        I: Iterator<Item = (&'m [u8], &'m Chain)>,
    {
        let Some((key, _)) = entries.peek() else { return Ok(None) };
        let last = directory.pages().len() - 1;
        let raw_bytes: usize = directory.pages().iter().map(|page| page.pointer.raw_length() as usize).sum();
        if raw_bytes < self.input.settings.leaf_bytes / 4 * 3 || directory.page_of(key) != last {
            return Ok(None);
        }
        let pages = self.input.blocks.pages(&directory.pages()[last..], Retention::Bypass)?;
        let mut last_key = Vec::new();
        pages[0].key_into(pages[0].len() - 1, &mut last_key);
        if *key <= last_key.as_slice() {
            return Ok(None);
        }
        let residency = self.residency(&directory.pages()[last].pointer);
        self.writer.begin(&separator(&last_key, key), self.input.settings.leaf_bytes);
        self.push_buffered(entries, place.upper, residency)?;
        let mut leaves = vec![NewLeaf { lower: place.lower.unwrap_or_default().into(), child: place.leaf }];
        leaves.extend(self.writer.end()?);
        Ok(Some(leaves))
    }

    /// How large the pieces are to be that a leaf is rewritten in.
    fn piece_bytes(&self, place: &LeafPlace<'m>, directory: &Directory) -> usize {
        let leaf_bytes = self.input.settings.leaf_bytes;
        let old: usize = directory.pages().iter().map(|page| page.pointer.raw_length() as usize).sum();
        let lower = place.lower.map_or(Bound::Unbounded, Bound::Included);
        let upper = place.upper.map_or(Bound::Unbounded, Bound::Excluded);
        let new: usize =
            self.input.buffer.range(lower, upper).map(|(key, chain)| content_bytes(key, chain)).sum();
        let pieces = (old + new).div_ceil(leaf_bytes).max(1);
        if pieces == 1 { leaf_bytes } else { (old + new).div_ceil(pieces) }
    }

    /// Pushes the entries of a leaf and those of the buffer that belong to it, in order.
    fn rewrite<I>(
        &mut self,
        place: &LeafPlace<'m>,
        directory: &Directory,
        entries: &mut Entries<'m, I>,
    ) -> Result<(), BetreeError>
    where
        I: Iterator<Item = (&'m [u8], &'m Chain)>,
    {
        let pages = self.input.blocks.pages(directory.pages(), Retention::Bypass)?;
        let mut key = Vec::new();
        let mut residency = Residency::Leave;
        for (entry, page) in directory.pages().iter().zip(&pages) {
            residency = self.residency(&entry.pointer);
            let mut at = 0;
            while at < page.len() {
                page.key_into(at, &mut key);
                self.push_buffered(entries, Some(&key), residency)?;
                let same = entries.next_if(|(next, _)| *next == key.as_slice());
                at = self.push_key(&key, same.map(|(_, chain)| chain), page, at, residency)?;
            }
        }
        self.push_buffered(entries, place.upper, residency)?;
        let blocks = directory.pages().iter().map(|page| page.pointer).chain([place.leaf.directory]);
        self.replaced.push(blocks.collect());
        Ok(())
    }

    /// The next leaf under the same parent, if it and what is being written are small enough to become one.
    fn small_neighbour(&self, place: &LeafPlace<'m>) -> Result<Option<LeafPlace<'m>>, BetreeError> {
        let leaf_bytes = self.input.settings.leaf_bytes;
        let open = self.writer.open_bytes();
        let (Some(upper), Some(parent)) = (place.upper, place.parent) else { return Ok(None) };
        if !self.writer.is_open() || open >= leaf_bytes / 4 {
            return Ok(None);
        }
        let next =
            find_leaf(self.input.version, self.input.blocks, Target::Covering(upper), Patience::MayBlock)?;
        Ok(next.filter(|next| {
            next.parent.is_some_and(|other: &Arc<NodeSlot>| Arc::ptr_eq(other, parent))
                && next.leaf.content_bytes as usize + open <= leaf_bytes / 4 * 3
        }))
    }

    /// Pushes the buffer's entries before `upper`.
    fn push_buffered<I>(
        &mut self,
        entries: &mut Entries<'m, I>,
        upper: Option<&[u8]>,
        residency: Residency,
    ) -> Result<(), BetreeError>
    where
        I: Iterator<Item = (&'m [u8], &'m Chain)>,
    {
        while let Some((key, chain)) = entries.next_if(|(key, _)| upper.is_none_or(|upper| *key < upper)) {
            self.versions.clear();
            self.versions.extend(chain.versions().map(merged_version));
            self.push_versions(key, residency)?;
        }
        Ok(())
    }

    /// Pushes all versions of a key: those of the buffer, if any, then those of the page from `at` on. Where the next key of
    /// the page begins.
    fn push_key(
        &mut self,
        key: &[u8],
        chain: Option<&Chain>,
        page: &Page,
        at: usize,
        residency: Residency,
    ) -> Result<usize, BetreeError> {
        let first = page.entry(at);
        let ends = at + 1 == page.len() || first.timestamp().get() == 0 || !page.same_key(at, at + 1);
        if chain.is_none() && ends && first.timestamp().get() == 0 {
            // The usual case: an entry that all see and nobody has touched.
            self.writer.push(key, first.timestamp(), Some(page.value(&first)), residency)?;
            return Ok(at + 1);
        }
        self.versions.clear();
        self.versions.extend(chain.into_iter().flat_map(Chain::versions).map(merged_version));
        let mut next = at;
        while next < page.len() && (next == at || page.same_key(at, next)) {
            let entry = page.entry(next);
            let value = (!entry.is_delete()).then(|| Bytes::copy_from_slice(page.value(&entry)));
            self.versions.push(MergedVersion { timestamp: entry.timestamp(), value });
            next += 1;
        }
        self.push_versions(key, residency)?;
        Ok(next)
    }

    fn push_versions(&mut self, key: &[u8], residency: Residency) -> Result<(), BetreeError> {
        retain(&mut self.versions, self.input.retained);
        for version in &self.versions {
            self.writer.push(key, version.timestamp, version.value.as_deref(), residency)?;
        }
        Ok(())
    }

    fn residency(&self, page: &Pointer) -> Residency {
        if self.input.blocks.has_page(page) { Residency::Keep } else { Residency::Leave }
    }
}

fn merged_version(version: &super::buffer::Version) -> MergedVersion {
    MergedVersion { timestamp: version.timestamp, value: version.value.clone() }
}

/// What a key of a buffer adds to a leaf, about.
fn content_bytes(key: &[u8], chain: &Chain) -> usize {
    let values = chain.versions().map(|version| version.value.as_ref().map_or(0, Bytes::len) + key.len() + 8);
    values.sum()
}

/// The blocks of a leaf that stands in a version, read from its directory.
pub(crate) fn blocks_of_leaf(blocks: &Blocks, leaf: &LeafChild) -> Result<Vec<Pointer>, BetreeError> {
    let directory = blocks.directory(&leaf.directory, Patience::MayBlock)?;
    Ok(directory.pages().iter().map(|page| page.pointer).chain([leaf.directory]).collect())
}
