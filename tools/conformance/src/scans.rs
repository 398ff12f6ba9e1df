//! Scans: order, bounds, directions, batches, and a transaction's own writes in them.

use std::ops::Bound;

use pando_storage::{
    Batch, BatchLimits, BlockingMode, Cursor, Direction, KeyRange, ScanEnd, Transaction, TreeId,
};

use crate::subject::{Entry, Opened, Subject, commit, entries, entries_in, entry};

/// Keys with neighbours of every kind: prefixes of each other, a trailing zero, the least and the greatest
/// bytes.
const KEYS: [&[u8]; 12] =
    [b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0b", b"aa", b"ab", b"b", b"b\xFF", b"b\xFF\xFF", b"\xFF\xFF"];

/// Places to begin and end a range: on keys, between them, before the first and after the last.
const BOUNDS: [&[u8]; 11] =
    [b"", b"\0", b"\0a", b"a", b"a\0", b"aaa", b"b", b"b\xFF\xFF", b"c", b"\xFF", b"\xFF\xFF\xFF"];

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

fn tree_of_neighbours(engine: &Opened) -> TreeId {
    let tree = engine.tree("t");
    let mut writer = engine.writer();
    for key in KEYS {
        writer.put(tree, key, key).expect("the put succeeds");
    }
    commit(writer);
    tree
}

fn all_ranges() -> Vec<KeyRange> {
    let bounds = |at: &[u8]| [Bound::Included(at.to_vec()), Bound::Excluded(at.to_vec())];
    let mut ends: Vec<Bound<Vec<u8>>> = BOUNDS.iter().flat_map(|at| bounds(at)).collect();
    ends.push(Bound::Unbounded);
    let pairs = ends.iter().flat_map(|lower| ends.iter().map(move |upper| (lower.clone(), upper.clone())));
    pairs.map(|(lower, upper)| KeyRange { lower, upper }).collect()
}

/// The part of the sorted entries that a range must give.
fn expected(all: &[Entry], range: &KeyRange, direction: Direction) -> Vec<Entry> {
    let mut within: Vec<Entry> = all.iter().filter(|(key, _)| range.contains(key)).cloned().collect();
    if direction == Direction::Backward {
        within.reverse();
    }
    within
}

fn check_all_ranges(transaction: &dyn Transaction, tree: TreeId, all: &[Entry]) {
    for range in all_ranges() {
        for direction in DIRECTIONS {
            let found = entries_in(transaction, tree, &range, direction);
            assert_eq!(found, expected(all, &range, direction), "{range:?} {direction:?}");
        }
    }
}

/// Every pair of bounds, included, excluded and open, crossed and touching ones too, in both directions.
pub fn every_kind_of_bound_is_kept_in_both_directions(subject: &Subject) {
    let engine = subject.open();
    let tree = tree_of_neighbours(&engine);
    let all: Vec<Entry> = KEYS.iter().map(|key| (key.to_vec(), key.to_vec())).collect();
    check_all_ranges(&*engine.reader(), tree, &all);
}

/// The same over own writes that add, replace and remove.
pub fn own_writes_are_overlaid_within_every_kind_of_bound(subject: &Subject) {
    let engine = subject.open();
    let tree = tree_of_neighbours(&engine);
    let mut all: Vec<Entry> = KEYS.iter().map(|key| (key.to_vec(), key.to_vec())).collect();
    let mut writer = engine.writer();
    for key in [&b""[..], b"a\0b", b"ab", b"\xFF\xFF"] {
        writer.delete(tree, key).expect("the delete succeeds");
        all.retain(|(have, _)| have != key);
    }
    for key in [&b"\0"[..], b"aab", b"b\xFF\xFF", b"c"] {
        writer.put(tree, key, b"own").expect("the put succeeds");
        all.retain(|(have, _)| have != key);
        all.push((key.to_vec(), b"own".to_vec()));
    }
    all.sort();
    check_all_ranges(&*writer, tree, &all);
}

/// A transaction that deleted everything finds nothing, and says so without a detour.
pub fn deletions_hide_whole_batches(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut loader = engine.writer();
    for number in 0..5_000_u32 {
        loader.put(tree, &number.to_be_bytes(), b"v").expect("the put succeeds");
    }
    commit(loader);
    let mut writer = engine.writer();
    for number in 0..4_999_u32 {
        writer.delete(tree, &number.to_be_bytes()).expect("the delete succeeds");
    }
    let left = vec![(4_999_u32.to_be_bytes().to_vec(), b"v".to_vec())];
    assert_eq!(entries(&*writer, tree), left);
    assert_eq!(entries_in(&*writer, tree, &KeyRange::all(), Direction::Backward), left);
    writer.delete(tree, &4_999_u32.to_be_bytes()).expect("the delete succeeds");
    let mut batch = Batch::new();
    let limits = BatchLimits { entries_max: 1, bytes_max: 1 };
    let end =
        writer.scan(tree, &KeyRange::all(), Direction::Forward, limits, BlockingMode::MayBlock, &mut batch);
    assert_eq!(end.expect("the scan succeeds"), ScanEnd::Done);
    assert!(batch.is_empty());
}

/// Batches of every size add up to the whole, and none exceeds its limits by more than one entry.
pub fn batches_of_any_size_add_up_to_the_whole(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut writer = engine.writer();
    let all: Vec<Entry> =
        (0..500_u32).map(|n| (n.to_be_bytes().to_vec(), vec![n as u8; n as usize % 90])).collect();
    for (key, value) in &all {
        writer.put(tree, key, value).expect("the put succeeds");
    }
    commit(writer);
    let reader = engine.reader();
    for (entries_max, bytes_max) in
        [(1, 1 << 20), (7, 1 << 20), (500, 1 << 20), (501, 1 << 20), (1_000, 1), (1_000, 333)]
    {
        for direction in DIRECTIONS {
            let limits = BatchLimits { entries_max, bytes_max };
            let found = in_batches(&*reader, tree, limits, direction);
            assert_eq!(found, expected(&all, &KeyRange::all(), direction), "{limits:?} {direction:?}");
        }
    }
}

fn in_batches(
    transaction: &dyn Transaction,
    tree: TreeId,
    limits: BatchLimits,
    direction: Direction,
) -> Vec<Entry> {
    let (mut range, mut batch, mut found) = (KeyRange::all(), Batch::new(), Vec::new());
    batch.push(b"left from before", b"");
    loop {
        let end = transaction.scan(tree, &range, direction, limits, BlockingMode::MayBlock, &mut batch);
        found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        if end.expect("the scan succeeds") == ScanEnd::Done {
            return found;
        }
        range.advance_past(batch.last().expect("an empty batch means the end").0, direction);
    }
}

/// An entry greater than the limit of a batch comes alone rather than never.
pub fn an_entry_beyond_the_limit_of_a_batch_is_delivered(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    for key in ["a", "b", "c"] {
        engine.put(tree, key, vec![7; 100_000]);
    }
    let limits = BatchLimits { entries_max: 10, bytes_max: 16 };
    let found = in_batches(&*engine.reader(), tree, limits, Direction::Forward);
    assert_eq!(found.iter().map(|(key, _)| key.as_slice()).collect::<Vec<_>>(), vec![b"a", b"b", b"c"]);
}

/// An empty tree, an empty range, a range beyond every key.
pub fn a_range_without_entries_is_done_at_once(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    assert_eq!(engine.entries(tree), vec![]);
    engine.put(tree, "b", "1");
    let reader = engine.reader();
    let empty = KeyRange { lower: Bound::Excluded(b"b".to_vec()), upper: Bound::Excluded(b"b".to_vec()) };
    let crossed = KeyRange { lower: Bound::Included(b"c".to_vec()), upper: Bound::Included(b"a".to_vec()) };
    for range in [empty, crossed, KeyRange::prefix(b"c"), KeyRange::point(b"a")] {
        for direction in DIRECTIONS {
            assert_eq!(entries_in(&*reader, tree, &range, direction), vec![], "{range:?}");
        }
    }
}

/// A cursor goes on after commits of others, and delivers its snapshot only.
pub fn a_cursor_is_not_disturbed_by_later_commits(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    for number in 0..200_u32 {
        engine.put(tree, number.to_be_bytes(), "before");
    }
    let reader = engine.reader();
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    for number in 0..200_u32 {
        let (key, value) =
            cursor.next(&*reader, BlockingMode::MayBlock).expect("the scan succeeds").expect("200 are there");
        assert_eq!((key, value), (&number.to_be_bytes()[..], &b"before"[..]));
        engine.put(tree, (number + 1).to_be_bytes(), "after");
        engine.delete(tree, number.to_be_bytes());
    }
    assert_eq!(cursor.next(&*reader, BlockingMode::MayBlock).expect("the scan succeeds"), None);
}

/// A cursor of a writer sees what the writer adds ahead of it, at the latest with its next batch.
pub fn a_writer_may_write_while_it_scans(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    for number in 0..300_u32 {
        engine.put(tree, number.to_be_bytes(), "1");
    }
    let mut writer = engine.writer();
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut seen = 0_u32;
    while let Some((key, _)) = cursor.next(&*writer, BlockingMode::MayBlock).expect("the scan succeeds") {
        assert_eq!(key, seen.to_be_bytes());
        seen += 1;
        writer.put(tree, key, b"2").expect("the put succeeds");
    }
    assert_eq!(seen, 300);
    commit(writer);
    assert!(engine.entries(tree).iter().all(|(_, value)| value == b"2"));
}

/// Seeking leaves out what lies between, and never goes back.
pub fn a_cursor_can_jump_ahead(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    for number in 0..1_000_u32 {
        engine.put(tree, format!("{number:04}"), "v");
    }
    let reader = engine.reader();
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut next = |seek: &str| {
        cursor.seek(seek.as_bytes());
        let entry = cursor.next(&*reader, BlockingMode::MayBlock).expect("the scan succeeds");
        entry.map(|(key, _)| String::from_utf8_lossy(key).into_owned())
    };
    assert_eq!(next("0003").as_deref(), Some("0003"));
    assert_eq!(next("0000").as_deref(), Some("0004"), "a seek never goes back");
    assert_eq!(next("0500x").as_deref(), Some("0501"));
    assert_eq!(next("0999").as_deref(), Some("0999"));
    assert_eq!(next("2").as_deref(), None);
    let mut backward = Cursor::new(tree, KeyRange::all(), Direction::Backward);
    backward.seek(b"0100x");
    let entry = backward.next(&*reader, BlockingMode::MayBlock).expect("the scan succeeds");
    assert_eq!(entry.map(|(key, _)| key), Some(&b"0100"[..]));
}

/// A savepoint gives back what was there, in gets and in scans.
pub fn a_savepoint_undoes_the_writes_after_it(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    engine.put(tree, "a", "1");
    engine.put(tree, "b", "1");
    let mut writer = engine.writer();
    let start = writer.savepoint();
    writer.put(tree, b"a", b"2").expect("the put succeeds");
    let middle = writer.savepoint();
    writer.put(tree, b"a", b"3").expect("the put succeeds");
    writer.delete(tree, b"b").expect("the delete succeeds");
    writer.put(tree, b"c", b"3").expect("the put succeeds");
    assert_eq!(entries(&*writer, tree), vec![entry("a", "3"), entry("c", "3")]);
    writer.rollback_to(middle);
    assert_eq!(entries(&*writer, tree), vec![entry("a", "2"), entry("b", "1")]);
    writer.put(tree, b"d", b"4").expect("the put succeeds");
    commit(writer);
    assert_eq!(engine.entries(tree), vec![entry("a", "2"), entry("b", "1"), entry("d", "4")]);
    let mut other = engine.writer();
    other.put(tree, b"a", b"9").expect("the put succeeds");
    other.rollback_to(start);
    commit(other);
    assert_eq!(engine.value(tree, "a"), Some(b"2".to_vec()));
}

/// Intents taken after the savepoint stay: the key cannot be updated by another until the end.
pub fn intents_outlive_a_rollback_to_a_savepoint(subject: &Subject) {
    let engine = subject.open();
    if engine.capabilities().conflicts == pando_storage::ConflictTime::AtCommit {
        return;
    }
    let tree = engine.tree("t");
    let mut writer = engine.writer();
    let start = writer.savepoint();
    writer.put(tree, b"a", b"1").expect("the put succeeds");
    writer.rollback_to(start);
    engine.expect_conflict(engine.writer(), |other| other.put(tree, b"a", b"2"));
    writer.rollback();
    engine.put(tree, "a", "3");
    assert_eq!(engine.entries(tree), vec![entry("a", "3")]);
}
