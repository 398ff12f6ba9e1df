//! Long histories through many lives, each cut off at a random call.

mod history;

use history::{Ending, History};
use pando_environment::{Random, SeededRandom};

#[test]
fn stores_that_crash_again_and_again_keep_every_synced_commit() {
    for seed in 1_000..1_030 {
        let random = SeededRandom::new(seed);
        let mut history = History::new(seed);
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
}

#[test]
fn a_crash_during_recovery_is_only_one_more_crash() {
    for seed in 2_000..2_025 {
        let random = SeededRandom::new(seed);
        let mut history = History::new(seed);
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
}
