//! Patches: update operators that an engine applies to documents, and their conflicts.

use pando_document::patch::{PatchChange, PatchOperator, encode};
use pando_document::{RawValue, doc};
use pando_storage::{
    BlockingMode, Claim, ErrorKind, Merge, PENDING_PATCHES_MAX, StorageError, Transaction, TreeId,
};

use crate::subject::{Opened, Subject, commit, entries, kind, value};

fn adding(number: i32) -> Vec<u8> {
    let change = PatchChange { operator: PatchOperator::Add, path: "n", operand: RawValue::Int32(number) };
    encode(vec![change]).expect("it is a patch")
}

/// A document with a number.
fn numbered(number: i32) -> Vec<u8> {
    doc! { "_id": 1, "n": number }.to_raw().as_bytes().to_vec()
}

fn patch(
    transaction: &mut dyn Transaction,
    tree: TreeId,
    key: &str,
    number: i32,
) -> Result<(), StorageError> {
    let patch = adding(number);
    transaction.merge(tree, key.as_bytes(), Merge::Patch(&patch), Claim::Intent, BlockingMode::MayBlock)
}

fn patch_committed(engine: &Opened, tree: TreeId, key: &str, number: i32) {
    let mut writer = engine.writer();
    patch(&mut *writer, tree, key, number).expect("the patch succeeds");
    commit(writer);
}

/// A document changes, other bytes stay, and an absent key stays absent; as own writes and after the commit.
pub fn a_patch_changes_a_document_and_leaves_all_else_alone(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let text = doc! { "_id": 1, "n": "text" }.to_raw().as_bytes().to_vec();
    engine.put(tree, "number", numbered(40));
    engine.put(tree, "text", &text);
    engine.put(tree, "bytes", b"no document");
    let expected = vec![
        (b"bytes".to_vec(), b"no document".to_vec()),
        (b"number".to_vec(), numbered(42)),
        (b"text".to_vec(), text),
    ];
    // Before and after a checkpoint, from which on an engine may take patches unread.
    for _ in 0..2 {
        engine.put(tree, "number", numbered(40));
        let mut writer = engine.writer();
        for key in ["number", "text", "bytes", "absent"] {
            patch(&mut *writer, tree, key, 2).expect("the patch succeeds");
            let seen = expected.iter().find(|(of, _)| of == key.as_bytes()).map(|(_, value)| value.clone());
            assert_eq!(value(&*writer, tree, key), seen, "{key}");
        }
        assert_eq!(entries(&*writer, tree), expected);
        commit(writer);
        assert_eq!(engine.entries(tree), expected);
        engine.checkpoint().expect("the checkpoint succeeds");
    }
}

/// Patches over own puts and deletes, and more of one key than may wait.
pub fn patches_follow_the_own_writes_of_a_transaction(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    for _ in 0..2 {
        engine.put(tree, "a", numbered(1));
        let mut writer = engine.writer();
        for _ in 0..3 * PENDING_PATCHES_MAX {
            patch(&mut *writer, tree, "a", 1).expect("the patch succeeds");
        }
        let many = numbered(1 + 3 * PENDING_PATCHES_MAX as i32);
        assert_eq!(value(&*writer, tree, "a"), Some(many.clone()));
        let savepoint = writer.savepoint();
        writer.delete(tree, b"a").expect("the delete succeeds");
        patch(&mut *writer, tree, "a", 1).expect("the patch succeeds");
        assert_eq!(value(&*writer, tree, "a"), None);
        writer.put(tree, b"a", &numbered(5)).expect("the put succeeds");
        patch(&mut *writer, tree, "a", 1).expect("the patch succeeds");
        assert_eq!(value(&*writer, tree, "a"), Some(numbered(6)));
        writer.rollback_to(savepoint);
        commit(writer);
        assert_eq!(engine.value(tree, "a"), Some(many));
        engine.checkpoint().expect("the checkpoint succeeds");
    }
}

/// A patch is an update: of two at the same time one conflicts, and a snapshot sees those before it.
pub fn a_patch_conflicts_as_a_put_does_and_snapshots_stay(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    engine.put(tree, "k", numbered(0));
    patch_committed(&engine, tree, "k", 1);
    engine.checkpoint().expect("the checkpoint succeeds");
    for round in 0..2_i32 {
        let reader = engine.reader();
        let (mut first, second, late) = (engine.writer(), engine.writer(), engine.writer());
        patch(&mut *first, tree, "k", 10).expect("the patch succeeds");
        engine.expect_conflict(second, |second| patch(second, tree, "k", 100));
        commit(first);
        engine.expect_conflict(late, |late| late.put(tree, b"k", b"x"));
        assert_eq!(value(&*reader, tree, "k"), Some(numbered(1 + round * 10)));
        assert_eq!(engine.value(tree, "k"), Some(numbered(11 + round * 10)));
    }
    let mut writer = engine.writer();
    let refused = writer.merge(tree, b"k", Merge::Patch(b"none"), Claim::Intent, BlockingMode::MayBlock);
    assert_eq!(kind(refused), Some(ErrorKind::InvalidInput));
}

/// A patch counts once after a restart, clean or not, and with checkpoints in between.
pub fn patches_are_applied_exactly_once_across_restarts(subject: &Subject) {
    let mut engine = subject.open();
    if !engine.is_durable() {
        return;
    }
    let tree = engine.tree("t");
    for number in 0..50 {
        engine.put(tree, format!("{number:02}"), numbered(0));
    }
    for round in 1..=6_i32 {
        for number in 0..60 {
            patch_committed(&engine, tree, &format!("{number:02}"), 1);
        }
        if round % 2 == 0 {
            engine.checkpoint().expect("the checkpoint succeeds");
        }
        for number in 0..60 {
            patch_committed(&engine, tree, &format!("{number:02}"), 1_000);
        }
        let receipt = {
            let mut writer = engine.writer();
            writer.put(tree, b"last", &numbered(round)).expect("the put succeeds");
            writer.commit(pando_storage::Durability::Logged).expect("the commit succeeds")
        };
        engine.wait_durable(receipt, pando_storage::Durability::Logged).expect("the log is written");
        engine = if round % 3 == 0 { subject.reopen(engine) } else { subject.crash(engine) };
        for number in 0..60 {
            let expected = (number < 50).then(|| numbered(round * 1_001));
            assert_eq!(engine.value(tree, format!("{number:02}")), expected, "round {round}");
        }
    }
}
