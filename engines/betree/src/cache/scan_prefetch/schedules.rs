//! Schedules of scans and a worker: each scan gets each of its pages, whichever thread reads it, and none
//! waits for ever.

use pando_environment::sync::{explore, thread};

use super::toy::{PAGE_BYTES, ToyPrefetch, keys, read, requests, visit};
use super::*;

/// Room for all chunks of one scan; two scans must do without some.
const LIMITS: PrefetchLimits =
    PrefetchLimits { memory_bytes: 12 * PAGE_BYTES, distance_bytes: 4 * PAGE_BYTES as u64 };

/// A scan of ten pages, two at a time, in chunks of two. Returns the number of pages that it fetched; it has
/// to read the others itself.
fn scan(prefetch: &ToyPrefetch, id: u64, first: u64) -> usize {
    let visit = visit(ScanId::from_hash(id), 0, LIMITS);
    let pair = |place: u64| (first + place, first + place + 2);
    let mut got = 0;
    let mut has_begun = prefetch.begin(visit, requests([pair(0), pair(2)]), read);
    for place in (0..10).step_by(2) {
        let (from, to) = pair(place);
        let fetched = prefetch.fetch(visit, &keys(from..to), BlockingMode::MayBlock, read);
        for (page, expected) in fetched.pages.iter().zip(from..to) {
            assert_eq!(page.number(), expected);
        }
        got += fetched.pages.len();
        has_begun &= fetched.pages.len() == 2;
        if let Some(extension) = fetched.extension {
            let from = u64::from(extension.frontier[0]);
            if from < first + 10 {
                prefetch.extend(&extension, requests([(from, from + 2)]), LIMITS);
            }
        }
    }
    assert!(!has_begun || got == 10);
    got
}

fn explore_scans(scans: &'static [(u64, u64)], check: impl Fn(usize) + Send + Sync + 'static) {
    explore(1_000, move || {
        let prefetch = Arc::new(ToyPrefetch::default());
        let scans: Vec<_> = scans
            .iter()
            .map(|(id, first)| {
                let prefetch = Arc::clone(&prefetch);
                thread::spawn(move || scan(&prefetch, *id, *first))
            })
            .collect();
        let worker = {
            let prefetch = Arc::clone(&prefetch);
            thread::spawn(move || {
                for _ in 0..4 {
                    prefetch.read_next(read);
                }
            })
        };
        let got = scans.into_iter().map(|scan| scan.join().expect("it does not panic")).sum();
        worker.join().expect("it does not panic");
        check(got);
        while prefetch.read_next(read) {}
        let state = prefetch.state.lock();
        assert_eq!(state.memory_bytes, state.streams.iter().map(Stream::memory_bytes).sum::<usize>());
    });
}

#[test]
fn a_scan_gets_every_page_whichever_thread_reads_it() {
    explore_scans(&[(1, 0)], |got| assert_eq!(got, 10));
}

#[test]
fn scans_beside_each_other_and_their_worker_never_wait_in_a_circle() {
    // The second and the third have one id, and need the same pages.
    explore_scans(&[(1, 0), (2, 100), (2, 100)], |got| assert!(got >= 10, "{got} pages"));
}
