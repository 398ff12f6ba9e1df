//! Input buffers that no connection needs at the moment.
//!
//! A connection keeps no buffer while it is idle. One that sends batches of some hundred KB would otherwise have the allocator
//! map and unmap that memory for each.

/// Below this the allocator is as quick.
const LENT_BYTES_MIN: usize = 16 * 1024;
/// Larger ones are not kept.
const KEPT_BYTES_MAX: usize = 512 * 1024;
/// How many are kept: 4 MB per thread at most.
const KEPT_COUNT_MAX: usize = 8;

/// The buffers of one thread.
#[derive(Debug, Default)]
pub(crate) struct SpareBuffers {
    kept: Vec<Vec<u8>>,
}

impl SpareBuffers {
    /// An empty buffer for about this many bytes. It may hold fewer; it is not meant to allocate on a mere claim.
    pub(crate) fn take(&mut self, bytes: usize) -> Vec<u8> {
        if bytes < LENT_BYTES_MIN { Vec::with_capacity(bytes) } else { self.kept.pop().unwrap_or_default() }
    }

    /// Gives a buffer back.
    pub(crate) fn put(&mut self, mut buffer: Vec<u8>) {
        let worth_keeping = (LENT_BYTES_MIN..=KEPT_BYTES_MAX).contains(&buffer.capacity());
        if worth_keeping && self.kept.len() < KEPT_COUNT_MAX {
            buffer.clear();
            self.kept.push(buffer);
        }
    }
}
