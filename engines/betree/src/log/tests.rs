//! Tests of the log: the records that come back after each way of ending, and the damage that is refused.

mod crashes;
mod damage;
mod durability;
mod gaps;

mod segments;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_environment::{Environment, SeededRandom, Simulation};
use pando_storage::Lsn;

use super::record::RECORD_BYTES_MAX;
use super::wakers::LogWaker;
use super::*;
use crate::base::StoreId;
use crate::base::{LogPosition, RecordKind};

const FOLDER: &str = "/store";
const STORE: StoreId = StoreId::new(*b"the log's store!");
const KIND: RecordKind = RecordKind::new(9);

/// Segments that a few records fill.
fn small_options() -> LogOptions {
    LogOptions { segment_bytes: 16 << 10, zero_ahead_bytes: 1 << 10, ..LogOptions::default() }
}

impl Log {
    /// Behind the last record.
    fn end(&self) -> LogPosition {
        self.appender.lock().end()
    }
}

fn create(simulation: &Simulation) -> Arc<Log> {
    Log::create(&simulation.environment, Path::new(FOLDER), STORE, small_options()).unwrap()
}

/// The records from a position on, and the log behind them.
fn open_from(
    environment: &Environment,
    from: LogPosition,
    must_reach: Lsn,
) -> Result<(Arc<Log>, Vec<(Lsn, Vec<u8>)>), LogError> {
    let mut records = Vec::new();
    let mut replay = |record: LogRecord<'_>| {
        assert_eq!(record.kind, KIND);
        records.push((record.lsn, record.payload.to_vec()));
        Ok(())
    };
    let log =
        Log::open(environment, Path::new(FOLDER), STORE, small_options(), from, must_reach, &mut replay)?;
    Ok((log, records))
}

fn open(simulation: &Simulation) -> Result<(Arc<Log>, Vec<(Lsn, Vec<u8>)>), LogError> {
    open_from(&simulation.environment, LogPosition::START, Lsn::ZERO)
}

fn segment_path(number: u64) -> PathBuf {
    Path::new(FOLDER).join("wal").join(segment::file_name(number))
}

/// The payload of the record of this number. Its length varies, and so does every byte.
fn payload(number: u64) -> Vec<u8> {
    let random = SeededRandom::new(number);
    let length = random.below(900);
    (0..length).map(|_| random.below(256) as u8).collect()
}

fn append(log: &Log, count: u64) -> Lsn {
    let mut last = log.appended_lsn();
    for _ in 0..count {
        let next = last.next();
        let bytes = payload(next.get());
        let (front, back) = bytes.split_at(bytes.len() / 3);
        last = log.append(KIND, &[front, back]).unwrap();
        assert_eq!(last, next);
    }
    last
}

/// Checks that these are the records from `first` on, and how many.
fn assert_records(records: &[(Lsn, Vec<u8>)], first: u64, count: u64) {
    assert_eq!(records.len() as u64, count);
    for (at, (lsn, bytes)) in records.iter().enumerate() {
        assert_eq!(lsn.get(), first + at as u64);
        assert_eq!(*bytes, payload(lsn.get()), "{lsn}");
    }
}
