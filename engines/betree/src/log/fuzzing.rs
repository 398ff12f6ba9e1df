//! The log's part of the fuzz targets: its decoders, and a segment with intact records of arbitrary content.

use pando_environment::{Access, Environment, OpenMode};
use pando_storage::Lsn;
use std::path::Path;

use super::packed::Encoding;
use super::record::{HEADER_BYTES, RecordHeader, Stored, record_bytes, write_record};
use super::segment::{FoundHeader, SEGMENT_HEADER_BYTES, SegmentHeader};
use super::{LOG_FOLDER, segment_file_name};
use crate::base::LogPosition;
use crate::base::RecordKind;

/// Gives the bytes to every decoder of this module.
pub(crate) fn decode_all(bytes: &[u8]) {
    let mut room = Vec::new();
    for flags in 0..=u8::MAX {
        let _payload = Encoding::from_flags(flags)
            .and_then(|encoding| encoding.unpack(bytes, &mut room).map(<[u8]>::len));
    }
    if let Some(header) = RecordHeader::decode(bytes) {
        assert!(header.durable_before() <= header.lsn);
    }
    if let Some(header) = bytes.first_chunk() {
        let _found = SegmentHeader::decode(header);
    }
    if let Some(position) = bytes.first_chunk() {
        let _position = LogPosition::decode(position);
    }
}

/// Writes records into the first segment of a store, one for each piece of the bytes (kind, flags, length,
/// payload). Each has the LSN, chain and checksum that recovery expects.
///
/// # Panics
/// If there is no such segment.
pub(crate) fn write_records(environment: &Environment, folder: &Path, mut bytes: &[u8]) {
    let path = folder.join(LOG_FOLDER).join(segment_file_name(1));
    let file =
        environment.files().open(&path, OpenMode::Existing, Access::Buffered).expect("a new store has a log");
    let mut header = [0; SEGMENT_HEADER_BYTES as usize];
    file.read_exact_at(&mut header, 0).expect("a segment has a header");
    let FoundHeader::Valid(header) = SegmentHeader::decode(&header) else {
        panic!("it was written just now")
    };
    let (mut records, mut lsn, mut chain) = (Vec::new(), header.first, header.chain);
    while let [kind, flags, length, rest @ ..] = bytes {
        let (payload, after) = rest.split_at(usize::from(*length).min(rest.len()));
        bytes = after;
        let Some(encoding) = Encoding::from_flags(*flags) else { continue };
        let kind = RecordKind::new((*kind).max(1));
        let record = Stored { kind, encoding, payload: &[payload], gap_to: None };
        chain = write_record(&mut records, header.salt, chain, lsn, Lsn::new(lsn.get() - 1), record, None);
        lsn = lsn.next();
    }
    file.write_all_at(&records, SEGMENT_HEADER_BYTES).expect("the disk is in memory");
    file.sync_data().expect("the disk is in memory");
}

/// The records of a store's first segment: kind, flags, and the payload as it is stored.
pub(crate) fn records(environment: &Environment, folder: &Path) -> Vec<(u8, u8, Vec<u8>)> {
    let path = folder.join(LOG_FOLDER).join(segment_file_name(1));
    let file = environment.files().open(&path, OpenMode::Existing, Access::Buffered);
    let file = file.expect("a new store has a log");
    let mut bytes = vec![0; file.length().expect("the disk is in memory") as usize];
    file.read_exact_at(&mut bytes, 0).expect("the disk is in memory");
    let (mut records, mut at) = (Vec::new(), SEGMENT_HEADER_BYTES as usize);
    while let Some(header) = RecordHeader::decode(&bytes[at..]) {
        let payload = at + HEADER_BYTES..at + HEADER_BYTES + header.length as usize;
        records.push((header.kind.number(), header.encoding as u8, bytes[payload].to_vec()));
        at += record_bytes(header.length as usize);
    }
    records
}
