//! Claims of whole ranges of keys, and the part of a key that an intent keeps so that such a claim can find
//! it.
//!
//! # Algorithm
//! 1. A range claim is listed first, and then looks through all intents. It conflicts with an intent that may
//!    lie within, if another transaction holds it or a commit after the snapshot settled it. It also
//!    conflicts with a range claim that overlaps.
//! 2. A claim of a key looks through the listed ranges while it holds the lock of the key's shard. So of a
//!    range and a key that are claimed at the same time, one sees the other. The range is listed before it
//!    looks through the shard, and it does that before or after the key is in the shard.
//! 3. At the commit the range is settled as keys are. It goes when every live snapshot sees the commit.
//!
//! # False conflicts
//! An intent keeps the tree and the first [`START_BYTES`] bytes of its key. A longer key whose start equals
//! that of an end of the range counts as within. So do evicted intents and wide claims. These conflicts are
//! needless, but none is missed.

use std::ops::Bound;

use pando_environment::sync::Mutex;
use pando_environment::sync::atomic::{AtomicUsize, Ordering};

use super::{Claimant, Contest, TransactionId};
use crate::error::StorageError;
use crate::identifiers::{CommitTimestamp, SnapshotTimestamp, TreeId};
use crate::key_range::KeyRange;

/// The bytes of a key that are kept.
pub(super) const START_BYTES: usize = 11;

/// Range claims that there may be at once, live and settled: every claim of a key looks through them.
pub const RANGE_CLAIMS_MAX: usize = 1_024;

/// How a key begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyStart {
    tree: TreeId,
    bytes: [u8; START_BYTES],
    /// How many of them the key has; more than there are for a longer key.
    length: u8,
}

impl KeyStart {
    pub(super) fn of(tree: TreeId, key: &[u8]) -> KeyStart {
        let mut bytes = [0; START_BYTES];
        let kept = key.len().min(START_BYTES);
        bytes[..kept].copy_from_slice(&key[..kept]);
        KeyStart { tree, bytes, length: key.len().min(START_BYTES + 1) as u8 }
    }

    /// The tree of the key.
    pub(super) fn tree(&self) -> TreeId {
        self.tree
    }

    /// The kept bytes, and whether they are the whole key.
    pub(super) fn bytes(&self) -> (&[u8], bool) {
        let length = usize::from(self.length);
        (&self.bytes[..length.min(START_BYTES)], length <= START_BYTES)
    }

    /// Whether a key that begins so may lie within a range of a tree.
    pub(super) fn may_lie_within(&self, tree: TreeId, range: &KeyRange) -> bool {
        if self.tree != tree {
            return false;
        }
        let kept = &self.bytes[..usize::from(self.length).min(START_BYTES)];
        if usize::from(self.length) <= START_BYTES {
            return range.contains(kept);
        }
        // The key is longer: it is greater than its kept bytes, and below all keys that begin with greater
        // bytes.
        let is_high_enough = match &range.lower {
            Bound::Included(lower) | Bound::Excluded(lower) => kept >= &lower[..lower.len().min(START_BYTES)],
            Bound::Unbounded => true,
        };
        let is_low_enough = match &range.upper {
            Bound::Included(upper) | Bound::Excluded(upper) => kept < upper.as_slice(),
            Bound::Unbounded => true,
        };
        is_high_enough && is_low_enough
    }
}

#[derive(Debug)]
struct RangeClaim {
    owner: Option<TransactionId>,
    /// The commit that deleted the range; zero while it is claimed.
    committed: CommitTimestamp,
    tree: TreeId,
    range: KeyRange,
}

impl RangeClaim {
    fn refuses(&self, owner: TransactionId, snapshot: SnapshotTimestamp) -> bool {
        match self.owner {
            Some(holder) => holder != owner,
            None => !snapshot.sees(self.committed),
        }
    }
}

/// All range claims of an engine.
#[derive(Debug, Default)]
pub(super) struct RangeClaims {
    /// The length of `list`. It is nearly always 0, which a claim of a key learns from one load.
    count: AtomicUsize,
    list: Mutex<Vec<RangeClaim>>,
}

impl RangeClaims {
    /// Lists a range; false if there are too many.
    pub(super) fn add(
        &self,
        owner: TransactionId,
        snapshot: SnapshotTimestamp,
        tree: TreeId,
        range: &KeyRange,
    ) -> Result<bool, StorageError> {
        let mut list = self.list.lock();
        if list.len() >= RANGE_CLAIMS_MAX {
            return Ok(false);
        }
        let refuses = |claim: &RangeClaim| {
            claim.tree == tree && claim.refuses(owner, snapshot) && overlap(&claim.range, range)
        };
        if list.iter().any(refuses) {
            return Err(StorageError::conflict());
        }
        let claim =
            RangeClaim { owner: Some(owner), committed: CommitTimestamp::ZERO, tree, range: range.clone() };
        list.push(claim);
        self.count.store(list.len(), Ordering::SeqCst);
        Ok(true)
    }

