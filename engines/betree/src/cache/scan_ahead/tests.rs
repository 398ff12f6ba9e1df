//! Streams of portions, brought by one thread and by two, up to the limit and beyond.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::toy::{PAGE_BYTES, at, bring, keys, number_of, pointers, wanted};
use super::*;

const COURSE: u64 = 7;
/// Eight pages, whatever they take beside their bytes.
const ROOM: Room = Room { limit: 8 * PAGE_BYTES, ahead: 4 * PAGE_BYTES as u64 };

fn begin<const COUNT: usize>(ahead: &ScanAhead, now: Monotonic, portions: [(u64, u64); COUNT]) -> bool {
    ahead.begin(COURSE, now, (wanted(portions), ROOM), bring)
}

/// Fetches pages; their numbers, and what else is said.
fn fetch_at(ahead: &ScanAhead, now: Monotonic, numbers: Range<u64>) -> (Vec<u64>, Option<Extension>) {
    let fetched = ahead.fetch((COURSE, &keys(numbers)), now, (ROOM, BlockingMode::MayBlock), bring);
    (fetched.pages.iter().map(number_of).collect(), fetched.extension)
}

fn fetch(ahead: &ScanAhead, numbers: Range<u64>) -> Vec<u64> {
    fetch_at(ahead, at(0), numbers).0
}

#[test]
fn what_landed_is_there_until_the_scan_has_passed_it_and_what_nobody_is_at_it_brings_itself() {
    let ahead = ScanAhead::default();
    assert_eq!(fetch(&ahead, 0..9), []);
    assert!(begin(&ahead, at(0), [(0, 4), (4, 6), (6, 8)]));
    assert_eq!((ahead.brought.get(), ahead.helped.get()), (1, 0), "the first portion comes at once");
    assert_eq!(fetch(&ahead, 1..3), [1, 2]);
    assert_eq!(fetch(&ahead, 2..9), [2, 3], "the batch ended within a page");
    assert_eq!(fetch(&ahead, 1..3), [], "the scan does not come back");
    let cached_only = ahead.fetch((COURSE, &keys(4..6)), at(0), (ROOM, BlockingMode::CachedOnly), bring);
    assert!(cached_only.pages.is_empty());
    assert_eq!(fetch(&ahead, 4..9), [4, 5], "it brings them itself");
    assert!(ahead.help(|pages| {
        assert_eq!(pages, pointers(6..8));
        bring(pages)
    }));
    assert!(!ahead.help(bring));
    let cached_only = ahead.fetch((COURSE, &keys(7..8)), at(0), (ROOM, BlockingMode::CachedOnly), bring);
    assert_eq!(number_of(&cached_only.pages[0]), 7);
    assert_eq!((ahead.brought.get(), ahead.helped.get()), (3, 1));
}

#[test]
fn a_stream_is_extended_where_it_ends_once_and_only_where_too_little_is_ahead() {
    let ahead = ScanAhead::default();
    assert!(begin(&ahead, at(0), [(0, 2), (2, 4), (4, 6)]));
    assert!(fetch_at(&ahead, at(0), 0..2).1.is_none(), "four are ahead");
    let extension = fetch_at(&ahead, at(0), 2..4).1.expect("two are ahead");
    assert_eq!((&*extension.frontier, extension.missing), (&[6][..], 2 * PAGE_BYTES as u64));
    ahead.extend(&extension, wanted([(6, 8)]), ROOM);
    ahead.extend(&extension, wanted([(6, 8)]), ROOM);
    let extension = fetch_at(&ahead, at(0), 4..6).1.expect("two are ahead");
    let mut last = wanted([(8, 10)]);
    last[0].frontier = None;
    ahead.extend(&extension, last, ROOM);
    assert_eq!(fetch(&ahead, 6..8), [6, 7]);
    assert!(fetch_at(&ahead, at(0), 8..10).1.is_none(), "there is no more");
}

