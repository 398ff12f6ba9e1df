//! The stored form of range deletes: the list in the catalog of those that are not applied yet, and the
//! ranges of a commit record.
//!
//! # Layout
//! ```text
//! span:
//!   varint  length of its first key, then its bytes
//!   varint  0: it reaches to the end of the tree
//!           else 1 + length of the key before which it ends, then its bytes
//! list of a tree:
//!   varint  LSN of the last record that brought one
//!   varint  fragments, ascending
//!   per fragment: its span; varint times, at least 1; varint the newest
//!           per further time varint: how much older than the one before
//! ranges of a commit:
//!   varint  ranges; per range: varint tree, its span
//! ```
//! The bound of a span may be one byte longer than the longest key of an entry: it may be the first key after
//! that.

use bytes::Bytes;
use pando_storage::{CommitTimestamp, Lsn, TreeId};

use crate::base::{BOUND_BYTES_MAX, KeySpan};
use crate::base::{Fields, FormatError, write_bytes, write_varint};
use crate::range_deletes::{DeletedRanges, RangeFragment};

fn write_span(out: &mut Vec<u8>, span: &KeySpan) {
    write_bytes(out, &span.start);
    match &span.end {
        None => out.push(0),
        Some(end) => {
            write_varint(out, end.len() as u64 + 1);
            out.extend_from_slice(end);
        }
    }
}

fn read_span(fields: &mut Fields<'_>, block: &'static str, at: usize) -> Result<KeySpan, FormatError> {
    let start = Bytes::copy_from_slice(fields.sized_bytes("start of a range", BOUND_BYTES_MAX)?);
    let end = match fields.count("end of a range", BOUND_BYTES_MAX + 1)? {
        0 => None,
        above => Some(Bytes::copy_from_slice(fields.bytes(above - 1, "end of a range")?)),
    };
    if end.as_ref().is_some_and(|end| *end <= start) {
        return Err(FormatError::Disorder { block, field: "range", at });
    }
    Ok(KeySpan { start, end })
}

/// Writes the list of a tree.
pub(crate) fn write_list(out: &mut Vec<u8>, ranges: &DeletedRanges) {
    write_varint(out, ranges.seen().get());
    write_varint(out, ranges.fragments().len() as u64);
    for fragment in ranges.fragments() {
        write_span(out, &fragment.span);
        write_varint(out, fragment.times.len() as u64);
        let mut before = None;
        for time in fragment.times.iter().map(|time| time.get()) {
            write_varint(out, before.map_or(time, |before: u64| before - time));
            before = Some(time);
        }
    }
}

/// Reads the list of a tree.
pub(crate) fn read_list(fields: &mut Fields<'_>, block: &'static str) -> Result<DeletedRanges, FormatError> {
    let seen = Lsn::new(fields.varint("last range delete")?);
    let mut fragments = Vec::<RangeFragment>::new();
    for at in 0..fields.count("range count", fields.remaining())? {
        let span = read_span(fields, block, at)?;
        let times = read_times(fields, block, at)?;
        if let Some(last) = fragments.last() {
            let is_behind = last.span.end.as_ref().is_some_and(|end| *end <= span.start);
            let is_same = last.span.end.as_ref() == Some(&span.start) && *last.times == *times;
            if !is_behind || is_same {
                return Err(FormatError::Disorder { block, field: "range", at });
            }
        }
        fragments.push(RangeFragment { span, times: times.into() });
    }
    Ok(DeletedRanges::from_stored(fragments, seen))
}

fn read_times(
    fields: &mut Fields<'_>,
    block: &'static str,
    at: usize,
) -> Result<Vec<CommitTimestamp>, FormatError> {
    let disorder = FormatError::Disorder { block, field: "time of a range", at };
    let count = fields.count("times of a range", fields.remaining())?;
    let mut times = Vec::<CommitTimestamp>::new();
    for _ in 0..count {
        let found = fields.varint("time of a range")?;
        let time = match times.last() {
            None => found,
            Some(_) if found == 0 => return Err(disorder),
            Some(last) => last.get().checked_sub(found).ok_or_else(|| disorder.clone())?,
        };
        if time == 0 {
            return Err(disorder);
        }
        times.push(CommitTimestamp::new(time));
    }
    if times.is_empty() { Err(disorder) } else { Ok(times) }
}

/// A range of a tree that a commit deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeletedRange {
    pub(crate) tree: TreeId,
    pub(crate) span: KeySpan,
}

/// Writes the ranges of a commit.
pub(crate) fn write_ranges(out: &mut Vec<u8>, ranges: &[DeletedRange]) {
    write_varint(out, ranges.len() as u64);
    for range in ranges {
        write_varint(out, u64::from(range.tree.get()));
        write_span(out, &range.span);
    }
}

