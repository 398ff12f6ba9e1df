//! A page as it stands on disk, kept in memory: two to three of them take the room of one that can be read in place.

use pando_environment::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;

use crate::base::Codec;
use crate::memory::page_memory;

/// A page's payload as stored. Its checksum was compared when it was read or made.
#[derive(Debug)]
pub(crate) struct StoredPage {
    payload: Bytes,
    codec: Codec,
    /// How often it was read, as far as [`USES_MAX`].
    uses: AtomicU8,
}

/// More uses than this are not told apart.
const USES_MAX: u8 = 3;

impl StoredPage {
    /// Keeps a copy of a payload that somebody waits for: reading it for the first time is no repeated use.
    pub(crate) fn awaited(codec: Codec, payload: &[u8]) -> StoredPage {
        StoredPage { payload: page_memory::copy(payload), codec, uses: AtomicU8::new(0) }
    }

    /// Keeps a copy of a payload that was just used, or stands for one that was.
    pub(crate) fn used(codec: Codec, payload: &[u8]) -> StoredPage {
        StoredPage { payload: page_memory::copy(payload), codec, uses: AtomicU8::new(1) }
    }

    /// The page's bytes, unless the payload does not decompress to so many.
    pub(super) fn raw(&self, raw_length: usize) -> Option<Bytes> {
        match self.codec {
            Codec::None => (self.payload.len() == raw_length).then(|| self.payload.clone()),
            codec => codec.decompress(&self.payload, raw_length),
        }
    }

    /// Decodes into memory that has exactly the raw length; false if the payload does not decompress to so many bytes.
    pub(super) fn decode_into(&self, target: &mut [u8]) -> bool {
        self.codec.decompress_into(&self.payload, target)
    }

    /// Counts a use; how many there were before, as far as that is known.
    pub(super) fn note_use(&self) -> u8 {
        let before = self.uses.load(Ordering::Relaxed);
        if before < USES_MAX {
            // Two at once may count as one: that only delays a decision.
            self.uses.store(before + 1, Ordering::Relaxed);
        }
        before
    }

    /// Whether nobody has read it yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.uses.load(Ordering::Relaxed) == 0
    }

    /// Memory that it takes.
    pub(crate) fn heap_bytes(&self) -> usize {
        page_memory::footprint(self.payload.len()) + size_of::<StoredPage>()
    }
}
