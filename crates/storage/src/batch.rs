//! Batches: the entries that one call of a scan brings, in one allocation.
//!
//! # Layout
//! ```text
//! bytes  key 0, value 0, key 1, value 1, ...   one after the other, in the order of the scan
//! ends   (end of key 0, end of value 0), ...   a key begins where the value before it ends
//! ```
//!
//! # Memory
//! A cursor keeps its batch for as long as a client likes. A large batch therefore counts against the
//! engine's limit: either the engine that fills it [counts](Batch::count_in) it, or its owner has
//! [borrowed](Batch::owned) the memory.

use crate::memory::{HeldMemory, MemoryAccount};

/// When a batch is full. At least one entry is always delivered, however large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Entries at most, at least 1.
    pub entries_max: usize,
    /// Bytes of keys and values after which no further entry is added.
    pub bytes_max: usize,
}

impl BatchLimits {
    /// The first request of a cursor: small, since many scans want one row.
    pub const FIRST: BatchLimits = BatchLimits { entries_max: 16, bytes_max: 16 * 1024 };
    /// The largest request of a cursor.
    pub const LARGEST: BatchLimits = BatchLimits { entries_max: 1024, bytes_max: 256 * 1024 };

    /// No more than these.
    #[must_use]
    pub fn within(self, largest: BatchLimits) -> BatchLimits {
        BatchLimits {
            entries_max: self.entries_max.min(largest.entries_max),
            bytes_max: self.bytes_max.min(largest.bytes_max),
        }
    }

    /// Twice as much, up to [`BatchLimits::LARGEST`]. A scan that may end at any entry so wastes at most as
    /// much as it used.
    #[must_use]
    pub fn grown(self) -> BatchLimits {
        BatchLimits {
            entries_max: (self.entries_max * 2).min(BatchLimits::LARGEST.entries_max),
            bytes_max: (self.bytes_max * 2).min(BatchLimits::LARGEST.bytes_max),
        }
    }
}

/// Whether a scan has seen its whole range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// The batch was full: there may be more.
    More,
    /// The range is exhausted.
    Done,
}

/// Entries of a scan in one allocation, in the order of the scan.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// End of key and end of value of each entry in `bytes`; the key begins where the entry before ended.
    ends: Vec<(usize, usize)>,
    counted: Counted,
}

/// Where a batch's memory is counted.
#[derive(Clone, Debug, Default)]
enum Counted {
    /// Nowhere: it is little.
    #[default]
    Nowhere,
    /// By the engine that filled it.
    ByEngine(HeldMemory),
    /// By its owner, which has borrowed the memory.
    ByOwner,
}

