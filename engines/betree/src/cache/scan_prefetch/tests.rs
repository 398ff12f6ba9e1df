//! Streams of chunks, read by one thread and by two, up to the limits and beyond.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::toy::{PAGE_BYTES, ToyPrefetch, at, keys, pointers, read, requests, visit};
use super::*;
use crate::cache::toy::ToyPage;

const SCAN: ScanId = ScanId::from_hash(7);
/// Eight pages with their overhead.
const LIMITS: PrefetchLimits =
    PrefetchLimits { memory_bytes: 8 * PAGE_BYTES, distance_bytes: 4 * PAGE_BYTES as u64 };

fn begin<const COUNT: usize>(prefetch: &ToyPrefetch, now: u64, chunks: [(u64, u64); COUNT]) -> bool {
    prefetch.begin(visit(SCAN, now, LIMITS), requests(chunks), read)
}

/// Fetches pages. Returns their numbers, and the extension.
fn fetch_at(prefetch: &ToyPrefetch, now: u64, numbers: Range<u64>) -> (Vec<u64>, Option<StreamExtension>) {
    let fetched = prefetch.fetch(visit(SCAN, now, LIMITS), &keys(numbers), BlockingMode::MayBlock, read);
    (fetched.pages.iter().map(ToyPage::number).collect(), fetched.extension)
}

fn fetch(prefetch: &ToyPrefetch, numbers: Range<u64>) -> Vec<u64> {
    fetch_at(prefetch, 0, numbers).0
}

/// The numbers of the pages that are ready.
fn fetch_ready(prefetch: &ToyPrefetch, numbers: Range<u64>) -> Vec<u64> {
    let visit = visit(SCAN, 0, LIMITS);
    let fetched = prefetch.fetch(visit, &keys(numbers), BlockingMode::CachedOnly, |_| unreachable!());
    fetched.pages.iter().map(ToyPage::number).collect()
}

#[test]
fn ready_pages_stay_until_the_scan_has_passed_them_and_queued_ones_the_scan_reads_itself() {
    let prefetch = ToyPrefetch::default();
    assert_eq!(fetch(&prefetch, 0..9), []);
    assert!(begin(&prefetch, 0, [(0, 4), (4, 6), (6, 8)]));
    assert_eq!(
        (prefetch.chunks_read.get(), prefetch.chunks_read_by_workers.get()),
        (1, 0),
        "the first chunk is read at once"
    );
    assert_eq!(fetch(&prefetch, 1..3), [1, 2]);
    assert_eq!(fetch(&prefetch, 2..9), [2, 3], "the batch ended within a page");
    assert_eq!(fetch(&prefetch, 1..3), [], "the scan does not come back");
    assert_eq!(fetch_ready(&prefetch, 4..6), []);
    assert_eq!(fetch(&prefetch, 4..9), [4, 5], "the scan reads them itself");
    assert!(prefetch.read_next(|pages| {
        assert_eq!(pages, pointers(6..8));
        read(pages)
    }));
    assert!(!prefetch.read_next(read));
    assert_eq!(fetch_ready(&prefetch, 7..8), [7]);
    assert_eq!((prefetch.chunks_read.get(), prefetch.chunks_read_by_workers.get()), (3, 1));
}

#[test]
fn a_stream_is_extended_where_it_ends_once_and_only_where_the_distance_is_too_short() {
    let prefetch = ToyPrefetch::default();
    assert!(begin(&prefetch, 0, [(0, 2), (2, 4), (4, 6)]));
    assert!(fetch_at(&prefetch, 0, 0..2).1.is_none(), "four are ahead");
    let extension = fetch_at(&prefetch, 0, 2..4).1.expect("two are ahead");
    assert_eq!((&*extension.frontier, extension.lacking_bytes), (&[6][..], 2 * PAGE_BYTES as u64));
    prefetch.extend(&extension, requests([(6, 8)]), LIMITS);
    prefetch.extend(&extension, requests([(6, 8)]), LIMITS);
    let extension = fetch_at(&prefetch, 0, 4..6).1.expect("two are ahead");
    let mut last = requests([(8, 10)]);
    last[0].frontier = None;
    prefetch.extend(&extension, last, LIMITS);
    assert_eq!(fetch(&prefetch, 6..8), [6, 7]);
    assert!(fetch_at(&prefetch, 0, 8..10).1.is_none(), "there is no more");
}

