//! Segments: records across them, positions in them, and their use after release.

use pando_environment::simulated::{Fault, FaultRule};
use pando_environment::{Access, FileSystem, OpenMode, Operation};

use super::*;
use crate::base::LogPosition;

#[test]
fn records_come_back_in_order_across_segments_and_reopenings() {
    let simulation = Environment::simulated(1);
    let mut log = create(&simulation);
    let mut total = 0;
    for _ in 0..5 {
        append(&log, 60);
        total += 60;
        log.close().unwrap();
        drop(log);
        let (reopened, records) = open(&simulation).unwrap();
        assert_records(&records, 1, total);
        log = reopened;
    }
    assert!(log.end().segment() > 5);
}

#[test]
fn records_of_every_length_up_to_many_segments_come_back() {
    let simulation = Environment::simulated(2);
    let log = create(&simulation);
    let lengths = [0, 1, 7, 8, 15_800, 15_872, 15_873, 16_384, 100_000, 3, 5_000_000, 2];
    for (at, length) in lengths.into_iter().enumerate() {
        log.append(KIND, &[&vec![at as u8; length]]).unwrap();
    }
    log.close().unwrap();
    let (log, records) = open(&simulation).unwrap();
    for (at, length) in lengths.into_iter().enumerate() {
        assert_eq!(records[at].1, vec![at as u8; length]);
    }
    assert!(log.release_before(log.position_of(log.appended_lsn())).is_ok());
    assert!(matches!(log.append(KIND, &[&vec![0; RECORD_BYTES_MAX + 1]]), Err(LogError::TooLong { .. })));
    append(&log, 1);
}

#[test]
fn replay_from_the_position_of_any_record_meets_every_record_after_it() {
    let simulation = Environment::simulated(3);
    let log = create(&simulation);
    let last = append(&log, 200);
    log.sync(last).unwrap();
    let positions: Vec<_> = (0..=200).map(|lsn| log.position_of(Lsn::new(lsn))).collect();
    assert_eq!(positions[200], log.end());
    drop(log);
    for (lsn, position) in positions.into_iter().enumerate().step_by(13) {
        simulation.disk.kill();
        let counted =
            Log::check(&simulation.environment, Path::new(FOLDER), (STORE, None), position, Lsn::new(200));
        assert_eq!(counted.unwrap(), 201 - position.lsn().get());
        let encoded = LogPosition::decode(&position.encode()).unwrap();
        let (_log, records) = open_from(&simulation.environment, encoded, Lsn::new(200)).unwrap();
        let first = position.lsn().get();
        assert!(first <= lsn as u64 + 1);
        assert_records(&records, first, 201 - first);
    }
}

#[test]
fn released_segments_are_used_again_and_their_old_records_never_come_back() {
    let simulation = Environment::simulated(4);
    let mut log = create(&simulation);
    for round in 0..30 {
        let last = append(&log, 50);
        log.sync(last).unwrap();
        let keep = Lsn::new(last.get().saturating_sub(20));
        log.release_before(log.position_of(keep)).unwrap();
        let files = simulation.environment.files().list(&Path::new(FOLDER).join("wal")).unwrap();
        assert!(files.len() <= 6, "{files:?}");
        assert!(log.live_bytes() <= 4 * (16 << 10));
        if round % 4 == 3 {
            let from = log.position_of(keep);
            if round % 8 == 3 {
                append(&log, 10);
                simulation.disk.crash(round);
            } else {
                simulation.disk.kill();
            }
            drop(log);
            let (reopened, records) = open_from(&simulation.environment, from, last).unwrap();
            let count = reopened.appended_lsn().get() + 1 - from.lsn().get();
            assert_records(&records, from.lsn().get(), count);
            assert!(reopened.appended_lsn() >= last);
            log = reopened;
        }
    }
    let statistics = log.statistics();
    assert!(statistics.file_bytes >= statistics.live_bytes);
}

fn file_lengths(simulation: &Simulation) -> Vec<u64> {
    let folder = Path::new(FOLDER).join("wal");
    let names = simulation.environment.files().list(&folder).unwrap();
    names.iter().map(|name| simulation.disk.content(&folder.join(name)).len() as u64).collect()
}

#[test]
fn segments_grow_with_what_is_written_and_a_log_at_rest_is_short_once_old_ones_are_released() {
    let simulation = Environment::simulated(8);
    let log = create(&simulation);
    assert_eq!(file_lengths(&simulation), [8 << 10], "the first is short");
    let last = append(&log, 200);
    assert!(!log.shorten().unwrap(), "what is not durable keeps it as it is");
    log.sync(last).unwrap();
    assert!(file_lengths(&simulation).contains(&(16 << 10)));
    assert!(log.shorten().unwrap());
    assert_eq!(log.position_of(last), log.end());
    log.release_before(log.end()).unwrap();
    assert!(log.shorten().unwrap(), "released segments wait to be used");
    assert_eq!(file_lengths(&simulation), [8 << 10]);
    assert!(!log.shorten().unwrap(), "it is as short as can be");
    assert_eq!(log.statistics().file_bytes, 8 << 10);
    let from = log.end();
    append(&log, 50);
    log.close().unwrap();
    let (_log, records) = open_from(&simulation.environment, from, last).unwrap();
    assert_records(&records, 201, 50);
}

