//! Power cuts at every call: acknowledged states survive, blocks are whole, and no unit leaks.

use super::toy::{Image, Toy};
use super::*;

/// Runs a fixed history until it ends or the power goes. Returns the image that was last acknowledged as
/// durable, and the one that was being made durable.
fn history(simulation: &Simulation, seed: u64, rounds: u64) -> (Option<Image>, Option<Image>) {
    let random = SeededRandom::new(seed);
    let Ok(mut toy) = Toy::create(simulation) else { return (None, None) };
    let mut durable = Image::new();
    for _ in 0..rounds {
        for _ in 0..1 + random.below(4) {
            if toy.step(&random).is_err() {
                return (Some(durable), None);
            }
        }
        let image = toy.image();
        match toy.checkpoint() {
            Ok(_outcome) => durable = image,
            Err(_) => return (Some(durable), Some(image)),
        }
    }
    (Some(durable), None)
}

/// Opens after a crash and checks what is there; then goes on for a while, to see that the store still works.
fn check(simulation: &Simulation, durable: Option<Image>, attempted: Option<Image>, label: &str) {
    if !BlockStore::exists(&simulation.environment, Path::new(FOLDER)).unwrap() {
        assert!(durable.is_none_or(|image| image.is_empty()), "{label}: the store is gone");
        return;
    }
    let (mut toy, _superblock) = Toy::open(simulation).unwrap_or_else(|error| panic!("{label}: {error}"));
    let found = toy.image();
    let is_expected =
        durable.as_ref().is_none_or(|durable| found == *durable) || attempted.as_ref() == Some(&found);
    assert!(is_expected, "{label}: found {found:?}, durable {durable:?}, attempted {attempted:?}");
    let random = SeededRandom::new(77);
    for _ in 0..3 {
        for _ in 0..3 {
            toy.step(&random).unwrap();
        }
        toy.checkpoint().unwrap_or_else(|error| panic!("{label}: {error}"));
        toy.audit().unwrap_or_else(|error| panic!("{label}: {error}"));
    }
    let image = toy.image();
    drop(toy);
    let (toy, _superblock) = Toy::open(simulation).unwrap_or_else(|error| panic!("{label}: {error}"));
    assert_eq!(toy.image(), image, "{label}");
}

#[test]
fn a_crash_at_every_call_of_a_short_history_loses_nothing_that_was_acknowledged() {
    for seed in 0..4 {
        let whole = simulation(seed);
        history(&whole, seed, 6);
        let calls = whole.disk.calls();
        assert!(calls > 40);
        for call in 1..=calls {
            let simulation = simulation(seed);
            simulation.disk.crash_at_call(call);
            let (durable, attempted) = history(&simulation, seed, 6);
            assert!(!simulation.disk.has_power());
            simulation.disk.crash(seed * 1_000 + call);
            check(&simulation, durable, attempted, &format!("seed {seed}, call {call}"));
        }
    }
}

#[test]
fn long_runs_with_crashes_at_random_calls_lose_nothing_that_was_acknowledged() {
    for seed in 100..220 {
        let random = SeededRandom::new(seed);
        let simulation = simulation(seed);
        simulation.disk.crash_at_call(1 + random.below(400));
        let (durable, attempted) = history(&simulation, seed, 40);
        simulation.disk.crash(seed);
        check(&simulation, durable, attempted, &format!("seed {seed}"));
    }
}

#[test]
fn a_killed_process_leaves_a_store_that_opens() {
    for call in 1..120 {
        let simulation = simulation(3);
        simulation.disk.crash_at_call(call);
        let (durable, attempted) = history(&simulation, 3, 6);
        simulation.disk.kill();
        check(&simulation, durable, attempted, &format!("call {call}"));
    }
}
