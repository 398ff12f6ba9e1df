//! Streams of portions, brought by one thread and by two, up to the limit and beyond.

use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::toy::{PAGE_BYTES, asking, bring, keys, number_of, pointers};
use super::*;

const LIMIT: usize = 8 * PAGE_BYTES;
const AHEAD: usize = 4 * PAGE_BYTES;

/// Fetches pages; their numbers.
fn fetch(ahead: &ScanAhead, numbers: Range<u64>) -> Vec<u64> {
    ahead.fetch(&keys(numbers), AHEAD, bring).pages.iter().map(number_of).collect()
}

#[test]
fn what_landed_is_there_until_the_scan_has_passed_it_and_what_nobody_is_at_it_brings_itself() {
    let ahead = ScanAhead::default();
    assert_eq!(fetch(&ahead, 0..9), []);
    ahead.begin(asking([(0, 4), (4, 6), (6, 8)], b"8"), LIMIT);
    assert_eq!(ahead.bytes(), 8 * PAGE_BYTES);
    assert!(ahead.help(|pages| {
        assert_eq!(pages, pointers(0..4));
        bring(pages)
    }));
    assert_eq!(fetch(&ahead, 1..3), [1, 2]);
    assert_eq!(fetch(&ahead, 2..9), [2, 3], "the batch ended within a page");
    assert_eq!(fetch(&ahead, 1..3), [], "the scan does not come back");
    assert_eq!(fetch(&ahead, 4..9), [4, 5], "it brings them itself");
    assert_eq!(ahead.bytes(), 4 * PAGE_BYTES);
    assert!(ahead.help(|pages| {
        assert_eq!(pages, pointers(6..8));
        bring(pages)
    }));
    assert!(!ahead.help(bring));
    assert_eq!(fetch(&ahead, 7..8), [7]);
    assert_eq!(ahead.brought.get(), 3);
}

#[test]
fn a_stream_is_extended_where_it_ends_once_and_only_where_too_little_is_ahead() {
    let ahead = ScanAhead::default();
    ahead.begin(asking([(0, 2), (2, 4), (4, 6)], b"6"), LIMIT);
    assert!(ahead.fetch(&keys(0..2), AHEAD, bring).extension.is_none(), "four are ahead");
    let extension = ahead.fetch(&keys(2..4), AHEAD, bring).extension.expect("two are ahead");
    assert_eq!((&*extension.frontier, extension.bytes), (&b"6"[..], 2 * PAGE_BYTES as u64));
    ahead.extend(&extension, asking([(6, 8)], b"8"), LIMIT);
    ahead.extend(&extension, asking([(6, 8)], b"8"), LIMIT);
    assert_eq!(ahead.bytes(), 6 * PAGE_BYTES);
    let extension = ahead.fetch(&keys(4..6), AHEAD, bring).extension.expect("two are ahead");
    ahead.extend(&extension, Asking { portions: vec![pointers(8..10)], frontier: None }, LIMIT);
    assert_eq!(fetch(&ahead, 6..8), [6, 7]);
    assert!(ahead.fetch(&keys(8..10), AHEAD, bring).extension.is_none(), "there is no more");
}

#[test]
fn streams_share_the_room_and_one_that_nobody_comes_by_goes_when_others_want_it() {
    let ahead = ScanAhead::default();
    ahead.begin(asking([(0, 4), (4, 8)], b"8"), LIMIT);
    ahead.begin(asking([(100, 101), (101, 102)], b"1"), LIMIT);
    assert_eq!((ahead.bytes(), fetch(&ahead, 100..101)), (LIMIT, vec![]));
    for _ in 0..TURNS_KEPT {
        assert_eq!(fetch(&ahead, 200..201), []);
    }
    assert_eq!((ahead.bytes(), ahead.abandoned.get()), (LIMIT, 0));
    ahead.begin(asking([(100, 101), (101, 102)], b"1"), LIMIT);
    assert_eq!((ahead.bytes(), ahead.abandoned.get()), (2 * PAGE_BYTES, 1));
    assert_eq!((fetch(&ahead, 100..101), fetch(&ahead, 4..8)), (vec![100], vec![]));
}

#[test]
fn what_cannot_be_brought_is_nobodys_to_wait_for() {
    let ahead = ScanAhead::default();
    ahead.begin(asking([(0, 4), (4, 8)], b"8"), LIMIT);
    assert!(ahead.help(|pages| bring(&pages[..1])));
    assert_eq!(fetch(&ahead, 0..4), [0]);
    assert_eq!(fetch(&ahead, 1..4), []);
    let panicked = catch_unwind(AssertUnwindSafe(|| ahead.help(|_| panic!("damaged beyond belief"))));
    assert!(panicked.is_err());
    assert_eq!(fetch(&ahead, 4..8), []);
}

#[test]
fn a_scan_waits_for_what_others_are_at_and_a_stream_may_go_meanwhile() {
    let ahead = ScanAhead::default();
    ahead.begin(asking([(0, 4)], b"4"), LIMIT);
    let (begun, begins) = std::sync::mpsc::channel();
    let helped = Cell::new(false);
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
        assert_eq!(ahead.fetch(&keys(0..4), AHEAD, nobody).pages.len(), 4);
        helped.set(true);
    });
    assert!(helped.get());
    let ahead = ScanAhead::default();
    ahead.begin(asking([(0, 4)], b"4"), LIMIT);
    assert!(ahead.help(|pages| {
        (0..=TURNS_KEPT).for_each(|_| assert_eq!(fetch(&ahead, 200..201), []));
        ahead.begin(asking([(100, 108)], b"1"), LIMIT);
        bring(pages)
    }));
    assert_eq!((fetch(&ahead, 0..4), fetch(&ahead, 107..108)), (vec![], vec![107]));
}
