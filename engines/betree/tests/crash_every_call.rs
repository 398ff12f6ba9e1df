//! Short histories, cut off at every single call that changes the disk.

mod history;

use history::{Ending, History};

/// Runs a history with the power cut at a call (or not), and returns how many calls it made.
fn cut_at(seed: u64, steps: u64, call: Option<u64>, ending: Ending) -> u64 {
    let mut history = History::new(seed);
    if let Some(call) = call {
        history.set_label(format!("seed {seed}, call {call}, {ending:?}"));
        history.simulation.disk.crash_at_call(call);
    }
    let outcome = history.open().and_then(|()| history.run(steps));
    let calls = history.simulation.disk.calls();
    if history.simulation.disk.has_power() {
        outcome.expect("without a fault nothing fails");
    }
    history.end(ending);
    history.recover();
    // The store goes on, and a clean end of its second life is a clean end.
    history.run(12).expect("after recovery nothing fails");
    history.close_and_reopen();
    calls
}

#[test]
fn a_power_cut_at_any_call_loses_no_synced_commit_and_leaves_no_half_one() {
    for seed in 0..3 {
        let calls = cut_at(seed, 45, None, Ending::PowerCut { seed });
        for call in 1..=calls {
            cut_at(seed, 45, Some(call), Ending::PowerCut { seed: seed * 100_000 + call });
        }
    }
}

#[test]
fn a_kill_at_any_call_loses_no_logged_commit() {
    for seed in 10..12 {
        let calls = cut_at(seed, 40, None, Ending::Kill);
        for call in 1..=calls {
            cut_at(seed, 40, Some(call), Ending::Kill);
        }
    }
}

#[test]
fn the_loss_of_the_newest_superblock_at_any_call_loses_no_synced_commit() {
    for seed in 20..22 {
        let calls = cut_at(seed, 40, None, Ending::LostSuperblock { seed });
        for call in 1..=calls {
            cut_at(seed, 40, Some(call), Ending::LostSuperblock { seed: seed * 100_000 + call });
        }
    }
}
