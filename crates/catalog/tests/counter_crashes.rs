//! Counters after a crash: of the process or of the power, on a simulated disk. Whatever commits survive,
//! counters and documents agree.

use std::path::Path;
use std::sync::Arc;

use pando_betree::Betree;
use pando_catalog::{Catalog, Operation, SharedEngine};
use pando_environment::{Environment, Random, SeededRandom, Simulation};

use crate::counted::{
    DATABASE, NAMES, assert_sound, change_something, drop_counters, namespace, small_options, some_options,
    write_some,
};

const FOLDER: &str = "/store";

fn open(simulation: &Simulation) -> SharedEngine {
    Betree::open(&simulation.environment, Path::new(FOLDER), small_options()).unwrap()
}

fn crash(simulation: &Simulation, chance: &SeededRandom) {
    match chance.below(2) {
        0 => simulation.disk.kill(),
        _ => simulation.disk.crash(chance.next_u64()),
    }
    simulation.tasks.forget_all();
}

/// Some steps of a history, with background work in between.
fn run(catalog: &Catalog, simulation: &Simulation, chance: &SeededRandom) {
    for _ in 0..chance.below(60) {
        match chance.below(8) {
            0 => change_something(catalog, chance),
            1 => simulation.tasks.run_until_idle(),
            _ => write_some(catalog, chance, 0..40),
        }
        simulation.tasks.run_one();
    }
}

#[test]
fn counters_and_documents_agree_after_every_crash() {
    for seed in 0..12 {
        let simulation = Environment::simulated(seed);
        let chance = SeededRandom::new(seed);
        let mut documents = 0;
        for life in 0..12 {
            let engine = open(&simulation);
            let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
            documents += assert_sound(&catalog);
            for name in NAMES {
                let _exists =
                    catalog.create_collection(&namespace(name), some_options(life.into()), [life; 16]);
            }
            run(&catalog, &simulation, &chance);
            assert_sound(&catalog);
            drop((catalog, engine));
            crash(&simulation, &chance);
        }
        assert!(documents > 20, "seed {seed}: crashes left {documents} documents in all");
    }
}

#[test]
fn a_crash_at_any_call_during_the_first_count_leaves_nothing_wrong() {
    for seed in 0..40 {
        let simulation = Environment::simulated(seed);
        let chance = SeededRandom::new(seed);
        {
            let engine = open(&simulation);
            let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
            for name in NAMES {
                catalog.create_collection(&namespace(name), some_options(seed as usize), [1; 16]).unwrap();
            }
            for _ in 0..40 {
                write_some(&catalog, &chance, 0..40);
            }
            drop_counters(&engine);
            engine.close().unwrap();
        }
        simulation.tasks.forget_all();
        for _ in 0..3 {
            let engine = open(&simulation);
            let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
            simulation.disk.crash_at_call(simulation.disk.calls() + chance.below(12));
            for name in NAMES {
                let _crashed =
                    catalog.counts(&catalog.collection(DATABASE, name).unwrap(), &Operation::default());
                // Commits behind the count, some of which reach the disk.
                let crashed = std::panic::AssertUnwindSafe(|| write_some(&catalog, &chance, 0..40));
                let _crashed = std::panic::catch_unwind(crashed);
            }
            drop((catalog, engine));
            crash(&simulation, &chance);
        }
        let engine = open(&simulation);
        let catalog = Catalog::open(Arc::clone(&engine)).unwrap();
        for name in NAMES {
            catalog.counts(&catalog.collection(DATABASE, name).unwrap(), &Operation::default()).unwrap();
        }
        assert_sound(&catalog);
    }
}
