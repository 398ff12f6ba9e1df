//! The commits that were made while there were readers: which keys they wrote, and when.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use pando_environment::sync::atomic::{AtomicU64, Ordering};

use super::spans::{Spans, ends};
use crate::identifiers::{CommitTimestamp, SnapshotTimestamp, TreeId};
use crate::key_range::KeyRange;

/// Keys that a commit notes one by one. A larger one notes one range in each tree.
const KEYS_OF_COMMIT_MAX: usize = 4_096;
/// Keys that are kept.
const KEYS_MAX: usize = 1 << 16;
/// Bytes of keys that are kept.
const BYTES_MAX: usize = 8 << 20;
/// Ranges that are kept.
const RANGES_MAX: usize = 256;
/// Below this many keys none is looked for that may go.
const PRUNED_KEYS_MIN: usize = 1_024;

/// The time of a commit that is not made yet.
const UNDER_WAY: u64 = 0;
/// The time of a commit that failed: before every snapshot.
const FAILED: u64 = 1;

/// The keys that a transaction has written.
#[derive(Debug, Default)]
pub(crate) struct WrittenKeys {
    keys: BTreeMap<TreeId, Vec<Vec<u8>>>,
    count: usize,
    /// The first and the last key in each tree, once there are too many.
    extents: BTreeMap<TreeId, (Vec<u8>, Vec<u8>)>,
    ranges: Vec<(TreeId, KeyRange)>,
}

impl WrittenKeys {
    /// Adds a key.
    pub(crate) fn add(&mut self, tree: TreeId, key: &[u8]) {
        if self.count < KEYS_OF_COMMIT_MAX {
            self.keys.entry(tree).or_default().push(key.to_vec());
            self.count += 1;
            return;
        }
        for (tree, keys) in std::mem::take(&mut self.keys) {
            keys.iter().for_each(|key| self.extend(tree, key));
        }
        self.extend(tree, key);
    }

    fn extend(&mut self, tree: TreeId, key: &[u8]) {
        let (first, last) = self.extents.entry(tree).or_insert_with(|| (key.to_vec(), key.to_vec()));
        if key < first.as_slice() {
            *first = key.to_vec();
        }
        if key > last.as_slice() {
            *last = key.to_vec();
        }
    }

    /// Adds a range that is deleted as a whole.
    pub(crate) fn add_range(&mut self, tree: TreeId, range: &KeyRange) {
        self.ranges.extend(range.half_open().map(|range| (tree, range)));
    }

    fn ranges(&self) -> impl Iterator<Item = (TreeId, KeyRange)> {
        let extents = self.extents.iter().filter_map(|(tree, (first, last))| {
            let range =
                KeyRange { lower: Bound::Included(first.clone()), upper: Bound::Included(last.clone()) };
            Some((*tree, range.half_open()?))
        });
        extents.chain(self.ranges.iter().cloned())
    }

    /// Whether one of them lies within what a reader has claimed.
    pub(super) fn meet(&self, claimed: &Spans) -> bool {
        self.keys.iter().any(|(tree, keys)| keys.iter().any(|key| claimed.contain(*tree, key)))
            || self.ranges().any(|(tree, range)| claimed.meet(tree, &range))
    }
}

/// The commits that wrote a key.
#[derive(Debug, Default)]
struct KeyCommits {
    /// The last of those that are over.
    last: u64,
    under_way: Vec<Arc<AtomicU64>>,
}

impl KeyCommits {
    /// Adds a commit that is under way.
    fn add(&mut self, commit: &Arc<AtomicU64>) {
        let mut last = self.last;
        self.under_way.retain(|commit| {
            let time = commit.load(Ordering::SeqCst);
            last = last.max(time);
            time == UNDER_WAY
        });
        self.last = last;
        self.under_way.push(Arc::clone(commit));
    }

    /// The time of the last; the end of time while one is under way.
    fn latest(&self) -> u64 {
        self.under_way.iter().map(time_of).fold(self.last, u64::max)
    }
}

fn time_of(commit: &Arc<AtomicU64>) -> u64 {
    match commit.load(Ordering::SeqCst) {
        UNDER_WAY => u64::MAX,
        time => time,
    }
}

/// A commit that was noted before it is made. Dropping it says that it was not made.
#[derive(Debug)]
pub(crate) struct CommitNote {
    time: Arc<AtomicU64>,
}

impl CommitNote {
    /// It was made.
    pub(crate) fn settle(&self, timestamp: CommitTimestamp) {
        self.time.store(timestamp.get(), Ordering::SeqCst);
    }
}

