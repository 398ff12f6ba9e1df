//! Buffer key: a key that stands in a buffer twice, with its chain and in the ordered map.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

use super::ALLOCATION_BYTES;

/// A key that is stored inline if it is short, as most are: a comparison then follows no pointer.
#[derive(Clone)]
pub(super) enum BufferKey {
    Inline { len: u8, bytes: [u8; BufferKey::INLINE_BYTES] },
    Heap(Arc<[u8]>),
}

impl BufferKey {
    const INLINE_BYTES: usize = 30;

    pub(super) fn new(key: &[u8]) -> BufferKey {
        let mut bytes = [0; BufferKey::INLINE_BYTES];
        match bytes.get_mut(..key.len()) {
            Some(start) => start.copy_from_slice(key),
            None => return BufferKey::Heap(key.into()),
        }
        BufferKey::Inline { len: key.len() as u8, bytes }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            BufferKey::Inline { len, bytes } => &bytes[..usize::from(*len)],
            BufferKey::Heap(bytes) => bytes,
        }
    }

    /// Bytes on the heap of such a key.
    pub(super) fn heap_bytes(key: &[u8]) -> usize {
        if key.len() > BufferKey::INLINE_BYTES { key.len() + ALLOCATION_BYTES } else { 0 }
    }
}

impl Borrow<[u8]> for BufferKey {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl PartialEq for BufferKey {
    fn eq(&self, other: &BufferKey) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for BufferKey {}

impl PartialOrd for BufferKey {
    fn partial_cmp(&self, other: &BufferKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BufferKey {
    /// Compares short keys word by word, without a call: a lookup makes some twenty comparisons.
    fn cmp(&self, other: &BufferKey) -> Ordering {
        match (self, other) {
            (BufferKey::Inline { len, bytes }, BufferKey::Inline { len: other_len, bytes: other_bytes }) => {
                // The shorter key is padded with zeros: if all words are equal, the lengths decide.
                let words = || {
                    [0, 8, 16, BufferKey::INLINE_BYTES - 8].map(|at| (word(bytes, at), word(other_bytes, at)))
                };
                let differing = words().into_iter().find(|(word, other)| word != other);
                differing.map_or_else(|| len.cmp(other_len), |(word, other)| word.cmp(&other))
            }
            _ => self.as_slice().cmp(other.as_slice()),
        }
    }
}

/// Eight bytes of a key, as a number that is ordered as they are.
fn word(bytes: &[u8; BufferKey::INLINE_BYTES], at: usize) -> u64 {
    u64::from_be_bytes(*bytes[at..].first_chunk().expect("eight bytes from here on"))
}

impl std::fmt::Debug for BufferKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "key of {} bytes", self.as_slice().len())
    }
}