#[test]
fn a_log_that_is_opened_again_and_again_without_a_record_stays_as_it_is() {
    let simulation = Environment::simulated(9);
    let mut log = create(&simulation);
    let last = append(&log, 100);
    log.sync(last).unwrap();
    log.shorten().unwrap();
    log.release_before(log.end()).unwrap();
    log.shorten().unwrap();
    let from = log.end();
    for life in 0..10 {
        if life % 3 == 0 {
            simulation.disk.crash(life);
        } else {
            log.close().unwrap();
        }
        drop(log);
        let (opened, records) = open_from(&simulation.environment, from, last).unwrap();
        assert!(records.is_empty());
        assert_eq!(opened.end(), from);
        assert_eq!(file_lengths(&simulation), [8 << 10]);
        log = opened;
    }
    append(&log, 10);
    log.close().unwrap();
    let (_log, records) = open_from(&simulation.environment, from, last).unwrap();
    assert_records(&records, 101, 10);
}

#[test]
fn the_remains_of_a_torn_write_in_an_empty_segment_are_no_record_of_the_next_life() {
    for seed in 0..60 {
        let simulation = Environment::simulated(seed);
        let log = create(&simulation);
        // All of it is in the first segment, and none of it durable.
        let last = append(&log, 6);
        log.write_through(last).unwrap();
        simulation.disk.crash(seed);
        drop(log);
        let (log, records) = open(&simulation).unwrap();
        let first = records.len() as u64;
        append(&log, 3);
        log.sync(log.appended_lsn()).unwrap();
        drop(log);
        simulation.disk.crash(seed);
        assert_records(&open(&simulation).unwrap().1, 1, first + 3);
    }
}

#[test]
fn segments_that_an_older_superblock_needs_are_kept_across_an_open_from_a_newer_position() {
    let simulation = Environment::simulated(5);
    let log = create(&simulation);
    let last = append(&log, 100);
    log.sync(last).unwrap();
    let newer = log.position_of(Lsn::new(80));
    drop(log);
    simulation.disk.kill();
    let (log, records) = open_from(&simulation.environment, newer, last).unwrap();
    assert_records(&records, newer.lsn().get(), 101 - newer.lsn().get());
    let last = append(&log, 30);
    log.sync(last).unwrap();
    drop(log);
    simulation.disk.kill();
    let (log, records) = open(&simulation).unwrap();
    assert_records(&records, 1, 130);
    drop(log);
}

#[test]
fn a_full_disk_refuses_a_record_before_it_has_an_lsn_and_takes_it_when_there_is_room() {
    let simulation = Environment::simulated(6);
    let log = create(&simulation);
    simulation.disk.set_capacity(Some(simulation.disk.used_bytes()));
    let mut appended = 0;
    let error = loop {
        match log.append(KIND, &[&payload(appended + 1)]) {
            Ok(_lsn) => appended += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LogError::NoSpace { .. }), "{error}");
    assert_eq!(log.appended_lsn(), Lsn::new(appended));
    log.sync(log.appended_lsn()).unwrap();
    assert!(log.append(KIND, &[&[0; 20_000]]).is_err());
    simulation.disk.set_capacity(None);
    append(&log, 40);
    log.close().unwrap();
    drop(log);
    assert_records(&open(&simulation).unwrap().1, 1, appended + 40);
}

#[test]
fn on_a_nearly_full_disk_segments_are_as_short_as_they_have_to_be() {
    let simulation = Environment::simulated(7);
    // Of the usual length, and the first one long enough for the records before the disk is nearly full.
    let options = LogOptions { segment_bytes: 1 << 20, zero_ahead_bytes: 1 << 10, ..LogOptions::default() };
    let log = Log::create(&simulation.environment, Path::new(FOLDER), STORE, options).unwrap();
    let mut appended = append(&log, 200).get();
    const ROOM: u64 = 60 << 10;
    simulation.disk.set_capacity(Some(simulation.disk.used_bytes() + ROOM));
    let mut more = 0;
    while log.append(KIND, &[&payload(appended + 1)]).is_ok() {
        appended += 1;
        more += payload(appended).len() as u64;
    }
    assert!(more > ROOM / 2, "{more} bytes of records went into the {ROOM} bytes that were left");
    log.sync(log.appended_lsn()).unwrap();
    drop(log);
    simulation.disk.kill();
    // It opens while the disk is full.
    let (log, records) = open(&simulation).unwrap();
    assert_records(&records, 1, appended);
    simulation.disk.set_capacity(None);
    append(&log, 300);
    log.close().unwrap();
    drop(log);
    assert_records(&open(&simulation).unwrap().1, 1, appended + 300);
}