/// Batches with less memory are not counted: they are many, and come and go. A batch of the
/// [first](BatchLimits::FIRST) limits stays below, unless it has a large document.
const COUNTED_FROM: usize = 40 * 1024;
/// Room that a batch makes for itself by its first entry: below what is counted.
const ROOM_BYTES_MAX: usize = 32 * 1024;
/// A batch with more memory returns the part that it does not need: it was for a large document.
const KEPT_BYTES: usize = 1024 * 1024;

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// An empty batch whose owner has borrowed the memory for it from the engine
    /// ([`Engine::lend_memory`](crate::Engine::lend_memory)). Its clones are such batches, too.
    pub fn owned() -> Batch {
        Batch { counted: Counted::ByOwner, ..Batch::default() }
    }

    /// Whether its owner answers for its memory.
    pub fn is_owned(&self) -> bool {
        matches!(self.counted, Counted::ByOwner)
    }

    /// Forgets the entries and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds an entry.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    /// Adds an entry that lies in two pieces: the start of the key, and the rest of the key with the value
    /// behind it. The whole key has `key_bytes`.
    ///
    /// # Panics
    /// If the pieces are shorter than the key.
    pub fn push_joined(&mut self, start: &[u8], rest: &[u8], key_bytes: usize) {
        assert!(key_bytes <= start.len() + rest.len(), "the pieces hold the whole key");
        let key_end = self.bytes.len() + key_bytes;
        self.bytes.extend_from_slice(start);
        self.bytes.extend_from_slice(rest);
        self.ends.push((key_end, self.bytes.len()));
    }

    /// Adds an entry whose value of this many bytes is [written](Batch::values_mut) later; zeros until then.
    pub fn push_blank(&mut self, key: &[u8], value_bytes: usize) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.resize(key_end + value_bytes, 0);
        self.ends.push((key_end, self.bytes.len()));
    }

    /// The values of the entries at these places, which ascend strictly; one for each place that there is.
    pub fn values_mut(&mut self, places: impl IntoIterator<Item = usize>) -> impl Iterator<Item = &mut [u8]> {
        let (mut rest, mut passed, ends) = (self.bytes.as_mut_slice(), 0, &self.ends);
        places.into_iter().map_while(move |place| {
            let &(start, end) = ends.get(place)?;
            let (_, after) = std::mem::take(&mut rest).split_at_mut_checked(start.checked_sub(passed)?)?;
            let (value, after) = after.split_at_mut(end - start);
            (rest, passed) = (after, end);
            Some(value)
        })
    }

    /// Sets the value of the entry at this place, if there is one; those behind it move.
    pub fn set_value(&mut self, at: usize, value: &[u8]) {
        let Some(&(start, end)) = self.ends.get(at) else { return };
        self.bytes.splice(start..end, value.iter().copied());
        for (number, (key_end, value_end)) in self.ends[at..].iter_mut().enumerate() {
            if number > 0 {
                *key_end = *key_end - end + start + value.len();
            }
            *value_end = *value_end - end + start + value.len();
        }
    }

    /// Forgets the entries from this place on.
    pub fn truncate(&mut self, entries: usize) {
        self.ends.truncate(entries);
        self.bytes.truncate(self.ends.last().map_or(0, |(_, value_end)| *value_end));
    }

    /// Drops the entries that these limits would not have let in. Returns whether there were any.
    pub fn cut_to(&mut self, limits: BatchLimits) -> bool {
        let is_full =
            |entries: usize| entries >= limits.entries_max || self.ends[entries - 1].1 >= limits.bytes_max;
        let Some(full) = (1..self.len()).find(|entries| is_full(*entries)) else { return false };
        self.truncate(full);
        true
    }

    /// Adds an entry, and tells whether the batch is full by these limits. With the first one it makes room
    /// for as many of its size as the limits let in, so that a batch of known length grows once.
    pub fn push_within(&mut self, key: &[u8], value: &[u8], limits: BatchLimits) -> bool {
        self.push(key, value);
        if self.len() == 1 {
            let bytes = self.bytes.len();
            let entries = (ROOM_BYTES_MAX.min(limits.bytes_max) / bytes.max(1)).min(limits.entries_max);
            self.reserve(entries, entries * bytes);
        }
        self.is_full(limits)
    }

    /// Makes room for this many more entries, and bytes of keys and values.
    pub fn reserve(&mut self, entries: usize, bytes: usize) {
        self.ends.reserve(entries);
        self.bytes.reserve(bytes);
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Counts the memory of a large batch in an account, as long as the batch lives. A batch whose owner
    /// [answers](Batch::owned) for the memory is not counted. Engines that limit memory call it after they
    /// have filled a batch, because cursors keep their batches for as long as a client likes.
    pub fn count_in(&mut self, account: &MemoryAccount) {
        if self.is_owned() {
            return;
        }
        if self.bytes.capacity() > KEPT_BYTES && self.bytes.len() <= self.bytes.capacity() / 4 {
            self.bytes.shrink_to(KEPT_BYTES / 2);
        }
        let bytes = self.bytes.capacity() + self.ends.capacity() * size_of::<(usize, usize)>();
        match &mut self.counted {
            counted if bytes < COUNTED_FROM => *counted = Counted::Nowhere,
            Counted::ByEngine(held) if held.is_in(account) => held.set(bytes),
            counted => *counted = Counted::ByEngine(account.hold(bytes)),
        }
    }

    /// Bytes of its memory that are counted in an account of an engine.
    pub fn counted_bytes(&self) -> usize {
        match &self.counted {
            Counted::ByEngine(held) => held.bytes(),
            Counted::Nowhere | Counted::ByOwner => 0,
        }
    }

    /// Entries.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether a further entry would go past the limits.
    pub fn is_full(&self, limits: BatchLimits) -> bool {
        !self.is_empty() && (self.len() >= limits.entries_max || self.bytes.len() >= limits.bytes_max)
    }

    /// The entry at a place.
    pub fn get(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let &(key_end, value_end) = self.ends.get(at)?;
        let start = if at == 0 { 0 } else { self.ends[at - 1].1 };
        Some((&self.bytes[start..key_end], &self.bytes[key_end..value_end]))
    }

    /// The last entry.
    pub fn last(&self) -> Option<(&[u8], &[u8])> {
        self.get(self.len().checked_sub(1)?)
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + '_ {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_in_two_pieces_is_the_entry_whole() {
        let (mut joined, mut whole) = (Batch::new(), Batch::new());
        joined.reserve(2, 20);
        joined.push_joined(b"ke", b"y and value", 3);
        joined.push_joined(b"", b"", 0);
        whole.push(b"key", b" and value");
        whole.push(b"", b"");
        assert_eq!(joined.iter().collect::<Vec<_>>(), whole.iter().collect::<Vec<_>>());
        assert_eq!(joined.bytes(), 13);
    }

    #[test]
    fn a_batch_within_limits_grows_once_and_says_when_it_is_full() {
        let limits = BatchLimits { entries_max: 50, bytes_max: 1 << 20 };
        let mut batch = Batch::new();
        assert!(!batch.push_within(b"key", &[7; 97], limits));
        let room = batch.bytes.capacity();
        assert!((50 * 100..=ROOM_BYTES_MAX + 100).contains(&room), "{room}");
        let full: Vec<bool> = (1..50).map(|_| batch.push_within(b"key", &[7; 97], limits)).collect();
        assert!(full[48] && full[..48].iter().all(|full| !full));
        assert_eq!(batch.bytes.capacity(), room);
        // An entry beyond the limit is a batch of its own, and asks for no more room.
        let mut large = Batch::new();
        assert!(large.push_within(b"", &[7; 2 << 20], limits));
        assert!(large.bytes.capacity() < 3 << 20);
    }

    #[test]
    fn values_that_come_later_are_written_into_their_entries_and_a_batch_can_be_cut() {
        let mut batch = Batch::new();
        batch.push_blank(b"a", 3);
        batch.push(b"b", b"2");
        batch.push_blank(b"cc", 2);
        let values: Vec<&mut [u8]> = batch.values_mut([0, 2]).collect();
        assert_eq!(values.iter().map(|value| value.len()).collect::<Vec<_>>(), [3, 2]);
        for (value, byte) in values.into_iter().zip(b"xy") {
            value.fill(*byte);
        }
        let expected: [(&[u8], &[u8]); 3] = [(b"a", b"xxx"), (b"b", b"2"), (b"cc", b"yy")];
        assert_eq!(batch.iter().collect::<Vec<_>>(), expected);
        assert_eq!(batch.values_mut([1, 7]).count(), 1, "there is no eighth entry");
        for (at, value) in [(0, &b"longer"[..]), (1, b""), (2, b"z"), (0, b"xxx"), (1, b"2"), (9, b"none")] {
            batch.set_value(at, value);
        }
        let expected = [expected[0], expected[1], (b"cc", b"z")];
        assert_eq!((batch.iter().collect::<Vec<_>>(), batch.bytes()), (expected.to_vec(), 9));
        let limits = |entries_max, bytes_max| BatchLimits { entries_max, bytes_max };
        assert!(!batch.cut_to(limits(3, 7)), "the last begins at the sixth byte");
        assert!(batch.clone().cut_to(limits(2, 7)));
        assert!(batch.cut_to(limits(3, 6)));
        assert_eq!((batch.iter().collect::<Vec<_>>(), batch.bytes()), (expected[..2].to_vec(), 6));
        batch.truncate(0);
        assert_eq!((batch.len(), batch.bytes()), (0, 0));
    }

    #[test]
    fn a_batch_gives_its_entries_back_in_order_and_is_full_at_its_limits() {
        let mut batch = Batch::new();
        let limits = BatchLimits { entries_max: 2, bytes_max: 100 };
        assert!(!batch.is_full(limits));
        batch.push(b"a", b"1");
        batch.push(b"", b"");
        assert!(batch.is_full(limits));
        assert_eq!(batch.iter().collect::<Vec<_>>(), vec![(&b"a"[..], &b"1"[..]), (&b""[..], &b""[..])]);
    }
}
