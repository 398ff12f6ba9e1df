//! Logged and durable: waits, and the effect of failures.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pando_environment::Operation;
use pando_environment::simulated::{Fault, FaultRule};
use pando_storage::{ErrorKind, StorageError};

use super::*;
use crate::base::LogPosition;

/// A counter of outcomes: one per success, 1,000 per failure.
fn outcome(counter: &Arc<AtomicU32>) -> LogWaker {
    let counter = Arc::clone(counter);
    Box::new(move |result| {
        counter.fetch_add(if result.is_ok() { 1 } else { 1_000 }, Ordering::SeqCst);
    })
}

#[test]
fn a_logged_record_survives_a_kill_and_a_synced_one_a_crash() {
    let simulation = Environment::simulated(1);
    let log = create(&simulation);
    let synced = append(&log, 5);
    log.sync(synced).unwrap();
    let logged = append(&log, 5);
    log.write_through(logged).unwrap();
    append(&log, 5);
    assert_eq!((log.durable_lsn(), log.logged_lsn(), log.appended_lsn()), (synced, logged, Lsn::new(15)));
    simulation.disk.kill();
    drop(log);
    let (log, records) = open(&simulation).unwrap();
    assert_records(&records, 1, 10);
    let last = append(&log, 3);
    log.sync(last).unwrap();
    append(&log, 2);
    simulation.disk.crash(1);
    drop(log);
    assert_records(&open(&simulation).unwrap().1, 1, 13);
}

#[test]
fn records_that_a_kill_left_in_the_kernel_are_durable_after_the_next_open() {
    for seed in 0..20 {
        let simulation = Environment::simulated(seed);
        let log = create(&simulation);
        let last = append(&log, 10);
        log.write_through(last).unwrap();
        simulation.disk.kill();
        drop(log);
        let (log, records) = open(&simulation).unwrap();
        assert_records(&records, 1, 10);
        assert_eq!(log.durable_lsn(), last);
        simulation.disk.crash(seed);
        drop(log);
        assert_records(&open(&simulation).unwrap().1, 1, 10);
    }
}

#[test]
fn the_sync_task_serves_wakers_without_anyone_waiting() {
    let simulation = Environment::simulated(2);
    let log = create(&simulation);
    simulation.tasks.run_until_idle();
    let served = Arc::new(AtomicU32::new(0));
    let lsn = append(&log, 1);
    log.on_durable(lsn, outcome(&served));
    log.on_durable(lsn, outcome(&served));
    assert_eq!(served.load(Ordering::SeqCst), 0);
    let syncs = log.statistics().syncs;
    simulation.tasks.run_until_idle();
    assert_eq!(served.load(Ordering::SeqCst), 2);
    assert_eq!((log.durable_lsn(), log.statistics().syncs - syncs), (lsn, 1));
    log.on_durable(lsn, outcome(&served));
    log.on_durable(Lsn::new(99), outcome(&served));
    assert_eq!(served.load(Ordering::SeqCst), 4, "what is durable is told at once");
    let lsn = append(&log, 1);
    log.on_logged(lsn, outcome(&served));
    assert_eq!((served.load(Ordering::SeqCst), log.logged_lsn()), (5, lsn));
}

#[test]
fn no_record_stays_unsynced_longer_than_the_sync_interval() {
    let simulation = Environment::simulated(3);
    let log = create(&simulation);
    simulation.tasks.run_until_idle();
    let lsn = append(&log, 3);
    simulation.tasks.run_until_idle();
    simulation.clock.advance(Duration::from_millis(60));
    simulation.tasks.run_until_idle();
    assert!(log.durable_lsn() < lsn);
    let lsn = append(&log, 1);
    simulation.clock.advance(Duration::from_millis(40));
    simulation.tasks.run_until_idle();
    assert_eq!(log.durable_lsn(), lsn);
    let syncs = log.statistics().syncs;
    simulation.clock.advance(Duration::from_secs(10));
    simulation.tasks.run_until_idle();
    assert_eq!(log.statistics().syncs, syncs, "an idle log is not synced");
}

