//! Receipts, wakers, checkpoints, and the data that is left after a close and after a crash.

use std::sync::mpsc;
use std::time::Duration;

use pando_storage::{BlockingMode, CommitReceipt, Durability, ErrorKind, Lsn, StorageError, TreeOptions};

use crate::subject::{Choices, Opened, Subject, commit, entry, kind};

/// Long enough for any sync, short enough to end a test that hangs.
const WAIT_MAX: Duration = Duration::from_secs(10);

const DEGREES: [Durability; 3] = [Durability::None, Durability::Logged, Durability::Synced];

fn put_with(
    engine: &Opened,
    tree: pando_storage::TreeId,
    key: &[u8],
    durability: Durability,
) -> CommitReceipt {
    let mut writer = engine.writer();
    writer.put(tree, key, b"v").expect("the put succeeds");
    writer.commit(durability).expect("the commit succeeds")
}

/// Whether the engine calls a waker within the call, on this thread: the commit has the durability already.
fn is_told_at_once(engine: &Opened, receipt: CommitReceipt, durability: Durability) -> bool {
    let (told, hear) = mpsc::channel();
    let waker = Box::new(move |outcome: Result<(), StorageError>| {
        // The other end is gone where the waker was not called at once.
        let _heard = told.send((std::thread::current().id(), outcome.is_ok()));
    });
    engine.when_durable(receipt, durability, waker);
    hear.try_recv() == Ok((std::thread::current().id(), true))
}

/// Later commits have later places in the log; a commit without writes has none.
pub fn receipts_are_ordered_and_nothing_written_needs_no_log(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut last = Lsn::ZERO;
    for (number, durability) in (0..60_u32).zip(DEGREES.into_iter().cycle()) {
        let receipt = put_with(&engine, tree, &number.to_be_bytes(), durability);
        assert!(receipt.lsn > last, "{:?} was given out after {last:?}", receipt.lsn);
        last = receipt.lsn;
    }
    let empty = commit(engine.writer());
    assert_eq!(empty.lsn, Lsn::ZERO);
    for durability in DEGREES {
        engine.wait_durable(empty, durability).expect("there is nothing to wait for");
    }
}

/// Once waited for, a commit has the durability, and once it is synced every weaker one, too: a waker is
/// called at once.
pub fn waiting_brings_the_log_to_the_wanted_durability(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    for (number, durability) in (0..12_u32).zip(DEGREES.into_iter().cycle()) {
        let receipt = put_with(&engine, tree, &number.to_be_bytes(), durability);
        engine.wait_durable(receipt, durability).expect("the log reaches the durability");
        assert!(is_told_at_once(&engine, receipt, durability));
        engine.wait_durable(receipt, Durability::Synced).expect("the log can be synced");
        assert!(DEGREES.into_iter().all(|degree| is_told_at_once(&engine, receipt, degree)));
    }
}

/// A waker is called once: at once and on the caller's thread if there is nothing to wait for, else when it
/// is so.
pub fn wakers_are_called_once_when_the_commit_is_durable(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let (told, hear) = mpsc::channel();
    let mut receipts = Vec::new();
    for number in 0..50_u32 {
        let receipt = put_with(&engine, tree, &number.to_be_bytes(), Durability::Synced);
        let told = told.clone();
        let waker = Box::new(move |outcome: Result<(), StorageError>| {
            told.send((number, outcome)).expect("the test is listening");
        });
        engine.when_durable(receipt, Durability::Synced, waker);
        receipts.push(receipt);
    }
    let mut heard: Vec<u32> = (0..50)
        .map(|_| {
            let (number, outcome) = hear.recv_timeout(WAIT_MAX).expect("every waker is called");
            outcome.expect("the commit becomes durable");
            let receipt = receipts[number as usize];
            assert!(is_told_at_once(&engine, receipt, Durability::Synced), "woken too early");
            number
        })
        .collect();
    heard.sort_unstable();
    assert_eq!(heard, (0..50).collect::<Vec<u32>>());
    let this_thread = std::thread::current().id();
    let (told_now, hear_now) = mpsc::channel();
    let waker = Box::new(move |outcome: Result<(), StorageError>| {
        told_now.send((std::thread::current().id(), outcome.is_ok())).expect("the test is listening");
    });
    engine.when_durable(receipts[0], Durability::Synced, waker);
    assert_eq!(hear_now.try_recv(), Ok((this_thread, true)), "what is durable is told at once");
    assert!(hear.try_recv().is_err(), "a waker was called twice");
}

