//! A page as it stands on disk, kept in memory. It takes a half to a third of the memory of the decoded page.

use pando_environment::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;

use crate::base::Codec;
use crate::memory::page_memory;

/// The stored payload of a page. Its checksum was compared when it was read, or computed when it was written.
#[derive(Debug)]
pub(crate) struct StoredPage {
    payload: Bytes,
    codec: Codec,
    /// Number of uses, up to [`USES_MAX`].
    uses: AtomicU8,
}

/// Uses are counted up to this number.
const USES_MAX: u8 = 3;

impl StoredPage {
    /// Copies a payload that was read for a reader who has not used it yet. That first use belongs to the
    /// miss, and does not count as a repeated one.
    pub(crate) fn awaited(codec: Codec, payload: &[u8]) -> StoredPage {
        StoredPage { payload: page_memory::copy(payload), codec, uses: AtomicU8::new(0) }
    }

    /// Copies a payload that was just used, or that replaces one that was.
    pub(crate) fn used(codec: Codec, payload: &[u8]) -> StoredPage {
        StoredPage { payload: page_memory::copy(payload), codec, uses: AtomicU8::new(1) }
    }

    /// Decompresses the page. `None` unless the payload gives exactly `raw_length` bytes.
    pub(super) fn raw(&self, raw_length: usize) -> Option<Bytes> {
        match self.codec {
            Codec::None => (self.payload.len() == raw_length).then(|| self.payload.clone()),
            codec => codec.decompress(&self.payload, raw_length),
        }
    }

    /// Decompresses into `target`. False unless the payload gives exactly its length.
    pub(super) fn decode_into(&self, target: &mut [u8]) -> bool {
        self.codec.decompress_into(&self.payload, target)
    }

    /// Counts a use. Returns the number of uses before it, up to [`USES_MAX`].
    pub(super) fn note_use(&self) -> u8 {
        let before = self.uses.load(Ordering::Relaxed);
        if before < USES_MAX {
            // Two concurrent uses may count as one: that only delays a promotion.
            self.uses.store(before + 1, Ordering::Relaxed);
        }
        before
    }

    /// Whether no reader has used it yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.uses.load(Ordering::Relaxed) == 0
    }

    /// Bytes of memory that it takes.
    pub(crate) fn heap_bytes(&self) -> usize {
        page_memory::footprint(self.payload.len()) + size_of::<StoredPage>()
    }
}
