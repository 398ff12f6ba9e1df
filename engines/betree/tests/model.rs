//! Random operations under random tiny configurations, against a plain map of versions.
//!
//! Pages of 64 to 256 bytes, leaves of half a KB to 4 KB, fanout 4, caches of a few pages and buffers of a few entries: every
//! split, merge, eviction, freeze and checkpoint happens within a few dozen operations. Background steps run one at a time,
//! where the seed says, on the simulated disk; so a run is replayed by its seed, which every failure names:
//! `PANDO_SEED=123 cargo test -p pando-betree --test model`. `PANDO_RUNS=1000` runs so many seeds of each test.
//!
//! After each end of the store, clean or by a killed process, `verify` must find nothing.

#[path = "model/history.rs"]
mod history;
#[path = "model/run.rs"]
mod run;

use run::Run;

/// Runs one seed per call, or only the one that the environment names.
fn seeds(from: u64, count: u64) -> Vec<u64> {
    match std::env::var("PANDO_SEED") {
        Ok(seed) => vec![seed.parse().expect("PANDO_SEED is a number")],
        Err(_) => {
            let count = std::env::var("PANDO_RUNS")
                .map_or(count, |runs| runs.parse().expect("PANDO_RUNS is a number"));
            (from..from + count).collect()
        }
    }
}

fn run_all(from: u64, count: u64, operations: u64) {
    let (mut slices, seeds) = (0, seeds(from, count));
    for seed in &seeds {
        let seed = *seed;
        println!("seed {seed}");
        let mut run = Run::new(seed);
        for _ in 0..operations {
            run.step();
        }
        run.finish();
        slices += run.slices.get();
    }
    assert!(slices > 0 || seeds.len() < 5, "no run has met a slice: what is it that was tested?");
}

#[test]
fn short_runs_of_many_configurations_agree_with_a_map() {
    run_all(1, 60, 150);
}

#[test]
fn long_runs_agree_with_a_map() {
    run_all(1_000_000, 6, 1_000);
}
