//! Disks that are full, that fail, and that lie: acknowledged commits stay, and no wrong data is returned.

use std::path::Path;

use pando_betree::verify;
use pando_environment::simulated::{Fault, FaultRule};
use pando_environment::{Operation, Random, SeededRandom};
use pando_storage::ErrorKind;

use crate::history::{Ending, FOLDER, History, shrinking};

/// Lets a history run for a while, until most of it is on disk.
fn grow(history: &mut History, steps: u64) {
    history.open().expect("a new store opens");
    history.run(steps).expect("without a fault nothing fails");
}

#[test]
fn a_refused_allocation_at_any_place_loses_nothing_and_all_goes_on_once_there_is_room() {
    for seed in 0..4 {
        for refused in 0..14 {
            shrinking::run(seed, |history| {
                history.set_label(format!("seed {seed}, allocation {refused}"));
                let rule = FaultRule::new(Operation::Allocate, Fault::NoSpace).after(refused).times(2);
                history.simulation.disk.inject(rule);
                let opened = history.open();
                if opened.is_err() {
                    // A store without room to begin in begins when there is room.
                    history.simulation.disk.clear_faults();
                    history.end(Ending::Kill);
                    history.recover();
                }
                let kinds = history.run_through_errors(60);
                assert!(kinds.iter().all(|kind| *kind == ErrorKind::Io), "{kinds:?}");
                history.check_now();
                history.simulation.disk.clear_faults();
                history.run(20).expect("with room nothing fails");
                history.check_now();
                history.close_and_reopen();
            });
        }
    }
}

#[test]
fn a_full_disk_refuses_writes_clearly_answers_reads_and_works_again_with_room() {
    for seed in 10..14 {
        shrinking::run(seed, |history| {
            grow(history, 60);
            history.simulation.disk.set_capacity(Some(history.simulation.disk.used_bytes() + (1 << 20)));
            let mut refused = 0;
            for _ in 0..600 {
                // A process that goes on trying, with its background work and a checkpoint now and then.
                match history.commit_bytes(20_000) {
                    Ok(()) => {}
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Io, "{error:?}");
                        refused += 1;
                        history.simulation.clock.advance(std::time::Duration::from_secs(2));
                        history.simulation.tasks.run_until_idle();
                    }
                }
                if refused > 20 {
                    break;
                }
            }
            assert!(refused > 20, "seed {seed}: the disk was never full");
            history.check_now();
            let kinds = history.run_through_errors(20);
            assert!(kinds.iter().all(|kind| *kind == ErrorKind::Io), "{kinds:?}");
            history.check_now();
            if seed % 2 == 0 {
                // A crash on a full disk, and an open on a full disk.
                history.end(Ending::PowerCut { seed });
                history.recover();
            }
            history.simulation.disk.set_capacity(None);
            history.run(40).expect("with room nothing fails");
            history.check_now();
            history.end(Ending::PowerCut { seed });
            history.recover();
            history.close_and_reopen();
        });
    }
}

#[test]
fn a_failing_sync_of_the_log_stops_the_engine_and_loses_nothing_that_was_acknowledged() {
    for seed in 20..30 {
        shrinking::run(seed, |history| {
            grow(history, 40);
            let random = SeededRandom::new(seed);
            let rule =
                FaultRule::new(Operation::Sync, Fault::InputOutputError).on(".wal").after(random.below(4));
            history.simulation.disk.inject(rule);
            let mut kinds = history.run_through_errors(80);
            // The sync that fails comes after any steps.
            let synced = (0..5).map(|_| history.commit().and_then(|()| history.sync_last()));
            kinds.extend(synced.filter_map(Result::err).map(|error| error.kind()));
            assert!(kinds.contains(&ErrorKind::Closed), "{kinds:?}");
            assert!(history.commit().is_err(), "seed {seed}: a commit after a failed sync");
            history.end(Ending::PowerCut { seed });
            history.recover();
            history.run(20).expect("after recovery nothing fails");
            history.close_and_reopen();
        });
    }
}

