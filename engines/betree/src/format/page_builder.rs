//! The builder of pages, from entries that arrive in key order.

use pando_storage::CommitTimestamp;

use super::content::Content;
use super::page::{
    EntryKind, FLAG_EVEN, FLAG_WIDE_SLOTS, HEAD_BYTES, HEADER_BYTES, LARGE_VALUE, MERGES, WITH_TIME, head_of,
};
use crate::base::{FORMAT_VERSION, varint_len, write_varint};

/// Collects entries until the caller considers the page large enough.
///
/// # Invariants
/// Entries arrive in key order and, within a key, newest first: asserted where they are pushed.
#[derive(Debug, Default)]
pub(crate) struct PageBuilder {
    /// Keys and values, one after the other.
    arena: Vec<u8>,
    entries: Vec<Pending>,
    /// Length of the common prefix of all keys.
    prefix_len: usize,
    /// Bytes of keys, values and entry headers before the prefix is taken off.
    content_bytes: usize,
    /// Whether all entries have the same length of key and value, and all or none a timestamp. Such pages
    /// usually need no slots.
    looks_even: bool,
    base_time: u64,
    newest: CommitTimestamp,
    /// Bytes of large values, which are outside the page.
    large_bytes: u64,
    /// The unit after their last.
    reach: u64,
}

#[derive(Debug)]
struct Pending {
    key_at: usize,
    value_at: usize,
    end: usize,
    kind: EntryKind,
    timestamp: u64,
}

impl PageBuilder {
    pub(crate) fn new() -> PageBuilder {
        PageBuilder::default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The newest time of an entry that carries one.
    pub(crate) fn newest(&self) -> CommitTimestamp {
        self.newest
    }

    /// Bytes of the large values that entries refer to.
    pub(crate) fn large_bytes(&self) -> u64 {
        self.large_bytes
    }

    /// The unit after the last unit of these large values; 0 without any.
    pub(crate) fn reach(&self) -> u64 {
        self.reach
    }

    /// The key of the entry pushed last.
    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        self.entries.last().map(|last| &self.arena[last.key_at..last.value_at])
    }

    /// The key of the entry pushed first.
    pub(crate) fn first_key(&self) -> Option<&[u8]> {
        self.entries.first().map(|first| &self.arena[first.key_at..first.value_at])
    }

    /// The size of the page with one more entry that has this many bytes of value in the page, within a few
    /// bytes.
    pub(crate) fn bytes_with(&self, key: &[u8], value_len: usize) -> usize {
        let shared = match self.first_key() {
            None => key.len(),
            Some(first) => shared_prefix(&first[..self.prefix_len], key),
        };
        let count = self.entries.len() + 1;
        let content = self.content_bytes + entry_bytes(key.len(), value_len);
        let is_even = match self.entries.last() {
            None => true,
            Some(last) => self.looks_even && last.end - last.key_at == key.len() + value_len,
        };
        let slots = if is_even { 0 } else { count * NARROW_SLOT_BYTES };
        HEADER_BYTES + shared + content + slots - count * shared
    }

