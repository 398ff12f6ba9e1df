//! Tests of the write set against plain maps.

use std::collections::BTreeMap;

use pando_environment::SeededRandom;

use super::*;
use crate::batch::{Batch, BatchLimits, ScanEnd};
use crate::key_range::{Direction, KeyRange};

const TREE: TreeId = TreeId::new(1);
const OTHER: TreeId = TreeId::new(2);

fn pairs(set: &WriteSet) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    set.iter().map(|write| (write.key.to_vec(), write.change.over(None).map(Cow::into_owned))).collect()
}

#[test]
fn a_key_reads_back_its_latest_write_and_only_that_is_committed() {
    let mut set = WriteSet::new();
    set.put(TREE, b"a", b"1", Claim::Intent);
    set.put(TREE, b"b", b"2", Claim::Blind);
    set.put(OTHER, b"a", b"3", Claim::Intent);
    set.delete(TREE, b"a", Claim::Intent);
    assert_eq!(set.latest(TREE, b"a").map(|write| write.change), Some(Change::Delete));
    assert_eq!(
        set.latest(TREE, b"b").map(|write| (write.change, write.claim)),
        Some((Change::Put(b"2"), Claim::Blind))
    );
    assert_eq!(set.latest(OTHER, b"b"), None);
    assert_eq!((set.len(), set.keys()), (4, 3));
    let expected = vec![
        (b"b".to_vec(), Some(b"2".to_vec())),
        (b"a".to_vec(), Some(b"3".to_vec())),
        (b"a".to_vec(), None),
    ];
    assert_eq!(pairs(&set), expected);
    let sorted: Vec<(TreeId, &[u8])> = set.sorted().iter().map(|write| (write.tree, write.key)).collect();
    assert_eq!(sorted, vec![(TREE, &b"a"[..]), (TREE, b"b"), (OTHER, b"a")]);
}

#[test]
fn empty_keys_and_values_differ_from_deletions() {
    let mut set = WriteSet::new();
    set.put(TREE, b"", b"", Claim::Intent);
    assert_eq!(set.latest(TREE, b"").map(|write| write.change), Some(Change::Put(b"")));
    set.delete(TREE, b"", Claim::Intent);
    assert_eq!(set.latest(TREE, b"").map(|write| write.change), Some(Change::Delete));
}

#[test]
fn merges_of_a_key_are_one_write_and_over_an_own_put_or_delete_they_are_a_put() {
    let mut set = WriteSet::new();
    set.merge(TREE, b"a", Merge::Add(2), Claim::Blind).unwrap();
    let savepoint = set.savepoint();
    set.merge(TREE, b"a", Merge::Add(3), Claim::Blind).unwrap();
    let five = Merge::Add(5).to_bytes();
    let merges = Change::Merge(Merges::decode(&five).unwrap());
    assert_eq!(set.latest(TREE, b"a").map(|write| write.change), Some(merges));
    set.delete(TREE, b"a", Claim::Intent);
    set.merge(TREE, b"a", Merge::Add(7), Claim::Blind).unwrap();
    assert_eq!(set.latest(TREE, b"a").map(|write| write.change), Some(Change::Put(&7_i64.to_le_bytes())));
    set.merge(TREE, b"a", Merge::Max(b"z"), Claim::Blind).unwrap();
    assert_eq!(set.latest(TREE, b"a").map(|write| write.change), Some(Change::Put(b"z")));
    set.rollback_to(savepoint);
    assert_eq!(pairs(&set), vec![(b"a".to_vec(), Some(2_i64.to_le_bytes().to_vec()))]);
    assert_eq!(set.keys(), 1);
}

#[test]
fn more_merges_of_a_key_than_can_be_kept_as_one_are_refused() {
    let mut set = WriteSet::new();
    let operand = vec![b'x'; 1_000];
    let outcomes: Vec<_> = (0..200)
        .map(|at| if at % 2 == 0 { Merge::Max(&operand) } else { Merge::Add(1) })
        .map(|merge| set.merge(TREE, b"a", merge, Claim::Blind).map_err(|error| error.kind()))
        .collect();
    assert!(outcomes.contains(&Err(crate::ErrorKind::InvalidInput)));
    let merges = set.latest(TREE, b"a").map(|write| write.change.bytes().len());
    assert!(merges.is_some_and(|bytes| bytes > 60_000 && bytes <= crate::MERGES_BYTES_MAX), "{merges:?}");
    set.put(TREE, b"a", b"v", Claim::Blind);
    set.merge(TREE, b"a", Merge::Max(b"w"), Claim::Blind).expect("what is before a put is gone");
}

#[test]
fn a_scan_applies_own_merges_to_what_lies_below_and_to_nothing() {
    let mut set = WriteSet::new();
    set.merge(TREE, b"a", Merge::Max(b"own"), Claim::Blind).unwrap();
    set.merge(TREE, b"b", Merge::Max(b"own"), Claim::Blind).unwrap();
    let mut batch = Batch::new();
    for direction in [Direction::Forward, Direction::Backward] {
        let limits = BatchLimits::LARGEST;
        let end = set.scan_over(TREE, &KeyRange::all(), direction, limits, &mut batch, &mut |_, below| {
            below.clear();
            below.push(b"b", b"zero");
            Ok(ScanEnd::Done)
        });
        assert_eq!(end.unwrap(), ScanEnd::Done);
        let mut found: Vec<_> = batch.iter().collect();
        found.sort_unstable();
        assert_eq!(found, [(&b"a"[..], &b"own"[..]), (b"b", b"zero")]);
    }
}