/// Reads the ranges of a commit.
pub(crate) fn read_ranges(
    fields: &mut Fields<'_>,
    block: &'static str,
) -> Result<Vec<DeletedRange>, FormatError> {
    let count = fields.count("range count", fields.remaining())?;
    let range = |at| {
        let tree = TreeId::new(fields.count("tree number", u32::MAX as usize)? as u32);
        Ok(DeletedRange { tree, span: read_span(fields, block, at)? })
    };
    (0..count).map(range).collect()
}

#[cfg(test)]
mod tests {
    use pando_environment::{Random, SeededRandom};

    use crate::range_deletes::encoding::*;

    const BLOCK: &str = "test";

    fn span(start: &'static str, end: Option<&'static str>) -> KeySpan {
        KeySpan { start: Bytes::from(start), end: end.map(Bytes::from) }
    }

    fn example() -> DeletedRanges {
        let add = |list: DeletedRanges, span: KeySpan, time| {
            list.with_all([span].iter(), CommitTimestamp::new(time), Lsn::new(time))
        };
        let list = add(DeletedRanges::default(), span("c", Some("g")), 3);
        let list = add(list, span("", Some("a")), 5);
        add(list, span("e", None), 300)
    }

    fn encoded() -> Vec<u8> {
        let mut out = Vec::new();
        write_list(&mut out, &example());
        out
    }

    /// The bytes of docs/data-file.md: a change here is a change of the format.
    #[test]
    fn golden_a_list_of_ranges() {
        let expected = [
            &[0xAC, 0x02, 4][..],                           // the last one's record, fragments
            &[0, 2, b'a', 1, 5],                            // from the first key up to "a", one time
            &[1, b'c', 2, b'e', 1, 3],                      // from "c" up to "e"
            &[1, b'e', 2, b'g', 2, 0xAC, 0x02, 0xA9, 0x02], // from "e" up to "g", two times
            &[1, b'g', 0, 1, 0xAC, 0x02],                   // from "g" to the end
        ]
        .concat();
        assert_eq!(encoded(), expected);
        let mut fields = Fields::new(BLOCK, &expected);
        assert_eq!(read_list(&mut fields, BLOCK), Ok(example()));
        assert_eq!(fields.finish(), Ok(()));
    }

    #[test]
    fn the_ranges_of_a_commit_come_back() {
        static LONGEST: [u8; BOUND_BYTES_MAX] = [b'k'; BOUND_BYTES_MAX];
        let longest = std::str::from_utf8(&LONGEST).expect("it is ASCII");
        let ranges = [(7, span("", None)), (300, span("a", Some(longest)))];
        let ranges = ranges.map(|(tree, span)| DeletedRange { tree: TreeId::new(tree), span });
        let mut out = Vec::new();
        write_ranges(&mut out, &ranges);
        let mut fields = Fields::new(BLOCK, &out);
        assert_eq!(read_ranges(&mut fields, BLOCK), Ok(ranges.to_vec()));
    }

    #[test]
    fn range_deletes_out_of_order_are_refused() {
        let read = |bytes: &[u8]| read_list(&mut Fields::new(BLOCK, bytes), BLOCK);
        let one = [9, 1, 1, b'a', 2, b'b', 1, 5];
        assert!(read(&one).is_ok());
        for (at, value) in [(3, b'b'), (3, b'c'), (6, 0), (6, 2), (7, 0)] {
            let mut changed = one.to_vec();
            changed[at] = value;
            assert!(read(&changed).is_err(), "byte {at} is {value}");
        }
        assert!(read(&[9, 2, 1, b'a', 2, b'b', 1, 5, 1, b'b', 2, b'c', 1, 5]).is_err(), "these are one");
        assert!(read(&[9, 2, 1, b'a', 2, b'b', 1, 5, 1, b'b', 2, b'c', 1, 6]).is_ok());
        assert!(read(&[9, 2, 1, b'b', 2, b'c', 1, 5, 1, b'a', 2, b'b', 1, 6]).is_err());
        assert!(
            read(&[9, 2, 1, b'a', 0, 1, 5, 1, b'b', 2, b'c', 1, 6]).is_err(),
            "the first reaches to the end"
        );
        assert!(read(&[9, 1, 1, b'a', 2, b'b', 2, 5, 0]).is_err(), "a time twice");
        assert!(read(&[9, 1, 1, b'a', 2, b'b', 2, 5, 6]).is_err(), "a time below zero");
    }

    #[test]
    fn changed_bytes_never_panic() {
        let random = SeededRandom::new(5);
        let bytes = encoded();
        for _ in 0..5_000 {
            let mut changed = bytes.clone();
            let at = random.next_u64() as usize % changed.len();
            changed[at] = random.next_u64() as u8;
            changed.truncate(1 + random.next_u64() as usize % changed.len());
            let _list = read_list(&mut Fields::new(BLOCK, &changed), BLOCK);
            let _ranges = read_ranges(&mut Fields::new(BLOCK, &changed), BLOCK);
        }
    }
}
