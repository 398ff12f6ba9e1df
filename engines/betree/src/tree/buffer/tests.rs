//! Buffers by themselves: versions, merges, sweeps and sizes.

use bytes::Bytes;
use pando_environment::{Random, SeededRandom};
use pando_storage::Merge;

use super::chain::Older;
use super::*;
use crate::base::KeySpan;
use crate::format::content::Content;
use crate::tree::value_merge::MergeOperands;

fn bounds_at(oldest: u64, ranges: &DeletedRanges) -> PruneBounds<'_> {
    PruneBounds { oldest: SnapshotTimestamp::new(oldest), ranges }
}

fn none() -> DeletedRanges {
    DeletedRanges::default()
}

fn version(timestamp: u64, value: &'static str) -> BufferedVersion {
    let change = OwnedChange::Put(Bytes::from_static(value.as_bytes()));
    BufferedVersion { timestamp: CommitTimestamp::new(timestamp), change }
}

fn seen(buffer: &Buffer, snapshot: u64) -> Option<&[u8]> {
    let version = buffer.get(b"key")?.visible(SnapshotTimestamp::new(snapshot)).next()?;
    match &version.change {
        OwnedChange::Put(value) => Some(value),
        OwnedChange::Other(_) => None,
    }
}

fn add(timestamp: u64, number: i64) -> BufferedVersion {
    let change = OwnedChange::Other(DeleteOrMerge::Merge(Merge::Add(number).to_bytes().into()));
    BufferedVersion { timestamp: CommitTimestamp::new(timestamp), change }
}

fn counter(number: i64) -> OwnedChange {
    OwnedChange::Put(Bytes::copy_from_slice(&number.to_le_bytes()))
}

fn versions(buffer: &Buffer) -> Vec<(u64, OwnedChange)> {
    let versions = buffer.get(b"key").into_iter().flat_map(Chain::versions);
    versions.map(|version| (version.timestamp.get(), version.change.clone())).collect()
}

/// Checks that the counted sizes equal the sizes of all chains.
fn check_bytes(buffer: &Buffer) {
    let key = |key: &[u8]| SLOT_BYTES + BufferKey::heap_bytes(key);
    let older = |chain: &Chain| -> usize {
        std::iter::successors(chain.older.as_deref(), |older| older.before.as_deref()).map(Older::bytes).sum()
    };
    let chains = || buffer.chains.range(Bound::Unbounded, Bound::Unbounded);
    let newest: usize = chains().map(|(at, chain)| key(at) + chain.newest.heap_bytes()).sum();
    let older: usize = chains().map(|(_, chain)| older(chain)).sum();
    let content: usize = chains().map(|(at, chain)| at.len() + chain.newest.content_bytes()).sum();
    assert_eq!((buffer.sizes.all, buffer.sizes.older), (newest + older, older));
    assert_eq!(buffer.sizes.content, content);
}

#[test]
fn a_change_is_no_larger_than_a_value() {
    assert_eq!(size_of::<OwnedChange>(), size_of::<Bytes>());
}

#[test]
fn merge_operators_combine_with_versions_below_at_or_before_the_oldest_snapshot_only() {
    let mut buffer = Buffer::default();
    let mut push = |version, oldest| {
        buffer.push(b"key", version, bounds_at(oldest, &none()));
        check_bytes(&buffer);
        versions(&buffer)
    };
    push(add(2, 10), 0);
    push(add(4, 20), 0);
    let all = vec![(6, add(6, 40).change), (4, add(4, 20).change), (2, add(2, 10).change)];
    assert_eq!(push(add(6, 40), 3), all, "only one is at or before the oldest snapshot");
    let combined = vec![(8, add(8, 80).change), (6, add(6, 40).change), (4, add(4, 30).change)];
    assert_eq!(push(add(8, 80), 4), combined);
    // A version that arrives out of order finds its place between the others.
    let out_of_order = vec![(8, add(8, 80).change), (7, counter(1)), (6, add(6, 70).change)];
    assert_eq!(push(BufferedVersion { change: counter(1), ..add(7, 0) }, 6), out_of_order);
    let combined = vec![(9, add(9, 1).change), (8, counter(81))];
    assert_eq!(push(add(9, 1), 8), combined);
    push(BufferedVersion { change: OwnedChange::Other(DeleteOrMerge::Delete), ..add(11, 0) }, 8);
    push(add(12, 5), 9);
    assert_eq!(push(add(13, 6), 12), [(13, add(13, 6).change), (12, counter(5))]);
}

