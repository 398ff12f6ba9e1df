//! Merges: the effect of each operator without a read before it, and the conflicts of merges with other
//! writes.

use pando_storage::{
    BlockingMode, Claim, Direction, Durability, ErrorKind, KeyRange, MERGE_OPERAND_BYTES_MAX, Merge, Merging,
    StorageError, Transaction, TreeId,
};

use crate::subject::{Opened, Subject, commit, entries, entries_in, entry, kind, value};

fn merge(
    transaction: &mut dyn Transaction,
    tree: TreeId,
    key: &str,
    merge: Merge<'_>,
) -> Result<(), StorageError> {
    transaction.merge(tree, key.as_bytes(), merge, Claim::Blind, BlockingMode::MayBlock)
}

/// Merges in a transaction of its own.
fn merge_committed(engine: &Opened, tree: TreeId, key: &str, operator: Merge<'_>) {
    let mut writer = engine.writer();
    merge(&mut *writer, tree, key, operator).expect("the merge succeeds");
    commit(writer);
}

fn counter(number: i64) -> Option<Vec<u8>> {
    Some(number.to_le_bytes().to_vec())
}

/// Counters wrap around, other values stay, max and min compare bytes, and a missing key gets the operand.
pub fn operators_do_to_values_what_they_say(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let cases: [(Option<&[u8]>, Merge<'_>, &[u8]); 11] = [
        (None, Merge::Add(-5), &(-5_i64).to_le_bytes()),
        (Some(&40_i64.to_le_bytes()), Merge::Add(2), &42_i64.to_le_bytes()),
        (Some(&i64::MAX.to_le_bytes()), Merge::Add(1), &i64::MIN.to_le_bytes()),
        (Some(b"no counter"), Merge::Add(1), b"no counter"),
        (Some(b""), Merge::Add(1), b""),
        (None, Merge::Max(b"m"), b"m"),
        (Some(b"a long one"), Merge::Max(b"m"), b"m"),
        (Some(b"z"), Merge::Max(b"m"), b"z"),
        (None, Merge::Min(b""), b""),
        (Some(b"a long one"), Merge::Min(b"m"), b"a long one"),
        (Some(b"z"), Merge::Min(b"m"), b"m"),
    ];
    for (at, (before, operator, after)) in cases.iter().enumerate() {
        let key = format!("{at:02}");
        if let Some(before) = before {
            engine.put(tree, &key, before);
        }
        merge_committed(&engine, tree, &key, *operator);
        assert_eq!(engine.value(tree, &key).as_deref(), Some(*after), "{operator:?} on {before:?}");
    }
    engine.delete(tree, "01");
    merge_committed(&engine, tree, "01", Merge::Add(9));
    assert_eq!(engine.value(tree, "01"), counter(9));
    assert_eq!(engine.entries(tree).len(), cases.len());
}

/// Own merges over the snapshot, over own puts and deletes and over one another, in gets and scans;
/// savepoints take them back.
pub fn a_transaction_sees_its_own_merges(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    engine.put(tree, "a", 10_i64.to_le_bytes());
    let mut writer = engine.writer();
    for key in ["a", "b", "a"] {
        merge(&mut *writer, tree, key, Merge::Add(1)).expect("the merge succeeds");
    }
    assert_eq!((value(&*writer, tree, "a"), value(&*writer, tree, "b")), (counter(12), counter(1)));
    let savepoint = writer.savepoint();
    writer.delete(tree, b"a").expect("the delete succeeds");
    merge(&mut *writer, tree, "a", Merge::Add(7)).expect("the merge succeeds");
    writer.put(tree, b"b", b"put").expect("the put succeeds");
    merge(&mut *writer, tree, "b", Merge::Max(b"q")).expect("the merge succeeds");
    let seen = vec![(b"a".to_vec(), 7_i64.to_le_bytes().to_vec()), entry("b", "q")];
    assert_eq!(entries(&*writer, tree), seen);
    writer.rollback_to(savepoint);
    let seen = [12_i64, 1].map(|number| number.to_le_bytes().to_vec());
    let backwards: Vec<_> = entries_in(&*writer, tree, &KeyRange::all(), Direction::Backward);
    assert_eq!(backwards.into_iter().rev().map(|(_, value)| value).collect::<Vec<_>>(), seen);
    assert_eq!(engine.value(tree, "a"), counter(10), "nobody else sees them");
    commit(writer);
    assert_eq!((engine.value(tree, "a"), engine.value(tree, "b")), (counter(12), counter(1)));
}

/// Without an intent merges of one key by transactions at the same time all count, or (by the emulation) the
/// later conflicts.
pub fn blind_merges_at_the_same_time_all_count_or_conflict(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    engine.put(tree, "k", 100_i64.to_le_bytes());
    let (mut first, mut second) = (engine.writer(), engine.writer());
    merge(&mut *first, tree, "k", Merge::Add(1)).expect("the merge succeeds");
    match engine.capabilities().merges {
        Merging::Blind => {
            merge(&mut *second, tree, "k", Merge::Add(10)).expect("it does not conflict");
            assert_eq!(value(&*second, tree, "k"), counter(110));
            commit(second);
            commit(first);
            assert_eq!(engine.value(tree, "k"), counter(111));
        }
        Merging::Emulated => {
            engine.expect_conflict(second, |second| merge(second, tree, "k", Merge::Add(10)));
            commit(first);
            assert_eq!(engine.value(tree, "k"), counter(101));
        }
    }
}

/// With an intent a merge is an update as any other.
pub fn a_merge_with_an_intent_conflicts_as_a_put_does(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let add = |transaction: &mut dyn Transaction| {
        transaction.merge(tree, b"k", Merge::Add(1), Claim::Intent, BlockingMode::MayBlock)
    };
    let (mut first, second, late) = (engine.writer(), engine.writer(), engine.writer());
    add(&mut *first).expect("the merge succeeds");
    engine.expect_conflict(second, |second| second.put(tree, b"k", b"x"));
    commit(first);
    engine.expect_conflict(late, add);
    assert_eq!(engine.value(tree, "k"), counter(1));
}

/// Each snapshot sees the result of the merges up to its time, in gets and in scans, wherever the merges are
/// applied.
pub fn snapshots_between_merges_each_see_their_value(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut readers = vec![(engine.reader(), Vec::new())];
    for round in 0..40_i64 {
        for number in 0..=round {
            let key = format!("{:02}", number % 20);
            let operator = if number % 3 == 0 { Merge::Max(b"\xFF") } else { Merge::Add(round) };
            merge_committed(&engine, tree, &key, operator);
        }
        match round {
            10 => drop(engine.delete(tree, "02")),
            20 => drop(engine.put(tree, "05", b"not a counter")),
            25 => engine.checkpoint().expect("the checkpoint succeeds"),
            _ => {}
        }
        if round % 8 == 0 {
            readers.push((engine.reader(), engine.entries(tree)));
        }
    }
    for (reader, seen) in &readers {
        assert_eq!(entries(&**reader, tree), *seen);
        for (key, seen) in seen {
            assert_eq!(value(&**reader, tree, key).as_ref(), Some(seen));
        }
    }
    let newest = |key| engine.value(tree, key);
    // Of each round from the last delete on.
    let sum: i64 = (11..40).map(|round| round * (1 + i64::from(round >= 22))).sum();
    assert_eq!(newest("02"), counter(sum), "2 and 22 count, each in its rounds");
    assert_eq!(newest("05"), Some(b"not a counter".to_vec()));
    assert_eq!(newest("00"), Some(b"\xFF".to_vec()));
}

/// A merge counts once after a restart, clean or not, and with checkpoints in between.
pub fn merges_are_applied_exactly_once_across_restarts(subject: &Subject) {
    let mut engine = subject.open();
    if !engine.is_durable() {
        return;
    }
    let tree = engine.tree("t");
    for round in 1..=6_i64 {
        for number in 0..50 {
            merge_committed(&engine, tree, &format!("{number:02}"), Merge::Add(1));
        }
        if round % 2 == 0 {
            engine.checkpoint().expect("the checkpoint succeeds");
        }
        for number in 0..50 {
            merge_committed(&engine, tree, &format!("{number:02}"), Merge::Add(1_000));
        }
        let mut writer = engine.writer();
        merge(&mut *writer, tree, "last", Merge::Max(&round.to_be_bytes())).expect("the merge succeeds");
        let receipt = writer.commit(Durability::Logged).expect("the commit succeeds");
        engine.wait_durable(receipt, Durability::Logged).expect("the log is written");
        engine = if round % 3 == 0 { subject.reopen(engine) } else { subject.crash(engine) };
        for number in 0..50 {
            assert_eq!(engine.value(tree, format!("{number:02}")), counter(round * 1_001), "round {round}");
        }
        assert_eq!(engine.value(tree, "last"), Some(round.to_be_bytes().to_vec()));
    }
}

/// Operands and keys that are too long, trees that are not there, and transactions that only read are told at
/// once.
pub fn merges_that_cannot_be_are_refused(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut writer = engine.writer();
    let longest = vec![b'x'; MERGE_OPERAND_BYTES_MAX];
    merge(&mut *writer, tree, "k", Merge::Max(&longest)).expect("the longest operand is taken");
    let too_long = vec![b'x'; MERGE_OPERAND_BYTES_MAX + 1];
    let refused = merge(&mut *writer, tree, "k", Merge::Min(&too_long));
    assert_eq!(kind(refused), Some(ErrorKind::InvalidInput));
    let key = "k".repeat(pando_storage::KEY_BYTES_MAX + 1);
    assert_eq!(kind(merge(&mut *writer, tree, &key, Merge::Add(1))), Some(ErrorKind::InvalidInput));
    let nowhere = TreeId::new(u32::MAX);
    assert_eq!(kind(merge(&mut *writer, nowhere, "k", Merge::Add(1))), Some(ErrorKind::NotFound));
    commit(writer);
    assert_eq!(engine.value(tree, "k"), Some(longest));
    let mut reader = engine.reader();
    assert_eq!(kind(merge(&mut *reader, tree, "k", Merge::Add(1))), Some(ErrorKind::InvalidInput));
}
