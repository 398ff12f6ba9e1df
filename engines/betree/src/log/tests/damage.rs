//! Damage is refused and named; a torn tail is the end of the log; random bytes do no harm.

use super::*;
use crate::base::LogPosition;

fn log_of(simulation: &Simulation, records: u64) {
    let log = create(simulation);
    for _ in 0..records {
        let last = append(&log, 1);
        log.sync(last).unwrap();
    }
    drop(log);
    simulation.disk.kill();
}

fn problem(result: Result<(Arc<Log>, Vec<(Lsn, Vec<u8>)>), LogError>) -> RecordProblem {
    match result.map(|(log, records)| (log.end(), records.len())) {
        Err(LogError::Corrupt { problem, .. }) => problem,
        other => panic!("damage is expected, not {other:?}"),
    }
}

#[test]
fn a_damaged_record_before_a_synced_one_is_refused() {
    let simulation = Environment::simulated(1);
    log_of(&simulation, 10);
    simulation.disk.corrupt(&segment_path(1), |bytes| bytes[600] ^= 4);
    let folder = Path::new(FOLDER);
    assert!(
        Log::check(&simulation.environment, folder, (STORE, None), LogPosition::START, Lsn::ZERO).is_err()
    );
    assert!(matches!(problem(open(&simulation)), RecordProblem::DamagedBefore { .. }));
}

#[test]
fn a_damaged_last_record_is_the_end_of_the_log_unless_a_checkpoint_knew_it() {
    let simulation = Environment::simulated(2);
    let log = create(&simulation);
    append(&log, 9);
    let before = log.end();
    let last = append(&log, 1);
    log.sync(last).unwrap();
    drop(log);
    simulation.disk.kill();
    simulation.disk.corrupt(&segment_path(1), |bytes| bytes[before.offset() as usize + 9] ^= 1);
    let refused = open_from(&simulation.environment, LogPosition::START, last);
    assert_eq!(problem(refused), RecordProblem::EndsEarly { synced_to: last });
    let (log, records) = open(&simulation).unwrap();
    assert_records(&records, 1, 9);
    append(&log, 5);
    log.close().unwrap();
    drop(log);
    assert_records(&open(&simulation).unwrap().1, 1, 14);
}

#[test]
fn a_damaged_or_missing_segment_before_others_is_refused() {
    for number in 1..3 {
        let simulation = Environment::simulated(3);
        log_of(&simulation, 120);
        simulation.disk.corrupt(&segment_path(number), |bytes| bytes[20] ^= 1);
        assert!(matches!(problem(open(&simulation)), RecordProblem::MissingBefore { .. }));
        simulation.environment.files().remove(&segment_path(number)).unwrap();
        assert!(matches!(problem(open(&simulation)), RecordProblem::MissingBefore { .. }));
    }
    let simulation = Environment::simulated(4);
    log_of(&simulation, 120);
    simulation.disk.corrupt(&segment_path(2), |bytes| bytes[20] ^= 1);
    let from = LogPosition::new(2, 512, Lsn::new(30), 0);
    assert_eq!(problem(open_from(&simulation.environment, from, Lsn::ZERO)), RecordProblem::NoSegment);
}

#[test]
fn the_log_of_another_store_is_refused() {
    let simulation = Environment::simulated(5);
    log_of(&simulation, 3);
    let other = StoreId::new([1; 16]);
    let folder = Path::new(FOLDER);
    let opened = Log::create(&simulation.environment, folder, other, small_options());
    assert!(matches!(
        opened.map(|log| log.end()),
        Err(LogError::Corrupt { problem: RecordProblem::OtherStore, .. })
    ));
}

#[test]
fn a_record_that_cannot_be_replayed_stops_the_opening_with_its_lsn() {
    let simulation = Environment::simulated(6);
    log_of(&simulation, 3);
    let mut replay = |record: LogRecord<'_>| match record.lsn.get() {
        2 => Err(pando_storage::StorageError::new(pando_storage::ErrorKind::Corrupt, "no such tree")),
        _ => Ok(()),
    };
    let (folder, from) = (Path::new(FOLDER), LogPosition::START);
    let opened =
        Log::open(&simulation.environment, folder, STORE, small_options(), from, Lsn::ZERO, &mut replay);
    let text = opened.err().map(|error| error.to_string()).unwrap();
    assert!(text.contains("lsn-2") && text.contains("no such tree"), "{text}");
}

#[test]
fn random_damage_never_panics_and_never_yields_a_wrong_record() {
    let (mut refused, mut shorter) = (0, 0);
    for seed in 0..300 {
        let random = SeededRandom::new(seed);
        let simulation = Environment::simulated(seed);
        let log = create(&simulation);
        let last = append(&log, 60);
        log.sync(last).unwrap();
        drop(log);
        simulation.disk.kill();
        for _ in 0..1 + random.below(3) {
            simulation.disk.corrupt(&segment_path(1 + random.below(3)), |bytes| {
                let start = random.below(bytes.len() as u64) as usize;
                let end = (start + 1 + random.below(40) as usize).min(bytes.len());
                bytes[start..end].iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            });
        }
        match open(&simulation) {
            Ok((_log, records)) => {
                shorter += u32::from(records.len() < 60);
                assert_records(&records, 1, records.len() as u64);
            }
            Err(LogError::Corrupt { .. }) => refused += 1,
            Err(other) => panic!("seed {seed}: {other}"),
        }
    }
    assert!(refused > 20 && shorter > 20, "refused {refused}, shorter {shorter}");
}
