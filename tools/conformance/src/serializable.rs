//! Serializable transactions: what they have read is unchanged when they commit.

use std::thread;

use pando_storage::{
    Batch, BatchLimits, Begin, BlockingMode, Claim, Direction, Durability, ErrorKind, KeyRange, Merge,
    ReadClaiming, StorageError, Transaction, TreeId,
};

use crate::subject::{Choices, Opened, Subject, commit, entries, entries_in, entry, kind, value};

/// A new tree with these entries, in an engine that claims reads; `None` in any other engine.
fn claiming(subject: &Subject, pairs: &[(&str, &str)]) -> Option<(Opened, TreeId)> {
    let engine = subject.open();
    if engine.capabilities().read_claims == ReadClaiming::None {
        return None;
    }
    let tree = engine.tree("t");
    pairs.iter().for_each(|(key, value)| {
        engine.put(tree, key, value);
    });
    Some((engine, tree))
}

fn serializable(engine: &Opened) -> Box<dyn Transaction> {
    engine.begin(Begin::SERIALIZABLE).expect("a serializable transaction begins")
}

fn range(lower: &str, upper: &str) -> KeyRange {
    use std::ops::Bound::{Excluded, Included};
    KeyRange { lower: Included(lower.into()), upper: Excluded(upper.into()) }
}

fn read(transaction: &dyn Transaction, tree: TreeId, range: &KeyRange) -> usize {
    entries_in(transaction, tree, range, Direction::Forward).len()
}

fn is_conflict<T>(outcome: Result<T, StorageError>) -> bool {
    kind(outcome) == Some(ErrorKind::Conflict)
}

fn loses(transaction: Box<dyn Transaction>) -> bool {
    is_conflict(transaction.commit(Durability::None))
}

/// It refuses by an error that says so; others begin them at the newest snapshot only.
pub fn an_engine_without_read_claims_refuses_serializable_transactions(subject: &Subject) {
    let engine = subject.open();
    let begun = engine.begin(Begin::SERIALIZABLE);
    match engine.capabilities().read_claims {
        ReadClaiming::None => assert_eq!(kind(begun), Some(ErrorKind::InvalidInput)),
        ReadClaiming::Ranges => {
            let begun = begun.expect("a serializable transaction begins");
            assert!(begun.claims_reads() && !engine.writer().claims_reads());
            let past = engine.begin(Begin { at: Some(begun.snapshot()), ..Begin::SERIALIZABLE });
            assert_eq!(kind(past), Some(ErrorKind::InvalidInput));
        }
    }
}

/// Each reads what the other writes: the first to write loses, and the other commits.
pub fn write_skew_is_refused(subject: &Subject) {
    let Some((engine, tree)) = claiming(subject, &[("a", "on call"), ("b", "on call")]) else { return };
    let (mut first, mut second) = (serializable(&engine), serializable(&engine));
    for doctor in [&first, &second] {
        assert_eq!(entries(&**doctor, tree).len(), 2);
    }
    assert!(is_conflict(first.delete(tree, b"a")));
    first.rollback();
    second.delete(tree, b"b").expect("the other has ended");
    commit(second);
    assert_eq!(engine.entries(tree), vec![entry("a", "on call")]);
}

/// A key that appears, changes or goes in a scanned range is refused; one beside it is not.
pub fn a_phantom_is_refused_in_a_scanned_range(subject: &Subject) {
    let Some((engine, tree)) = claiming(subject, &[("b", "1"), ("d", "1"), ("x", "1")]) else { return };
    let mut reader = serializable(&engine);
    assert_eq!(read(&*reader, tree, &range("b", "f")), 2);
    for key in ["b", "bb", "c", "d", "ezz"] {
        engine.expect_conflict(engine.writer(), |writer| writer.put(tree, key.as_bytes(), b"2"));
        engine.expect_conflict(engine.writer(), |writer| writer.delete(tree, key.as_bytes()));
    }
    for key in ["a", "azz", "f", "x"] {
        engine.put(tree, key, "2");
    }
    reader.put(tree, b"c", b"its own").expect("its own claim does not hinder it");
    assert_eq!(read(&*reader, tree, &range("b", "f")), 3);
    commit(reader);
    engine.put(tree, "c", "2");
}

/// A key that was not there, and an empty range.
pub fn the_absence_of_a_key_is_claimed(subject: &Subject) {
    let Some((engine, tree)) = claiming(subject, &[]) else { return };
    let reader = serializable(&engine);
    assert_eq!(value(&*reader, tree, "k"), None);
    assert_eq!(read(&*reader, tree, &range("m", "n")), 0);
    for key in ["k", "m", "mm"] {
        engine.expect_conflict(engine.writer(), |writer| writer.put(tree, key.as_bytes(), b"1"));
    }
    for key in ["j", "k\0", "l", "n"] {
        engine.put(tree, key, "1");
    }
    reader.rollback();
}