#[test]
fn rolling_back_uncovers_what_was_covered_and_gives_the_bytes_back() {
    let mut set = WriteSet::new();
    set.put(TREE, b"a", b"1", Claim::Intent);
    let bytes = set.bytes();
    let savepoint = set.savepoint();
    set.put(TREE, b"a", b"22", Claim::Intent);
    set.put(TREE, b"b", b"3", Claim::Intent);
    set.delete(TREE, b"a", Claim::Intent);
    set.rollback_to(savepoint);
    assert_eq!(pairs(&set), vec![(b"a".to_vec(), Some(b"1".to_vec()))]);
    assert_eq!((set.bytes(), set.len(), set.keys()), (bytes, 1, 1));
    assert_eq!(set.latest(TREE, b"b"), None);
}

/// Test choices that follow from a seed.
struct Generator(SeededRandom);

impl Generator {
    fn below(&self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn key(&self) -> Vec<u8> {
        let length = self.below(3) as usize;
        (0..length).map(|_| self.below(8) as u8).collect()
    }

    fn bound(&self) -> std::ops::Bound<Vec<u8>> {
        match self.below(3) {
            0 => std::ops::Bound::Included(self.key()),
            1 => std::ops::Bound::Excluded(self.key()),
            _ => std::ops::Bound::Unbounded,
        }
    }
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// An engine's scan over a map, in batches of the given size.
fn base_scan(
    map: &Map,
    range: &KeyRange,
    direction: Direction,
    entries_max: usize,
    batch: &mut Batch,
) -> ScanEnd {
    batch.clear();
    let mut within: Vec<_> = map.iter().filter(|(key, _)| range.contains(key)).collect();
    if direction == Direction::Backward {
        within.reverse();
    }
    for (key, value) in within.iter().take(entries_max) {
        batch.push(key, value);
    }
    if within.len() > entries_max { ScanEnd::More } else { ScanEnd::Done }
}

fn scan_all(
    set: &WriteSet,
    base: &Map,
    range: &KeyRange,
    direction: Direction,
    sizes: (usize, usize),
) -> Vec<Vec<u8>> {
    let limits = BatchLimits { entries_max: sizes.0, bytes_max: 1 << 20 };
    let (mut rest, mut batch, mut found) = (range.clone(), Batch::new(), Vec::new());
    loop {
        let end = set
            .scan_over(TREE, &rest, direction, limits, &mut batch, &mut |range, batch| {
                Ok(base_scan(base, range, direction, sizes.1.min(sizes.0), batch))
            })
            .expect("the base scan does not fail");
        assert!(batch.len() <= sizes.0, "the batch exceeds its limit");
        found.extend(batch.iter().map(|(key, value)| [key, b"=", value].concat()));
        match (end, batch.last()) {
            (ScanEnd::Done, _) => return found,
            (ScanEnd::More, last) => {
                rest.advance_past(last.expect("an empty batch means the end").0, direction);
            }
        }
    }
}

#[test]
fn scans_show_own_writes_over_the_base_whatever_the_bounds_batches_and_rollbacks() {
    for seed in 0..60 {
        let random = Generator(SeededRandom::new(seed));
        let base: Map = (0..random.below(40)).map(|n| (random.key(), vec![n as u8])).collect();
        let mut set = WriteSet::new();
        let mut steps: Vec<Map> = vec![base.clone()];
        for step in 0..60_u8 {
            let mut now = steps.last().expect("the base is there").clone();
            let (key, value) = (random.key(), vec![b'w', step]);
            match random.below(4) {
                0 => {
                    set.delete(TREE, &key, Claim::Intent);
                    now.remove(&key);
                }
                1 => {
                    let merge = if step % 2 == 0 { Merge::Max(&value) } else { Merge::Add(i64::from(step)) };
                    set.merge(TREE, &key, merge, Claim::Blind).unwrap();
                    let merged =
                        merge.apply(now.get(&key).map(Vec::as_slice)).expect("no patch").into_owned();
                    now.insert(key, merged);
                }
                _ => {
                    set.put(TREE, &key, &value, Claim::Intent);
                    now.insert(key, value);
                }
            }
            set.put(OTHER, &random.key(), b"elsewhere", Claim::Intent);
            steps.push(now);
            if random.below(10) == 0 {
                let back_to = random.below(steps.len() as u64) as usize;
                set.rollback_to(Savepoint::new(back_to * 2));
                steps.truncate(back_to + 1);
            }
            let range = KeyRange { lower: random.bound(), upper: random.bound() };
            let direction = if random.below(2) == 0 { Direction::Forward } else { Direction::Backward };
            let sizes = (1 + random.below(5) as usize, 1 + random.below(5) as usize);
            let now = steps.last().expect("the base is there");
            let mut expected: Vec<Vec<u8>> = now
                .iter()
                .filter(|(key, _)| range.contains(key))
                .map(|(key, value)| [key.as_slice(), b"=", value].concat())
                .collect();
            if direction == Direction::Backward {
                expected.reverse();
            }
            assert_eq!(scan_all(&set, &base, &range, direction, sizes), expected, "seed {seed} step {step}");
        }
    }
}

#[test]
fn a_failing_base_scan_fails_the_scan() {
    let mut set = WriteSet::new();
    set.put(TREE, b"a", b"1", Claim::Intent);
    let mut batch = Batch::new();
    let outcome = set.scan_over(
        TREE,
        &KeyRange::all(),
        Direction::Forward,
        BatchLimits::FIRST,
        &mut batch,
        &mut |_, _| Err(crate::StorageError::would_block()),
    );
    assert!(outcome.is_err_and(|error| error.is_would_block()));
}