/// Those who wait when the engine closes are told.
pub fn closing_wakes_everyone_who_waits(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let (told, hear) = mpsc::channel();
    for number in 0..20_u32 {
        let receipt = put_with(&engine, tree, &number.to_be_bytes(), Durability::None);
        let told = told.clone();
        let waker = Box::new(move |outcome: Result<(), StorageError>| {
            told.send(outcome.is_ok()).expect("the test is listening");
        });
        engine.when_durable(receipt, Durability::Synced, waker);
    }
    engine.close().expect("the engine closes");
    for _ in 0..20 {
        assert_eq!(hear.recv_timeout(WAIT_MAX), Ok(true), "closing syncs what was committed");
    }
}

/// After `close` every call that would do something says `Closed`, transactions under way too.
pub fn a_closed_engine_says_so(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let mut under_way = engine.writer();
    under_way.put(tree, b"k", b"v").expect("the put succeeds");
    engine.close().expect("the engine closes");
    assert_eq!(kind(engine.begin(pando_storage::Begin::READ)), Some(ErrorKind::Closed));
    assert_eq!(kind(engine.begin(pando_storage::Begin::WRITE)), Some(ErrorKind::Closed));
    assert_eq!(kind(engine.create_tree("u", &TreeOptions::default())), Some(ErrorKind::Closed));
    assert_eq!(kind(engine.drop_tree(tree)), Some(ErrorKind::Closed));
    assert_eq!(kind(engine.checkpoint()), Some(ErrorKind::Closed));
    assert_eq!(kind(under_way.commit(Durability::Logged)), Some(ErrorKind::Closed));
    assert!(matches!(kind(engine.close()), None | Some(ErrorKind::Closed)), "closing twice does no harm");
}

/// A clean end keeps trees, entries, and the order of numbers; of a volatile engine nothing.
pub fn a_clean_restart_keeps_everything(subject: &Subject) {
    let mut engine = subject.open();
    let (first, second) = (engine.tree("first"), engine.tree("second"));
    for number in 0..500_u32 {
        engine.put(first, number.to_be_bytes(), vec![number as u8; number as usize]);
    }
    for number in (0..500_u32).step_by(3) {
        engine.delete(first, number.to_be_bytes());
    }
    engine.put(second, "big", vec![1; 1_000_000]);
    let last = engine.put(second, "", "");
    let before = (engine.entries(first), engine.entries(second));
    let is_durable = engine.is_durable();
    for round in 0..3 {
        engine = subject.reopen(engine);
        if !is_durable {
            assert!(engine.list_trees().expect("the trees can be listed").is_empty());
            return;
        }
        assert_eq!(engine.find_tree("first"), Some(first));
        assert!((engine.entries(first), engine.entries(second)) == before, "round {round}: entries differ");
        let receipt = engine.put(second, "", "");
        assert!(receipt.timestamp > last.timestamp, "a timestamp came back after a restart");
        assert!(receipt.lsn > last.lsn, "a place in the log came back after a restart");
    }
}

/// Deleted entries and dropped trees stay away.
pub fn a_restart_brings_nothing_back(subject: &Subject) {
    let engine = subject.open();
    if !engine.is_durable() {
        return;
    }
    let (kept, dropped) = (engine.tree("kept"), engine.tree("dropped"));
    engine.put(kept, "a", "1");
    engine.put(kept, "b", "1");
    engine.put(dropped, "c", "1");
    engine.checkpoint().expect("the checkpoint succeeds");
    engine.delete(kept, "a");
    engine.drop_tree(dropped).expect("the tree can be dropped");
    let mut unfinished = engine.writer();
    unfinished.put(kept, b"z", b"1").expect("the put succeeds");
    drop(unfinished);
    // A later commit carries the drop: see "Durability of trees" in the contract.
    let receipt = engine.put(kept, "last", "1");
    engine.wait_durable(receipt, Durability::Synced).expect("the log can be synced");
    let engine = subject.crash(engine);
    assert_eq!(engine.find_tree("dropped"), None);
    assert_eq!(kind(engine.reader().get(dropped, b"c", BlockingMode::MayBlock)), Some(ErrorKind::NotFound));
    let engine = subject.reopen(engine);
    assert_eq!(engine.entries(kept), vec![entry("b", "1"), entry("last", "1")]);
}