#[test]
fn a_failed_sync_poisons_the_log_for_good_and_tells_every_waiter() {
    let simulation = Environment::simulated(4);
    let log = create(&simulation);
    simulation.tasks.run_until_idle();
    let durable = append(&log, 2);
    log.sync(durable).unwrap();
    let told = Arc::new(AtomicU32::new(0));
    let lsn = append(&log, 2);
    simulation.disk.inject(FaultRule::new(Operation::Sync, Fault::InputOutputError).on(".wal"));
    log.on_durable(lsn, outcome(&told));
    simulation.tasks.run_until_idle();
    assert_eq!(told.load(Ordering::SeqCst), 1_000);
    assert_eq!(log.durable_lsn(), durable);
    let calls = simulation.disk.calls();
    for _ in 0..3 {
        assert!(matches!(log.sync(lsn), Err(LogError::Poisoned { .. })));
        assert!(matches!(log.write_through(lsn), Err(LogError::Poisoned { .. })));
        let refused = StorageError::from(log.append(KIND, &[b"x"]).unwrap_err());
        assert_eq!(refused.kind(), ErrorKind::Closed);
        log.on_durable(lsn, outcome(&told));
        log.on_logged(lsn, outcome(&told));
    }
    // The record has reached the kernel, so callers that asked for no more get a true answer.
    assert_eq!(told.load(Ordering::SeqCst), 4_003);
    assert_eq!(simulation.disk.calls(), calls, "nothing is tried again");
    simulation.disk.crash(9);
    drop(log);
    assert_records(&open(&simulation).unwrap().1, 1, 2);
}

#[test]
fn a_failed_write_poisons_the_log_too() {
    for fault in [Fault::InputOutputError, Fault::ShortWrite, Fault::NoSpace] {
        let simulation = Environment::simulated(5);
        let log = create(&simulation);
        simulation.disk.inject(FaultRule::new(Operation::Write, fault).on(".wal"));
        let lsn = append(&log, 1);
        assert!(matches!(log.write_through(lsn), Err(LogError::Poisoned { .. })));
        assert!(log.append(KIND, &[b"x"]).is_err());
        assert!(log.close().is_err());
    }
}

#[test]
fn an_append_that_fails_to_write_keeps_its_lsn_and_the_next_call_reports_the_failure() {
    let simulation = Environment::simulated(7);
    let options = LogOptions { unwritten_bytes_max: 100, ..small_options() };
    let log = Log::create(&simulation.environment, Path::new(FOLDER), STORE, options).unwrap();
    simulation.disk.inject(FaultRule::new(Operation::Write, Fault::InputOutputError).on(".wal"));
    let lsn = log.append(KIND, &[&[7; 200]]).expect("later records wait for this one");
    assert_eq!(lsn, log.appended_lsn());
    assert!(matches!(log.write_through(lsn), Err(LogError::Poisoned { .. })));
    assert!(matches!(log.append(KIND, &[b"x"]), Err(LogError::Poisoned { .. })));
    assert_eq!(log.appended_lsn(), lsn, "no LSN is given out that nobody publishes");
}

#[test]
fn a_closed_log_refuses_records_and_tells_those_who_wait() {
    let simulation = Environment::simulated(6);
    let log = create(&simulation);
    let told = Arc::new(AtomicU32::new(0));
    let lsn = append(&log, 1);
    log.on_durable(lsn, outcome(&told));
    log.close().unwrap();
    log.close().unwrap();
    assert_eq!(told.load(Ordering::SeqCst), 1);
    assert!(matches!(log.append(KIND, &[b"x"]), Err(LogError::Closed)));
    log.on_durable(lsn.next(), outcome(&told));
    assert_eq!(told.load(Ordering::SeqCst), 2, "what was asked for is durable, though nothing more will be");
}

#[test]
fn threads_that_sync_share_syncs_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::real();
    let options = LogOptions { segment_bytes: 256 << 10, ..LogOptions::default() };
    let log = Log::create(&environment, folder.path(), STORE, options.clone()).unwrap();
    let (threads, each) = (8, 60);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for at in 0..each {
                    let lsn = log.append(KIND, &[&[7; 500]]).unwrap();
                    if at % 2 == 0 {
                        log.sync(lsn).unwrap();
                        assert!(log.durable_lsn() >= lsn);
                    } else {
                        let (sender, receiver) = std::sync::mpsc::channel();
                        log.on_durable(lsn, Box::new(move |result| sender.send(result.is_ok()).unwrap()));
                        assert!(receiver.recv_timeout(Duration::from_secs(20)).unwrap());
                    }
                }
            });
        }
    });
    let statistics = log.statistics();
    assert!(statistics.syncs < threads * each, "{statistics:?}");
    drop(log);
    let mut count = 0;
    let mut replay = |record: LogRecord<'_>| {
        count += 1;
        assert_eq!((record.lsn.get(), record.payload), (count, &[7; 500][..]));
        Ok(())
    };
    let last = Lsn::new(threads * each);
    Log::open(&environment, folder.path(), STORE, options, LogPosition::START, last, &mut replay).unwrap();
    assert_eq!(count, threads * each);
}
