//! Power cuts at every call: the log that comes back is a prefix with all acknowledged records.

use pando_environment::Random;

use super::*;
use crate::base::LogPosition;

/// The promises of a run before the power failed.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    durable: u64,
    logged: u64,
    appended: u64,
    kept_from: LogPositionOrStart,
}

#[derive(Clone, Copy, Debug)]
struct LogPositionOrStart(LogPosition);

impl Default for LogPositionOrStart {
    fn default() -> Self {
        LogPositionOrStart(LogPosition::START)
    }
}

/// Appends, writes through, syncs, releases and shortens at random until the power goes.
fn run(log: &Log, random: &SeededRandom, rounds: u64, told: &mut Told) -> Result<(), LogError> {
    for _ in 0..rounds {
        for _ in 0..1 + random.below(8) {
            let next = told.appended + 1;
            log.append(KIND, &[&payload(next)])?;
            told.appended = next;
        }
        let lsn = log.appended_lsn();
        match random.below(4) {
            0 => {}
            1 => {
                log.write_through(lsn)?;
                told.logged = lsn.get();
            }
            _ => {
                log.sync(lsn)?;
                (told.durable, told.logged) = (lsn.get(), lsn.get());
            }
        }
        if random.below(6) == 0 && told.durable > 0 {
            let keep = Lsn::new(told.durable);
            let position = log.position_of(keep);
            told.kept_from = LogPositionOrStart(position);
            log.release_before(position)?;
        }
        if random.below(8) == 0 {
            log.shorten()?;
        }
    }
    Ok(())
}

/// Opens, and checks that the first `least` records are there and that all records found are in order.
fn check(simulation: &Simulation, told: &Told, least: u64, label: &str) -> (Arc<Log>, u64) {
    let from = told.kept_from.0;
    let (log, records) = open_from(&simulation.environment, from, Lsn::new(told.durable))
        .unwrap_or_else(|error| panic!("{label}: {error}, told {told:?}"));
    assert_records(&records, from.lsn().get(), records.len() as u64);
    let last = from.lsn().get() - 1 + records.len() as u64;
    assert!(last >= least && last <= told.appended.max(least), "{label}: ends at {last}, told {told:?}");
    (log, last)
}

#[test]
fn a_crash_at_every_call_leaves_a_prefix_with_all_that_was_synced() {
    for seed in 0..6 {
        let whole = Environment::simulated(seed);
        run(&create(&whole), &SeededRandom::new(seed), 60, &mut Told::default()).unwrap();
        for call in 1..=whole.disk.calls() {
            let simulation = Environment::simulated(seed);
            simulation.disk.crash_at_call(call);
            let mut told = Told::default();
            let folder = Path::new(FOLDER);
            if let Ok(log) = Log::create(&simulation.environment, folder, STORE, small_options()) {
                assert!(run(&log, &SeededRandom::new(seed), 60, &mut told).is_err());
            }
            simulation.disk.crash(seed * 10_000 + call);
            let (log, last) = check(&simulation, &told, told.durable, &format!("seed {seed}, call {call}"));
            // The log goes on where it ends, and a second crash finds both lives.
            told.appended = last;
            run(&log, &SeededRandom::new(call), 5, &mut told).unwrap();
            simulation.disk.crash(call);
            drop(log);
            check(&simulation, &told, told.durable, &format!("seed {seed}, call {call}, again"));
        }
    }
}

#[test]
fn a_kill_at_every_call_leaves_a_prefix_with_all_that_was_logged() {
    let seed = 3;
    let whole = Environment::simulated(seed);
    run(&create(&whole), &SeededRandom::new(seed), 60, &mut Told::default()).unwrap();
    for call in 5..=whole.disk.calls() {
        let simulation = Environment::simulated(seed);
        let log = create(&simulation);
        simulation.disk.crash_at_call(call);
        let mut told = Told::default();
        let _cut = run(&log, &SeededRandom::new(seed), 60, &mut told);
        simulation.disk.kill();
        drop(log);
        check(&simulation, &told, told.logged, &format!("call {call}"));
    }
}

#[test]
fn many_lives_with_random_crashes_lose_nothing_that_was_synced() {
    for seed in 0..40 {
        let random = SeededRandom::new(seed);
        let simulation = Environment::simulated(seed);
        let mut told = Told::default();
        drop(create(&simulation));
        simulation.disk.crash(seed);
        for life in 0..8 {
            let label = format!("seed {seed}, life {life}");
            let (log, last) = check(&simulation, &told, told.durable, &label);
            told.appended = last;
            // Opening makes durable what the last life left in the kernel.
            (told.durable, told.logged) = (last, last);
            simulation.disk.crash_at_call(1 + random.below(120));
            let _cut = run(&log, &random, 80, &mut told);
            if random.below(3) == 0 {
                simulation.disk.kill();
                told.durable = told.logged;
            } else {
                simulation.disk.crash(random.next_u64());
            }
        }
    }
}
