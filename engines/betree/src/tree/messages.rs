//! Messages: versions of keys on their way down a tree, in memory, sorted.
//!
//! They come from a frozen buffer, from the slices of a child, or from both; the newest source comes first.
//! Merging checks that it *is* newer: the timestamps of each key descend strictly from source to source.
//! Versions that no snapshot needs are left out, or combined with the merge operators above them, but never a
//! delete that may hide a version below.
//!
//! A *span* is a part of the messages without gaps: those for one child.

use std::ops::Bound;

use bytes::Bytes;
use pando_storage::{BlockingMode, CommitTimestamp, HeldMemory};

use super::buffer::Buffer;
use super::slice::Slice;
use crate::base::FormatError;
use crate::base::Pointer;
use crate::error::BetreeError;
use crate::format::content::Content;
use crate::format::page::Page;
use crate::tree::flush_read_ahead::SlicePages;
use crate::tree::tree_blocks::Blocks;
use crate::tree::version_retention::{Dropped, KeyVersion, Retained, retain_pending};

/// Bytes of an entry beside its key and value, in sizes that decide what is flushed.
pub(crate) const ENTRY_BYTES: usize = 8;

#[derive(Clone, Debug)]
struct Message {
    key_at: usize,
    key_len: u32,
    version: KeyVersion,
}

/// See the module's head. Ascending by key, and descending by time within a key.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    keys: Vec<u8>,
    list: Vec<Message>,
    /// Bytes of the pages that hold values.
    page_bytes: usize,
    /// The memory of all of that, counted as working memory.
    held: Option<HeldMemory>,
}

impl Messages {
    /// The messages of a buffer, without versions that no snapshot needs.
    pub(crate) fn of_buffer(buffer: &Buffer, retained: &Retained) -> Messages {
        let mut messages = Messages::default();
        // A buffer has no references to large values, so none is dropped.
        let (mut versions, mut dropped) = (Vec::new(), Dropped::new());
        for (key, chain) in buffer.range(Bound::Unbounded, Bound::Unbounded) {
            versions.clear();
            versions.extend(chain.versions().map(|version| KeyVersion {
                timestamp: version.timestamp,
                content: version.change.shared_content(),
            }));
            retain_pending(key, &mut versions, retained, &mut dropped);
            messages.push_key(key, &mut versions);
        }
        messages
    }

    /// The content of every message, to be changed.
    pub(crate) fn contents_mut(&mut self) -> impl Iterator<Item = &mut Content<Bytes>> + '_ {
        self.list.iter_mut().map(|message| &mut message.version.content)
    }

    /// Merges a span with the slices below it, which stand newest first. Pages of slices that were read ahead
    /// are taken out of `ahead`. Large values of dropped versions are noted in `dropped`.
    pub(crate) fn merge(
        above: Span<'_>,
        slices: &[std::sync::Arc<Slice>],
        blocks: &Blocks,
        ahead: &mut SlicePages,
        retained: &Retained,
        dropped: &mut Dropped,
    ) -> Result<Messages, BetreeError> {
        let mut all = Messages::default();
        for (key, version) in above.iter() {
            all.push(key, version.clone());
        }
        let mut held = blocks.accounts.hold(0);
        for slice in slices {
            all.push_slice(slice, blocks, ahead)?;
            blocks.accounts.set(&mut held, all.memory_bytes());
        }
        let Messages { keys, list, .. } = &mut all;
        // The sort is stable, so that equal keys keep the order of their sources. It is fast on a few sorted
        // sequences.
        list.sort_by(|left, right| key_in(keys, left).cmp(key_in(keys, right)));
        // The kept messages form a second list for a moment.
        blocks.accounts.set(&mut held, all.memory_bytes() + all.list.len() * size_of::<Message>());
        let mut merged = all.retain_needed(retained, dropped)?;
        held.set(merged.memory_bytes());
        merged.held = Some(held);
        Ok(merged)
    }

    /// Bytes of memory, including the pages that hold values.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity() + self.list.capacity() * size_of::<Message>() + self.page_bytes
    }

    fn push(&mut self, key: &[u8], version: KeyVersion) {
        let key_at = self.keys.len();
        self.keys.extend_from_slice(key);
        // Keys are far below 4 GiB: the storage contract says so.
        self.list.push(Message { key_at, key_len: key.len() as u32, version });
    }

    fn push_key(&mut self, key: &[u8], versions: &mut Vec<KeyVersion>) {
        let key_at = self.keys.len();
        self.keys.extend_from_slice(key);
        let key_len = key.len() as u32;
        self.list.extend(versions.drain(..).map(|version| Message { key_at, key_len, version }));
    }

    fn push_slice(
        &mut self,
        slice: &Slice,
        blocks: &Blocks,
        ahead: &mut SlicePages,
    ) -> Result<(), BetreeError> {
        let index = blocks.slice_index(slice, BlockingMode::MayBlock)?;
        let entries = index.pages.pages();
        let pages = match ahead.take(slice) {
            Some(pages) if pages.len() == entries.len() => pages,
            _ => blocks.pages_once(entries.iter().map(|entry| &entry.pointer))?,
        };
        let first = self.list.len();
        for (entry, page) in entries.iter().zip(&pages) {
            self.push_page(page, &entry.pointer, first)?;
            self.page_bytes += page.heap_bytes();
        }
        Ok(())
    }

    /// Adds a page of a slice whose first message has the index `first`. Entries out of order are an error.
    fn push_page(&mut self, page: &Page, pointer: &Pointer, first: usize) -> Result<(), BetreeError> {
        let mut key = Vec::new();
        for at in 0..page.len() {
            page.key_into(at, &mut key);
            let entry = page.entry(at);
            let timestamp = entry.timestamp();
            let is_after = self.list[first..].last().is_none_or(|last| {
                let before = key_in(&self.keys, last);
                *before < *key || (*before == *key && last.version.timestamp > timestamp)
            });
            if !is_after || timestamp == CommitTimestamp::ZERO {
                let source = FormatError::Disorder { block: "page of a run", field: "entry", at };
                return Err(BetreeError::Format { offset: pointer.address().byte_offset(), source });
            }
            self.push(&key, KeyVersion { timestamp, content: page.shared_content(&entry) });
        }
        Ok(())
    }

    /// Drops versions that no snapshot needs, and checks that sources were given newest first.
    fn retain_needed(self, retained: &Retained, dropped: &mut Dropped) -> Result<Messages, BetreeError> {
        let Messages { keys, list, page_bytes, .. } = self;
        let mut kept = Messages { keys, list: Vec::with_capacity(list.len()), page_bytes, held: None };
        let mut versions = Vec::new();
        let mut list = list.into_iter().peekable();
        while let Some(Message { key_at, key_len, version }) = list.next() {
            versions.clear();
            versions.push(version);
            let key = &kept.keys[key_at..key_at + key_len as usize];
            while let Some(next) = list.next_if(|next| key_in(&kept.keys, next) == key) {
                if versions.last().is_some_and(|last| last.timestamp <= next.version.timestamp) {
                    return Err(BetreeError::VersionOrder);
                }
                versions.push(next.version);
            }
            retain_pending(key, &mut versions, retained, dropped);
            kept.list.extend(versions.drain(..).map(|version| Message { key_at, key_len, version }));
        }
        Ok(kept)
    }

    /// All of them.
    pub(crate) fn span(&self) -> Span<'_> {
        Span { keys: &self.keys, list: &self.list }
    }
}

