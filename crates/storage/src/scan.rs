//! Scans: a range, a direction, batches of entries, and the cursor that asks for one batch after another.
//!
//! A scan carries no state in the engine between batches: the cursor narrows its range past the last key it was given.
//! A batch costs one descent of the tree, which is nothing beside the entries that it brings, and in return no cursor
//! borrows a transaction, pins a page or has to be told of a write.

use std::ops::Bound;

use crate::{BlockingMode, HeldMemory, MemoryAccount, StorageError, Transaction, TreeId};

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From small keys to great ones.
    Forward,
    /// From great keys to small ones.
    Backward,
}

/// The keys between two bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The lower end.
    pub lower: Bound<Vec<u8>>,
    /// The upper end.
    pub upper: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub const fn all() -> KeyRange {
        KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// The keys that begin with these bytes.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        let upper = match successor_of_prefix(prefix) {
            Some(next) => Bound::Excluded(next),
            None => Bound::Unbounded,
        };
        KeyRange { lower: Bound::Included(prefix.to_vec()), upper }
    }

    /// One key.
    pub fn point(key: &[u8]) -> KeyRange {
        KeyRange { lower: Bound::Included(key.to_vec()), upper: Bound::Included(key.to_vec()) }
    }

    /// Whether the key lies within.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.is_above_lower(key) && self.is_below_upper(key)
    }

    /// Whether the key is not too small.
    pub fn is_above_lower(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Included(lower) => key >= lower.as_slice(),
            Bound::Excluded(lower) => key > lower.as_slice(),
            Bound::Unbounded => true,
        }
    }

    /// Whether the key is not too great.
    pub fn is_below_upper(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Included(upper) => key <= upper.as_slice(),
            Bound::Excluded(upper) => key < upper.as_slice(),
            Bound::Unbounded => true,
        }
    }

    /// Whether no key can lie within: the bounds cross or touch without meeting.
    pub fn is_empty(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Bound::Unbounded, _) => matches!(&self.upper, Bound::Excluded(upper) if upper.is_empty()),
            (_, Bound::Unbounded) => false,
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => lower >= upper,
        }
    }

    /// The same keys, from one that is included up to before another (or to the end); `None` where there are none.
    pub fn half_open(&self) -> Option<KeyRange> {
        if self.is_empty() {
            return None;
        }
        let lower = match &self.lower {
            Bound::Included(key) => key.clone(),
            Bound::Excluded(key) => successor(key),
            Bound::Unbounded => Vec::new(),
        };
        let upper = match &self.upper {
            Bound::Included(key) => Bound::Excluded(successor(key)),
            Bound::Excluded(key) => Bound::Excluded(key.clone()),
            Bound::Unbounded => Bound::Unbounded,
        };
        Some(KeyRange { lower: Bound::Included(lower), upper }).filter(|range| !range.is_empty())
    }

    /// Narrows the range to what lies beyond `key` in `direction`.
    pub fn advance_past(&mut self, key: &[u8], direction: Direction) {
        let bound = match direction {
            Direction::Forward => &mut self.lower,
            Direction::Backward => &mut self.upper,
        };
        match bound {
            Bound::Excluded(have) => {
                have.clear();
                have.extend_from_slice(key);
            }
            Bound::Included(_) | Bound::Unbounded => *bound = Bound::Excluded(key.to_vec()),
        }
    }
}

/// The smallest key that is greater than this one.
fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// The smallest key that is greater than every key with this prefix; `None` where there is none (all bytes 0xFF).
pub fn successor_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// When a batch is full. At least one entry is always delivered, however large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Entries at most, at least 1.
    pub entries_max: usize,
    /// Bytes of keys and values after which no further entry is added.
    pub bytes_max: usize,
}

impl BatchLimits {
    /// What a cursor asks for first: little, since many scans want one row.
    pub const FIRST: BatchLimits = BatchLimits { entries_max: 16, bytes_max: 16 * 1024 };
    /// What it grows to.
    pub const LARGEST: BatchLimits = BatchLimits { entries_max: 1024, bytes_max: 256 * 1024 };

    /// No more than these.
    #[must_use]
    pub fn within(self, largest: BatchLimits) -> BatchLimits {
        BatchLimits {
            entries_max: self.entries_max.min(largest.entries_max),
            bytes_max: self.bytes_max.min(largest.bytes_max),
        }
    }

