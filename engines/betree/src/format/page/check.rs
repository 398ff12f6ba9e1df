//! The checks that a page passes once, when it is decoded, so that reading it needs none.
//!
//! A page of the compressed tier is decoded at each use, and a page of an index has five hundred entries. So
//! the common kind of entry is recognized in a few instructions, without decoding its fields one by one.

use pando_storage::Merges;

use super::{BLOCK, EntryKind, HEAD_BYTES, LARGE_VALUE, MERGES, Page, WITH_TIME};
use crate::base::{Fields, FormatError};
use crate::format::content::LargeReference;

/// The most bytes of a timestamp in an entry that [`is_whole_put`] recognizes.
const QUICK_TIME_BYTES: usize = 8;

impl Page {
    /// Checks the entries: every slot points behind the one before it, every entry fits between its slot and
    /// the next, and entries of one length fill the page. Returns whether there are merges.
    pub(super) fn check_entries(&self) -> Result<bool, FormatError> {
        if self.entry_bytes > 0 {
            return self.check_even();
        }
        let slots = &self.bytes[self.slots_at as usize..];
        if self.wide {
            let slots = &slots.as_chunks::<4>().0[..self.len()];
            self.check_between(slots.iter().map(|slot| u32::from_le_bytes(*slot) as usize), 4)
        } else {
            let slots = &slots.as_chunks::<2>().0[..self.len()];
            self.check_between(slots.iter().map(|slot| usize::from(u16::from_le_bytes(*slot))), 2)
        }
    }

    fn check_even(&self) -> Result<bool, FormatError> {
        let entries = &self.bytes[self.slots_at as usize..];
        let length = self.entry_bytes as usize;
        if length.checked_mul(self.len()) != Some(entries.len()) {
            return Err(FormatError::Truncated { block: BLOCK, field: "entries" });
        }
        let times = self.times();
        let mut has_merges = false;
        for entry in entries.chunks_exact(length) {
            if !is_whole_put(entry, times) {
                has_merges |= self.check_entry(entry)? == EntryKind::Merge;
            }
        }
        Ok(has_merges)
    }

    fn times(&self) -> Times {
        if self.base_time != 0 && self.base_time.leading_zeros() > 0 {
            Times::NoneOverflows
        } else {
            Times::ToBeChecked
        }
    }

    fn check_between(
        &self,
        mut slots: impl Iterator<Item = usize>,
        slot_bytes: usize,
    ) -> Result<bool, FormatError> {
        let disorder = |at| FormatError::Disorder { block: BLOCK, field: "slot", at };
        let (bytes, behind_slots) = (&*self.bytes, self.slots_at as usize + self.len() * slot_bytes);
        let Some(mut start) = slots.next() else {
            return match bytes.len() - behind_slots {
                0 => Ok(false),
                bytes => Err(FormatError::Trailing { block: BLOCK, bytes }),
            };
        };
        if start != behind_slots {
            return Err(disorder(0));
        }
        let times = self.times();
        let mut has_merges = false;
        for (at, end) in slots.chain([bytes.len()]).enumerate() {
            let entry = bytes.get(start..end).ok_or_else(|| disorder(at))?;
            if !is_whole_put(entry, times) {
                has_merges |= self.check_entry(entry)? == EntryKind::Merge;
            }
            start = end;
        }
        Ok(has_merges)
    }

