//! Leaps of the log: a large commit's last record has an LSN that was reserved when its end was logged
//! ([`crate::commit::large_commit`]).
//!
//! An LSN is a *group* of 2³² and a number within it. A leap goes to the first LSN of the second group after the current one, so that
//! at least 2³² other records have room before it. With 2⁶¹ LSNs a store has 2²⁸ leaps.

use pando_storage::Lsn;

const GROUP_BITS: u32 = 32;

/// Groups that a leap goes on.
pub(crate) const GAP_GROUPS: u64 = 2;

/// No log gets so far.
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

/// Where the log leaps to that has this last record.
pub(crate) fn lsn_after_gap(last: Lsn) -> Lsn {
    Lsn::new((last.group() + GAP_GROUPS) << GROUP_BITS)
}

/// Whether the log may leap so far behind a record.
pub(crate) fn is_gap(from: Lsn, to: Lsn) -> bool {
    to > from && to.in_group() == 0 && to.get() < LSN_LIMIT
}
