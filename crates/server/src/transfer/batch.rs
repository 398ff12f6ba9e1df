//! Records on their way into the store, a batch at a time, read by a thread of their own.
//!
//! The thread reads and parses while the store writes. It is one batch ahead at most, so that memory is
//! bounded. It also keeps a slow standard input from holding up Ctrl-C.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use super::error::TransferError;
use super::record::{Record, RecordReader};

/// As many documents as MongoDB's own tools send at a time.
pub(super) const RECORDS_MAX: usize = 1000;
/// One more document fits into a message of 48 MB.
const BYTES_MAX: usize = 8_000_000;

/// Records in the order of the input.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, record: Record) {
        self.bytes += record.content.as_ref().map_or(0, |document| document.as_bytes().len());
        self.records.push(record);
    }

    fn is_full(&self, records_max: usize) -> bool {
        self.records.len() >= records_max || self.bytes >= BYTES_MAX
    }
}

/// A message of the thread that reads.
#[derive(Debug)]
pub(super) enum FromReader {
    Batch(Batch),
    /// The input is at its end, or cannot be read on. The batch before has all records that could be read.
    End {
        read: Result<(), TransferError>,
        remarks: Vec<String>,
    },
}

/// Starts a thread that reads.
pub(super) fn read_in_thread(
    mut reader: Box<dyn RecordReader + Send>,
    records_max: usize,
) -> io::Result<Receiver<FromReader>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::Builder::new().name("pando-import".to_owned()).spawn(move || {
        let mut batch = Batch::default();
        let read = reader.read_all(&mut |record| {
            batch.push(record);
            if batch.is_full(records_max) { send(&sender, std::mem::take(&mut batch)) } else { Ok(()) }
        });
        // The records before the fault of the input are imported.
        if !batch.records.is_empty() && send(&sender, batch).is_err() {
            return;
        }
        // Nobody listens once the import has ended otherwise.
        let _ = sender.send(FromReader::End { read, remarks: reader.remarks() });
    })?;
    Ok(receiver)
}

fn send(sender: &SyncSender<FromReader>, batch: Batch) -> Result<(), TransferError> {
    sender.send(FromReader::Batch(batch)).map_err(|_| TransferError::Stopped)
}
