//! Snapshot isolation: the state that a transaction sees, and the winner when two update one key.

use pando_storage::{
    Begin, BlockingMode, CommitTimestamp, ConflictTime, Durability, ErrorKind, History, SnapshotTimestamp,
    Transaction, TreeId,
};

use crate::subject::{Opened, Subject, commit, entries, entry, kind, value};

fn tree_with(engine: &Opened, pairs: &[(&str, &str)]) -> TreeId {
    let tree = engine.tree("t");
    for (key, value) in pairs {
        engine.put(tree, key, value);
    }
    tree
}

/// Neither later commits nor others' uncommitted writes are seen.
pub fn a_snapshot_sees_what_was_committed_before_it_and_nothing_later(subject: &Subject) {
    let engine = subject.open();
    let tree = tree_with(&engine, &[("a", "1"), ("b", "1")]);
    let reader = engine.reader();
    let mut writer = engine.writer();
    writer.put(tree, b"a", b"2").expect("the put succeeds");
    writer.put(tree, b"c", b"2").expect("the put succeeds");
    writer.delete(tree, b"b").expect("the delete succeeds");
    let before = vec![entry("a", "1"), entry("b", "1")];
    assert_eq!(entries(&*reader, tree), before);
    assert_eq!(engine.entries(tree), before, "uncommitted writes are seen by a new reader");
    commit(writer);
    assert_eq!(entries(&*reader, tree), before, "a later commit is seen");
    assert_eq!(value(&*reader, tree, "c"), None);
    assert_eq!(engine.entries(tree), vec![entry("a", "2"), entry("c", "2")]);
}

/// Gets that were told of see the same as others: the snapshot, and own writes over it.
pub fn expected_gets_see_the_snapshot_and_own_writes(subject: &Subject) {
    let engine = subject.open();
    let tree = tree_with(&engine, &[("a", "1"), ("b", "1"), ("c", "1")]);
    let mut transaction = engine.writer();
    let keys = ["a", "b", "c", "d", "e"];
    let expect = |transaction: &dyn Transaction| {
        let mut keys = keys.iter().map(|key| key.as_bytes().to_vec());
        transaction.expect_gets(tree, &mut keys, BlockingMode::MayBlock).expect("it is told of the gets");
    };
    expect(&*transaction);
    engine.put(tree, "a", "2");
    engine.delete(tree, "b");
    engine.put(tree, "d", "2");
    transaction.put(tree, b"e", b"own").expect("the put succeeds");
    let found = |transaction: &dyn Transaction| keys.map(|key| value(transaction, tree, key));
    let seen = [Some(b"1".to_vec()), Some(b"1".to_vec()), Some(b"1".to_vec()), None, Some(b"own".to_vec())];
    assert_eq!(found(&*transaction), seen);
    expect(&*transaction);
    assert_eq!(found(&*transaction), seen);
    assert_eq!(value(&*transaction, tree, "not told of"), None);
    transaction.delete(tree, b"c").expect("the delete succeeds");
    assert_eq!(value(&*transaction, tree, "c"), None);
    commit(transaction);
}

/// A ladder of snapshots, each of which goes on seeing its own step.
pub fn many_snapshots_each_keep_their_own_state(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut readers: Vec<Box<dyn Transaction>> = Vec::new();
    for step in 0..40_u32 {
        readers.push(engine.reader());
        engine.put(tree, "k", step.to_string());
        engine.put(tree, format!("only {step}"), "v");
        if step > 0 {
            engine.delete(tree, format!("only {}", step - 1));
        }
        if step % 16 == 7 {
            engine.checkpoint().expect("the checkpoint succeeds");
        }
    }
    for (step, reader) in readers.iter().enumerate().rev() {
        let expected = step.checked_sub(1).map(|before| before.to_string().into_bytes());
        assert_eq!(value(&**reader, tree, "k"), expected, "step {step}");
        let keys = entries(&**reader, tree).len();
        assert_eq!(keys, if step == 0 { 0 } else { 2 }, "step {step}");
    }
}

