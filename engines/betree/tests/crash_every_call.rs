//! Short histories, cut off at every call that changes the disk.

use crate::history::{Ending, shrinking};

/// Runs a history with the power cut at a call (or not). Returns the number of its calls, and the number of
/// slices that waited in inner nodes.
fn cut_at(seed: u64, steps: u64, call: Option<u64>, ending: Ending) -> (u64, u64) {
    shrinking::run(seed, |history| (history.live_twice(steps, call, ending), history.slices_seen))
}

/// As [`cut_at`], with transactions that go out of memory and are committed in parts.
fn cut_large_at(seed: u64, steps: u64, call: Option<u64>, ending: Ending) -> u64 {
    shrinking::run(seed, |history| {
        history.spills = true;
        history.live_twice(steps, call, ending)
    })
}

/// Cuts a history at each of its calls. Runs must have been in flight.
fn cut_everywhere(seed: u64, steps: u64, ending: impl Fn(u64) -> Ending) {
    let (calls, mut slices) = cut_at(seed, steps, None, ending(seed));
    for call in 1..=calls {
        slices += cut_at(seed, steps, Some(call), ending(seed * 100_000 + call)).1;
    }
    assert!(slices > calls / 4, "seed {seed}: {slices} slices in {calls} histories");
}

#[test]
fn a_power_cut_at_any_call_loses_no_synced_commit_and_leaves_no_half_one() {
    (0..3).for_each(|seed| cut_everywhere(seed, 45, |seed| Ending::PowerCut { seed }));
}

#[test]
fn a_kill_at_any_call_loses_no_logged_commit() {
    (10..12).for_each(|seed| cut_everywhere(seed, 40, |_| Ending::Kill));
}

#[test]
fn the_loss_of_the_newest_superblock_at_any_call_loses_no_synced_commit() {
    (20..22).for_each(|seed| cut_everywhere(seed, 40, |seed| Ending::LostSuperblock { seed }));
}

#[test]
fn a_power_cut_at_any_call_of_a_history_that_flushes_much_loses_nothing() {
    cut_everywhere(31, 110, |seed| Ending::PowerCut { seed });
}

#[test]
fn a_power_cut_at_any_call_of_a_large_commit_leaves_it_whole_or_not_at_all() {
    let calls = cut_large_at(40, 14, None, Ending::PowerCut { seed: 0 });
    (1..=calls).for_each(|call| {
        cut_large_at(40, 14, Some(call), Ending::PowerCut { seed: call });
    });
}

#[test]
fn a_kill_or_a_lost_superblock_at_any_call_of_a_large_commit_loses_nothing_that_was_acknowledged() {
    let calls = cut_large_at(43, 9, None, Ending::Kill);
    (1..=calls).for_each(|call| {
        cut_large_at(43, 9, Some(call), Ending::Kill);
        cut_large_at(43, 9, Some(call), Ending::LostSuperblock { seed: call });
    });
}

#[test]
fn a_power_cut_at_any_call_of_an_encrypted_store_loses_no_synced_commit_and_leaves_no_half_one() {
    let cut = |call, ending| {
        shrinking::run(50, |history| {
            history.is_encrypted = true;
            history.live_twice(40, call, ending)
        })
    };
    for call in 1..=cut(None, Ending::Kill) {
        cut(Some(call), Ending::PowerCut { seed: call });
        if call % 4 == 0 {
            cut(Some(call), Ending::LostSuperblock { seed: call });
        }
    }
}