    /// Adds a version of a key. [`CommitTimestamp::ZERO`] means that every snapshot sees it.
    pub(crate) fn push(&mut self, key: &[u8], timestamp: CommitTimestamp, content: Content<&[u8]>) {
        if let Some(last) = self.entries.last() {
            let last_key = &self.arena[last.key_at..last.value_at];
            assert!(
                last_key < key || (last_key == key && last.timestamp > timestamp.get()),
                "entries of a page ascend by key and descend by time"
            );
            self.looks_even &= last.end - last.key_at == key.len() + content.in_page().len()
                && (last.timestamp > 0) == (timestamp > CommitTimestamp::ZERO);
            self.prefix_len = shared_prefix(&last_key[..self.prefix_len], key);
        } else {
            self.prefix_len = key.len();
            self.looks_even = true;
        }
        let kind = match (&content, timestamp) {
            (Content::Value(_), CommitTimestamp::ZERO) => EntryKind::Put,
            (Content::Value(_), _) => EntryKind::PutAt,
            (Content::Large(reference), _) => {
                self.large_bytes += reference.length();
                self.reach = self.reach.max(reference.reach());
                EntryKind::Large
            }
            (Content::Merge(_), timestamp) => {
                assert!(timestamp > CommitTimestamp::ZERO, "what is seen by every snapshot has been applied");
                EntryKind::Merge
            }
            (Content::Deleted, timestamp) => {
                assert!(
                    timestamp > CommitTimestamp::ZERO,
                    "a delete that every snapshot sees needs no entry"
                );
                EntryKind::DeleteAt
            }
        };
        if timestamp > CommitTimestamp::ZERO {
            let time = timestamp.get();
            self.base_time = if self.base_time == 0 { time } else { self.base_time.min(time) };
            self.newest = self.newest.max(timestamp);
        }
        let value = content.in_page();
        let key_at = self.arena.len();
        self.arena.extend_from_slice(key);
        let value_at = self.arena.len();
        self.arena.extend_from_slice(value);
        self.entries.push(Pending {
            key_at,
            value_at,
            end: self.arena.len(),
            kind,
            timestamp: timestamp.get(),
        });
        self.content_bytes += entry_bytes(key.len(), value.len());
    }

    /// Builds the page of all entries; the builder is empty again.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let slots = match self.even_entry() {
            Some(entry) => [Slots::None(entry), Slots::Wide],
            None => [Slots::Narrow, Slots::Wide],
        };
        let mut pages = slots.into_iter().filter_map(|slots| self.encode(slots));
        let page = pages.next().expect("a page is far smaller than 4 GiB");
        self.arena.clear();
        self.entries.clear();
        (self.prefix_len, self.content_bytes, self.base_time) = (0, 0, 0);
        (self.newest, self.large_bytes, self.reach) = (CommitTimestamp::ZERO, 0, 0);
        page
    }

    /// The common shape of all entries, if all can have the same length.
    fn even_entry(&self) -> Option<EvenEntry> {
        if !self.looks_even {
            return None;
        }
        let longest = self.entries.iter().map(|entry| entry.timestamp).max().unwrap_or(0);
        let time_bytes = if longest > 0 { varint_len(longest - self.base_time) } else { 0 };
        let mut lengths = self.entries.iter().map(|entry| {
            let suffix_len = entry.value_at - entry.key_at - self.prefix_len;
            let kind_bytes = usize::from(matches!(entry.kind, EntryKind::Large | EntryKind::Merge));
            let rest = suffix_len.saturating_sub(HEAD_BYTES) + entry.end - entry.value_at;
            varint_len((suffix_len as u64) << 2) + kind_bytes + time_bytes + rest
        });
        let length = lengths.next()?;
        lengths.all(|other| other == length).then_some(EvenEntry { length, time_bytes })
    }

    /// `None` if an offset does not fit its slot.
    fn encode(&self, slots: Slots) -> Option<Vec<u8>> {
        let slot_bytes = slots.bytes();
        let (flags, entry_bytes, time_bytes) = match slots {
            Slots::None(entry) => (FLAG_EVEN, entry.length, entry.time_bytes),
            Slots::Narrow => (0, 0, 0),
            Slots::Wide => (FLAG_WIDE_SLOTS, 0, 0),
        };
        let prefix = match self.entries.first() {
            Some(first) => &self.arena[first.key_at..first.key_at + self.prefix_len],
            None => &[],
        };
        let suffixes = self.content_bytes - prefix.len() * self.entries.len();
        let mut page = Vec::with_capacity(HEADER_BYTES + prefix.len() + suffixes + 8 * self.entries.len());
        page.push(FORMAT_VERSION);
        page.push(flags);
        page.extend_from_slice(&u16::try_from(prefix.len()).ok()?.to_le_bytes());
        page.extend_from_slice(&u32::try_from(self.entries.len()).ok()?.to_le_bytes());
        page.extend_from_slice(&self.base_time.to_le_bytes());
        page.extend_from_slice(&[0; 4]);
        page.extend_from_slice(&u32::try_from(entry_bytes).ok()?.to_le_bytes());
        page.extend_from_slice(prefix);
        for entry in &self.entries {
            let suffix = &self.arena[entry.key_at + prefix.len()..entry.value_at];
            page.extend_from_slice(&head_of(suffix).to_be_bytes());
        }
        let slots_at = page.len();
        page.resize(slots_at + self.entries.len() * slot_bytes, 0);
        for (at, entry) in self.entries.iter().enumerate() {
            let slot = slots_at + at * slot_bytes;
            slots.write(&mut page, slot)?;
            self.encode_entry(entry, prefix.len(), time_bytes, &mut page);
        }
        let length = u32::try_from(page.len()).ok()?;
        page[16..20].copy_from_slice(&length.to_le_bytes());
        Some(page)
    }

    fn encode_entry(&self, entry: &Pending, prefix_len: usize, time_bytes: usize, page: &mut Vec<u8>) {
        let suffix = &self.arena[entry.key_at + prefix_len..entry.value_at];
        write_varint(page, (suffix.len() as u64) << 2 | entry.kind.number());
        let with_time = if entry.timestamp > 0 { WITH_TIME } else { 0 };
        match entry.kind {
            EntryKind::Put | EntryKind::PutAt | EntryKind::DeleteAt => {}
            EntryKind::Large => page.push(LARGE_VALUE | with_time),
            EntryKind::Merge => page.push(MERGES | with_time),
        }
        if entry.timestamp > 0 {
            write_varint_of(page, entry.timestamp - self.base_time, time_bytes);
        }
        page.extend_from_slice(suffix.get(HEAD_BYTES..).unwrap_or_default());
        page.extend_from_slice(&self.arena[entry.value_at..entry.end]);
    }
}