#[test]
fn merge_operators_do_not_combine_with_versions_below_a_range_delete() {
    let at = |time| CommitTimestamp::new(time);
    let deleted = none().with_all([KeySpan::all()].iter(), at(5), Lsn::new(5));
    let pushed = |ranges: &DeletedRanges, oldest: u64, versions: &[BufferedVersion]| {
        let mut buffer = Buffer::default();
        let (last, before) = versions.split_last().expect("there is one");
        before.iter().for_each(|version| _ = buffer.push(b"key", version.clone(), bounds_at(0, ranges)));
        buffer.push(b"key", last.clone(), bounds_at(oldest, ranges));
        check_bytes(&buffer);
        super::tests::versions(&buffer)
    };
    let both = [add(4, 10), add(6, 20)];
    assert_eq!(pushed(&none(), 7, &both), [(6, add(6, 30).change)]);
    assert_eq!(pushed(&deleted, 7, &both), [(6, counter(20))]);
    assert_eq!(pushed(&deleted, 5, &both).len(), 2, "a snapshot may come between");
    let above = [add(4, 10), add(6, 20), add(7, 1)];
    assert_eq!(pushed(&deleted, 9, &above), [(7, counter(21))]);
}

#[test]
fn a_sweep_combines_merge_operators_and_counts_the_freed_bytes() {
    let buffer = SharedBuffer::new();
    for timestamp in 1..=40 {
        let merge = Merge::Add(1).to_bytes();
        let change = OwnedChange::Other(DeleteOrMerge::Merge(merge.into()));
        let (lsn, timestamp) = (Lsn::new(timestamp), CommitTimestamp::new(timestamp));
        let key: &[u8] = if timestamp.get() % 4 == 0 { b"other" } else { b"key" };
        buffer.apply(lsn, timestamp, bounds_at(0, &none()), [(key, change)].into_iter());
    }
    let before = buffer.bytes();
    let dropped = buffer.sweep(bounds_at(37, &none()));
    check_bytes(&buffer.read());
    assert_eq!(buffer.bytes(), before - dropped);
    let expected = [(39, add(39, 1).change), (38, add(38, 1).change), (37, add(37, 28).change)];
    assert_eq!(versions(&buffer.read()), expected);
}

#[test]
fn a_snapshot_sees_the_newest_version_that_is_not_newer_than_itself() {
    let mut buffer = Buffer::default();
    for (timestamp, value) in [(3, "three"), (5, "five"), (9, "nine")] {
        buffer.push(b"key", version(timestamp, value), bounds_at(0, &none()));
    }
    assert_eq!(seen(&buffer, 2), None);
    assert_eq!(seen(&buffer, 4), Some(&b"three"[..]));
    assert_eq!(seen(&buffer, 8), Some(&b"five"[..]));
    assert_eq!(seen(&buffer, 9), Some(&b"nine"[..]));
}

#[test]
fn versions_that_come_out_of_order_are_put_in_order() {
    let mut buffer = Buffer::default();
    for (timestamp, value) in [(5, "five"), (3, "three"), (9, "nine"), (7, "seven")] {
        buffer.push(b"key", version(timestamp, value), bounds_at(0, &none()));
    }
    let values: Vec<_> = (3..=9).map(|snapshot| seen(&buffer, snapshot).unwrap()).collect();
    assert_eq!(values, [&b"three"[..], b"three", b"five", b"five", b"seven", b"seven", b"nine"]);
}

#[test]
fn overwriting_a_key_that_no_old_snapshot_needs_takes_no_more_memory() {
    let mut buffer = Buffer::default();
    for timestamp in 1..=1000 {
        buffer.push(b"key", version(timestamp, "value"), bounds_at(timestamp - 1, &none()));
    }
    assert!(buffer.bytes() < 500, "{} bytes", buffer.bytes());
    assert_eq!(seen(&buffer, 1000), Some(&b"value"[..]));
    assert_eq!(seen(&buffer, 999), Some(&b"value"[..]));
}