#[test]
fn a_stream_belongs_to_one_scan_id_and_does_not_begin_for_a_batch_alone() {
    let prefetch = ToyPrefetch::default();
    assert!(!begin(&prefetch, 0, [(0, 4)]));
    assert!(prefetch.is_empty());
    assert!(begin(&prefetch, 0, [(0, 4), (4, 8)]));
    let other = visit(ScanId::from_hash(8), 0, LIMITS);
    let other = prefetch.fetch(other, &keys(4..8), BlockingMode::MayBlock, read);
    assert!(other.pages.is_empty());
    assert_eq!(fetch(&prefetch, 0..4), [0, 1, 2, 3], "the other has passed nothing");
}

#[test]
fn streams_share_the_memory_and_an_idle_one_is_dropped_when_others_need_it() {
    let prefetch = ToyPrefetch::default();
    // The last chunk goes beyond the limit, and there is no room for another.
    assert!(begin(&prefetch, 0, [(0, 4), (4, 9), (9, 12)]));
    let bytes = prefetch.memory_bytes();
    assert!((9 * PAGE_BYTES..10 * PAGE_BYTES).contains(&bytes), "{bytes}");
    assert!(fetch_at(&prefetch, 0, 0..4).1.is_none(), "there is no room to go on");
    assert!(!prefetch.has_room(at(4), LIMITS) && !begin(&prefetch, 4, [(100, 101), (101, 102)]));
    assert_eq!(fetch_at(&prefetch, 4, 0..1).0, [0]);
    assert!(!prefetch.has_room(at(8), LIMITS), "a scan visited it");
    assert!(prefetch.has_room(at(9), LIMITS) && begin(&prefetch, 9, [(100, 101), (101, 102)]));
    assert_eq!(prefetch.streams_abandoned.get(), 1);
    assert_eq!((fetch(&prefetch, 100..101), fetch(&prefetch, 4..8)), (vec![100], vec![]));
    assert_eq!(prefetch.drop_abandoned(at(9)), Some(IDLE), "it is to be called again");
    assert_eq!(prefetch.drop_abandoned(at(600)), None);
    assert!(prefetch.is_empty() && prefetch.memory_bytes() == 0);
}

#[test]
fn no_scan_waits_for_pages_that_cannot_be_read() {
    let prefetch = ToyPrefetch::default();
    let first_only = |pages: &[Pointer]| read(&pages[..1]);
    assert!(prefetch.begin(visit(SCAN, 0, LIMITS), requests([(0, 4), (4, 8)]), first_only));
    assert_eq!(fetch(&prefetch, 0..4), [0]);
    assert_eq!(fetch(&prefetch, 1..4), []);
    let panicked = catch_unwind(AssertUnwindSafe(|| prefetch.read_next(|_| panic!("damaged beyond belief"))));
    assert!(panicked.is_err());
    assert_eq!(fetch(&prefetch, 4..8), []);
}

#[test]
fn a_scan_waits_for_a_chunk_in_progress_and_its_stream_may_be_dropped_meanwhile() {
    let prefetch = ToyPrefetch::default();
    assert!(begin(&prefetch, 0, [(0, 1), (1, 4)]));
    let (begun, begins) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            prefetch.read_next(|pages| {
                begun.send(()).expect("the test listens");
                std::thread::sleep(std::time::Duration::from_millis(20));
                read(pages)
            })
        });
        begins.recv().expect("the worker has begun");
        let not_here = |_: &[Pointer]| -> ReadyPages<ToyPage> { panic!("the worker reads it") };
        assert_eq!(fetch_ready(&prefetch, 1..4), []);
        let waited = prefetch.fetch(visit(SCAN, 0, LIMITS), &keys(1..4), BlockingMode::MayBlock, not_here);
        assert_eq!(waited.pages.len(), 3);
    });
    let prefetch = ToyPrefetch::default();
    assert!(begin(&prefetch, 0, [(0, 1), (1, 4)]));
    assert!(prefetch.read_next(|pages| {
        assert_eq!(prefetch.drop_abandoned(at(600)), None);
        read(pages)
    }));
    assert_eq!((fetch(&prefetch, 0..4), prefetch.memory_bytes()), (vec![], 0));
}
