//! Range deletes: the keys that they remove, their order with other writes, the snapshots that still see the
//! keys, conflicts.
//!
//! An engine may delete key by key or by one message: the promises hold for both. The two may answer
//! differently for a key that another transaction puts into the range meanwhile. Either answer is allowed,
//! but no entry is lost that the deleting transaction did not see.

use std::ops::Bound;

use pando_storage::{
    BlockingMode, Direction, Durability, ErrorKind, KeyRange, Merge, RangeDeletes, Transaction, TreeId,
};

use crate::subject::{Entry, Opened, Subject, commit, entries, entries_in, entry, kind, value};

fn range(from: &str, to: &str) -> KeyRange {
    KeyRange { lower: Bound::Included(from.into()), upper: Bound::Excluded(to.into()) }
}

fn delete_range(transaction: &mut dyn Transaction, tree: TreeId, range: &KeyRange) {
    transaction.delete_range(tree, range, BlockingMode::MayBlock).expect("delete_range succeeds");
}

/// A tree of the keys `000` to `299`, in several commits.
fn filled(engine: &Opened) -> TreeId {
    let tree = engine.tree("t");
    for part in 0..6 {
        let mut writer = engine.writer();
        for number in part * 50..(part + 1) * 50 {
            writer.put(tree, format!("{number:03}").as_bytes(), b"value").expect("the put succeeds");
        }
        commit(writer);
    }
    tree
}

fn numbers(found: &[Entry]) -> Vec<usize> {
    found.iter().map(|(key, _)| String::from_utf8_lossy(key).parse().expect("a key is a number")).collect()
}

/// In a transaction a range delete removes earlier writes and no later ones.
pub fn a_range_delete_stands_in_order_with_the_writes_of_its_transaction(subject: &Subject) {
    let engine = subject.open();
    let tree = filled(&engine);
    let mut writer = engine.writer();
    writer.put(tree, b"100a", b"before").expect("the put succeeds");
    writer.put(tree, b"400", b"beside").expect("the put succeeds");
    delete_range(&mut *writer, tree, &range("050", "250"));
    writer.put(tree, b"100", b"after").expect("the put succeeds");
    let add = writer.merge(tree, b"101", Merge::Add(5), pando_storage::Claim::Intent, BlockingMode::MayBlock);
    add.expect("the merge succeeds");
    let all = [(0..50).collect(), vec![100, 101], (250..300).collect(), vec![400]].concat();
    assert_eq!(numbers(&entries(&*writer, tree)), all);
    let mut backwards = numbers(&entries_in(&*writer, tree, &KeyRange::all(), Direction::Backward));
    backwards.reverse();
    assert_eq!(backwards, all);
    assert_eq!(value(&*writer, tree, "100a"), None);
    assert_eq!(value(&*writer, tree, "100"), Some(b"after".to_vec()));
    assert_eq!(engine.entries(tree).len(), 300, "nobody else sees it");
    delete_range(&mut *writer, tree, &range("100", "101"));
    commit(writer);
    let left = [(0..50).collect(), vec![101], (250..300).collect(), vec![400]].concat();
    assert_eq!(numbers(&engine.entries(tree)), left);
    assert_eq!(engine.value(tree, "101"), Some(5_i64.to_le_bytes().to_vec()), "it applies to nothing");
}

/// A rollback, to a savepoint or of all, brings back what a range delete took away.
pub fn a_range_delete_can_be_taken_back(subject: &Subject) {
    let engine = subject.open();
    let tree = filled(&engine);
    let mut writer = engine.writer();
    writer.put(tree, b"100", b"own").expect("the put succeeds");
    let savepoint = writer.savepoint();
    delete_range(&mut *writer, tree, &KeyRange::all());
    assert_eq!(entries(&*writer, tree), vec![]);
    writer.put(tree, b"new", b"1").expect("the put succeeds");
    writer.rollback_to(savepoint);
    assert_eq!(entries(&*writer, tree).len(), 300);
    assert_eq!(value(&*writer, tree, "100"), Some(b"own".to_vec()));
    delete_range(&mut *writer, tree, &range("000", "200"));
    writer.rollback();
    assert_eq!(engine.entries(tree).len(), 300);
}

/// A transaction that began before still sees the keys, in gets and in scans both ways, during any work of
/// the engine.
pub fn older_snapshots_see_what_a_range_delete_took_away(subject: &Subject) {
    let engine = subject.open();
    let tree = filled(&engine);
    let (before, seen) = (engine.reader(), engine.entries(tree));
    let mut writer = engine.writer();
    delete_range(&mut *writer, tree, &range("020", "280"));
    commit(writer);
    engine.put(tree, "150", "again");
    let (between, seen_between) = (engine.reader(), engine.entries(tree));
    let mut writer = engine.writer();
    delete_range(&mut *writer, tree, &range("010", "160"));
    commit(writer);
    for round in 0..400 {
        engine.put(tree, format!("{:03}", 300 + round % 100), "more");
    }
    engine.checkpoint().expect("the checkpoint succeeds");
    assert_eq!(entries(&*before, tree), seen);
    let backwards = entries_in(&*before, tree, &range("000", "200"), Direction::Backward);
    assert_eq!(backwards.len(), 200);
    assert_eq!(entries(&*between, tree), seen_between);
    assert_eq!(value(&*between, tree, "150"), Some(b"again".to_vec()));
    let left: Vec<usize> = (0..10).chain(280..400).collect();
    assert_eq!(numbers(&engine.entries(tree)), left);
    assert_eq!(engine.value(tree, "150"), None);
}

