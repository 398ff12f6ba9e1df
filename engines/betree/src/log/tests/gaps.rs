//! Records whose LSN follows a gap.

use super::*;
use crate::base::LogPosition;
use crate::log::lsn_after_gap;
use crate::log::packed::Encoding;
use crate::log::record::{Stored, write_record};
use crate::log::segment::{FoundHeader, SEGMENT_HEADER_BYTES, SegmentHeader};

#[test]
fn a_log_with_gaps_is_read_as_it_was_written_across_segments_and_lives() {
    let simulation = Environment::simulated(1);
    let log = create(&simulation);
    let mut written = Vec::new();
    for round in 0..40_u32 {
        let payload = vec![round as u8; 700];
        let lsn = match round % 7 {
            3 => {
                let appended =
                    log.append_after_gap(KIND, &payload, lsn_after_gap(log.appended_lsn())).unwrap();
                assert_eq!(Some(appended.before), written.last().map(|(lsn, _)| *lsn));
                appended.lsn
            }
            _ => log.append(KIND, &[&payload]).unwrap(),
        };
        written.push((lsn, payload));
    }
    let (_, before) = &written[3];
    assert_eq!(before[0], 3);
    assert!(written[3].0 > Lsn::new(1 << 32) && written[4].0 == written[3].0.next());
    log.sync(log.appended_lsn()).unwrap();
    assert_eq!(log.durable_lsn(), written[39].0);
    drop(log);
    simulation.tasks.forget_all();
    let (log, read) = open(&simulation).unwrap();
    assert_eq!(read, written);
    let behind = log.append(KIND, &[b"behind"]).unwrap();
    assert_eq!(behind, written[39].0.next());
    for at in [0, 2, 3, 20, 39] {
        let position = log.position_of(written[at].0);
        assert!(position.lsn() <= written[at].0.next());
    }
}

#[test]
fn a_record_that_is_damaged_before_a_gap_is_no_end_of_the_log() {
    let simulation = Environment::simulated(2);
    let log = create(&simulation);
    let first = log.append(KIND, &[b"one that is to be damaged"]).unwrap();
    log.sync(first).unwrap();
    let to = lsn_after_gap(first);
    log.append_after_gap(KIND, b"gap rec.", to).unwrap();
    log.sync(to).unwrap();
    let last = log.append(KIND, &[b"behind"]).unwrap();
    log.sync(last).unwrap();
    drop(log);
    simulation.tasks.forget_all();
    simulation.disk.flip_bit(&segment_path(1), (512 + 30) * 8);
    assert!(matches!(open(&simulation), Err(LogError::Corrupt { .. })));
}

#[test]
fn a_record_behind_a_gap_that_no_log_has_is_no_record() {
    let limit = 1 << 61;
    let last_gap = limit - (1 << 32);
    for (lsn, count) in [(u64::MAX, 0), (limit, 0), ((2 << 32) + 1, 0), (2 << 32, 1), (last_gap, 1)] {
        let simulation = Environment::simulated(4);
        drop(create(&simulation));
        simulation.tasks.forget_all();
        simulation.disk.corrupt(&segment_path(1), |bytes| {
            let header = bytes.first_chunk().expect("a segment has a header");
            let FoundHeader::Valid(header) = SegmentHeader::decode(header) else { panic!("it is intact") };
            let lsn = Lsn::new(lsn);
            let record =
                Stored { kind: KIND, encoding: Encoding::Plain, payload: &[b"far"], gap_to: Some(lsn) };
            let mut out = Vec::new();
            write_record(&mut out, header.salt, header.chain, lsn, Lsn::ZERO, record, None);
            let start = SEGMENT_HEADER_BYTES as usize;
            bytes[start..start + out.len()].copy_from_slice(&out);
        });
        let (_log, records) = open(&simulation).expect("the log before it is whole");
        assert_eq!(records.len(), count, "{lsn:#x}");
    }
}

#[test]
fn a_record_is_read_back_from_its_place() {
    let simulation = Environment::simulated(3);
    let log = create(&simulation);
    let payloads: Vec<Vec<u8>> = (0..60_u8).map(|number| vec![number; 400 + usize::from(number)]).collect();
    let packed = payloads.iter().map(|payload| Packed::of(payload.clone(), LogCompression::Lz4));
    let places: Vec<LogPosition> =
        packed.map(|packed| log.append_packed(KIND, &packed).unwrap().place).collect();
    log.write_through(log.appended_lsn()).unwrap();
    let mut back = ReadBack::new(&simulation.environment, Path::new(FOLDER), None);
    for (place, payload) in places.iter().zip(&payloads).rev().chain(places.iter().zip(&payloads)) {
        assert_eq!(back.payload(*place).unwrap(), payload);
    }
    let wrong = LogPosition::new(places[0].segment(), places[0].offset(), places[1].lsn(), places[0].chain());
    assert!(back.payload(wrong).is_err());
}