#[test]
fn a_sweep_keeps_versions_that_a_snapshot_can_see() {
    let buffer = SharedBuffer::new();
    let apply = |timestamp: u64, key: &'static [u8]| {
        let change = OwnedChange::Put(Bytes::from_static(b"value"));
        let (lsn, timestamp) = (Lsn::new(timestamp), CommitTimestamp::new(timestamp));
        buffer.apply(lsn, timestamp, bounds_at(0, &none()), [(key, change)].into_iter());
    };
    (1..=9).for_each(|timestamp| apply(timestamp, b"key"));
    (10..=12).for_each(|timestamp| apply(timestamp, b"other"));
    let (before, versions) = (buffer.bytes(), |key: &[u8]| {
        buffer.read().get(key).unwrap().versions().map(|version| version.timestamp.get()).collect::<Vec<_>>()
    });
    let dropped = buffer.sweep(bounds_at(7, &none()));
    assert_eq!((versions(b"key"), versions(b"other")), (vec![9, 8, 7], vec![12, 11, 10]));
    assert_eq!(buffer.bytes(), before - dropped);
    buffer.sweep(bounds_at(12, &none()));
    assert_eq!((versions(b"key"), versions(b"other")), (vec![9], vec![12]));
    assert_eq!(buffer.sweep(bounds_at(12, &none())), 0);
    assert_eq!(buffer.read().sizes.older, 0);
}

#[test]
fn the_newest_version_that_the_oldest_snapshot_sees_is_kept() {
    let mut buffer = Buffer::default();
    for timestamp in [3, 5, 7, 9] {
        buffer.push(b"key", version(timestamp, "value"), bounds_at(6, &none()));
    }
    assert_eq!(seen(&buffer, 6), Some(&b"value"[..]));
    assert_eq!(buffer.get(b"key").map(|chain| chain.versions().count()), Some(3));
}

#[test]
fn long_and_short_keys_stand_in_one_order() {
    let mut buffer = Buffer::default();
    let long = [b'b'; 100];
    for key in [&b"c"[..], &long, b"a", b""] {
        buffer.push(key, version(1, "value"), bounds_at(0, &none()));
    }
    let keys: Vec<&[u8]> = buffer.range(Bound::Unbounded, Bound::Unbounded).map(|(key, _)| key).collect();
    assert_eq!(keys, [&b""[..], b"a", &long, b"c"]);
    assert_eq!(buffer.range(Bound::Included(b"c"), Bound::Excluded(b"a")).count(), 0);
}

#[test]
fn keys_are_ordered_as_their_bytes_are() {
    let random = SeededRandom::new(3);
    let mut keys: Vec<Vec<u8>> = vec![Vec::new(), vec![0], vec![0, 0], vec![255; 30], vec![255; 31]];
    for _ in 0..400 {
        // Few different bytes, so that many keys begin alike.
        let length = random.next_u64() as usize % 34;
        keys.push((0..length).map(|_| [0, 0, 0, 1, 255][random.next_u64() as usize % 5]).collect());
    }
    for left in &keys {
        for right in &keys {
            let (key, other) = (BufferKey::new(left), BufferKey::new(right));
            assert_eq!(key.cmp(&other), left.cmp(right), "{left:?} {right:?}");
            assert_eq!(key == other, left == right);
        }
    }
}

#[test]
fn a_superseded_version_is_dropped_by_a_later_commit_unless_a_snapshot_may_see_it() {
    let shared = SharedBuffer::new();
    let apply = |time: u64, oldest: u64, keys: &[&[u8]]| {
        let writes = keys.iter().map(|key| (*key, OwnedChange::Put(Bytes::from_static(b"value"))));
        let (lsn, timestamp) = (Lsn::new(time), CommitTimestamp::new(time));
        shared.apply(lsn, timestamp, bounds_at(oldest, &none()), writes).superseded
    };
    let count = |key: &[u8]| shared.read().get(key).map_or(0, |chain| chain.versions().count());
    assert_eq!(apply(1, 0, &[b"a", b"b"]), 0);
    assert_eq!(apply(2, 1, &[b"a", b"b"]), 2);
    assert_eq!((count(b"a"), count(b"b")), (2, 2));
    assert_eq!(apply(3, 1, &[b"c"]), 0);
    assert_eq!((count(b"a"), count(b"b")), (2, 2), "a snapshot at 1 may see the superseded versions");
    assert_eq!(apply(4, 3, &[b"c"]), 1);
    assert_eq!((count(b"a"), count(b"b"), count(b"c")), (1, 1, 2));
    check_bytes(&shared.read());
    // A sweep drops the versions beyond the bound of notes.
    let keys: Vec<[u8; 2]> = (0..600u16).map(u16::to_be_bytes).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
    apply(5, 4, &keys);
    assert_eq!(apply(6, 5, &keys), SUPERSEDED_MIN);
    apply(7, 6, &[b"d"]);
    assert_eq!(keys.iter().filter(|key| count(key) == 2).count(), keys.len() - SUPERSEDED_MIN);
    check_bytes(&shared.read());
    assert!(shared.sweep(bounds_at(7, &none())) > 0);
    assert!(keys.iter().all(|key| count(key) == 1));
    check_bytes(&shared.read());
}