/// Writes without an intent are refused as well: entries of indexes are written so.
pub fn blind_writes_and_merges_meet_claims(subject: &Subject) {
    let Some((engine, tree)) = claiming(subject, &[("b", "1")]) else { return };
    let reader = serializable(&engine);
    assert_eq!(read(&*reader, tree, &range("b", "d")), 1);
    engine.expect_conflict(engine.writer(), |writer| writer.put_blind(tree, b"c", b""));
    engine.expect_conflict(engine.writer(), |writer| writer.delete_blind(tree, b"b"));
    engine.expect_conflict(engine.writer(), |writer| {
        writer.merge(tree, b"cc", Merge::Add(1), Claim::Blind, BlockingMode::MayBlock)
    });
    reader.rollback();
    let mut writer = engine.writer();
    writer.put_blind(tree, b"c", b"").expect("nobody has read it");
    let reader = serializable(&engine);
    assert_eq!(read(&*reader, tree, &range("b", "d")), 1);
    assert!(loses(writer), "the range was read before the commit");
    reader.rollback();
}

/// A range that is deleted as a whole.
pub fn a_deleted_range_meets_claims(subject: &Subject) {
    let Some((engine, tree)) = claiming(subject, &[("b", "1"), ("c", "1"), ("x", "1")]) else { return };
    let reader = serializable(&engine);
    assert!(value(&*reader, tree, "c").is_some());
    let mut eraser = engine.writer();
    let erased = eraser.delete_range(tree, &range("a", "d"), BlockingMode::MayBlock);
    assert!(is_conflict(erased.and_then(|()| eraser.commit(Durability::None))));
    let mut eraser = engine.writer();
    eraser.delete_range(tree, &range("d", "z"), BlockingMode::MayBlock).expect("nobody has read it");
    commit(eraser);
    assert!(value(&*reader, tree, "x").is_some(), "the snapshot is older");
    assert_eq!(engine.entries(tree).len(), 2);
    reader.rollback();
}

/// The order of the write and the read does not matter, and neither does the order of the begins.
pub fn a_plain_writer_is_refused_whether_it_writes_before_or_after_the_read(subject: &Subject) {
    let Some((engine, tree)) = claiming(subject, &[("a", "1")]) else { return };
    let mut early = engine.writer();
    early.put(tree, b"a", b"early").expect("nobody has read it");
    let reader = serializable(&engine);
    assert_eq!(value(&*reader, tree, "a"), Some(b"1".to_vec()));
    engine.expect_conflict(engine.writer(), |late| late.put(tree, b"a", b"late"));
    assert!(loses(early));
    commit(reader);
    engine.put(tree, "a", "2");
}

/// A scan that ends early claims up to the last key that it gave, in either direction.
pub fn a_scan_claims_what_it_has_read_and_no_more(subject: &Subject) {
    let pairs = [("b", "1"), ("d", "1"), ("f", "1"), ("h", "1"), ("j", "1")];
    let Some((engine, tree)) = claiming(subject, &pairs) else { return };
    let reader = serializable(&engine);
    let limits = BatchLimits { entries_max: 2, ..BatchLimits::FIRST };
    let mut batch = Batch::new();
    let mut scan = |direction| {
        reader
            .scan(tree, &range("a", "z"), direction, limits, BlockingMode::MayBlock, &mut batch)
            .expect("the scan succeeds");
        batch.len()
    };
    assert_eq!(scan(Direction::Forward), 2);
    engine.put(tree, "e", "2");
    engine.put(tree, "y", "2");
    for key in ["a", "c", "d"] {
        engine.expect_conflict(engine.writer(), |writer| writer.put(tree, key.as_bytes(), b"2"));
    }
    reader.rollback();
    let reader = serializable(&engine);
    let mut batch = Batch::new();
    let scanned =
        reader.scan(tree, &range("a", "z"), Direction::Backward, limits, BlockingMode::MayBlock, &mut batch);
    scanned.expect("the scan succeeds");
    assert_eq!(batch.len(), 2);
    engine.put(tree, "i", "2");
    for key in ["j", "k", "y", "yy"] {
        engine.expect_conflict(engine.writer(), |writer| writer.put(tree, key.as_bytes(), b"2"));
    }
    reader.rollback();
}

/// A commit after its snapshot has changed what it reads: it still reads its snapshot.
pub fn an_overtaken_transaction_reads_on_and_does_not_write(subject: &Subject) {
    let Some((engine, tree)) = claiming(subject, &[("a", "1"), ("b", "1")]) else { return };
    let mut reader = serializable(&engine);
    engine.put(tree, "a", "2");
    assert_eq!(value(&*reader, tree, "a"), Some(b"1".to_vec()));
    assert_eq!(value(&*reader, tree, "b"), Some(b"1".to_vec()));
    engine.put(tree, "b", "2");
    assert_eq!(value(&*reader, tree, "b"), Some(b"1".to_vec()));
    assert!(is_conflict(reader.put(tree, b"c", b"1")));
    reader.rollback();
    let reader = serializable(&engine);
    engine.put(tree, "a", "3");
    assert_eq!(value(&*reader, tree, "a"), Some(b"2".to_vec()));
    commit(reader);
}

