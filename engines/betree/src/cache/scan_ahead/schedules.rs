//! Schedules of two scans and a helper: whoever brings a portion, each scan gets each of its pages once, and nobody waits for ever.

use pando_environment::sync::{explore, thread};

use super::toy::{PAGE_BYTES, asking, bring, keys, number_of};
use super::*;

/// A scan of ten pages, two at a time, in portions of two. What it does not get it has to read itself.
fn scan(ahead: &ScanAhead, first: u64) {
    let limit = 8 * PAGE_BYTES;
    let at = |place: u64| (first + place, first + place + 2);
    ahead.begin(asking([at(0), at(2)], &[4]), limit);
    for place in (0..10).step_by(2) {
        let (from, to) = at(place);
        let fetched = ahead.fetch(&keys(from..to), 4 * PAGE_BYTES, bring);
        for (page, expected) in fetched.pages.iter().zip(from..to) {
            assert_eq!(number_of(page), expected);
        }
        if let Some(extension) = fetched.extension {
            let from = u64::from(extension.frontier[0]);
            let frontier = (from < 8).then(|| [from as u8 + 2].into());
            let portions = asking([at(from)], &[]).portions;
            ahead.extend(&extension, Asking { portions, frontier }, limit);
        }
    }
}

#[test]
fn scans_and_their_helper_never_wait_for_each_other_in_a_circle() {
    explore(2_000, || {
        let ahead = Arc::new(ScanAhead::default());
        // The second and the third come by the same pages.
        let scans: Vec<_> = [0, 100, 100]
            .into_iter()
            .map(|first| {
                let ahead = Arc::clone(&ahead);
                thread::spawn(move || scan(&ahead, first))
            })
            .collect();
        let helper = {
            let ahead = Arc::clone(&ahead);
            thread::spawn(move || {
                for _ in 0..3 {
                    ahead.help(bring);
                }
                // One that brings nothing, as of damaged pages.
                ahead.help(|_| Vec::new());
            })
        };
        scans.into_iter().for_each(|scan| scan.join().expect("it does not panic"));
        helper.join().expect("it does not panic");
        while ahead.help(bring) {}
        let state = ahead.state.lock();
        assert_eq!(state.bytes, state.streams.iter().map(Stream::bytes).sum::<usize>());
        assert!(state.bytes <= 8 * PAGE_BYTES, "{} bytes", state.bytes);
    });
}
