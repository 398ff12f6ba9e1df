//! Gaps in the LSNs of the log, which the last record of a large commit leaves
//! ([`crate::commit::large_commit`]).
//!
//! That record has an LSN that was reserved when the commit's end was logged. An LSN is a *group* of 2³² and
//! a number within it. A gap ends at the first LSN of the second group after the current one. So at least 2³²
//! other records fit before it. With 2⁶¹ LSNs a store has 2²⁸ gaps.
//!
//! ```text
//!  LSN (group, number)   (0, 41) (0, 42) ...  (0, 57)  ->  (2, 0) (2, 1) ...
//!                         part    end          others      large-commit record
//! ```

use pando_storage::Lsn;

const GROUP_BITS: u32 = 32;

/// Groups that a gap advances.
pub(crate) const GAP_GROUPS: u64 = 2;

/// Every LSN is below this.
const LSN_LIMIT: u64 = 1 << 61;

/// The two parts of an LSN.
pub(crate) trait Groups {
    fn group(self) -> u64;
    fn in_group(self) -> u64;
}

impl Groups for Lsn {
    fn group(self) -> u64 {
        self.get() >> GROUP_BITS
    }

    fn in_group(self) -> u64 {
        self.get() & ((1 << GROUP_BITS) - 1)
    }
}

/// The LSN after a gap that follows this last record.
pub(crate) fn lsn_after_gap(last: Lsn) -> Lsn {
    Lsn::new((last.group() + GAP_GROUPS) << GROUP_BITS)
}

/// The records from one LSN to a later one. Those between the earlier one and the gap behind it are not
/// known, and left out.
pub(crate) fn records_between(from: Lsn, to: Lsn) -> u64 {
    if from.group() == to.group() {
        return to.get().saturating_sub(from.get());
    }
    let gaps = to.group().saturating_sub(from.group()) / GAP_GROUPS;
    to.in_group() + gaps
}

/// Whether a gap from one record to another is valid.
pub(crate) fn is_gap(from: Lsn, to: Lsn) -> bool {
    to > from && to.in_group() == 0 && to.get() < LSN_LIMIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_no_record() {
        let first = Lsn::new((2 << GROUP_BITS) + 7);
        assert_eq!(records_between(first, Lsn::new(first.get() + 50)), 50);
        assert_eq!(records_between(first, first), 0);
        let behind = Lsn::new(lsn_after_gap(first).get() + 3);
        assert_eq!(records_between(first, behind), 4, "the first behind the gap, and three more");
        assert_eq!(records_between(first, lsn_after_gap(behind)), 2);
    }
}