/// Own writes are seen by gets before they are committed.
pub fn a_transaction_sees_its_own_writes(subject: &Subject) {
    let engine = subject.open();
    let tree = tree_with(&engine, &[("a", "1"), ("b", "1")]);
    let mut writer = engine.writer();
    writer.put(tree, b"a", b"2").expect("the put succeeds");
    writer.delete(tree, b"b").expect("the delete succeeds");
    writer.put(tree, b"c", b"2").expect("the put succeeds");
    assert_eq!(value(&*writer, tree, "a"), Some(b"2".to_vec()));
    assert_eq!(value(&*writer, tree, "b"), None);
    writer.put(tree, b"b", b"3").expect("the put succeeds");
    assert_eq!(value(&*writer, tree, "b"), Some(b"3".to_vec()));
    assert_eq!(entries(&*writer, tree), vec![entry("a", "2"), entry("b", "3"), entry("c", "2")]);
}

/// A commit is seen by whoever begins after it, at once.
pub fn a_commit_is_visible_to_the_next_transaction(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    for number in 0..200_u32 {
        let receipt = engine.put(tree, "k", number.to_be_bytes());
        let reader = engine.reader();
        assert!(reader.snapshot().sees(receipt.timestamp), "the reader began before {:?}", receipt.timestamp);
        assert_eq!(value(&*reader, tree, "k"), Some(number.to_be_bytes().to_vec()));
    }
}

/// A transaction that is rolled back, or dropped, never was.
pub fn a_rolled_back_or_dropped_transaction_leaves_nothing(subject: &Subject) {
    let engine = subject.open();
    let tree = tree_with(&engine, &[("a", "1")]);
    let mut one = engine.writer();
    one.put(tree, b"a", b"2").expect("the put succeeds");
    one.put(tree, b"b", b"2").expect("the put succeeds");
    one.rollback();
    let mut other = engine.writer();
    other.delete(tree, b"a").expect("the intent was given back");
    drop(other);
    assert_eq!(engine.entries(tree), vec![entry("a", "1")]);
    assert!(engine.live_transactions().is_empty(), "an ended transaction is listed as live");
}

/// Two read the same, both write it: the second one fails.
pub fn a_lost_update_is_refused(subject: &Subject) {
    let engine = subject.open();
    let tree = tree_with(&engine, &[("counter", "1")]);
    let (mut first, second) = (engine.writer(), engine.writer());
    assert_eq!(value(&*first, tree, "counter"), value(&*second, tree, "counter"));
    first.put(tree, b"counter", b"2").expect("the first updater wins");
    commit(first);
    engine.expect_conflict(second, |second| second.put(tree, b"counter", b"2"));
    assert_eq!(engine.value(tree, "counter"), Some(b"2".to_vec()));
}

/// Each reads what the other writes: snapshot isolation allows it.
pub fn write_skew_is_allowed(subject: &Subject) {
    let engine = subject.open();
    let tree = tree_with(&engine, &[("a", "on call"), ("b", "on call")]);
    let (mut first, mut second) = (engine.writer(), engine.writer());
    assert!(value(&*first, tree, "b").is_some() && value(&*second, tree, "a").is_some());
    first.delete(tree, b"a").expect("nobody updates it");
    second.delete(tree, b"b").expect("nobody updates it");
    commit(first);
    commit(second);
    assert_eq!(engine.entries(tree), vec![]);
}