#[test]
fn a_failing_sync_of_the_data_file_stops_checkpoints_and_loses_nothing_that_was_acknowledged() {
    for seed in 30..40 {
        shrinking::run(seed, |history| {
            grow(history, 40);
            let random = SeededRandom::new(seed);
            let rule = FaultRule::new(Operation::Sync, Fault::InputOutputError).on("data.0000");
            history.simulation.disk.inject(rule.after(random.below(3)));
            let mut kinds = history.run_through_errors(80);
            let checkpoints = (0..5).map(|_| history.commit().and_then(|()| history.checkpoint()));
            kinds.extend(checkpoints.filter_map(Result::err).map(|error| error.kind()));
            assert!(kinds.contains(&ErrorKind::Closed), "{kinds:?}");
            assert!(history.checkpoint().is_err(), "seed {seed}: a checkpoint after a failed sync");
            history.end(Ending::PowerCut { seed });
            history.recover();
            history.run(20).expect("after recovery nothing fails");
            history.close_and_reopen();
        });
    }
}

#[test]
fn failing_reads_and_writes_are_errors_of_the_device_and_pass() {
    for seed in 40..46 {
        shrinking::run(seed, |history| {
            grow(history, 60);
            history.close();
            history.open().expect("without a fault nothing fails");
            let random = SeededRandom::new(seed);
            let rule = FaultRule::new(Operation::Read, Fault::InputOutputError).on("data.0000");
            history.simulation.disk.inject(rule.after(random.below(3)).times(3));
            assert!(history.count_unreadable(ErrorKind::Io) > 0, "seed {seed}");
            assert_eq!(history.count_unreadable(ErrorKind::Io), 0);
            for fault in [Fault::InputOutputError, Fault::ShortWrite] {
                let rule =
                    FaultRule::new(Operation::Write, fault).on("data.0000").after(random.below(4)).times(2);
                history.simulation.disk.inject(rule);
                let kinds = history.run_through_errors(40);
                // A superblock that could not be written leaves it open which of two the next open finds:
                // that stops the engine.
                if kinds.contains(&ErrorKind::Closed) {
                    break;
                }
                history.check_now();
            }
            history.simulation.disk.clear_faults();
            history.end(Ending::PowerCut { seed });
            history.recover();
            history.close_and_reopen();
        });
    }
}

#[test]
fn a_block_that_decayed_is_named_and_the_rest_stays_readable() {
    let (mut found, mut named) = (0, 0);
    for seed in 50..90 {
        shrinking::run(seed, |history| {
            grow(history, 50);
            history.close();
            let path = Path::new(FOLDER).join("data.0000");
            let random = SeededRandom::new(seed);
            for _ in 0..12 {
                // Beyond the head of the file, where blocks lie.
                let byte = 131_072 + random.below(100 * 1_024);
                history.simulation.disk.flip_bit(&path, (byte * 8 + random.below(8)) as usize);
            }
            let is_met = match history.open() {
                Ok(()) => history.count_unreadable(ErrorKind::Corrupt) > 0,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "seed {seed}: {error:?}");
                    true
                }
            };
            history.end(Ending::Kill);
            let is_named = match verify(&history.simulation.environment, Path::new(FOLDER)) {
                Ok(report) => !report.is_sound(),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "seed {seed}: {error:?}");
                    true
                }
            };
            assert!(is_named || !is_met, "seed {seed}: verify has not seen what a reader met");
            found += usize::from(is_met);
            named += usize::from(is_named);
        });
    }
    assert!(found > 5 && named > 5, "found {found}, named {named}");
}

#[test]
fn lost_misdirected_and_flipped_writes_are_detected_and_never_read_as_data() {
    let mut detected = 0;
    for seed in 100..160 {
        shrinking::run(seed, |history| {
            grow(history, 30);
            let random = SeededRandom::new(seed);
            let fault = match random.below(3) {
                0 => Fault::LostWrite,
                1 => Fault::MisdirectedWrite { sectors: random.below(64) as i32 - 32 },
                _ => Fault::BitFlip { bit: random.next_u64() },
            };
            history.set_label(format!("seed {seed}, {fault:?}"));
            let rule = FaultRule::new(Operation::Write, fault).on("data.0000").after(random.below(20));
            history.simulation.disk.inject(rule);
            let kinds = history.run_through_errors(40);
            assert!(
                kinds.iter().all(|kind| *kind == ErrorKind::Corrupt),
                "seed {seed}, {fault:?}: {kinds:?}"
            );
            let unreadable = history.count_unreadable(ErrorKind::Corrupt);
            history.end(Ending::Kill);
            let is_sound = verify(&history.simulation.environment, Path::new(FOLDER))
                .is_ok_and(|report| report.is_sound());
            detected += usize::from(!kinds.is_empty() || unreadable > 0 || !is_sound);
        });
    }
    assert!(detected > 8, "detected {detected}");
}
