//! Metamorphic test: one random stream of operations, many configurations, the same answers.
//!
//! The [stream](stream) is drawn from the seed alone and never depends on an answer. Each configuration
//! [runs](run) it on a disk of its own, with its own timing of background work. Its answers are written down
//! line by line: every get, and every scan forwards and backwards, at the newest and at old snapshots. They
//! are taken before and after reopening, and after a kill. All lines must be equal. Runs or no runs, filters
//! or none, and changes of tree options must not show.
//!
//! Other activities: [writers](writers) whose transactions last several steps and spill; trees that are
//! [loaded](trees) and dropped while readers that began before go on; and [backups](backups), each of which
//! is restored and read. A refused write or load, and its reason, is an answer too.
//!
//! Every configuration but the usual one is tiny. So leaves and nodes split, runs are written, merged and
//! flushed, and pages are evicted, all within a few hundred operations. `verify` checks each store at the
//! end.
//!
//! A stream that fails is shrunk: it is run with fewer steps as long as it fails. The rest is printed;
//! `PANDO_SEED=3 PANDO_OPERATIONS=8,21` runs it.

mod backups;
mod configurations;
mod reading;
mod run;
mod seen;
mod stream;
mod trees;
mod writers;

use configurations::{CHANGING, USUAL, configurations};
use pando_conformance::shrink::{self, failure_of};
use run::Run;
use seen::Seen;
use stream::{Step, stream};

/// Runs steps of the stream of a seed in every configuration; returns what each of them met.
///
/// # Panics
/// Where an answer differs from that of the first one.
fn compare(seed: u64, stream: &[Step], kept: &[usize], planted: &[usize]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut expected: Option<(&str, Vec<String>)> = None;
    for (name, options) in configurations() {
        let mut run = Run::new(seed, name, options);
        kept.iter().for_each(|at| run.step(*at, &stream[*at]));
        run.finish(stream.len());
        if name == CHANGING && !planted.is_empty() && planted.iter().all(|planted| kept.contains(planted)) {
            run.answers[0] += " (planted)";
        }
        seen.push(run.seen());
        let Some((usual, expected)) = &expected else {
            expected = Some((name, run.answers));
            continue;
        };
        for (found, expected) in run.answers.iter().zip(expected) {
            assert_eq!(found, expected, "seed {seed}: {name} differs from {usual}");
        }
        assert_eq!(run.answers.len(), expected.len(), "seed {seed}: answers of {name}");
    }
    seen
}

/// As [`compare`]. Where that fails, the result is the fewest steps with which it does, and its message then.
fn compare_or_shrink(
    seed: u64,
    stream: &[Step],
    planted: &[usize],
) -> Result<Vec<Seen>, (Vec<usize>, String)> {
    let all =
        std::env::var("PANDO_OPERATIONS").map_or((0..stream.len()).collect(), |kept| shrink::parse(&kept));
    failure_of(|| compare(seed, stream, &all, planted)).map_err(|first| {
        let mut failure = first;
        let fewest = shrink::shrink(&all, |fewer| {
            failure_of(|| compare(seed, stream, fewer, planted)).map_err(|what| failure = what).is_err()
        });
        (fewest, failure)
    })
}

fn number(variable: &str) -> Option<u64> {
    Some(std::env::var(variable).ok()?.parse().expect("the variable is a number"))
}

#[test]
fn every_configuration_gives_the_same_answers() {
    let seeds = number("PANDO_SEED").map_or(0..number("PANDO_RUNS").unwrap_or(4), |seed| seed..seed + 1);
    let mut seen = vec![Seen::default(); configurations().len()];
    for seed in seeds.clone() {
        let stream = stream(seed, 300);
        let met = compare_or_shrink(seed, &stream, &[]).unwrap_or_else(|(fewest, failure)| {
            let steps: Vec<_> = fewest.iter().map(|at| &stream[*at]).collect();
            let kept = shrink::print(&fewest);
            panic!("{failure}\nwith these steps alone: {steps:?}\nPANDO_SEED={seed} PANDO_OPERATIONS={kept}")
        });
        seen.iter_mut().zip(met).for_each(|(all, met)| *all += met);
    }
    if seeds.end - seeds.start >= 4 {
        assert_all_was_met(&seen);
    }
}

/// Or the test has tested nothing.
fn assert_all_was_met(seen: &[Seen]) {
    for (at, ((name, _), seen)) in configurations().iter().zip(seen).enumerate() {
        // The first three have no runs, all others must have had some.
        assert_eq!(seen.slices > 0, at >= 3, "{name}: {seen:?}");
        // In the usual one there is memory for all transactions.
        assert_eq!(seen.spilled_layers > 0, *name != USUAL, "{name}: {seen:?}");
        assert_eq!(seen.large_commits > 0, *name != USUAL, "{name}: {seen:?}");
        let everywhere = [
            seen.conflicts,
            seen.loaded_leaves,
            seen.reads_of_dropped,
            seen.kills,
            seen.full_backups,
            seen.incremental_backups,
        ];
        assert!(everywhere.iter().all(|count| *count > 0), "{name}: {seen:?}");
    }
}

#[test]
fn a_failure_is_shrunk_to_the_steps_that_it_takes() {
    let planted = [9, 26];
    let (fewest, failure) = compare_or_shrink(0, &stream(0, 30), &planted).expect_err("it was planted");
    assert_eq!(fewest, planted, "{failure}");
}