/// The value that a snapshot reads of a key, over a value that is not in the buffer.
fn read_over(buffer: &Buffer, key: &[u8], snapshot: u64) -> Option<Bytes> {
    let mut merges = MergeOperands::default();
    let below = Some(Bytes::copy_from_slice(&1_000_i64.to_le_bytes()));
    let Some(chain) = buffer.get(key) else { return below };
    let mut visible = chain.visible(SnapshotTimestamp::new(snapshot));
    match visible.find_map(|version| merges.take(version.content_above(CommitTimestamp::ZERO))) {
        None => merges.over(below),
        Some(Content::Value(value)) => merges.over(Some(value)),
        Some(_deleted) => merges.over(None),
    }
}

#[test]
fn dropping_superseded_versions_changes_no_answer_for_any_writes_in_any_order() {
    for seed in 0..60 {
        let random = SeededRandom::new(seed);
        let draw = |below: u64| random.next_u64() % below;
        let (dropping, keeping) = (SharedBuffer::new(), SharedBuffer::new());
        let mut commits: Vec<u64> = (1..=200).collect();
        for at in (1..commits.len()).step_by(5) {
            // Commits that wrote keys blindly arrive in another order than in the log.
            let end = (at + 1 + draw(4) as usize).min(commits.len());
            commits[at..end].reverse();
        }
        let (mut oldest, mut grown) = (0, 0);
        for (at, time) in commits.iter().enumerate() {
            let published = commits[at..].iter().min().expect("this one") - 1;
            oldest = oldest.max(published.saturating_sub(draw(12)));
            let writes: Vec<([u8; 1], OwnedChange)> = (0..1 + draw(6) as u8 * 3)
                .step_by(3)
                .map(|key| match draw(4) {
                    0 => ([key], OwnedChange::Other(DeleteOrMerge::Delete)),
                    1 => ([key], counter(draw(50) as i64)),
                    _ => ([key], add(*time, draw(50) as i64).change),
                })
                .collect();
            for (buffer, oldest) in [(&dropping, oldest), (&keeping, 0)] {
                let writes = writes.iter().map(|(key, change)| (key.as_slice(), change.clone()));
                let (lsn, timestamp) = (Lsn::new(*time), CommitTimestamp::new(*time));
                let applied = buffer.apply(lsn, timestamp, bounds_at(oldest, &none()), writes);
                grown += if std::ptr::eq(buffer, &dropping) { applied.growth } else { 0 };
            }
            assert_eq!(usize::try_from(grown), Ok(dropping.bytes()));
            check_bytes(&dropping.read());
            let published = commits[at + 1..].iter().min().map_or(200, |first| first - 1);
            for snapshot in oldest..=published {
                for key in (0..18).step_by(3).map(|key| [key]) {
                    let (read, kept) =
                        [&dropping, &keeping].map(|buffer| read_over(&buffer.read(), &key, snapshot)).into();
                    assert_eq!(read, kept, "seed {seed}, key {key:?}, snapshot {snapshot} after {time}");
                }
            }
        }
        let versions = |buffer: &SharedBuffer| -> usize {
            let buffer = buffer.read();
            let chains = buffer.range(Bound::Unbounded, Bound::Unbounded);
            chains.map(|(_, chain)| chain.versions().count()).sum()
        };
        assert!(versions(&dropping) * 4 < versions(&keeping), "nothing was dropped");
    }
}

/// The list of live snapshots, and the newest that one can begin at.
fn retained(live: &[u64], newest: u64) -> Retained {
    let live = live.iter().map(|snapshot| SnapshotTimestamp::new(*snapshot)).collect();
    Retained::new(live, SnapshotTimestamp::new(newest))
}

