//! Shrinking of failing histories: steps are left out as long as the test fails.

use std::cell::Cell;
use std::rc::Rc;

use pando_conformance::shrink::{failure_of, parse, print, shrink};

use super::History;

/// Runs a test on the history of a seed. If it panics it is run again and again with fewer steps, and the
/// panic at last names the fewest that do. `PANDO_SEED=7 PANDO_STEPS=3,17` runs only these steps of the
/// history of seed 7.
///
/// The test may count what it sees: the counts of a test that fails are of no use.
pub fn run<T>(seed: u64, mut test: impl FnMut(&mut History) -> T) -> T {
    let steps = Rc::new(Cell::new(0));
    let mut once = |kept: Option<Vec<usize>>| {
        steps.set(0);
        failure_of(|| test(&mut History::of_steps(seed, kept, Rc::clone(&steps))))
    };
    match once(asked_for(seed)) {
        Ok(outcome) => outcome,
        Err(first) => {
            let (count, mut failure) = (steps.get(), first);
            let all: Vec<usize> = (0..count).collect();
            let fewest =
                shrink(&all, |fewer| once(Some(fewer.to_vec())).map_err(|what| failure = what).is_err());
            let (few, fewest) = (fewest.len(), print(&fewest));
            panic!("{failure}\n{few} of {count} steps do: PANDO_SEED={seed} PANDO_STEPS={fewest}");
        }
    }
}

/// The steps that the environment names for this seed.
fn asked_for(seed: u64) -> Option<Vec<usize>> {
    let named: u64 = std::env::var("PANDO_SEED").ok()?.parse().expect("PANDO_SEED is a number");
    let steps = std::env::var("PANDO_STEPS").ok()?;
    (named == seed).then(|| parse(&steps))
}