fn key_in<'k>(keys: &'k [u8], message: &Message) -> &'k [u8] {
    &keys[message.key_at..message.key_at + message.key_len as usize]
}

/// A contiguous part of messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'m> {
    keys: &'m [u8],
    list: &'m [Message],
}

impl<'m> Span<'m> {
    /// No messages.
    pub(crate) fn empty() -> Span<'m> {
        Span { keys: &[], list: &[] }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.list.is_empty()
    }

    /// The number of messages: versions of keys.
    pub(crate) fn len(self) -> usize {
        self.list.len()
    }

    /// Bytes of keys and values.
    pub(crate) fn content_bytes(self) -> u64 {
        let value = |message: &Message| message.version.content.value_bytes();
        self.list.iter().map(|message| u64::from(message.key_len) + value(message)).sum()
    }

    /// Bytes of keys, values and references, as they will stand in pages.
    pub(crate) fn in_page_bytes(self) -> usize {
        let value = |message: &Message| message.version.content.in_page().len();
        self.list.iter().map(|message| message.key_len as usize + value(message)).sum()
    }

    /// The same with an overhead for each entry: the size by which the flush policy decides.
    pub(crate) fn bytes(self) -> usize {
        self.in_page_bytes() + self.list.len() * ENTRY_BYTES
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = (&'m [u8], &'m KeyVersion)> {
        self.list.iter().map(move |message| (key_in(self.keys, message), &message.version))
    }

    pub(crate) fn first_key(self) -> Option<&'m [u8]> {
        self.list.first().map(|first| key_in(self.keys, first))
    }

    pub(crate) fn last_key(self) -> Option<&'m [u8]> {
        self.list.last().map(|last| key_in(self.keys, last))
    }

    /// The messages before a key, and the rest. Without a key, all messages are in the first part.
    pub(crate) fn split_at(self, key: Option<&[u8]>) -> (Span<'m>, Span<'m>) {
        let count = match key {
            Some(key) => self.list.partition_point(|message| key_in(self.keys, message) < key),
            None => self.list.len(),
        };
        let (before, after) = self.list.split_at(count);
        (Span { list: before, ..self }, Span { list: after, ..self })
    }

    /// Takes all versions of the first key off, if that key is within the limit.
    pub(crate) fn take_key(&mut self, limit: Limit<'_>) -> Option<(&'m [u8], Span<'m>)> {
        let key = self.first_key()?;
        let is_within = match limit {
            Limit::Before(limit) => key < limit,
            Limit::Exactly(wanted) => key == wanted,
            Limit::Everything => true,
        };
        if !is_within {
            return None;
        }
        let place = |message: &Message| (message.key_at, message.key_len);
        let first = place(&self.list[0]);
        // Versions of one key nearly always share its bytes; otherwise the keys are compared.
        let ends = |other: &Message| place(other) != first && key_in(self.keys, other) != key;
        let count = self.list.iter().position(ends).unwrap_or(self.list.len());
        let (taken, rest) = self.list.split_at(count);
        self.list = rest;
        Some((key, Span { list: taken, ..*self }))
    }
}

/// The keys that may be taken off a span.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit<'k> {
    Before(&'k [u8]),
    Exactly(&'k [u8]),
    Everything,
}

#[cfg(test)]
mod tests;
