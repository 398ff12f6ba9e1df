//! The choice of rows in a page that are stored by columns.
//!
//! The keys of a page ascend. So the first bytes of its heads hardly change from one to the next, nor do
//! lengths and type tags. Side by side such bytes compress to nearly nothing. Pages of three indexes of
//! numbers took 120 MB by rows and 76 MB by columns (Zstandard level 1). Reading them by columns took half of
//! the time.

use super::page::{FLAG_EVEN, FLAG_WIDE_SLOTS, HEAD_BYTES, HEADER_BYTES};
use crate::base::{Columns, Rows};

/// Pages with fewer entries are not stored by columns: there is nothing to gain.
const ENTRIES_MIN: usize = 8;
/// Pages with fewer entries hold long entries: documents rather than index entries. Storing those by columns
/// takes more time than compression saves. Only heads and slots are stored by columns there.
const NARROW_ENTRIES_MIN: usize = 64;

/// The rows of a valid page: its heads, then its entries if they are even and short, else its slots.
pub(crate) fn columns_of(page: &[u8]) -> Option<Columns> {
    let u32_at = |at: usize| page.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let prefix_len = u16::from_le_bytes(page.get(2..4)?.try_into().ok()?);
    let (rows, entry_bytes) = (u32_at(4)? as usize, u32_at(20)? as usize);
    let second = match *page.get(1)? {
        FLAG_EVEN if rows >= NARROW_ENTRIES_MIN => Rows::Bytes(entry_bytes),
        FLAG_EVEN => Rows::Bytes(0),
        FLAG_WIDE_SLOTS => Rows::Offsets32,
        _ => Rows::Offsets16,
    };
    let start = HEADER_BYTES + usize::from(prefix_len);
    (rows >= ENTRIES_MIN).then_some(Columns { start, rows, first: HEAD_BYTES, second })
}

#[cfg(test)]
mod tests {
    use pando_storage::CommitTimestamp;

    use super::*;
    use crate::format::content::Content;
    use crate::format::page_builder::PageBuilder;

    fn page(entries: u32, value: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
        let mut builder = PageBuilder::new();
        for number in 0..entries {
            let key = [b"key", &number.wrapping_mul(7_919).to_be_bytes()[..], &[number as u8; 3]].concat();
            let key = [&number.to_be_bytes()[..], &key].concat();
            builder.push(&key, CommitTimestamp::new(u64::from(number)), Content::Value(&value(number)));
        }
        builder.finish()
    }

    #[test]
    fn heads_and_slots_are_rows_and_so_are_even_entries_where_they_are_many() {
        let uneven = page(10, |number| vec![7; number as usize]);
        assert_eq!(
            columns_of(&uneven),
            Some(Columns { start: 27, rows: 10, first: 4, second: Rows::Offsets16 })
        );
        let long = page(3_000, |number| vec![7; 20 + number as usize % 2]);
        assert_eq!(
            columns_of(&long),
            Some(Columns { start: 26, rows: 3_000, first: 4, second: Rows::Offsets32 })
        );
        assert_eq!(columns_of(&page(ENTRIES_MIN as u32 - 1, |_| Vec::new())), None);
        // All have a time: in the first the number 0 does not count as one.
        let even = |entries: u32| {
            let mut builder = PageBuilder::new();
            for number in 0..entries {
                let time = CommitTimestamp::new(1 + u64::from(number));
                builder.push(&u64::from(number).to_be_bytes(), time, Content::Value(b"v"));
            }
            columns_of(&builder.finish())
        };
        assert_eq!(even(20), Some(Columns { start: 31, rows: 20, first: 4, second: Rows::Bytes(0) }));
        assert_eq!(even(100), Some(Columns { start: 31, rows: 100, first: 4, second: Rows::Bytes(3) }));
    }

    #[test]
    fn bytes_that_are_no_page_have_no_columns_or_some_that_are_refused_elsewhere() {
        for length in 0..HEADER_BYTES {
            assert_eq!(columns_of(&vec![0; length]), None);
        }
    }
}
