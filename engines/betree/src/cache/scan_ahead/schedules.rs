//! Schedules of scans and a helper: whoever brings a portion, each scan gets each of its pages, and nobody waits for ever.

use pando_environment::sync::{explore, thread};

use super::toy::{PAGE_BYTES, at, bring, keys, number_of, wanted};
use super::*;

/// Room for all that one scan asks for; two of them must do without some of it.
const ROOM: Room = Room { limit: 12 * PAGE_BYTES, ahead: 4 * PAGE_BYTES as u64 };

/// A scan of ten pages, two at a time, in portions of two; how many it got. Those that it does not get it has to read itself.
fn scan(ahead: &ScanAhead, course: u64, first: u64) -> usize {
    let pair = |place: u64| (first + place, first + place + 2);
    let mut got = 0;
    let mut has_begun = ahead.begin(course, at(0), (wanted([pair(0), pair(2)]), ROOM), bring);
    for place in (0..10).step_by(2) {
        let (from, to) = pair(place);
        let fetched = ahead.fetch((course, &keys(from..to)), at(0), (ROOM, BlockingMode::MayBlock), bring);
        for (page, expected) in fetched.pages.iter().zip(from..to) {
            assert_eq!(number_of(page), expected);
        }
        got += fetched.pages.len();
        has_begun &= fetched.pages.len() == 2;
        if let Some(extension) = fetched.extension {
            let from = u64::from(extension.frontier[0]);
            if from < first + 10 {
                ahead.extend(&extension, wanted([(from, from + 2)]), ROOM);
            }
        }
    }
    assert!(!has_begun || got == 10);
    got
}

fn explore_scans(scans: &'static [(u64, u64)], check: impl Fn(usize) + Send + Sync + 'static) {
    explore(1_000, move || {
        let ahead = Arc::new(ScanAhead::default());
        let scans: Vec<_> = scans
            .iter()
            .map(|(course, first)| {
                let ahead = Arc::clone(&ahead);
                thread::spawn(move || scan(&ahead, *course, *first))
            })
            .collect();
        let helper = {
            let ahead = Arc::clone(&ahead);
            thread::spawn(move || {
                for _ in 0..4 {
                    ahead.help(bring);
                }
            })
        };
        let got = scans.into_iter().map(|scan| scan.join().expect("it does not panic")).sum();
        helper.join().expect("it does not panic");
        check(got);
        while ahead.help(bring) {}
        let state = ahead.state.lock();
        assert_eq!(state.bytes, state.streams.iter().map(Stream::bytes).sum::<usize>());
    });
}

#[test]
fn a_scan_gets_every_page_whoever_brings_it() {
    explore_scans(&[(1, 0)], |got| assert_eq!(got, 10));
}

#[test]
fn scans_beside_each_other_and_their_helper_never_wait_in_a_circle() {
    // The second and the third have one course, and come by the same pages.
    explore_scans(&[(1, 0), (2, 100), (2, 100)], |got| assert!(got >= 10, "{got} pages"));
}
