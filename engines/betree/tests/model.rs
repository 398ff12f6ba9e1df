//! Model test: random operations under random tiny configurations, compared with a plain map of versions.
//!
//! Pages have 64 to 256 bytes, leaves half a KB to 4 KB, nodes four children, caches a few pages and buffers
//! a few entries. So every split, merge, eviction, freeze and checkpoint happens within a few dozen
//! operations. Background steps run one at a time, when the seed says so, on the simulated disk. A failure
//! names its seed, which repeats the run: `PANDO_SEED=123 cargo test -p pando-betree --test outside model::`.
//! `PANDO_RUNS=1000` runs that many seeds of each test. A failing run is shrunk to fewer operations. The
//! failure names them, and `PANDO_OPERATIONS=3,17,40` runs only those.
//!
//! After each end of the store, clean or by a kill, `verify` must find no damage.

mod history;
mod run;

use pando_conformance::shrink::{self, failure_of};
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

/// The operations of a run: the given number of them, or those that the environment names.
fn operations(count: usize) -> Vec<usize> {
    std::env::var("PANDO_OPERATIONS").map_or((0..count).collect(), |numbers| shrink::parse(&numbers))
}

/// One run from beginning to end; returns the slices that it met. If all of `planted` are among the
/// operations, a failure is planted behind the last of them.
fn live(seed: u64, operations: &[usize], planted: &[usize]) -> u64 {
    let mut run = Run::new(seed);
    for operation in operations {
        run.step(*operation);
        if planted.last() == Some(operation) && planted.iter().all(|planted| operations.contains(planted)) {
            run.plant();
        }
    }
    run.finish();
    run.slices.get()
}

/// A run; one that fails is run again with fewer operations, until no fewer fail.
fn live_or_shrink(seed: u64, operations: &[usize], planted: &[usize]) -> Result<u64, (Vec<usize>, String)> {
    failure_of(|| live(seed, operations, planted)).map_err(|first| {
        let mut failure = first;
        let fewest = shrink::shrink(operations, |fewer| {
            failure_of(|| live(seed, fewer, planted)).map_err(|what| failure = what).is_err()
        });
        (fewest, failure)
    })
}

fn run_all(from: u64, count: u64, operation_count: usize) {
    let (mut slices, seeds) = (0, seeds(from, count));
    for seed in &seeds {
        println!("seed {seed}");
        let operations = operations(operation_count);
        slices += live_or_shrink(*seed, &operations, &[]).unwrap_or_else(|(fewest, failure)| {
            let (count, fewest) = (fewest.len(), shrink::print(&fewest));
            panic!(
                "{failure}\n{count} of {} operations do: PANDO_SEED={seed} PANDO_OPERATIONS={fewest}",
                operations.len()
            )
        });
    }
    assert!(slices > 0 || seeds.len() < 5, "no run has met a slice: what is it that was tested?");
}

#[test]
fn a_failure_is_shrunk_to_the_operations_that_it_takes() {
    let planted = [20, 33];
    let (fewest, failure) =
        live_or_shrink(7, &(0..60).collect::<Vec<_>>(), &planted).expect_err("it was planted");
    assert_eq!(fewest, planted, "{failure}");
}

#[test]
fn short_runs_of_many_configurations_agree_with_a_map() {
    run_all(1, 60, 150);
}

#[test]
fn long_runs_agree_with_a_map() {
    run_all(1_000_000, 6, 1_000);
}