/// The second to update a key that a live transaction has updated fails, and the first goes on.
pub fn the_first_updater_wins_while_it_lives(subject: &Subject) {
    let engine = subject.open();
    if engine.capabilities().conflicts == ConflictTime::AtCommit {
        return first_committer_wins(&engine);
    }
    let tree = tree_with(&engine, &[("a", "1")]);
    let mut first = engine.writer();
    first.put(tree, b"a", b"first").expect("the first updater wins");
    first.delete(tree, b"absent").expect("the first updater wins");
    engine.expect_conflict(engine.writer(), |second| second.put(tree, b"a", b"second"));
    engine.expect_conflict(engine.writer(), |second| second.delete(tree, b"a"));
    engine.expect_conflict(engine.writer(), |second| second.put(tree, b"absent", b"second"));
    first.put(tree, b"a", b"first again").expect("the owner may update it again");
    commit(first);
    assert_eq!(engine.entries(tree), vec![entry("a", "first again")]);
}

fn first_committer_wins(engine: &Opened) {
    let tree = tree_with(engine, &[("a", "1")]);
    let (mut first, second) = (engine.writer(), engine.writer());
    first.put(tree, b"a", b"first").expect("conflicts are told at commit");
    commit(first);
    engine.expect_conflict(second, |second| second.put(tree, b"a", b"second"));
}

/// A key deleted, or created, after the snapshot conflicts as well as one that was changed.
pub fn a_commit_after_the_snapshot_conflicts_whatever_it_did(subject: &Subject) {
    let engine = subject.open();
    let tree = tree_with(&engine, &[("changed", "1"), ("deleted", "1"), ("deleted and back", "1")]);
    let keys = ["changed", "deleted", "deleted and back", "created", "created and gone"];
    let writers: Vec<_> = keys.iter().map(|_| engine.writer()).collect();
    engine.put(tree, "changed", "2");
    engine.delete(tree, "deleted");
    engine.delete(tree, "deleted and back");
    engine.put(tree, "deleted and back", "1");
    engine.put(tree, "created", "1");
    engine.put(tree, "created and gone", "1");
    engine.delete(tree, "created and gone");
    for (writer, key) in writers.into_iter().zip(keys) {
        engine.expect_conflict(writer, |writer| writer.put(tree, key.as_bytes(), b"3"));
    }
}

/// The other writes of a loser are gone with it, and its keys are free.
pub fn the_loser_of_a_conflict_leaves_nothing_and_frees_its_keys(subject: &Subject) {
    let engine = subject.open();
    let tree = tree_with(&engine, &[("a", "1"), ("b", "1")]);
    let mut loser = engine.writer();
    loser.put(tree, b"b", b"loser").expect("nobody updates it");
    engine.put(tree, "a", "2");
    engine.expect_conflict(loser, |loser| loser.put(tree, b"a", b"loser"));
    engine.put(tree, "b", "2");
    assert_eq!(engine.entries(tree), vec![entry("a", "2"), entry("b", "2")]);
}

/// Keys are free again when their owner has ended, one way or the other.
pub fn keys_are_free_after_commit_and_after_rollback(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    for round in 0..50_u32 {
        let mut writer = engine.writer();
        writer.put(tree, b"k", &round.to_be_bytes()).expect("its last owner has ended");
        match round % 3 {
            0 => {
                commit(writer);
            }
            1 => writer.rollback(),
            _ => drop(writer),
        }
    }
    assert_eq!(engine.value(tree, "k"), Some(48_u32.to_be_bytes().to_vec()));
}

/// Transactions that touch no common key never conflict, however they interleave.
pub fn transactions_on_different_keys_do_not_conflict(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut writers: Vec<_> = (0..20).map(|_| engine.writer()).collect();
    for round in 0..10 {
        for (number, writer) in writers.iter_mut().enumerate() {
            let key = format!("{number} {round}");
            writer.put(tree, key.as_bytes(), b"v").expect("nobody else writes this key");
        }
    }
    while let Some(writer) = writers.pop() {
        commit(writer);
    }
    assert_eq!(engine.entries(tree).len(), 200);
}