    /// Refuses a key that lies within a range that another transaction has claimed, or deleted after the
    /// snapshot.
    pub(super) fn check(&self, claimant: Claimant, tree: TreeId, key: &[u8]) -> Result<(), Contest> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return Ok(());
        }
        self.list.lock().iter().try_for_each(|claim| match claimant.refusal(claim.owner, claim.committed) {
            Err(contest) if claim.tree == tree && claim.range.contains(key) => Err(contest),
            _ => Ok(()),
        })
    }

    /// Whether another live transaction has claimed a range that a key lies within.
    pub(super) fn is_held(&self, requester: TransactionId, tree: TreeId, key: &[u8]) -> bool {
        let holds = |claim: &RangeClaim| {
            claim.owner.is_some_and(|owner| owner != requester)
                && claim.tree == tree
                && claim.range.contains(key)
        };
        self.count.load(Ordering::SeqCst) > 0 && self.list.lock().iter().any(holds)
    }

    /// Takes the last range of a transaction out again: a key within it was claimed before.
    pub(super) fn take_back(&self, owner: TransactionId) {
        let mut list = self.list.lock();
        if let Some(at) = list.iter().rposition(|claim| claim.owner == Some(owner)) {
            list.remove(at);
        }
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// Settles the ranges of a transaction.
    pub(super) fn commit(&self, owner: TransactionId, timestamp: CommitTimestamp) {
        for claim in self.list.lock().iter_mut().filter(|claim| claim.owner == Some(owner)) {
            claim.owner = None;
            claim.committed = timestamp;
        }
    }

    /// Gives the ranges of a transaction back.
    pub(super) fn release(&self, owner: TransactionId) {
        self.retain(|claim| claim.owner != Some(owner));
    }

    /// Forgets those that every snapshot sees.
    pub(super) fn forget_seen_by(&self, oldest: SnapshotTimestamp) {
        if self.count.load(Ordering::SeqCst) > 0 {
            self.retain(|claim| claim.owner.is_some() || !oldest.sees(claim.committed));
        }
    }

    fn retain(&self, keep: impl Fn(&RangeClaim) -> bool) {
        let mut list = self.list.lock();
        list.retain(keep);
        self.count.store(list.len(), Ordering::SeqCst);
    }
}

