//! A batch that is being filled: large values are entered with their length, and read at the end.
//!
//! Until the end it is only known where they stand; so while locks of buffers are held nothing is read, and those that lie side by
//! side in the file, as values do that were written together, come with one call to the device.

use bytes::Bytes;
use pando_storage::{Batch, BatchLimits, ScanEnd};

use super::ScanRequest;
use super::way::pace_of;
use crate::cache::{Blocks, Wanted};
use crate::error::BetreeError;
use crate::format::content::{Content, LargeReference};
use crate::tree::lookup::{Damaged, damaged_value};

/// See the module's head.
pub(super) struct Filling<'b> {
    batch: &'b mut Batch,
    /// The large values, by their places in the batch, ascending.
    large: Vec<(usize, LargeReference<Bytes>)>,
}

impl<'b> Filling<'b> {
    pub(super) fn new(batch: &'b mut Batch) -> Filling<'b> {
        Filling { batch, large: Vec::new() }
    }

    /// Adds an entry, unless it is deleted.
    pub(super) fn push(&mut self, key: &[u8], content: Content<&[u8]>) {
        match content {
            Content::Deleted => {}
            Content::Value(value) => self.batch.push(key, value),
            Content::Large(reference) => {
                self.large.push((self.batch.len(), reference.to_owned()));
                self.batch.push_blank(key, reference.length() as usize);
            }
        }
    }

    /// See [`Batch::push_joined`].
    pub(super) fn push_joined(&mut self, start: &[u8], rest: &[u8], key_bytes: usize) {
        self.batch.push_joined(start, rest, key_bytes);
    }

    pub(super) fn reserve(&mut self, entries: usize, bytes: usize) {
        self.batch.reserve(entries, bytes);
    }

    pub(super) fn is_full(&self, limits: BatchLimits) -> bool {
        self.batch.is_full(limits)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.batch.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.batch.bytes()
    }

    /// Reads the large values. Where one cannot be read, the batch ends before it; an error if it is the first entry.
    pub(super) fn finish(
        mut self,
        blocks: &Blocks,
        request: &ScanRequest<'_>,
        end: ScanEnd,
    ) -> Result<ScanEnd, Damaged> {
        if self.large.is_empty() || self.read(0..self.large.len(), blocks, request).is_ok() {
            return Ok(end);
        }
        for at in 0..self.large.len() {
            let Err(error) = self.read(at..at + 1, blocks, request) else { continue };
            let place = self.large[at].0;
            if place > 0 {
                self.batch.truncate(place);
                return Ok(ScanEnd::More);
            }
            let key = self.batch.get(place).map(|(key, _)| key).unwrap_or_default();
            let error = match error {
                // A thread that may wait reads them all at once.
                BetreeError::WouldBlock(_) if self.large.len() > 1 => BetreeError::WouldBlock(None),
                error => error,
            };
            let damaged = damaged_value(error, key);
            self.batch.clear();
            return Err(damaged);
        }
        Ok(end)
    }

    fn read(
        &mut self,
        some: std::ops::Range<usize>,
        blocks: &Blocks,
        request: &ScanRequest<'_>,
    ) -> Result<(), BetreeError> {
        let large = &self.large[some];
        let targets = self.batch.values_mut(large.iter().map(|(place, _)| *place));
        let wanted = large.iter().zip(targets);
        let wanted = wanted.map(|((_, reference), target)| Wanted { reference, target });
        blocks.fill_large(wanted, pace_of(request), request.patience)
    }
}