    /// Twice as much, up to [`BatchLimits::LARGEST`]: of what a scan that ends anywhere has fetched, most is wanted.
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
    /// By its owner, who has borrowed it.
    ByOwner,
}

/// A batch that takes less memory is not counted: it is one of many that come and go. One of the [first](BatchLimits::FIRST) limits never takes
/// so much, unless of a large document.
const COUNTED_FROM: usize = 40 * 1024;
/// A batch that takes more memory gives back what it does not need: it was for a large document.
const KEPT_BYTES: usize = 1024 * 1024;

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// An empty batch (as are its clones) whose owner has the memory for it from the engine already ([`Engine::lend_memory`](crate::Engine::lend_memory)).
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

    /// Adds an entry that lies in two pieces: the key's start, and what follows it of the key (of `key_bytes` in all) with the
    /// value behind.
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

    /// Adds an entry whose value of so many bytes is [written](Batch::values_mut) later; zeros until then.
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

    /// Forgets the entries that would not have been added where these are the limits; whether there were any.
    pub fn cut_to(&mut self, limits: BatchLimits) -> bool {
        let is_full =
            |entries: usize| entries >= limits.entries_max || self.ends[entries - 1].1 >= limits.bytes_max;
        let Some(full) = (1..self.len()).find(|entries| is_full(*entries)) else { return false };
        self.truncate(full);
        true
    }

    /// Makes room for so many more entries, and bytes of keys and values.
    pub fn reserve(&mut self, entries: usize, bytes: usize) {
        self.ends.reserve(entries);
        self.bytes.reserve(bytes);
    }

    /// Bytes of keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Counts its memory in an account, if it is much, as long as it lives, unless its owner [answers](Batch::owned) for it. For engines that limit
    /// memory, after they have filled it: cursors keep their batches for as long as a client likes.
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

/// Bytes of an entry that a batch of expected entries has room for.
const EXPECTED_BYTES: usize = 1024;
/// Batches of a cursor that has to do with little memory have no more entries than if each had so many bytes.
const SHORT_ENTRY_BYTES: usize = 64;

/// Steps through a range in batches that grow from [`BatchLimits::FIRST`] to [`BatchLimits::LARGEST`].
#[derive(Clone, Debug)]
pub struct Cursor {
    tree: TreeId,
    range: KeyRange,
    direction: Direction,
    limits: BatchLimits,
    batch: Batch,
    /// What `limits` grow to.
    largest: BatchLimits,
    /// The next entry of `batch` to deliver.
    at: usize,
    end: ScanEnd,
}

impl Cursor {
    /// A cursor before the first entry of the range.
    pub fn new(tree: TreeId, range: KeyRange, direction: Direction) -> Cursor {
        let end = if range.is_empty() { ScanEnd::Done } else { ScanEnd::More };
        let (limits, largest) = (BatchLimits::FIRST, BatchLimits::LARGEST);
        Cursor { tree, range, direction, limits, batch: Batch::new(), largest, at: 0, end }
    }

    /// A cursor with batches of at most so many bytes, unless an entry is larger, for which its owner has the memory from the engine.
    #[must_use]
    pub fn within(mut self, bytes_max: usize) -> Cursor {
        self.batch = Batch::owned();
        let bytes_max = bytes_max.clamp(BatchLimits::FIRST.bytes_max, BatchLimits::LARGEST.bytes_max);
        // The places of entries take memory, too.
        let entries_max = (bytes_max / SHORT_ENTRY_BYTES).min(BatchLimits::LARGEST.entries_max);
        self.largest = BatchLimits { entries_max, bytes_max };
        self.limits = self.limits.within(self.largest);
        self
    }

    /// A cursor of which so many entries will be asked for, as a rule: the first batch has as many, if they are not too large.
    #[must_use]
    pub fn expecting(mut self, entries: usize) -> Cursor {
        self.limits.entries_max = entries.clamp(1, self.largest.entries_max);
        self.limits.bytes_max = (self.limits.entries_max * EXPECTED_BYTES)
            .clamp(BatchLimits::FIRST.bytes_max, self.largest.bytes_max);
        self
    }