/// Whether some key may lie within both.
fn overlap(one: &KeyRange, other: &KeyRange) -> bool {
    let meets = |lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>| {
        !KeyRange { lower: lower.clone(), upper: upper.clone() }.is_empty()
    };
    meets(&one.lower, &other.upper) && meets(&other.lower, &one.upper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::intents::Intents;

    const TREE: TreeId = TreeId::new(3);

    fn transaction(number: u64) -> TransactionId {
        TransactionId::new(number)
    }

    fn at(number: u64) -> SnapshotTimestamp {
        SnapshotTimestamp::new(number)
    }

    fn range(lower: &[u8], upper: &[u8]) -> KeyRange {
        KeyRange { lower: Bound::Included(lower.to_vec()), upper: Bound::Excluded(upper.to_vec()) }
    }

    fn is_conflict<T>(outcome: Result<T, StorageError>) -> bool {
        matches!(outcome, Err(error) if error.kind() == ErrorKind::Conflict)
    }

    #[test]
    fn a_range_conflicts_with_keys_within_it_whoever_comes_first() {
        let intents = Intents::new();
        let within = range(b"b", b"d");
        let key = intents.acquire(transaction(1), at(0), TREE, b"c").expect("nobody has it");
        intents.acquire(transaction(1), at(0), TREE, b"d").expect("nobody has it");
        assert!(is_conflict(intents.acquire_range(transaction(2), at(0), TREE, &within)));
        intents.acquire(transaction(3), at(0), TREE, b"bb").expect("the range was not claimed after all");
        intents.release_ranges(transaction(3));
        assert_eq!(intents.acquire_range(transaction(1), at(0), TREE, &range(b"c", b"d")).ok(), Some(true));
        assert!(is_conflict(intents.acquire(transaction(2), at(0), TREE, b"cc")));
        intents.acquire(transaction(2), at(0), TREE, b"b").expect("it lies beside the range");
        intents.acquire(transaction(2), at(0), TreeId::new(4), b"cc").expect("it is another tree");
        intents.commit(&[key], CommitTimestamp::new(7));
        intents.commit_ranges(transaction(1), CommitTimestamp::new(7));
        assert!(is_conflict(intents.acquire(transaction(4), at(6), TREE, b"cc")));
        assert!(is_conflict(intents.acquire_range(transaction(4), at(6), TREE, &range(b"a", b"cc"))));
        intents.acquire(transaction(4), at(7), TREE, b"cc").expect("the snapshot sees the deletion");
        intents.set_oldest_snapshot(at(7));
        assert!(is_conflict(intents.acquire_range(transaction(5), at(7), TREE, &range(b"a", b"cd"))));
        assert_eq!(intents.acquire_range(transaction(5), at(7), TREE, &range(b"cd", b"d")).ok(), Some(true));
    }

    #[test]
    fn two_ranges_conflict_where_they_overlap() {
        let intents = Intents::new();
        assert_eq!(intents.acquire_range(transaction(1), at(0), TREE, &range(b"b", b"d")).ok(), Some(true));
        assert!(is_conflict(intents.acquire_range(transaction(2), at(0), TREE, &range(b"c", b"e"))));
        assert!(is_conflict(intents.acquire_range(transaction(2), at(0), TREE, &KeyRange::all())));
        assert_eq!(intents.acquire_range(transaction(2), at(0), TREE, &range(b"d", b"e")).ok(), Some(true));
        intents.release_ranges(transaction(1));
        assert_eq!(intents.acquire_range(transaction(2), at(0), TREE, &range(b"a", b"e")).ok(), Some(true));
    }

    #[test]
    fn the_unknown_rest_of_a_long_key_is_taken_for_within() {
        let within = range(b"a common start, then 5", b"a common start, then 7");
        let may = |key: &[u8]| KeyStart::of(TREE, key).may_lie_within(TREE, &within);
        assert!(may(b"a common start, then 6") && may(b"a common start, then 8"));
        assert!(!may(b"a common st"), "a short key is known whole");
        assert!(!may(b"a") && !may(b"a uncommon start") && !may(b"a commom start"));
        assert!(!KeyStart::of(TREE, b"a common start, then 6").may_lie_within(TreeId::new(1), &within));
        let long = KeyStart::of(TREE, b"key and what follows it");
        assert!(long.may_lie_within(TREE, &range(b"k", b"l")) && long.may_lie_within(TREE, &KeyRange::all()));
        assert!(
            !long.may_lie_within(TREE, &range(b"l", b"m"))
                && !long.may_lie_within(TREE, &range(b"a", b"key"))
        );
        let exact = KeyRange { lower: Bound::Excluded(b"11 bytes of".to_vec()), upper: Bound::Unbounded };
        assert!(KeyStart::of(TREE, b"11 bytes of a key").may_lie_within(TREE, &exact));
        assert!(!KeyStart::of(TREE, b"11 bytes of").may_lie_within(TREE, &exact));
    }

    #[test]
    fn evicted_keys_and_wide_claims_count_as_within() {
        let intents = Intents::with_entries_max(1);
        for number in 1..=100_000_u64 {
            let key = number.to_le_bytes();
            let intent = intents.acquire(transaction(number), at(number - 1), TREE, &key).expect("it is new");
            intents.commit(&[intent], CommitTimestamp::new(number));
        }
        let beside = range(b"some other place", b"some other placf");
        assert!(is_conflict(intents.acquire_range(transaction(200_000), at(10), TREE, &beside)));
        assert_eq!(intents.acquire_range(transaction(200_000), at(100_000), TREE, &beside).ok(), Some(true));

        let intents = Intents::new();
        let mut wide = crate::Claims::with_intents_max(transaction(1), at(0), 0);
        wide.claim(&intents, TREE, b"a").expect("nobody has it");
        assert!(is_conflict(intents.acquire_range(transaction(2), at(0), TREE, &beside)));
        assert_eq!(intents.acquire_range(transaction(1), at(0), TREE, &beside).ok(), Some(true));
        wide.commit(&intents, CommitTimestamp::new(5));
        assert!(is_conflict(intents.acquire_range(transaction(2), at(4), TREE, &beside)));
    }

    #[test]
    fn there_are_only_so_many_ranges_at_once() {
        let intents = Intents::new();
        for number in 0..RANGE_CLAIMS_MAX {
            let key = (number as u32).to_be_bytes();
            let claimed = intents.acquire_range(transaction(1), at(0), TREE, &KeyRange::point(&key));
            assert_eq!(claimed.ok(), Some(true));
        }
        let one_more = intents.acquire_range(transaction(1), at(0), TREE, &KeyRange::point(b"more"));
        assert_eq!(one_more.ok(), Some(false));
    }
}