/// After a crash: all that was acknowledged, and of the rest a prefix of whole transactions.
pub fn a_crash_keeps_what_was_acknowledged_and_a_prefix_of_the_rest(subject: &Subject) {
    let mut engine = subject.open();
    if !engine.is_durable() {
        return;
    }
    let mut choices = Choices::of_seed(7);
    let (left, right) = (engine.tree("left"), engine.tree("right"));
    let (mut next, mut acknowledged) = (0_u32, 0_u32);
    for round in 0..4 {
        for _ in 0..60 {
            let durability = DEGREES[choices.below(3)];
            let mut writer = engine.writer();
            writer.put(left, &next.to_be_bytes(), b"l").expect("the put succeeds");
            writer
                .put(right, &next.to_be_bytes(), &vec![b'r'; choices.below(3_000)])
                .expect("the put succeeds");
            let receipt = writer.commit(durability).expect("the commit succeeds");
            next += 1;
            if durability != Durability::None {
                engine.wait_durable(receipt, durability).expect("the log reaches the durability");
                acknowledged = next;
            }
            if choices.one_in(50) {
                engine.checkpoint().expect("the checkpoint succeeds");
            }
        }
        engine = subject.crash(engine);
        let keys = |tree| engine.entries(tree).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        let survivors = keys(left);
        assert_eq!(survivors, keys(right), "round {round}: half a transaction survived");
        let prefix: Vec<_> =
            (0..survivors.len() as u32).map(|number| number.to_be_bytes().to_vec()).collect();
        assert_eq!(survivors, prefix, "round {round}: a commit survived that an earlier one did not");
        let kept = survivors.len() as u32;
        assert!(kept >= acknowledged, "round {round}: {acknowledged} were acknowledged, {kept} survived");
        (next, acknowledged) = (kept, kept);
    }
}

/// A tree whose creation came before a surviving commit is there.
pub fn a_tree_survives_with_the_commits_that_follow_it(subject: &Subject) {
    let mut engine = subject.open();
    if !engine.is_durable() {
        return;
    }
    let catalog = engine.tree("catalog");
    for number in 0..5_u32 {
        let name = format!("tree {number}");
        let tree = engine.tree(&name);
        let receipt = engine.put(catalog, &name, tree.get().to_be_bytes());
        engine.wait_durable(receipt, Durability::Synced).expect("the log can be synced");
        engine = subject.crash(engine);
        for (name, number) in engine.entries(catalog) {
            let name = String::from_utf8(name).expect("names are text");
            let tree = engine.find_tree(&name).expect("the tree survived with the commit that refers to it");
            assert_eq!(tree.get().to_be_bytes().to_vec(), number);
        }
    }
}

/// Checkpoints at any time change nothing that can be seen, before a restart or after.
pub fn checkpoints_change_nothing_that_can_be_seen(subject: &Subject) {
    let mut engine = subject.open();
    let tree = engine.tree("t");
    let mut expected = Vec::new();
    for round in 0..10_u32 {
        let older = engine.reader();
        let before = expected.clone();
        for number in 0..40_u32 {
            let key = (round * 40 + number).to_be_bytes();
            engine.put(tree, key, round.to_be_bytes());
            expected.push((key.to_vec(), round.to_be_bytes().to_vec()));
        }
        let mut writer = engine.writer();
        writer.put(tree, b"unfinished", b"1").expect("the put succeeds");
        engine.checkpoint().expect("the checkpoint succeeds");
        assert!(crate::subject::entries(&*older, tree) == before, "round {round}: a snapshot changed");
        writer.rollback();
        drop(older);
        if engine.is_durable() && round % 3 == 2 {
            engine = subject.crash(engine);
        }
        let found = engine.entries(tree);
        // No commit was acknowledged as durable, but a checkpoint writes all commits.
        assert!(found == expected, "round {round}: {} of {} entries", found.len(), expected.len());
    }
}
