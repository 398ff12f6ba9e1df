//! The live segments with a sparse index of their records.
//!
//! The index finds the position at which replay must begin, and the segments that a checkpoint has made
//! unnecessary.

use std::collections::VecDeque;

use pando_storage::Lsn;

use super::segment::SEGMENT_HEADER_BYTES;
use crate::base::LogPosition;

/// The least distance between index entries, in bytes of log.
const INDEX_DISTANCE: u64 = 256 * 1024;

/// Whether a power cut can destroy the header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderState {
    /// It was read at recovery, or synced by itself.
    Durable,
    /// It becomes durable with the first durable record of the segment.
    WithRecords,
}

#[derive(Debug)]
struct LiveSegment {
    number: u64,
    header: HeaderState,
    /// The length of its file.
    length: u64,
    /// Positions within it, ascending and never empty. The first is the start of its records, or of replay.
    index: Vec<LogPosition>,
    /// The position after its last record.
    end: LogPosition,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct SegmentTable {
    segments: VecDeque<LiveSegment>,
}

impl SegmentTable {
    /// Adds a segment that begins at this position, or in which replay begins here.
    pub(super) fn begin_segment(&mut self, start: LogPosition, length: u64, header: HeaderState) {
        let live = LiveSegment { number: start.segment(), header, length, index: vec![start], end: start };
        assert!(
            self.segments.back().is_none_or(|last| last.number < live.number),
            "segment {} begins out of order",
            live.number
        );
        self.segments.push_back(live);
    }

    /// Sets the end of the last segment.
    pub(super) fn advance(&mut self, end: LogPosition) {
        let last = self.segments.back_mut().expect("records are written into a segment that has begun");
        let indexed = last.index.last().expect("the index of a segment is never empty");
        if end.offset() - indexed.offset() >= INDEX_DISTANCE {
            last.index.push(end);
        }
        last.end = end;
    }

    /// The position at which reading must begin to meet every record after `lsn`; `durable` is the newest
    /// durable record. While the header of a segment is not durable, the end of the segment before stands for
    /// its start.
    pub(super) fn position_after(&self, lsn: Lsn, durable: Lsn) -> Option<LogPosition> {
        let next = lsn.next();
        let mut found = None;
        for (at, segment) in self.segments.iter().enumerate() {
            if segment.index[0].lsn() > next {
                break;
            }
            let is_certain = segment.header == HeaderState::Durable || durable >= segment.index[0].lsn();
            if !is_certain {
                found = at.checked_sub(1).map(|before| self.segments[before].end);
                break;
            }
            let behind = segment.index.partition_point(|position| position.lsn() <= next);
            found = Some(segment.index[behind - 1]);
            if segment.end.lsn() <= next {
                found = Some(segment.end);
            }
        }
        found
    }

    /// Removes the segments before that of a position, unless they have records from `held` on. Returns their
    /// numbers and lengths, oldest first. The last segment stays. So does one that ends exactly before
    /// `held`, because its end may stand for the start of the next.
    pub(super) fn release_before(&mut self, position: LogPosition, held: Option<Lsn>) -> Vec<(u64, u64)> {
        let mut released = Vec::new();
        while self.segments.len() > 1
            && self.segments[0].number < position.segment()
            && held.is_none_or(|held| self.segments[1].index[0].lsn() < held)
        {
            if let Some(segment) = self.segments.pop_front() {
                released.push((segment.number, segment.length));
            }
        }
        released
    }

    /// Bytes of the records in live segments.
    pub(super) fn live_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.end.offset().saturating_sub(SEGMENT_HEADER_BYTES)).sum()
    }

    /// Whether there are segments besides the active one.
    pub(super) fn has_older(&self) -> bool {
        self.segments.len() > 1
    }

    /// Records that the header of the last segment was synced by itself.
    pub(super) fn header_is_durable(&mut self, number: u64) {
        if let Some(last) = self.segments.back_mut().filter(|last| last.number == number) {
            last.header = HeaderState::Durable;
        }
    }

    /// Bytes of the live segments' files.
    pub(super) fn file_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.length).sum()
    }

    /// The numbers of the live segments, ascending.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.segments.iter().map(|segment| segment.number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(segment: u64, offset: u64, lsn: u64) -> LogPosition {
        LogPosition::new(segment, offset, Lsn::new(lsn), lsn as u32)
    }

    fn table() -> SegmentTable {
        let mut table = SegmentTable::default();
        table.begin_segment(position(1, 512, 1), 1 << 20, HeaderState::Durable);
        table.advance(position(1, 300_000, 10));
        table.advance(position(1, 310_000, 11));
        table.begin_segment(position(2, 512, 11), 1 << 20, HeaderState::WithRecords);
        table.advance(position(2, 1_000, 12));
        table
    }

    #[test]
    fn replay_begins_at_or_before_the_record_that_is_needed() {
        let table = table();
        let all = Lsn::new(11);
        assert_eq!(table.position_after(Lsn::ZERO, all), Some(position(1, 512, 1)));
        assert_eq!(table.position_after(Lsn::new(8), all), Some(position(1, 512, 1)));
        assert_eq!(table.position_after(Lsn::new(9), all), Some(position(1, 300_000, 10)));
        assert_eq!(table.position_after(Lsn::new(10), all), Some(position(2, 512, 11)));
        assert_eq!(table.position_after(Lsn::new(11), all), Some(position(2, 1_000, 12)));
    }

    #[test]
    fn a_segment_whose_header_may_be_lost_is_reached_through_the_one_before() {
        assert_eq!(table().position_after(Lsn::new(11), Lsn::new(10)), Some(position(1, 310_000, 11)));
    }

    #[test]
    fn a_segment_that_was_read_from_its_middle_on_is_certain_though_nothing_of_it_was_synced_since() {
        let mut table = SegmentTable::default();
        table.begin_segment(position(4, 512, 30), 1 << 20, HeaderState::Durable);
        table.begin_segment(position(6, 9_000, 47), 1 << 20, HeaderState::Durable);
        table.begin_segment(position(7, 512, 47), 1 << 20, HeaderState::Durable);
        assert_eq!(table.position_after(Lsn::new(46), Lsn::new(46)), Some(position(7, 512, 47)));
    }

    #[test]
    fn segments_are_released_when_the_next_one_begins_early_enough() {
        let mut table = table();
        assert_eq!(table.release_before(position(1, 310_000, 11), None), []);
        assert_eq!(table.release_before(position(2, 1_000, 12), Some(Lsn::new(11))), []);
        assert_eq!(table.release_before(position(2, 512, 11), None), [(1, 1 << 20)]);
        assert_eq!(table.release_before(position(99, 512, 99), None), []);
        assert_eq!(table.numbers(), [2]);
        assert_eq!(table.live_bytes(), 488);
    }
}
