//! Interleavings of the log's writers, of threads that wait for them, and of the sync task. The power fails
//! at some moment of each.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pando_environment::simulated::{Fault, FaultRule};
use pando_environment::sync::{Condvar, Mutex, explore, thread};
use pando_environment::{Environment, Operation, Simulation};
use pando_storage::Lsn;

use super::*;
use crate::base::StoreId;
use crate::base::{LogPosition, RecordKind};

const FOLDER: &str = "/store";
const STORE: StoreId = StoreId::new(*b"the log's store!");

fn options() -> LogOptions {
    // A few records fill a segment, and an append writes through by itself, also while another thread syncs.
    LogOptions {
        segment_bytes: 1 << 10,
        zero_ahead_bytes: 512,
        unwritten_bytes_max: 100,
        ..LogOptions::default()
    }
}

fn create(simulation: &Simulation) -> Arc<Log> {
    Log::create(&simulation.environment, Path::new(FOLDER), STORE, options()).expect("a new log can be made")
}

/// The last record of the log that the disk holds.
fn last_on_disk(simulation: &Simulation) -> u64 {
    let (from, must_reach) = (LogPosition::START, Lsn::ZERO);
    Log::check(&simulation.environment, Path::new(FOLDER), (STORE, None), from, must_reach)
        .expect("the log is sound")
}

/// The LSN that the log has reported as durable. It is no point where threads switch, so that it is exact.
#[derive(Default)]
struct Told(AtomicU64);

impl Told {
    fn note(&self, lsn: Lsn) {
        self.0.fetch_max(lsn.get(), Ordering::SeqCst);
    }
}

/// Three threads that append and sync records, and note those that were acknowledged.
fn writers(log: &Arc<Log>, told: &Arc<Told>) -> Vec<thread::JoinHandle<()>> {
    let writer = |byte: u8| {
        let (log, told) = (Arc::clone(log), Arc::clone(told));
        thread::spawn(move || {
            for round in 0..3 {
                let payload = vec![byte; 100 + 40 * round];
                let Ok(lsn) = log.append(RecordKind::new(9), &[&payload]) else { return };
                if log.sync(lsn).is_err() {
                    return;
                }
                told.note(lsn);
            }
        })
    };
    (0..3).map(writer).collect()
}

#[test]
fn records_that_a_sync_has_acknowledged_survive_a_power_cut_at_any_moment() {
    // Each schedule has another moment, and another choice of what survives.
    let schedule = AtomicU64::new(0);
    explore(6_000, move || {
        let schedule = schedule.fetch_add(1, Ordering::SeqCst);
        let simulation = Arc::new(Environment::scheduled(7));
        let (log, told) = (create(&simulation), Arc::new(Told::default()));
        let writers = writers(&log, &told);
        let power = {
            let (simulation, told) = (Arc::clone(&simulation), Arc::clone(&told));
            thread::spawn(move || {
                (0..schedule % 61).for_each(|_| thread::yield_now());
                simulation.disk.crash(schedule);
                told.0.load(Ordering::SeqCst)
            })
        };
        let promised = power.join().expect("it does not panic");
        writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
        drop(log);
        let last = last_on_disk(&simulation);
        assert!(last >= promised, "record {promised} was acknowledged, and the log ends at {last}");
    });
}

#[test]
fn no_sync_beside_one_that_fails_acknowledges_the_records_that_it_lost() {
    let schedule = AtomicU64::new(0);
    explore(6_000, move || {
        let schedule = schedule.fetch_add(1, Ordering::SeqCst);
        let simulation = Arc::new(Environment::scheduled(7));
        let (log, told) = (create(&simulation), Arc::new(Told::default()));
        let rule = FaultRule::new(Operation::Sync, Fault::InputOutputError).on(".wal");
        simulation.disk.inject(rule.after(schedule % 7));
        let writers = writers(&log, &told);
        writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
        let promised = told.0.load(Ordering::SeqCst);
        simulation.disk.clear_faults();
        simulation.disk.crash(schedule);
        drop(log);
        let last = last_on_disk(&simulation);
        assert!(last >= promised, "record {promised} was acknowledged, and the log ends at {last}");
    });
}

/// The answer of a waker, and a wait for it without a time limit.
#[derive(Default)]
struct Answer {
    said: Mutex<Option<bool>>,
    is_said: Condvar,
}

impl Answer {
    fn say(&self, is_ok: bool) {
        assert!(self.said.lock().replace(is_ok).is_none(), "a waker is called once");
        self.is_said.notify_all();
    }

    fn wait(&self) -> bool {
        let mut said = self.said.lock();
        loop {
            if let Some(is_ok) = *said {
                return is_ok;
            }
            self.is_said.wait(&mut said);
        }
    }
}

#[test]
fn every_waker_is_called_once_and_nobody_sleeps_for_ever() {
    explore(1_500, || {
        let simulation = Environment::scheduled(7);
        let log = create(&simulation);
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let log = Arc::clone(&log);
                thread::spawn(move || {
                    let lsn = log.append(RecordKind::new(9), &[&[writer; 200]]).expect("there is room");
                    let (logged, durable) = (Arc::new(Answer::default()), Arc::new(Answer::default()));
                    let (log_answer, sync_answer) = (Arc::clone(&logged), Arc::clone(&durable));
                    log.on_logged(lsn, Box::new(move |outcome| log_answer.say(outcome.is_ok())));
                    assert!(logged.wait() && log.logged_lsn() >= lsn);
                    log.on_durable(lsn, Box::new(move |outcome| sync_answer.say(outcome.is_ok())));
                    assert!(durable.wait() && log.durable_lsn() >= lsn);
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
        log.close().expect("the disk is sound");
        assert_eq!(log.durable_lsn(), log.appended_lsn());
        drop(log);
        assert_eq!(last_on_disk(&simulation), 3);
    });
}

#[test]
fn waiters_are_told_when_the_log_is_closed() {
    explore(1_500, || {
        let simulation = Environment::scheduled(7);
        let log = create(&simulation);
        let waiting = {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                let Ok(lsn) = log.append(RecordKind::new(9), &[b"payload"]) else { return };
                let answer = Arc::new(Answer::default());
                let said = Arc::clone(&answer);
                log.on_durable(lsn, Box::new(move |outcome| said.say(outcome.is_ok())));
                if answer.wait() {
                    assert!(log.durable_lsn() >= lsn);
                }
            })
        };
        log.close().expect("the disk is sound");
        waiting.join().expect("it does not panic");
    });
}