    fn check_entry(&self, bytes: &[u8]) -> Result<EntryKind, FormatError> {
        let mut fields = Fields::new(BLOCK, bytes);
        let first = fields.varint("entry")?;
        let (kind, has_time) = match first & 3 {
            0 => (EntryKind::Put, false),
            1 => (EntryKind::PutAt, true),
            2 => (EntryKind::DeleteAt, true),
            _ => match fields.u8("entry kind")? {
                what if what & !WITH_TIME == LARGE_VALUE => (EntryKind::Large, what & WITH_TIME != 0),
                what if what == MERGES | WITH_TIME => (EntryKind::Merge, true),
                found => {
                    return Err(FormatError::Unknown {
                        block: BLOCK,
                        field: "entry kind",
                        found: found.into(),
                    });
                }
            },
        };
        if has_time {
            let delta = fields.varint("timestamp")?;
            if self.base_time == 0 || self.base_time.checked_add(delta).is_none() {
                let limit = u64::MAX - self.base_time;
                return Err(FormatError::OutOfRange {
                    block: BLOCK,
                    field: "timestamp",
                    found: delta,
                    limit,
                });
            }
        }
        let suffix_len = usize::try_from(first >> 2).unwrap_or(usize::MAX);
        fields.bytes(suffix_len.saturating_sub(HEAD_BYTES), "key")?;
        match kind {
            EntryKind::Put | EntryKind::PutAt => {}
            EntryKind::DeleteAt => fields.finish()?,
            EntryKind::Large => {
                LargeReference::decode(fields.bytes(fields.remaining(), "reference")?)?;
            }
            EntryKind::Merge => {
                let merges = Merges::decode(fields.bytes(fields.remaining(), "merges")?);
                merges.ok_or(FormatError::Truncated { block: BLOCK, field: "merges" })?;
            }
        }
        Ok(kind)
    }
}

/// An upper bound on the timestamps of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    /// No timestamp of up to [`QUICK_TIME_BYTES`] overflows 64 bits when it is added to the base time.
    NoneOverflows,
    ToBeChecked,
}

/// Whether an entry is of the common kind, a value with or without a timestamp, and intact. Any other entry
/// is checked field by field.
#[inline]
fn is_whole_put(entry: &[u8], times: Times) -> bool {
    let (number, rest) = match entry {
        [first, rest @ ..] if *first < 0x80 => (usize::from(*first), rest),
        [first, second, rest @ ..] if *second < 0x80 => {
            (usize::from(first & 0x7F) | usize::from(*second) << 7, rest)
        }
        _ => return false,
    };
    let behind_time = match number & 3 {
        0 => rest.len(),
        1 if times == Times::NoneOverflows => {
            match rest.iter().take(QUICK_TIME_BYTES).position(|byte| *byte < 0x80) {
                Some(last) => rest.len() - last - 1,
                None => return false,
            }
        }
        _ => return false,
    };
    number >> 2 <= behind_time + HEAD_BYTES
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use pando_environment::{Random, SeededRandom};

    use super::*;
    use crate::base::write_varint;

    #[test]
    fn entries_that_are_told_apart_quickly_pass_the_whole_check() {
        let random = SeededRandom::new(5);
        let mut told = 0;
        for round in 0..200_000_u64 {
            let mut entry = Vec::new();
            write_varint(&mut entry, (random.next_u64() % 200) >> (round % 8));
            write_varint(&mut entry, random.next_u64() >> (random.next_u64() % 64));
            entry.resize(entry.len() + (random.next_u64() % 40) as usize, 0);
            for _ in 0..random.next_u64() % 3 {
                let at = random.next_u64() as usize % entry.len();
                entry[at] = random.next_u64() as u8;
            }
            entry.truncate(random.next_u64() as usize % (entry.len() + 1));
            let page = Page {
                bytes: Bytes::new(),
                base_time: u64::MAX >> (1 + random.next_u64() % 63),
                entries: 0,
                heads_at: 0,
                slots_at: 0,
                entry_bytes: 0,
                wide: false,
                has_merges: false,
            };
            if is_whole_put(&entry, Times::NoneOverflows) {
                told += 1;
                let kind = page.check_entry(&entry);
                assert!(matches!(kind, Ok(EntryKind::Put | EntryKind::PutAt)), "{kind:?} of {entry:?}");
            } else if is_whole_put(&entry, Times::ToBeChecked) {
                panic!("without times less can be told of {entry:?}");
            }
        }
        assert!(told > 40_000, "{told}");
    }
}