/// The first to update wins, also where one of both updates a whole range.
pub fn a_range_delete_conflicts_with_updates_within_it(subject: &Subject) {
    let engine = subject.open();
    let tree = filled(&engine);
    let within = range("100", "200");
    let update = |loser: &mut dyn Transaction| loser.delete_range(tree, &within, BlockingMode::MayBlock);
    // Another transaction holds a key.
    let (mut holder, second) = (engine.writer(), engine.writer());
    holder.put(tree, b"150", b"held").expect("the put succeeds");
    engine.expect_conflict(second, update);
    // One that has committed since.
    let late = engine.writer();
    commit(holder);
    engine.expect_conflict(late, update);
    // And the other way round, while the range delete lives and after it.
    let (mut eraser, second, late) = (engine.writer(), engine.writer(), engine.writer());
    delete_range(&mut *eraser, tree, &within);
    engine.expect_conflict(second, |second| second.put(tree, b"120", b"lost"));
    commit(eraser);
    engine.expect_conflict(late, |late| late.delete(tree, b"120"));
    assert_eq!(engine.entries(tree).len(), 200);
    engine.put(tree, "120", "free");
}

/// Beside the range nobody is in the way.
pub fn a_range_delete_does_not_conflict_beside_its_range(subject: &Subject) {
    let engine = subject.open();
    let (tree, other) = (filled(&engine), engine.tree("other"));
    let (mut eraser, mut second) = (engine.writer(), engine.writer());
    delete_range(&mut *eraser, tree, &range("100", "200"));
    for key in ["099", "200", "0", "9"] {
        second.put(tree, key.as_bytes(), b"beside").expect("the put succeeds");
    }
    second.put(other, b"150", b"elsewhere").expect("the put succeeds");
    commit(second);
    commit(eraser);
    assert_eq!(engine.entries(tree).len(), 202);
    assert_eq!(engine.entries(other), vec![entry("150", "elsewhere")]);
}

/// A key that another transaction puts into the range meanwhile is there afterwards, or one of both
/// conflicts.
pub fn a_range_delete_loses_nothing_that_it_has_not_seen(subject: &Subject) {
    let engine = subject.open();
    let tree = filled(&engine);
    let (mut eraser, mut second) = (engine.writer(), engine.writer());
    delete_range(&mut *eraser, tree, &range("100", "200"));
    let put = second.put(tree, b"150 new", b"unseen");
    if kind(put) == Some(ErrorKind::Conflict) {
        second.rollback();
        commit(eraser);
        assert_eq!(engine.entries(tree).len(), 200);
        return;
    }
    let put = second.commit(Durability::None).is_ok();
    let erased = eraser.commit(Durability::None).is_ok();
    assert!(put || erased, "one of both wins");
    assert_eq!(engine.value(tree, "150 new").is_some(), put);
    assert_eq!(engine.value(tree, "150").is_none(), erased);
}

/// An engine that deletes ranges by one message writes nothing for a key, however many there are; and it
/// claims the whole range.
pub fn a_range_delete_by_one_message_counts_as_one_write(subject: &Subject) {
    let engine = subject.open();
    if engine.capabilities().range_deletes == RangeDeletes::Emulated {
        return;
    }
    let tree = engine.tree("t");
    let mut writer = engine.writer();
    for number in 0..5_000_u32 {
        writer.put(tree, &number.to_be_bytes(), b"value").expect("the put succeeds");
    }
    commit(writer);
    let (mut eraser, late) = (engine.writer(), engine.writer());
    delete_range(&mut *eraser, tree, &KeyRange::all());
    let writes: Vec<u64> = engine.live_transactions().iter().map(|live| live.writes).collect();
    assert!(writes.iter().sum::<u64>() <= 1, "{writes:?}");
    engine.expect_conflict(late, |late| late.put(tree, b"new", b"within"));
    commit(eraser);
    assert_eq!(engine.entries(tree), vec![]);
    let estimate = engine.tree_estimate(tree).expect("a tree has an estimate");
    assert!(estimate.entries <= 2_500, "{estimate:?} of nothing");
}

/// Deleted keys stay away after a restart, clean or not, and later writes stay.
pub fn a_range_delete_survives_restarts(subject: &Subject) {
    let mut engine = subject.open();
    if !engine.is_durable() {
        return;
    }
    let tree = filled(&engine);
    engine.checkpoint().expect("the checkpoint succeeds");
    let mut left: Vec<usize> = (0..300).collect();
    for round in 0..4_usize {
        let (from, to) = (round * 60 + 10, round * 60 + 55);
        let mut writer = engine.writer();
        delete_range(&mut *writer, tree, &range(&format!("{from:03}"), &format!("{to:03}")));
        commit(writer);
        left.retain(|number| !(from..to).contains(number));
        if round % 2 == 0 {
            engine.checkpoint().expect("the checkpoint succeeds");
        }
        let mut writer = engine.writer();
        writer.put(tree, format!("{:03}", from + 7).as_bytes(), b"later").expect("the put succeeds");
        let receipt = writer.commit(Durability::Logged).expect("the commit succeeds");
        engine.wait_durable(receipt, Durability::Logged).expect("the log is written");
        left.push(from + 7);
        left.sort_unstable();
        engine = if round < 2 { subject.crash(engine) } else { subject.reopen(engine) };
        assert_eq!(numbers(&engine.entries(tree)), left, "round {round}");
    }
}