#[test]
fn a_stream_is_one_courses_and_is_not_begun_for_a_batch_alone() {
    let ahead = ScanAhead::default();
    assert!(!begin(&ahead, at(0), [(0, 4)]));
    assert!(ahead.is_empty());
    assert!(begin(&ahead, at(0), [(0, 4), (4, 8)]));
    let other = ahead.fetch((COURSE + 1, &keys(4..8)), at(0), (ROOM, BlockingMode::MayBlock), bring);
    assert!(other.pages.is_empty());
    assert_eq!(fetch(&ahead, 0..4), [0, 1, 2, 3], "the other has passed nothing");
}

#[test]
fn streams_share_the_room_and_one_that_nobody_comes_by_goes_when_others_want_it() {
    let ahead = ScanAhead::default();
    // The last portion goes beyond the limit, and there is no room for another.
    assert!(begin(&ahead, at(0), [(0, 4), (4, 9), (9, 12)]));
    let bytes = ahead.bytes();
    assert!((9 * PAGE_BYTES..10 * PAGE_BYTES).contains(&bytes), "{bytes}");
    assert!(fetch_at(&ahead, at(0), 0..4).1.is_none(), "there is no room to go on");
    assert!(!ahead.has_room(at(4), ROOM) && !begin(&ahead, at(4), [(100, 101), (101, 102)]));
    assert_eq!(fetch_at(&ahead, at(4), 0..1).0, [0]);
    assert!(!ahead.has_room(at(8), ROOM), "somebody came by");
    assert!(ahead.has_room(at(9), ROOM) && begin(&ahead, at(9), [(100, 101), (101, 102)]));
    assert_eq!(ahead.abandoned.get(), 1);
    assert_eq!((fetch(&ahead, 100..101), fetch(&ahead, 4..8)), (vec![100], vec![]));
    assert_eq!(ahead.tidy(at(9)), Some(IDLE), "it is to be looked at again");
    assert_eq!(ahead.tidy(at(600)), None);
    assert!(ahead.is_empty() && ahead.bytes() == 0);
}

#[test]
fn what_cannot_be_brought_is_nobodys_to_wait_for() {
    let ahead = ScanAhead::default();
    let first_only = |pages: &[Pointer]| bring(&pages[..1]);
    assert!(ahead.begin(COURSE, at(0), (wanted([(0, 4), (4, 8)]), ROOM), first_only));
    assert_eq!(fetch(&ahead, 0..4), [0]);
    assert_eq!(fetch(&ahead, 1..4), []);
    let panicked = catch_unwind(AssertUnwindSafe(|| ahead.help(|_| panic!("damaged beyond belief"))));
    assert!(panicked.is_err());
    assert_eq!(fetch(&ahead, 4..8), []);
}

#[test]
fn a_scan_waits_for_what_others_are_at_and_a_stream_may_go_meanwhile() {
    let ahead = ScanAhead::default();
    assert!(begin(&ahead, at(0), [(0, 1), (1, 4)]));
    let (begun, begins) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            ahead.help(|pages| {
                begun.send(()).expect("somebody listens");
                std::thread::sleep(std::time::Duration::from_millis(20));
                bring(pages)
            })
        });
        begins.recv().expect("the helper has begun");
        let nobody = |_: &[Pointer]| -> Landed { panic!("the helper is at it") };
        let cached_only = ahead.fetch((COURSE, &keys(1..4)), at(0), (ROOM, BlockingMode::CachedOnly), nobody);
        assert!(cached_only.pages.is_empty());
        let waited = ahead.fetch((COURSE, &keys(1..4)), at(0), (ROOM, BlockingMode::MayBlock), nobody);
        assert_eq!(waited.pages.len(), 3);
    });
    let ahead = ScanAhead::default();
    assert!(begin(&ahead, at(0), [(0, 1), (1, 4)]));
    assert!(ahead.help(|pages| {
        assert_eq!(ahead.tidy(at(600)), None);
        bring(pages)
    }));
    assert_eq!((fetch(&ahead, 0..4), ahead.bytes()), (vec![], 0));
}
