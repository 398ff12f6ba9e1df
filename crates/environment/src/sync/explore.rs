//! Runs a test under many schedules.
//!
//! Half of the schedules are drawn evenly: at every step any thread that can go on may. The other half follow
//! PCT (Burckhardt and others, ASPLOS 2010): one thread goes on as long as it can, except for a few changes
//! at random. PCT finds errors that need one long delay.
//!
//! `SCHEDULES` overrides how many schedules the test asks for, `SCHEDULE_SEED` the first seed. A failure
//! names both.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

/// Changes of mind in a schedule of PCT.
const DEPTH: usize = 4;

/// Threads of the engine compress and decompress.
const STACK_BYTES: usize = 1 << 20;

/// A test that takes more steps than this has a thread that keeps itself busy.
const STEPS_MAX: usize = 2_000_000;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("the variable is a number"))
}

/// Runs a test under this many schedules. It must do the same whenever the same threads go on in the same
/// order.
///
/// # Panics
/// Where the test does, or its threads wait for each other, under some schedule.
pub fn explore(schedules: usize, test: impl Fn() + Send + Sync + 'static) {
    let (schedules, seed) = (number("SCHEDULES", schedules as u64) as usize, number("SCHEDULE_SEED", 1));
    let test = Arc::new(test);
    run("random", seed, RandomScheduler::new_from_seed(seed, schedules.div_ceil(2)), Arc::clone(&test));
    run("PCT", seed, PctScheduler::new_from_seed(seed, DEPTH, schedules / 2), test);
}

/// Says which schedule was under way when a test failed.
struct Report {
    name: &'static str,
    seed: u64,
    began: Arc<AtomicUsize>,
}

impl Drop for Report {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (name, seed, number) = (self.name, self.seed, self.began.load(Ordering::Relaxed));
            eprintln!(
                "schedule {number} of {name}, seed {seed}; again with: SCHEDULE_SEED={seed} SCHEDULES={}",
                2 * number
            );
        }
    }
}

fn run(
    name: &'static str,
    seed: u64,
    scheduler: impl Scheduler + 'static,
    test: Arc<impl Fn() + Send + Sync + 'static>,
) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    let began = Arc::new(AtomicUsize::new(0));
    let _report = Report { name, seed, began: Arc::clone(&began) };
    Runner::new(scheduler, config).run(move || {
        began.fetch_add(1, Ordering::Relaxed);
        test();
    });
}
