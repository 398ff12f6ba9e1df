//! A pool of input buffers, one for each I/O thread.
//!
//! A connection holds no buffer while it is idle. Without the pool a connection that sends batches of some
//! hundred KB would have the allocator map and unmap that memory for each of them.

/// Smaller buffers come from the allocator, which is as fast for them.
const LENT_BYTES_MIN: usize = 16 * 1024;
/// Larger buffers are not kept.
const KEPT_BYTES_MAX: usize = 512 * 1024;
/// Buffers in the pool at most: 4 MB for each thread.
const KEPT_COUNT_MAX: usize = 8;

/// The free buffers of one thread.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    kept: Vec<Vec<u8>>,
}

impl BufferPool {
    /// An empty buffer for about this many bytes. It may have less room: a length that a client claims is not
    /// allocated.
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