/// It cannot end as a reader any more.
pub fn a_conflict_is_told_at_the_read_of_a_transaction_that_has_written(subject: &Subject) {
    let Some((engine, tree)) = claiming(subject, &[("a", "1")]) else { return };
    let mut reader = serializable(&engine);
    reader.put(tree, b"c", b"1").expect("nobody has read it");
    engine.put(tree, "a", "2");
    assert!(is_conflict(reader.get(tree, b"a", BlockingMode::MayBlock)));
    reader.rollback();
    assert_eq!(engine.value(tree, "c"), None);
}

/// Commit, rollback and drop give them back.
pub fn read_claims_end_with_their_transaction(subject: &Subject) {
    let Some((engine, tree)) = claiming(subject, &[("a", "1")]) else { return };
    let ends: [fn(Box<dyn Transaction>); 3] = [
        |reader| {
            commit(reader);
        },
        |reader| reader.rollback(),
        |reader| drop(reader),
    ];
    for end in ends {
        let reader = serializable(&engine);
        assert!(value(&*reader, tree, "a").is_some());
        engine.expect_conflict(engine.writer(), |writer| writer.put(tree, b"a", b"2"));
        end(reader);
        engine.put(tree, "a", "2");
    }
}

/// A commit of very many keys, which is not compared key by key.
pub fn a_large_commit_meets_claims(subject: &Subject) {
    let Some((engine, tree)) = claiming(subject, &[("other", "1")]) else { return };
    let other = engine.tree("other");
    let reader = serializable(&engine);
    let write = || {
        let mut writer = engine.writer();
        for number in 0..10_000_u32 {
            writer.put(tree, &number.to_be_bytes(), b"value").expect("nobody has read it");
        }
        writer
    };
    let large = write();
    assert_eq!(value(&*reader, tree, 77_u32.to_be_bytes()), None);
    assert!(loses(large));
    assert_eq!(value(&*reader, other, "k"), None);
    reader.rollback();
    let mut reader = serializable(&engine);
    commit(write());
    assert_eq!(value(&*reader, tree, 77_u32.to_be_bytes()), None, "the snapshot is older");
    assert!(is_conflict(reader.put(other, b"k", b"1")));
    reader.rollback();
}

/// Each transaction reads two of a few numbers by a scan, and may lower one if their sum stays positive.
/// Under snapshot isolation the sum goes below zero.
pub fn serializable_transactions_of_many_threads_have_a_serial_order(subject: &Subject) {
    let Some((engine, tree)) = claiming(subject, &[("a1", "5"), ("a2", "5"), ("b1", "5"), ("b2", "5")])
    else {
        return;
    };
    thread::scope(|scope| {
        for client in 0..4_u64 {
            let engine = &engine;
            scope.spawn(move || {
                let mut choices = Choices::of_seed(client);
                for _ in 0..400 {
                    let pair = ["a", "b"][choices.below(2)];
                    let _refused = lower(engine, tree, pair, choices.below(2));
                }
            });
        }
    });
    let left = engine.entries(tree);
    for pair in left.chunks(2) {
        assert!(pair.iter().map(|(_, value)| number(value)).sum::<i64>() >= 0, "{left:?}");
    }
}

fn number(value: &[u8]) -> i64 {
    std::str::from_utf8(value).expect("it is text").parse().expect("it is a number")
}

/// Takes one from the number at a place, or puts two back where the sum is used up.
fn lower(engine: &Opened, tree: TreeId, pair: &str, place: usize) -> Result<(), StorageError> {
    let mut transaction = engine.begin(Begin::SERIALIZABLE)?;
    let mut batch = Batch::new();
    let (direction, limits) = (Direction::Forward, BatchLimits::FIRST);
    transaction.scan(
        tree,
        &KeyRange::prefix(pair.as_bytes()),
        direction,
        limits,
        BlockingMode::MayBlock,
        &mut batch,
    )?;
    let read: Vec<_> = batch.iter().map(|(key, value)| (key.to_vec(), number(value))).collect();
    let sum: i64 = read.iter().map(|(_, value)| value).sum();
    assert!(sum >= 0, "a serializable transaction has read {read:?}");
    let (key, value) = &read[place];
    let value = if sum > 0 { value - 1 } else { value + 2 };
    transaction.put(tree, key, value.to_string().as_bytes())?;
    transaction.commit(Durability::None).map(|_| ())
}