/// The common shape of the entries of an even page.
#[derive(Clone, Copy)]
struct EvenEntry {
    /// Bytes of each.
    length: usize,
    /// Bytes that the time of each takes.
    time_bytes: usize,
}

/// The way in which a page locates its entries.
#[derive(Clone, Copy)]
enum Slots {
    /// No slots: all entries have the same length.
    None(EvenEntry),
    Narrow,
    Wide,
}

const NARROW_SLOT_BYTES: usize = 2;

impl Slots {
    const fn bytes(self) -> usize {
        match self {
            Slots::None(_) => 0,
            Slots::Narrow => NARROW_SLOT_BYTES,
            Slots::Wide => 4,
        }
    }

    /// Writes the page's present end into a slot; `None` if it does not fit.
    fn write(self, page: &mut [u8], slot: usize) -> Option<()> {
        let offset = page.len();
        match self {
            Slots::None(_) => {}
            Slots::Narrow => page[slot..slot + 2].copy_from_slice(&u16::try_from(offset).ok()?.to_le_bytes()),
            Slots::Wide => page[slot..slot + 4].copy_from_slice(&u32::try_from(offset).ok()?.to_le_bytes()),
        }
        Some(())
    }
}

/// Bytes of an entry with a short time and without a slot, whole key included.
fn entry_bytes(key_len: usize, value_len: usize) -> usize {
    HEAD_BYTES + varint_len((key_len as u64) << 2) + key_len.saturating_sub(HEAD_BYTES) + value_len
}

/// Appends a varint, padded to at least this many bytes.
fn write_varint_of(out: &mut Vec<u8>, value: u64, length: usize) {
    let missing = length.saturating_sub(varint_len(value));
    write_varint(out, value);
    if missing > 0 {
        *out.last_mut().expect("a varint has a byte at least") |= 0x80;
        out.resize(out.len() + missing - 1, 0x80);
        out.push(0);
    }
}

/// Length of the common prefix of two keys.
pub(crate) fn shared_prefix(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}