    /// The next entry, or `None` at the end. After [`WouldBlock`](crate::ErrorKind::WouldBlock) the cursor stands where it
    /// stood, and the call may be repeated with `MayBlock`.
    pub fn next<'c>(
        &'c mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<Option<(&'c [u8], &'c [u8])>, StorageError> {
        if self.at >= self.batch.len() && !self.refill(transaction, blocking)? {
            return Ok(None);
        }
        self.at += 1;
        Ok(self.batch.get(self.at - 1))
    }

    /// Jumps forward (in the scan's direction) to the first entry at or beyond `key`. Never goes back.
    pub fn seek(&mut self, key: &[u8]) {
        while let Some((have, _)) = self.batch.get(self.at) {
            let before = match self.direction {
                Direction::Forward => have < key,
                Direction::Backward => have > key,
            };
            if !before {
                return;
            }
            self.at += 1;
        }
        let bound = match self.direction {
            Direction::Forward => &mut self.range.lower,
            Direction::Backward => &mut self.range.upper,
        };
        let stays = match (&*bound, self.direction) {
            (Bound::Unbounded, _) => false,
            (Bound::Included(have) | Bound::Excluded(have), Direction::Forward) => have.as_slice() >= key,
            (Bound::Included(have) | Bound::Excluded(have), Direction::Backward) => have.as_slice() <= key,
        };
        if !stays {
            *bound = Bound::Included(key.to_vec());
            self.limits = BatchLimits::FIRST;
        }
        if self.range.is_empty() {
            self.end = ScanEnd::Done;
        }
    }

    /// Fetches the next batch; false at the end of the range.
    fn refill(
        &mut self,
        transaction: &dyn Transaction,
        blocking: BlockingMode,
    ) -> Result<bool, StorageError> {
        if self.end == ScanEnd::Done {
            return Ok(false);
        }
        // Into a fresh view of the same memory: a failed scan must leave no half batch to be delivered.
        self.batch.clear();
        self.at = 0;
        let outcome =
            transaction.scan(self.tree, &self.range, self.direction, self.limits, blocking, &mut self.batch);
        match outcome {
            Ok(end) => self.end = end,
            Err(error) => {
                self.batch.clear();
                return Err(error);
            }
        }
        match self.batch.last() {
            Some((key, _)) => self.range.advance_past(key, self.direction),
            None => {
                self.end = ScanEnd::Done;
                return Ok(false);
            }
        }
        if self.range.is_empty() {
            self.end = ScanEnd::Done;
        }
        self.limits = self.limits.grown().within(self.largest);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_successor_of_a_prefix_skips_bytes_that_cannot_grow() {
        assert_eq!(successor_of_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(successor_of_prefix(b"a\xFF\xFF"), Some(b"b".to_vec()));
        assert_eq!(successor_of_prefix(b"\xFF"), None);
        assert_eq!(successor_of_prefix(b""), None);
    }

    #[test]
    fn a_range_whose_bounds_touch_without_meeting_is_empty() {
        let touching =
            KeyRange { lower: Bound::Excluded(b"a".to_vec()), upper: Bound::Included(b"a".to_vec()) };
        assert!(touching.is_empty());
        assert!(!KeyRange::point(b"a").is_empty());
        assert!(!KeyRange::all().is_empty());
        assert!(KeyRange::prefix(b"a").contains(b"ab") && !KeyRange::prefix(b"a").contains(b"b"));
    }

    #[test]
    fn a_half_open_range_has_the_same_keys() {
        let key = |number: usize| [&b""[..], b"a", b"a\0", b"a\0\0", b"b"][number].to_vec();
        let bounds =
            |number: usize| [Bound::Included(key(number)), Bound::Excluded(key(number)), Bound::Unbounded];
        for (lower, upper) in (0..5).flat_map(|lower| (0..5).map(move |upper| (lower, upper))) {
            for lower in bounds(lower) {
                for upper in bounds(upper) {
                    let range = KeyRange { lower: lower.clone(), upper };
                    let half_open = range.half_open();
                    let contains =
                        |key: &[u8]| half_open.as_ref().is_some_and(|half_open| half_open.contains(key));
                    assert!((0..5).all(|at| contains(&key(at)) == range.contains(&key(at))), "{range:?}");
                }
            }
        }
    }

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
