//! Failures of background work, as commits see them.

use std::path::Path;

use pando_environment::simulated::{Fault, FaultRule};
use pando_environment::{Environment, Operation, Random, SeededRandom};
use pando_storage::{Begin, Durability, Engine, TreeOptions};

use crate::background::buffer_flush::Progress;
use crate::engine::Betree;
use crate::options::Options;
use crate::tree::flush::Overdue;
use crate::tree::flush_debt::{Moved, Payment};

#[test]
fn a_failing_partial_flush_stops_no_commits_and_a_succeeding_one_mends_no_flush() {
    let entries = [("pageSize", "512B"), ("leafSize", "8KB"), ("fanout", "8"), ("bufferPercent", "20")];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    (options.cache_bytes, options.partition_bytes) = (1 << 20, 64 << 10);
    let simulation = Environment::simulated(7);
    let engine = Betree::open(&simulation.environment, Path::new("/store"), options).expect("it opens");
    let id = engine.create_tree("tree", &TreeOptions::default()).expect("a tree is created");
    let store = &engine.store;
    let tree = store.trees.live(id).expect("the tree is there");
    let random = SeededRandom::new(3);
    let make_late = || {
        while tree.flush_debt.lock().bytes() == 0 {
            let mut writer = engine.begin(Begin::WRITE).expect("a writer begins");
            for _ in 0..100 {
                let key = [random.next_u64(), 0, 0].map(u64::to_be_bytes).concat();
                writer.put_blind(id, &key, &[7; 20]).expect("a write succeeds");
            }
            writer.commit(Durability::Logged).expect("the commit succeeds");
            store.scheduler.flush_one().expect("the disk has room");
        }
        tree.flush_debt.lock().note(1 << 20, Moved::default(), Vec::new());
        store.backlog.note_overdue(&tree);
    };

    // Some places have no overdue messages any more. Then the step writes no block and does not fail.
    let error = loop {
        make_late();
        simulation.disk.inject(FaultRule::new(Operation::Write, Fault::NoSpace).on("data").always());
        let outcome = store.scheduler.partial_flushes.flush_overdue();
        simulation.disk.clear_faults();
        if let Err(error) = outcome {
            break error;
        }
    };
    assert_eq!(store.counters.failed_flushes.get(), 1);
    assert!(store.monitor.failure().is_none(), "commits wait for flushes only");

    loop {
        make_late();
        // A place without messages, in front of all others.
        let overdue: Vec<Overdue> =
            std::iter::from_fn(|| tree.flush_debt.lock().take(Payment::Free)).collect();
        let nothing = Overdue { key: Box::default(), height: 0, bytes: 1 };
        tree.flush_debt.lock().note(0, Moved::default(), [nothing].into_iter().chain(overdue).collect());
        store.monitor.note_flush(&Err(error.clone()), std::time::Duration::ZERO);
        if store.scheduler.partial_flushes.flush_overdue().expect("there is room again") == Progress::Made {
            break;
        }
        assert!(!tree.flush_debt.lock().is_due(), "a place that has nothing is passed by");
    }
    assert!(store.monitor.failure().is_some(), "no flush has succeeded since");
}