/// Blind writes are writes: private, atomic, seen by their writer, last one counts.
pub fn blind_writes_are_writes(subject: &Subject) {
    let engine = subject.open();
    let (documents, index) = (engine.tree("documents"), engine.tree("index"));
    engine.put(index, "old", "1");
    let mut writer = engine.writer();
    writer.put(documents, b"1", b"document").expect("the put succeeds");
    writer.delete_blind(index, b"old").expect("the blind delete succeeds");
    writer.put_blind(index, b"new", b"1").expect("the blind put succeeds");
    assert_eq!(entries(&*writer, index), vec![entry("new", "1")]);
    assert_eq!(engine.entries(index), vec![entry("old", "1")]);
    commit(writer);
    assert_eq!(engine.entries(index), vec![entry("new", "1")]);
    assert_eq!(engine.entries(documents), vec![entry("1", "document")]);
}

/// A reading transaction takes no writes and goes on reading.
pub fn a_reading_transaction_refuses_writes(subject: &Subject) {
    let engine = subject.open();
    let tree = tree_with(&engine, &[("a", "1")]);
    let mut reader = engine.begin(Begin::READ).expect("a reader begins");
    assert_eq!(kind(reader.put(tree, b"a", b"2")), Some(ErrorKind::InvalidInput));
    assert_eq!(kind(reader.delete(tree, b"a")), Some(ErrorKind::InvalidInput));
    assert_eq!(kind(reader.put_blind(tree, b"a", b"2")), Some(ErrorKind::InvalidInput));
    assert_eq!(value(&*reader, tree, "a"), Some(b"1".to_vec()));
    reader.commit(Durability::Synced).expect("there is nothing to commit");
}

/// Past snapshots can be begun at where the engine says so, and not where it does not.
pub fn a_past_snapshot_can_be_begun_at_while_it_is_held(subject: &Subject) {
    let engine = subject.open();
    let tree = tree_with(&engine, &[("a", "1")]);
    let holder = engine.reader();
    let past = holder.snapshot();
    engine.put(tree, "a", "2");
    let begun = engine.begin(Begin { at: Some(past), ..Begin::WRITE });
    match engine.capabilities().history {
        History::NewestOnly => assert_eq!(kind(begun), Some(ErrorKind::InvalidInput)),
        History::WhileHeld => {
            let late = begun.expect("the snapshot is held");
            assert_eq!(value(&*late, tree, "a"), Some(b"1".to_vec()));
            drop(holder);
            assert_eq!(value(&*late, tree, "a"), Some(b"1".to_vec()), "a second holder keeps it as well");
            engine.expect_conflict(late, |late| late.put(tree, b"a", b"3"));
        }
    }
    // Also for an engine whose timestamps grow with the wall clock.
    let future = SnapshotTimestamp::new(past.get() + (1 << 40));
    assert_eq!(kind(engine.begin(Begin::read_at(future))), Some(ErrorKind::InvalidInput));
}

/// Timestamps rise with each commit, and a snapshot is the last commit's.
pub fn commits_are_numbered_in_their_order(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut last = CommitTimestamp::ZERO;
    for number in 0..100_u32 {
        let receipt = engine.put(tree, number.to_be_bytes(), "v");
        assert!(receipt.timestamp > last, "{:?} was given out after {last:?}", receipt.timestamp);
        last = receipt.timestamp;
    }
    assert!(engine.reader().snapshot().sees(last));
}

/// A transaction of thousands of writes is as atomic as one of two.
pub fn a_great_transaction_is_atomic(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut writer = engine.writer();
    for number in 0..20_000_u32 {
        writer.put(tree, &number.to_be_bytes(), &[number as u8; 50]).expect("the put succeeds");
    }
    let before = engine.reader();
    commit(writer);
    assert_eq!(entries(&*before, tree).len(), 0);
    assert_eq!(engine.entries(tree).len(), 20_000);
    let mut eraser = engine.writer();
    for number in (0..20_000_u32).filter(|number| number % 2 == 0) {
        eraser.delete(tree, &number.to_be_bytes()).expect("the delete succeeds");
    }
    eraser.rollback();
    assert_eq!(engine.entries(tree).len(), 20_000);
}
