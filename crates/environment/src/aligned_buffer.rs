//! Memory that direct I/O accepts: aligned to a page of 4,096 bytes.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use bytes::Bytes;

/// Alignment of every [`AlignedBuffer`] in memory, in bytes: enough for any device.
pub const MEMORY_ALIGNMENT: usize = 4_096;

/// A fixed-size byte buffer at a multiple of [`MEMORY_ALIGNMENT`], zeroed when made.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    length: usize,
    capacity: usize,
}

// SAFETY: the buffer owns its memory and hands out references by the usual borrowing rules, as a Vec<u8>
// does.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above: shared references only read.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// A zeroed buffer of this length; the capacity is the length rounded up to the alignment.
    pub fn zeroed(length: usize) -> AlignedBuffer {
        let capacity = length.max(1).next_multiple_of(MEMORY_ALIGNMENT);
        let layout = layout_of(capacity);
        // SAFETY: the layout has a size above zero.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(memory) else { handle_alloc_error(layout) };
        AlignedBuffer { start, length, capacity }
    }

    /// How long the buffer can become without a new allocation.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Changes the length within the capacity; bytes that come into view hold what was last written there, or
    /// zero.
    ///
    /// # Panics
    /// If the length exceeds the capacity.
    pub fn set_length(&mut self, length: usize) {
        assert!(
            length <= self.capacity,
            "a length of {length} exceeds the buffer's capacity of {}",
            self.capacity
        );
        self.length = length;
    }

    /// Makes the buffer at least this long, with a new (zeroed) allocation where the capacity does not
    /// suffice.
    pub fn ensure_length(&mut self, length: usize) {
        if length > self.capacity {
            *self = AlignedBuffer::zeroed(length);
        }
        self.length = length;
    }

    /// Makes the buffer at least this long and keeps its content; the capacity at least doubles where it does
    /// not suffice.
    pub fn grow(&mut self, length: usize) {
        if length > self.capacity {
            let mut larger = AlignedBuffer::zeroed(length.max(2 * self.capacity));
            larger[..self.length].copy_from_slice(self);
            *self = larger;
        }
        self.length = self.length.max(length);
    }

    /// The buffer as shared bytes, without a copy.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

fn layout_of(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, MEMORY_ALIGNMENT)
        .expect("a capacity below isize::MAX with a power of two as alignment is a layout")
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this very layout, and freed once.
        unsafe { dealloc(self.start.as_ptr(), layout_of(self.capacity)) }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `length <= capacity` bytes from `start` are allocated and initialised (zeroed at birth).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl AsRef<[u8]> for AlignedBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuffer({} of {} bytes)", self.length, self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zeroed() {
        for length in [0, 1, 511, 4_096, 4_097, 1 << 20] {
            let buffer = AlignedBuffer::zeroed(length);
            assert_eq!(buffer.as_ptr() as usize % MEMORY_ALIGNMENT, 0);
            assert_eq!(buffer.len(), length);
            assert!(buffer.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_buffer_keeps_its_memory_while_it_shrinks_and_grows_within_its_capacity() {
        let mut buffer = AlignedBuffer::zeroed(8_000);
        buffer[7_999] = 9;
        let address = buffer.as_ptr();
        buffer.set_length(10);
        buffer.ensure_length(8_192);
        assert_eq!(buffer.as_ptr(), address);
        assert_eq!(buffer[7_999], 9);
        buffer.ensure_length(8_193);
        assert_eq!(buffer.len(), 8_193);
        buffer[0] = 4;
        buffer.grow(100_000);
        assert_eq!((buffer.len(), buffer[0]), (100_000.max(buffer.len()), 4));
        assert_eq!(buffer.into_bytes().slice(0..4).as_ref(), &[4, 0, 0, 0]);
    }
}