#[test]
fn the_chain_of_a_counter_stays_short_while_old_snapshots_live() {
    let shared = SharedBuffer::new();
    let (live, mut longest) = ([5, 40_000, 40_001, 70_000], 0);
    for time in 1..=100_000 {
        let seen = |snapshot: &&u64| **snapshot < time;
        let live: Vec<u64> = live.iter().filter(seen).copied().collect();
        // The oldest snapshot never moves from the first one on.
        let oldest = live.first().copied().unwrap_or(0);
        let (lsn, timestamp) = (Lsn::new(time), CommitTimestamp::new(time));
        let writes = [(&b"key"[..], add(time, 1).change)].into_iter();
        if shared.apply(lsn, timestamp, bounds_at(oldest, &none()), writes).has_long_chain {
            // The commit is not visible yet.
            shared.thin([&b"key"[..]].into_iter(), &retained(&live, time - 1));
        }
        longest = longest.max(shared.read().get(b"key").map_or(0, |chain| chain.is_to_be_thinned().into()));
    }
    check_bytes(&shared.read());
    assert_eq!(longest, 0, "a chain that is to be thinned is thinned at once");
    let count = shared.read().get(b"key").map_or(0, |chain| chain.versions().count());
    assert!(count < 600, "{count} versions");
    for snapshot in [5, 40_000, 40_001, 70_000, 100_000] {
        let read = read_over(&shared.read(), b"key", snapshot);
        let expected = 1_000 + snapshot as i64;
        assert_eq!(read.as_deref(), Some(&expected.to_le_bytes()[..]), "snapshot {snapshot}");
    }
}

#[test]
fn a_chain_with_a_snapshot_for_each_version_is_looked_at_ever_more_seldom() {
    let shared = SharedBuffer::new();
    let mut looks = 0;
    for time in 1..=20_000_u64 {
        let (lsn, timestamp) = (Lsn::new(time), CommitTimestamp::new(time));
        let writes = [(&b"key"[..], add(time, 1).change)].into_iter();
        if shared.apply(lsn, timestamp, bounds_at(1, &none()), writes).has_long_chain {
            let live: Vec<u64> = (1..time).collect();
            shared.thin([&b"key"[..]].into_iter(), &retained(&live, time - 1));
            looks += 1;
        }
    }
    assert!((1..10).contains(&looks), "{looks} looks at a chain that cannot become shorter");
    assert_eq!(shared.read().get(b"key").map(|chain| chain.versions().count()), Some(20_000));
    check_bytes(&shared.read());
}

#[test]
fn thinning_changes_no_answer_of_a_live_snapshot_for_any_writes_in_any_order() {
    for seed in 0..60 {
        let random = SeededRandom::new(seed);
        let draw = |below: u64| random.next_u64() % below;
        let (thinned, whole) = (SharedBuffer::new(), SharedBuffer::new());
        let mut commits: Vec<u64> = (1..=3_000).collect();
        for at in (1..commits.len()).step_by(5) {
            let end = (at + 1 + draw(4) as usize).min(commits.len());
            commits[at..end].reverse();
        }
        let mut live: Vec<u64> = Vec::new();
        for (at, time) in commits.iter().enumerate() {
            let published = commits[at..].iter().take(8).min().expect("this one") - 1;
            if draw(100) == 0 {
                live.push(published);
            }
            if draw(200) == 0 && live.len() > 1 {
                live.remove(draw(live.len() as u64) as usize);
            }
            let oldest = live.iter().min().copied().unwrap_or(0);
            let change = match draw(40) {
                0 => OwnedChange::Other(DeleteOrMerge::Delete),
                1 => counter(draw(50) as i64),
                _ => add(*time, draw(50) as i64).change,
            };
            let (lsn, timestamp) = (Lsn::new(*time), CommitTimestamp::new(*time));
            let write = || [(&b"key"[..], change.clone())].into_iter();
            whole.apply(lsn, timestamp, bounds_at(0, &none()), write());
            let applied = thinned.apply(lsn, timestamp, bounds_at(oldest, &none()), write());
            if applied.has_long_chain || draw(50) == 0 {
                thinned.thin([&b"key"[..]].into_iter(), &retained(&live, published));
            }
            check_bytes(&thinned.read());
        }
        for snapshot in live.iter().copied().chain([3_000]) {
            let read = [&thinned, &whole].map(|buffer| read_over(&buffer.read(), b"key", snapshot));
            assert_eq!(read[0], read[1], "seed {seed}, snapshot {snapshot}");
        }
    }
}
