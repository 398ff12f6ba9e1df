//! No operation takes the square of its operands: each is run with operands of 1,000, 10,000 and 100,000
//! elements, and its time may not grow as a square does.
//!
//! The time on the processor counts, the least of several runs. Only times above a floor are judged, and a
//! time that looks too long is taken again, so that a busy machine disturbs nothing.
//! `tests/acceptance/test_long_operands.py` runs the same kinds of operations beside MongoDB.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod long_operands;

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use long_operands::{Operation, expressions, filters, pipelines, plans, projections, updates};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// The time of a hundred times the elements. n·log n grows 170-fold, and caches that are too small for the
/// larger operands take their share. A square grows 10,000-fold.
const GROWTH_MAX: f64 = 1_600.0;

/// The time of ten times the elements. A square grows 100-fold, also where smaller operands hide it.
const STEP_MAX: f64 = 80.0;

/// Shorter times say nothing.
const FLOOR: Duration = Duration::from_millis(20);

/// A shorter operation is run again, until so much time is spent.
const RUN_MIN: Duration = Duration::from_millis(10);

/// An operation that takes longer is not repeated.
const REPEATED_MAX: Duration = Duration::from_millis(50);

const RUNS: usize = 2;

/// How often a time that is too long is taken again.
const RETRIALS: usize = 4;

#[test]
fn updates_take_no_squares() {
    judge(&updates::operations());
}

#[test]
fn filters_take_no_squares() {
    judge(&filters::operations());
}

#[test]
fn projections_take_no_squares() {
    judge(&projections::operations());
}

#[test]
fn expressions_take_no_squares() {
    judge(&expressions::operations());
}

#[test]
fn pipelines_take_no_squares() {
    judge(&pipelines::operations());
}

#[test]
fn plans_take_no_squares() {
    judge(&plans::operations());
}

/// The tests of this file run one after the other: they would disturb each other's times.
static TURN: Mutex<()> = Mutex::new(());

/// Runs all operations and tells all that grow too fast.
fn judge(operations: &[Operation]) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let failures: Vec<String> = operations.iter().filter_map(fault_of).collect();
    assert!(failures.is_empty(), "{} operations grow too fast:\n{}", failures.len(), failures.join("\n"));
}

/// The fault of an operation, if it grows too fast. With `--nocapture` the times are shown.
fn fault_of(operation: &Operation) -> Option<String> {
    let mut times = Vec::new();
    let mut fault = None;
    for size in SIZES {
        let mut time = least_time(operation, size);
        for _ in 0..RETRIALS {
            if !is_too_long(&times, time) {
                break;
            }
            time = time.min(least_time(operation, size));
        }
        let is_too_long = is_too_long(&times, time);
        times.push(time);
        if is_too_long {
            fault = Some(format!("{}: {times:.2?}", operation.name));
            break;
        }
    }
    println!("{:<50} {times:>10.2?}", operation.name);
    fault
}

/// Whether a time is too long after those of shorter operands.
fn is_too_long(before: &[Duration], time: Duration) -> bool {
    let grows = |from: Option<&Duration>, most: f64| {
        let from = from.map_or(time, |from| (*from).max(Duration::from_micros(100)));
        time.as_secs_f64() > most * from.as_secs_f64()
    };
    let is_last = before.len() + 1 == SIZES.len();
    time > FLOOR && (grows(before.last(), STEP_MAX) || (is_last && grows(before.first(), GROWTH_MAX)))
}

/// The least time of several runs.
fn least_time(operation: &Operation, size: usize) -> Duration {
    let mut run = (operation.prepare)(size);
    let mut least = Duration::MAX;
    for _ in 0..RUNS {
        let start = thread_time();
        let mut count = 0;
        let spent = loop {
            run();
            count += 1;
            let spent = thread_time().saturating_sub(start);
            if spent > RUN_MIN {
                break spent;
            }
        };
        least = least.min(spent / count);
        if least > REPEATED_MAX {
            break;
        }
    }
    least
}

/// The time that this thread has had on a processor: on a busy machine it waits for one far longer. Where the
/// system does not tell, the time of the clock.
fn thread_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    // The kernel adds up a thread's time when it yields.
    std::thread::yield_now();
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = figures.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| START.elapsed(), Duration::from_nanos)
}
