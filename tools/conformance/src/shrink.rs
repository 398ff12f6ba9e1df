//! Makes a failing history small: leaves out operations as long as the failure stays.
//!
//! The operations of a history are numbered. Each follows from the seed and its own number alone, so the
//! operations that are kept do what they did before. The search is *ddmin* of Zeller and Hildebrandt (IEEE
//! TSE 2002), from large pieces to single operations. Its result fails, and no longer fails without any one
//! of its operations (unless the tries are used up before).

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Runs of a history at most, for one failure.
const TRIES_MAX: usize = 2_000;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The smallest part of these operations that is found for which `fails` holds, given that it holds for all
/// of them.
pub fn shrink(operations: &[usize], mut fails: impl FnMut(&[usize]) -> bool) -> Vec<usize> {
    let mut kept = operations.to_vec();
    let (mut piece, mut tries) = (kept.len().div_ceil(2), 0);
    while piece > 0 && tries < TRIES_MAX {
        let (mut at, before) = (0, kept.len());
        while at < kept.len() && tries < TRIES_MAX {
            let mut fewer = kept.clone();
            fewer.drain(at..(at + piece).min(kept.len()));
            tries += 1;
            if fails(&fewer) {
                kept = fewer;
            } else {
                at += piece;
            }
        }
        // Without one operation another may not be needed either: single ones are tried until all are.
        piece = if piece == 1 && kept.len() < before { 1 } else { piece / 2 };
    }
    kept
}

/// The message of a run that panics. It is not printed, because most runs of a search fail.
pub fn failure_of<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                usual(panic);
            }
        }));
    });
    IS_QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    IS_QUIET.set(false);
    outcome.map_err(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().copied().unwrap_or("a panic without a text").to_owned(),
    })
}

/// Operations as an environment variable has them: `3,17,40`.
///
/// # Panics
/// Where one is not a number.
pub fn parse(text: &str) -> Vec<usize> {
    text.split(',')
        .map(|number| number.parse().expect("operations are numbers with commas between"))
        .collect()
}

/// As [`parse`] reads them.
pub fn print(operations: &[usize]) -> String {
    operations.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_steps_are_those_that_the_failure_needs() {
        let all: Vec<usize> = (0..1_000).collect();
        let needed = [3, 4, 500, 998];
        let mut runs = 0;
        let found = shrink(&all, |kept| {
            runs += 1;
            needed.iter().all(|operation| kept.contains(operation))
        });
        assert_eq!(found, needed);
        assert!(runs < 200, "{runs} runs");
        assert_eq!(shrink(&all, |kept| kept.iter().sum::<usize>() >= 999), [999], "a single one is enough");
        assert_eq!(shrink(&all, |_| true), []);
    }

    #[test]
    fn a_panic_is_told_and_what_does_not_panic_is_given_back() {
        assert_eq!(failure_of(|| 7), Ok(7));
        assert_eq!(failure_of(|| panic!("seed {}", 3)), Err::<(), _>("seed 3".to_owned()));
        assert_eq!(parse(&print(&[3, 17, 40])), [3, 17, 40]);
    }
}
