//! Claims and commits side by side, without an engine.

use std::ops::Bound;

use super::*;
use crate::error::ErrorKind;
use crate::identifiers::CommitTimestamp;

const TREE: TreeId = TreeId::new(3);

fn transaction(number: u64) -> TransactionId {
    TransactionId::new(number)
}

fn reader(claims: &ReadClaims, number: u64, snapshot: u64) -> SerializableReads {
    claims.enter().begin(transaction(number), SnapshotTimestamp::new(snapshot))
}

fn commit(claims: &ReadClaims, number: u64, timestamp: u64, key: &[u8]) -> Result<(), StorageError> {
    let token = claims.begin_commit();
    let mut written = WrittenKeys::default();
    written.add(TREE, key);
    let outcome = claims.note(transaction(number), &written);
    let outcome = outcome.map(|note| note.settle(CommitTimestamp::new(timestamp)));
    claims.end_commit(token);
    outcome
}

fn claim(claims: &ReadClaims, reads: &SerializableReads, key: &[u8]) {
    claims.claim(reads, TREE, &KeyRange::point(key), OwnWrites::None).expect("it has not written");
}

fn is_conflict<T>(outcome: Result<T, StorageError>) -> bool {
    matches!(outcome, Err(error) if error.kind() == ErrorKind::Conflict)
}

#[test]
fn of_a_claim_and_a_commit_one_sees_the_other() {
    let claims = ReadClaims::default();
    let reads = reader(&claims, 1, 10);
    claim(&claims, &reads, b"k");
    assert!(is_conflict(claims.check_write(transaction(2), TREE, b"k")));
    assert!(is_conflict(commit(&claims, 2, 11, b"k")));
    assert!(claims.check_write(transaction(1), TREE, b"k").is_ok(), "its own claim");
    commit(&claims, 2, 12, b"m").expect("nobody has read it");
    claim(&claims, &reads, b"l");
    assert!(reads.check().is_ok());
    let other = reader(&claims, 3, 12);
    claim(&claims, &other, b"m");
    assert!(other.check().is_ok(), "its snapshot sees the commit");
    let refused = claims.claim(&reads, TREE, &KeyRange::point(b"m"), OwnWrites::Some);
    assert!(is_conflict(refused));
    claim(&claims, &reads, b"m");
    assert!(is_conflict(reads.check()) && claims.ranges() == 1, "it is overtaken");
    assert!(claims.check_write(transaction(2), TREE, b"k").is_ok(), "an overtaken reader claims nothing");
    claims.leave(&reads);
    claims.leave(&other);
    assert_eq!((claims.readers(), claims.ranges()), (0, 0));
    assert!(!claims.wants_notes());
}

#[test]
fn a_commit_under_way_counts_as_later_and_a_failed_one_as_never_made() {
    let claims = ReadClaims::default();
    let (one, other) = (reader(&claims, 1, 10), reader(&claims, 2, 10));
    let mut written = WrittenKeys::default();
    written.add(TREE, b"k");
    let note = claims.note(transaction(9), &written).expect("nobody has read it");
    claim(&claims, &one, b"k");
    assert!(is_conflict(one.check()));
    drop(note);
    claim(&claims, &other, b"k");
    assert!(other.check().is_ok());
}

#[test]
fn of_two_commits_of_a_key_the_later_one_counts_whichever_was_noted_first() {
    let claims = ReadClaims::default();
    let (old, new) = (reader(&claims, 1, 11), reader(&claims, 2, 12));
    let mut written = WrittenKeys::default();
    written.add(TREE, b"k");
    let first = claims.note(transaction(8), &written).expect("nobody has read it");
    let second = claims.note(transaction(9), &written).expect("nobody has read it");
    first.settle(CommitTimestamp::new(12));
    second.settle(CommitTimestamp::new(11));
    claim(&claims, &old, b"k");
    claim(&claims, &new, b"k");
    assert!(is_conflict(old.check()) && new.check().is_ok());
}

#[test]
fn a_reader_that_begins_waits_for_commits_under_way() {
    let claims = std::sync::Arc::new(ReadClaims::default());
    let token = claims.begin_commit();
    assert!(!claims.wants_notes());
    let entering = std::thread::spawn({
        let claims = std::sync::Arc::clone(&claims);
        move || drop(claims.enter())
    });
    while !claims.wants_notes() {
        std::thread::yield_now();
    }
    let late = claims.begin_commit();
    assert!(!entering.is_finished());
    claims.end_commit(token);
    claims.end_commit(late);
    entering.join().expect("it does not panic");
    assert!(!claims.wants_notes());
}

#[test]
fn notes_take_little_memory_and_forgotten_ones_are_not_missed() {
    let claims = ReadClaims::default();
    let old = reader(&claims, 1, 10);
    for number in 0..300_000_u64 {
        let key = number.to_be_bytes();
        commit(&claims, 2, 11 + number, &key).expect("nobody has read it");
    }
    assert!(claims.state.lock().noted.keys() <= 1 << 17);
    let new = reader(&claims, 3, 300_011);
    claim(&claims, &new, &5_u64.to_be_bytes());
    claim(&claims, &old, &5_u64.to_be_bytes());
    assert!(is_conflict(old.check()), "its commit was forgotten");
    assert!(new.check().is_ok());
    claims.leave(&old);
    for number in 0..2_000_u64 {
        commit(&claims, 2, 400_000 + number, b"k").expect("nobody has read it");
        commit(&claims, 2, 500_000 + number, &number.to_be_bytes()[4..]).expect("nobody has read it");
    }
    assert!(claims.state.lock().noted.keys() < 140_000);
    claims.leave(&new);
    assert_eq!(claims.state.lock().noted.keys(), 0);
}

#[test]
fn a_commit_of_very_many_keys_notes_ranges() {
    let claims = ReadClaims::default();
    let reads = reader(&claims, 1, 10);
    let mut written = WrittenKeys::default();
    for number in 100..20_000_u32 {
        written.add(TREE, &number.to_be_bytes());
    }
    written.add(TreeId::new(9), b"k");
    let beyond =
        KeyRange { lower: Bound::Included(20_000_u32.to_be_bytes().to_vec()), upper: Bound::Unbounded };
    claims.claim(&reads, TREE, &beyond, OwnWrites::None).expect("it has not written");
    claims.note(transaction(2), &written).expect("it lies beside").settle(CommitTimestamp::new(11));
    claim(&claims, &reads, &99_u32.to_be_bytes());
    assert!(reads.check().is_ok());
    assert!(is_conflict(claims.note(transaction(3), &{
        let mut written = WrittenKeys::default();
        written.add_range(TREE, &KeyRange::all());
        written
    })));
    claim(&claims, &reads, &500_u32.to_be_bytes());
    assert!(is_conflict(reads.check()));
}
