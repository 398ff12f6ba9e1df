//! Long histories through many lives, each cut off at a random call.

use pando_environment::{Random, SeededRandom};

use crate::history::{Ending, History, shrinking};

#[test]
fn stores_that_crash_again_and_again_keep_every_synced_commit() {
    (1_000..1_030).for_each(|seed| shrinking::run(seed, |history| crash_again_and_again(history, seed)));
}

fn crash_again_and_again(history: &mut History, seed: u64) {
    let random = SeededRandom::new(seed);
    history.open().expect("a new store opens");
    for life in 0..6 {
        history.set_label(format!("seed {seed}, life {life}"));
        history.simulation.disk.crash_at_call(1 + random.below(500));
        // Whether the power went before the steps were done or not: the next life begins with a crash.
        let _cut = history.run(150);
        history.end(match random.below(4) {
            0 => Ending::Kill,
            1 => Ending::LostSuperblock { seed: random.next_u64() },
            _ => Ending::PowerCut { seed: random.next_u64() },
        });
        history.recover();
    }
    history.close_and_reopen();
}

#[test]
fn encrypted_stores_that_crash_again_and_again_keep_every_synced_commit() {
    (1_100..1_106).for_each(|seed| {
        shrinking::run(seed, |history| {
            history.is_encrypted = true;
            history.backups = (seed % 2 == 0).then(Default::default);
            history.spills = seed % 3 == 0;
            crash_again_and_again(history, seed);
        });
    });
}

#[test]
fn a_crash_during_recovery_is_only_one_more_crash() {
    (2_000..2_025).for_each(|seed| shrinking::run(seed, |history| crash_while_recovering(history, seed)));
}

fn crash_while_recovering(history: &mut History, seed: u64) {
    let random = SeededRandom::new(seed);
    history.open().expect("a new store opens");
    history.run(60).expect("without a fault nothing fails");
    history.end(Ending::PowerCut { seed });
    for attempt in 0..5 {
        history.set_label(format!("seed {seed}, attempt {attempt}"));
        history.simulation.disk.crash_at_call(1 + random.below(12));
        let _cut = history.open().and_then(|()| history.checkpoint());
        history.end(Ending::PowerCut { seed: random.next_u64() });
    }
    history.recover();
    history.run(20).expect("after recovery nothing fails");
    history.close_and_reopen();
}

#[test]
#[should_panic(expected = "2 of 40 steps do: PANDO_SEED=7 PANDO_STEPS=11,23")]
fn a_history_that_fails_is_shrunk_to_the_steps_that_it_takes() {
    shrinking::run(7, |history| {
        history.open().expect("a new store opens");
        history.run(40).expect("without a fault nothing fails");
        history.end(Ending::Kill);
        history.recover();
        assert!(!(history.ran.contains(&11) && history.ran.contains(&23)), "planted");
    });
}