impl Drop for CommitNote {
    fn drop(&mut self) {
        if self.time.load(Ordering::SeqCst) == UNDER_WAY {
            self.time.store(FAILED, Ordering::SeqCst);
        }
    }
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct NotedCommits {
    trees: HashMap<TreeId, BTreeMap<Vec<u8>, KeyCommits>>,
    keys: usize,
    bytes: usize,
    /// Look for keys that may go at this many.
    prune_at: usize,
    /// Oldest first.
    ranges: VecDeque<(TreeId, KeyRange, Arc<AtomicU64>)>,
    /// The latest time of a commit that was forgotten for want of room.
    forgotten: u64,
}

impl Default for NotedCommits {
    fn default() -> NotedCommits {
        NotedCommits {
            trees: HashMap::new(),
            keys: 0,
            bytes: 0,
            prune_at: PRUNED_KEYS_MIN,
            ranges: VecDeque::new(),
            forgotten: 0,
        }
    }
}

impl NotedCommits {
    /// Notes a commit. `oldest` is the oldest snapshot for which notes are kept, if it is known.
    pub(super) fn add(&mut self, written: &WrittenKeys, oldest: Option<SnapshotTimestamp>) -> CommitNote {
        if self.keys >= self.prune_at || self.bytes >= BYTES_MAX || self.ranges.len() >= RANGES_MAX {
            self.make_room(oldest);
        }
        let time = Arc::new(AtomicU64::new(UNDER_WAY));
        for (tree, keys) in &written.keys {
            let noted = self.trees.entry(*tree).or_default();
            for key in keys {
                if !noted.contains_key(key.as_slice()) {
                    self.keys += 1;
                    self.bytes += key.len();
                    noted.insert(key.clone(), KeyCommits::default());
                }
                noted.get_mut(key.as_slice()).expect("it was just inserted").add(&time);
            }
        }
        self.ranges.extend(written.ranges().map(|(tree, range)| (tree, range, Arc::clone(&time))));
        CommitNote { time }
    }

    /// Whether a commit later than the snapshot has written into a half-open range.
    pub(super) fn has_later(&self, snapshot: SnapshotTimestamp, tree: TreeId, range: &KeyRange) -> bool {
        let snapshot = snapshot.get();
        let (lower, upper) = ends(range);
        let is_later = |commits: &KeyCommits| commits.latest() > snapshot;
        let upper_bound = upper.map_or(Bound::Unbounded, Bound::Excluded);
        self.forgotten > snapshot
            || self.trees.get(&tree).is_some_and(|noted| {
                noted
                    .range::<[u8], _>((Bound::Included(lower), upper_bound))
                    .any(|(_, commits)| is_later(commits))
            })
            || self.ranges.iter().any(|(written, range, commit)| {
                let (first, end) = ends(range);
                let is_apart =
                    end.is_some_and(|end| end <= lower) || upper.is_some_and(|upper| upper <= first);
                *written == tree && time_of(commit) > snapshot && !is_apart
            })
    }

    /// Drops what no reader asks for; if that is too little, the older half.
    fn make_room(&mut self, oldest: Option<SnapshotTimestamp>) {
        if let Some(oldest) = oldest {
            self.drop_to(oldest.get());
        }
        while self.keys > KEYS_MAX / 2 || self.bytes > BYTES_MAX / 2 || self.ranges.len() > RANGES_MAX / 2 {
            let mut times: Vec<u64> =
                self.trees.values().flat_map(BTreeMap::values).map(KeyCommits::latest).collect();
            times.extend(self.ranges.iter().map(|(_, _, commit)| time_of(commit)));
            times.retain(|time| *time != u64::MAX);
            if times.is_empty() {
                break;
            }
            let middle = times.len() / 2;
            let (_, middle, _) = times.select_nth_unstable(middle);
            self.forgotten = self.forgotten.max(*middle);
            self.drop_to(*middle);
        }
        self.prune_at = (self.keys * 2).clamp(PRUNED_KEYS_MIN, KEYS_MAX);
    }

    fn drop_to(&mut self, time: u64) {
        (self.keys, self.bytes) = (0, 0);
        for noted in self.trees.values_mut() {
            noted.retain(|_, commits| commits.latest() > time);
            self.keys += noted.len();
            self.bytes += noted.keys().map(Vec::len).sum::<usize>();
        }
        self.trees.retain(|_, noted| !noted.is_empty());
        self.ranges.retain(|(_, _, commit)| time_of(commit) > time);
    }

    /// Keys that are kept.
    #[cfg(all(test, not(shuttle)))]
    pub(super) fn keys(&self) -> usize {
        self.keys
    }
}