#[test]
fn a_log_opens_on_a_full_disk_and_goes_on_in_its_last_segment() {
    for seed in 0..30 {
        let simulation = Environment::simulated(seed);
        let log = create(&simulation);
        let synced = append(&log, 5 + seed % 40);
        log.sync(synced).unwrap();
        let last = append(&log, 6);
        log.write_through(last).unwrap();
        simulation.disk.crash(seed);
        drop(log);
        for number in 1..20 {
            let path = segment_path(number);
            // Without spare files there is no room for a further segment.
            if simulation.disk.exists(&path).unwrap()
                && simulation.disk.content(&path).iter().all(|byte| *byte == 0)
            {
                simulation.disk.remove(&path).unwrap();
            }
        }
        simulation.disk.set_capacity(Some(simulation.disk.used_bytes()));
        let (log, records) = open(&simulation).unwrap();
        let survived = records.len() as u64;
        assert_records(&records, 1, survived);
        assert!(survived >= synced.get());
        let mut appended = survived;
        while log.append(KIND, &[&payload(appended + 1)]).is_ok() {
            appended += 1;
        }
        log.sync(log.appended_lsn()).unwrap();
        drop(log);
        simulation.disk.crash(seed);
        simulation.disk.set_capacity(None);
        let (log, records) = open(&simulation).unwrap();
        assert_records(&records, 1, appended);
        append(&log, 30);
    }
}

#[test]
fn a_segment_that_cannot_be_removed_keeps_none_of_the_others_and_goes_at_the_next_opening() {
    let left_after = |fault: Option<FaultRule>| {
        let simulation = Environment::simulated(11);
        let log = create(&simulation);
        let last = append(&log, 1_000);
        log.sync(last).unwrap();
        let files = || simulation.environment.files().list(&Path::new(FOLDER).join("wal")).unwrap().len();
        let before = files();
        fault.into_iter().for_each(|fault| simulation.disk.inject(fault));
        let (end, released) = (log.end(), log.release_before(log.end()));
        let left = files();
        assert!(left + 10 < before, "{before} files, then {left}");
        log.close().unwrap();
        drop(log);
        open_from(&simulation.environment, end, last).unwrap();
        (released.is_ok(), left, files())
    };
    let (is_ok, left, opened) = left_after(None);
    let fault = FaultRule::new(Operation::Remove, Fault::InputOutputError).on(".wal");
    assert!(is_ok);
    assert_eq!(left_after(Some(fault)), (false, left + 1, opened));
}

#[test]
fn an_append_takes_a_segment_that_is_ready_while_others_are_at_the_folder() {
    let simulation = Environment::simulated(12);
    let log = create(&simulation);
    // The two that wait then were segments before.
    for _ in 0..4 {
        let last = append(&log, 60);
        log.sync(last).unwrap();
        log.release_before(log.position_of(last)).unwrap();
    }
    let waited = || log.waits().all().find(|wait| wait.name == "log.segment").map(|wait| wait.count);
    let before = (log.end().segment(), waited());
    assert!(log.ready.bytes() >= 2 * (16 << 10));
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        // As long as a call to the device takes.
        let files = log.files.lock();
        scope.spawn(|| {
            append(&log, 30);
            done.send(()).unwrap();
        });
        let outcome = is_done.recv_timeout(std::time::Duration::from_secs(20));
        drop(files);
        outcome.expect("the append does not wait");
    });
    assert!(log.end().segment() > before.0);
    assert_eq!(waited(), before.1);
    // A new spare gets the number after the other spares, though some were taken.
    for _ in 0..4 {
        let last = append(&log, 60);
        log.sync(last).unwrap();
        log.release_before(log.position_of(last)).unwrap();
    }
    log.close().unwrap();
}

#[test]
fn a_write_into_a_segment_that_is_used_again_fills_its_last_page() {
    const PAGE: usize = 4_096;
    let simulation = Environment::simulated(13);
    let log = create(&simulation);
    // Until a segment is used again, whose file is full of older records.
    let is_used_again = |log: &Log| {
        let path = segment_path(log.end().segment());
        let file = simulation.environment.files().open(&path, OpenMode::Existing, Access::Buffered).unwrap();
        let mut bytes = vec![0; file.length().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes.len() == 16 << 10 && bytes[bytes.len() / 2..].iter().any(|byte| *byte != 0)
    };
    while !is_used_again(&log) || log.end().offset() as usize > 2 * PAGE {
        let last = append(&log, 1);
        log.sync(last).unwrap();
        log.release_before(log.position_of(last)).unwrap();
    }
    let file = simulation
        .environment
        .files()
        .open(&segment_path(log.end().segment()), OpenMode::Existing, Access::Buffered)
        .unwrap();
    let mut left_old = 0;
    while log.end().offset() as usize + 2 * PAGE < 16 << 10 {
        let end = log.end().offset() as usize;
        let mut page = vec![0; end.next_multiple_of(PAGE) + PAGE - end];
        file.read_exact_at(&mut page, end as u64).unwrap();
        let rest = end.next_multiple_of(PAGE) - end;
        assert!(page[..rest].iter().all(|byte| *byte == 0), "behind {end}");
        left_old += usize::from(page[rest..].iter().any(|byte| *byte != 0));
        let last = append(&log, 1);
        log.write_through(last).unwrap();
    }
    assert!(left_old > 0, "the page behind is left as it was");
    log.close().unwrap();
}
