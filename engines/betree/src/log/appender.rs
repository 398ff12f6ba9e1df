//! The memory end of the log: it assigns LSNs, builds records, and keeps them in batches until a writer takes
//! them.
//!
//! A batch goes to one place of one segment with one write. A record that does not fit into the active
//! segment begins the next one. The batch of a new segment begins with its header.

use std::collections::VecDeque;
use std::sync::Arc;

use pando_encryption::{SEAL_BYTES, Vault};
use pando_storage::Lsn;

use super::record::{Sealing, Stored, record_bytes, write_record};
use super::segment::{SEGMENT_HEADER_BYTES, Salt, Segment, SegmentHeader};
use crate::base::LogPosition;
use crate::base::StoreId;

/// Bytes of a page of the kernel's page cache. Where pages are longer (16 KB on some machines), a write may
/// still wait for a read.
const PAGE_BYTES: u64 = 4_096;
/// A buffer that grew longer is freed, in bytes.
const KEPT_BUFFER_BYTES: usize = 8 * 1024 * 1024;

/// Bytes for one place of one segment.
pub(super) struct Batch {
    pub(super) segment: Arc<Segment>,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    /// The last record in it.
    pub(super) last: Lsn,
}

impl Batch {
    /// Fills the last page of the batch with zeros, if the batch is the first in that page. Returns the end.
    ///
    /// The kernel reads a page from the device before it writes a part of it, unless the page is in its
    /// cache. In a recycled segment a commit would wait for that read, and for the requests before it.
    pub(super) fn fill_page(&mut self) -> u64 {
        let end = self.offset + self.bytes.len() as u64;
        // The first page was filled by the batch before, or is in the kernel's cache since recovery read it.
        let filled_to = self.offset.next_multiple_of(PAGE_BYTES);
        if end <= filled_to {
            return end;
        }
        let page_end = end.next_multiple_of(PAGE_BYTES).min(self.segment.length);
        self.bytes.resize((page_end - self.offset) as usize, 0);
        page_end
    }
}

/// See the [module](self).
pub(super) struct Appender {
    store: StoreId,
    /// The data keys, if the store is encrypted.
    vault: Option<Arc<Vault>>,
    segment: Arc<Segment>,
    salt: Salt,
    /// Where the next record goes.
    end: LogPosition,
    batches: VecDeque<Batch>,
    unwritten_bytes: usize,
    appended_bytes: u64,
    spare_buffer: Vec<u8>,
}

impl Appender {
    /// Appends after `end`, which lies in the segment. `appended_bytes` begins with the bytes that recovery
    /// has read.
    pub(super) fn new(
        store: StoreId,
        vault: Option<Arc<Vault>>,
        segment: Arc<Segment>,
        salt: Salt,
        end: LogPosition,
        appended_bytes: u64,
    ) -> Appender {
        Appender {
            store,
            vault,
            segment,
            salt,
            end,
            batches: VecDeque::new(),
            unwritten_bytes: 0,
            appended_bytes,
            spare_buffer: Vec::new(),
        }
    }

    pub(super) const fn end(&self) -> LogPosition {
        self.end
    }

    /// The segment that records are appended to.
    pub(super) const fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    pub(super) const fn appended_bytes(&self) -> u64 {
        self.appended_bytes
    }

    pub(super) const fn unwritten_bytes(&self) -> usize {
        self.unwritten_bytes
    }

    /// Whether the active segment is so full that the next one should be made ready.
    pub(super) fn is_half_full(&self) -> bool {
        self.end.offset() > self.segment.length / 2
    }

    /// The bytes of segment that a record with this payload needs, if the active segment has no room for it.
    pub(super) fn needs_segment(&self, payload_length: usize) -> Option<u64> {
        let seal_bytes = if self.vault.is_some() { SEAL_BYTES } else { 0 };
        let bytes = record_bytes(payload_length + seal_bytes) as u64;
        (self.end.offset() + bytes > self.segment.length).then_some(SEGMENT_HEADER_BYTES + bytes)
    }

    /// Makes this segment the active one.
    pub(super) fn begin_segment(&mut self, segment: Arc<Segment>, salt: Salt) -> LogPosition {
        let (first, chain) = (self.end.lsn(), self.end.chain());
        let header = SegmentHeader { store: self.store, number: segment.number, salt, first, chain };
        let mut bytes = std::mem::take(&mut self.spare_buffer);
        bytes.extend_from_slice(&header.encode());
        // Until the first record is appended, which follows at once, the batch ends with the record before
        // it.
        let last = Lsn::new(first.get() - 1);
        self.batches.push_back(Batch { segment: Arc::clone(&segment), offset: 0, bytes, last });
        self.end = LogPosition::new(segment.number, SEGMENT_HEADER_BYTES, first, chain);
        self.segment = segment;
        self.salt = salt;
        self.end
    }

    /// Appends a record that fits. `durable` is the newest LSN known to be durable.
    pub(super) fn append(&mut self, record: Stored<'_>, durable: Lsn) -> Lsn {
        let lsn = record.gap_to.unwrap_or(self.end.lsn());
        assert!(lsn >= self.end.lsn(), "LSNs only increase");
        let offset = self.end.offset();
        let is_continued =
            self.batches.back().is_some_and(|batch| batch.segment.number == self.segment.number);
        if !is_continued {
            let bytes = std::mem::take(&mut self.spare_buffer);
            self.batches.push_back(Batch { segment: Arc::clone(&self.segment), offset, bytes, last: lsn });
        }
        let batch = self.batches.back_mut().expect("a batch was begun where there was none");
        let before = batch.bytes.len();
        let sealing = self.vault.as_deref().map(|vault| Sealing { vault, segment: self.segment.number });
        let chain =
            write_record(&mut batch.bytes, self.salt, self.end.chain(), lsn, durable, record, sealing);
        batch.last = lsn;
        let written = batch.bytes.len() - before;
        let end = offset + written as u64;
        assert!(end <= self.segment.length, "a record was appended that does not fit its segment");
        self.end = LogPosition::new(self.segment.number, end, lsn.next(), chain);
        self.unwritten_bytes += written;
        self.appended_bytes += written as u64;
        lsn
    }

    /// Takes all batches for the writer. The next record begins a new batch.
    pub(super) fn take_batches(&mut self) -> VecDeque<Batch> {
        self.unwritten_bytes = 0;
        std::mem::take(&mut self.batches)
    }

    /// Takes back the buffer of a written batch for reuse.
    pub(super) fn give_back(&mut self, mut buffer: Vec<u8>) {
        let is_better = buffer.capacity() > self.spare_buffer.capacity();
        if is_better && buffer.capacity() <= KEPT_BUFFER_BYTES {
            buffer.clear();
            self.spare_buffer = buffer;
        }
    }
}
