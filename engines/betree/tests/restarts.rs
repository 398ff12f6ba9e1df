//! Repeated kills: each open replays the log of the process before it, not of all of them.

use std::path::Path;
use std::sync::Arc;

use pando_betree::{Betree, Options};
use pando_environment::{Environment, Simulation};
use pando_storage::{Begin, BlockingMode, Durability, Engine, ErrorKind, TreeOptions};

fn open(simulation: &Simulation) -> Arc<Betree> {
    let engine = Betree::open(&simulation.environment, Path::new("/store"), Options::default());
    engine.expect("the store opens")
}

fn figure(engine: &Betree, name: &str) -> u64 {
    let statistics = engine.statistics();
    statistics.iter().find(|(known, _)| *known == name).map(|(_, value)| value).expect("the figure exists")
}

#[test]
fn after_a_replay_a_checkpoint_is_made_at_once_so_that_the_next_opening_is_short() {
    let simulation = Environment::simulated(7);
    let mut tree = None;
    for life in 0..20u64 {
        let engine = open(&simulation);
        let replayed = figure(&engine, "recovery.records");
        // The tree's creation is a record, too.
        assert!(
            replayed <= 2 && (life == 0 || replayed > 0),
            "life {life} replayed {replayed} records: not those of one life"
        );
        simulation.tasks.run_until_idle();
        // A new store begins with one.
        assert_eq!(figure(&engine, "checkpoints.count"), 1, "life {life}");
        let tree = *tree.get_or_insert_with(|| {
            engine.create_tree("t", &TreeOptions::default()).expect("a tree can be made")
        });
        let reader = engine.begin(Begin::READ).expect("readers begin");
        for earlier in 0..life {
            let found =
                reader.get(tree, &earlier.to_be_bytes(), BlockingMode::MayBlock).expect("reads succeed");
            assert_eq!(found.as_deref(), Some(b"here".as_slice()), "life {life}, key {earlier}");
        }
        drop(reader);
        let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
        writer.put(tree, &life.to_be_bytes(), b"here").expect("writers write");
        writer.commit(Durability::Logged).expect("commits succeed");
        simulation.tasks.forget_all();
        simulation.disk.kill();
        drop(engine);
    }
}

#[test]
fn an_opening_that_replays_nothing_makes_no_checkpoint() {
    let simulation = Environment::simulated(8);
    let engine = open(&simulation);
    engine.close().expect("the store closes");
    drop(engine);
    let engine = open(&simulation);
    simulation.tasks.run_until_idle();
    assert_eq!((figure(&engine, "recovery.records"), figure(&engine, "checkpoints.count")), (0, 0));
}

#[test]
fn a_store_that_lost_its_log_before_it_grew_is_refused_and_not_opened_as_an_empty_one() {
    let simulation = Environment::simulated(9);
    let engine = open(&simulation);
    let tree = engine.create_tree("t", &TreeOptions::default()).expect("a tree can be made");
    let mut writer = engine.begin(Begin::WRITE).expect("writers begin");
    writer.put(tree, b"key", b"acknowledged").expect("writers write");
    writer.commit(Durability::Synced).expect("commits succeed");
    simulation.tasks.forget_all();
    simulation.disk.kill();
    drop(engine);
    let (files, log) = (simulation.environment.files(), Path::new("/store/wal"));
    for name in files.list(log).expect("the log can be listed") {
        files.remove(&log.join(name)).expect("a segment can be removed");
    }
    let refused = Betree::open(&simulation.environment, Path::new("/store"), Options::default());
    let error = refused.err().expect("a store without its log is refused");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}
