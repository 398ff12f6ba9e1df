//! Batch fill: the batch of a scan while it is filled. A large value enters with its length only. It is read
//! at the end, and merge operators over it are applied then.
//!
//! So no value is read while locks of buffers are held. Values that were written together lie side by side in
//! the file, and are read with one device read.

use bytes::Bytes;
use pando_storage::{Batch, BatchLimits, ScanEnd};

use crate::cache::LargeValueRead;
use crate::error::BetreeError;
use crate::format::content::{Content, LargeReference};
use crate::tree::lookup::{Damaged, damaged_value};
use crate::tree::scan::ScanRequest;
use crate::tree::tree_blocks::Blocks;
use crate::tree::value_merge::MergeOperands;

/// See the module's head.
pub(crate) struct Filling<'b> {
    batch: &'b mut Batch,
    /// The large values, by their places in the batch, ascending.
    large: Vec<LargeEntry>,
}

struct LargeEntry {
    place: usize,
    reference: LargeReference<Bytes>,
    /// The operands of a merge operator that apply to the value once it is read.
    merges: MergeOperands,
}

impl<'b> Filling<'b> {
    pub(crate) fn new(batch: &'b mut Batch) -> Filling<'b> {
        Filling { batch, large: Vec::new() }
    }

    /// Adds an entry, unless it is deleted.
    pub(crate) fn push(&mut self, key: &[u8], content: Content<&[u8]>) {
        match content {
            Content::Deleted => {}
            Content::Value(value) => self.batch.push(key, value),
            Content::Merge(_) => unreachable!("merge operators come with the version that they apply to"),
            Content::Large(reference) => self.push_large(key, reference.to_owned(), MergeOperands::default()),
        }
    }

    fn push_large(&mut self, key: &[u8], reference: LargeReference<Bytes>, merges: MergeOperands) {
        self.batch.push_blank(key, reference.length() as usize);
        self.large.push(LargeEntry { place: self.batch.len() - 1, reference, merges });
    }

    /// Adds the result of merge operands applied to the version that was found below them, if there is one.
    pub(crate) fn push_merged(&mut self, key: &[u8], merges: MergeOperands, below: Option<Content<Bytes>>) {
        let below = match below {
            Some(Content::Large(reference)) if merges.pass_over(reference.length()) => {
                return self.push_large(key, reference, MergeOperands::default());
            }
            Some(Content::Large(reference)) => return self.push_large(key, reference, merges),
            Some(Content::Value(value)) => Some(value),
            Some(Content::Deleted | Content::Merge(_)) | None => None,
        };
        if let Some(value) = merges.over(below) {
            self.batch.push(key, &value);
        }
    }

    /// See [`Batch::push_joined`].
    pub(crate) fn push_joined(&mut self, start: &[u8], rest: &[u8], key_bytes: usize) {
        self.batch.push_joined(start, rest, key_bytes);
    }

    pub(crate) fn reserve(&mut self, entries: usize, bytes: usize) {
        self.batch.reserve(entries, bytes);
    }

    pub(crate) fn is_full(&self, limits: BatchLimits) -> bool {
        self.batch.is_full(limits)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.batch.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.batch.bytes()
    }

    /// Reads the large values. If one cannot be read, the batch ends before it; an error if it is the first
    /// entry.
    pub(crate) fn finish(
        mut self,
        blocks: &Blocks,
        request: &ScanRequest<'_>,
        end: ScanEnd,
    ) -> Result<ScanEnd, Damaged> {
        if self.large.is_empty() || self.read(0..self.large.len(), blocks, request).is_ok() {
            return Ok(self.apply_operators(request.limits, end));
        }
        for at in 0..self.large.len() {
            let Err(error) = self.read(at..at + 1, blocks, request) else { continue };
            let place = self.large[at].place;
            if place > 0 {
                self.batch.truncate(place);
                return Ok(self.apply_operators(request.limits, ScanEnd::More));
            }
            let key = self.batch.get(place).map(|(key, _)| key).unwrap_or_default();
            let error = match error {
                // The retry on a thread that may block reads all of them at once.
                BetreeError::WouldBlock(_) if self.large.len() > 1 => BetreeError::WouldBlock(None),
                error => error,
            };
            let damaged = damaged_value(error, key);
            self.batch.clear();
            return Err(damaged);
        }
        Ok(self.apply_operators(request.limits, end))
    }

    /// Applies merge operators to the large values, which are read by now. If values became longer, the batch
    /// may have room for fewer entries.
    fn apply_operators(&mut self, limits: BatchLimits, end: ScanEnd) -> ScanEnd {
        let mut is_changed = false;
        for entry in self.large.iter().filter(|entry| !entry.merges.is_empty()) {
            let Some((_, value)) = self.batch.get(entry.place) else { break };
            if let Some(after) = entry.merges.over(Some(Bytes::copy_from_slice(value))) {
                self.batch.set_value(entry.place, &after);
                is_changed = true;
            }
        }
        if is_changed && self.batch.cut_to(limits) { ScanEnd::More } else { end }
    }

    fn read(
        &mut self,
        some: std::ops::Range<usize>,
        blocks: &Blocks,
        request: &ScanRequest<'_>,
    ) -> Result<(), BetreeError> {
        let large = &self.large[some];
        let targets = self.batch.values_mut(large.iter().map(|entry| entry.place));
        let wanted = large.iter().zip(targets);
        let wanted =
            wanted.map(|(entry, target)| LargeValueRead { pieces: entry.reference.pieces(), target });
        blocks.read_large_values(wanted, request.hint, request.blocking)
    }
}
