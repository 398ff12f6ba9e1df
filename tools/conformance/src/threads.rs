//! Many threads at once: promises that hold for any interleaving.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use pando_storage::{
    Begin, BlockingMode, Claim, Durability, Engine, ErrorKind, Merge, StorageError, Transaction, TreeId,
};

use crate::subject::{Choices, Opened, Subject, commit, entries, value};

const ACCOUNTS: usize = 8;
const FORTUNE: u64 = 1_000;

/// Runs a transaction until it commits; only conflicts and a lack of room are tried again.
fn until_committed(engine: &dyn Engine, run: impl Fn(&mut dyn Transaction) -> Result<(), StorageError>) {
    loop {
        let mut writer = match engine.begin(Begin::WRITE) {
            Ok(writer) => writer,
            Err(error) if error.kind() == ErrorKind::Busy => continue,
            Err(error) => panic!("a writer cannot begin: {error:?}"),
        };
        let outcome = match run(writer.as_dyn_mut()) {
            Ok(()) => writer.commit(Durability::None).map(|_| ()),
            Err(error) => {
                writer.rollback();
                Err(error)
            }
        };
        match outcome {
            Ok(()) => return,
            Err(error) if error.kind().is_retryable() => thread::yield_now(),
            Err(error) => panic!("the transaction failed: {error:?}"),
        }
    }
}

fn number(transaction: &dyn Transaction, tree: TreeId, key: &[u8]) -> u64 {
    let bytes = value(transaction, tree, key).expect("the number is there");
    u64::from_be_bytes(bytes.try_into().expect("a number has eight bytes"))
}

fn total(transaction: &dyn Transaction, tree: TreeId) -> u64 {
    let all = entries(transaction, tree);
    assert_eq!(all.len(), ACCOUNTS);
    all.into_iter()
        .map(|(_, value)| u64::from_be_bytes(value.try_into().expect("a number has eight bytes")))
        .sum()
}

/// Money moves between accounts; every snapshot, at any moment, has the same sum.
pub fn the_sum_of_all_accounts_never_changes(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("accounts");
    let mut writer = engine.writer();
    for account in 0..ACCOUNTS {
        writer.put(tree, &[account as u8], &FORTUNE.to_be_bytes()).expect("the put succeeds");
    }
    commit(writer);
    let is_over = Arc::new(AtomicBool::new(false));
    let movers: Vec<_> = (0..4).map(|seed| move_money(&engine, tree, seed)).collect();
    let auditors: Vec<_> = (0..2).map(|_| audit(&engine, tree, Arc::clone(&is_over))).collect();
    movers.into_iter().for_each(|mover| mover.join().expect("no mover panics"));
    is_over.store(true, Ordering::SeqCst);
    let audits: u64 = auditors.into_iter().map(|auditor| auditor.join().expect("no auditor panics")).sum();
    assert!(audits > 0, "nobody looked");
    assert_eq!(total(&*engine.reader(), tree), FORTUNE * ACCOUNTS as u64);
}

fn move_money(engine: &Opened, tree: TreeId, seed: u64) -> thread::JoinHandle<()> {
    let engine = engine.share();
    thread::spawn(move || {
        let mut choices = Choices::of_seed(seed);
        for _ in 0..150 {
            let (from, to) = (choices.below(ACCOUNTS) as u8, choices.below(ACCOUNTS) as u8);
            let amount = choices.below(20) as u64;
            until_committed(&*engine, |writer| {
                let have = number(writer, tree, &[from]);
                let moved = amount.min(have);
                writer.put(tree, &[from], &(have - moved).to_be_bytes())?;
                let have = number(writer, tree, &[to]);
                writer.put(tree, &[to], &(have + moved).to_be_bytes())
            });
        }
    })
}

fn audit(engine: &Opened, tree: TreeId, is_over: Arc<AtomicBool>) -> thread::JoinHandle<u64> {
    let engine = engine.share();
    thread::spawn(move || {
        let mut audits = 0;
        loop {
            let reader = engine.begin(Begin::READ).expect("a reader begins");
            assert_eq!(total(&*reader, tree), FORTUNE * ACCOUNTS as u64, "money was lost or made");
            audits += 1;
            if is_over.load(Ordering::SeqCst) {
                return audits;
            }
        }
    })
}

/// Everybody adds one to the same number: no addition is lost.
pub fn concurrent_increments_are_all_counted(subject: &Subject) {
    const THREADS: u64 = 4;
    const EACH: u64 = 100;
    let engine = subject.open();
    let tree = engine.tree("counter");
    engine.put(tree, "n", 0_u64.to_be_bytes());
    let adders: Vec<_> = (0..THREADS)
        .map(|_| {
            let engine = engine.share();
            thread::spawn(move || {
                for _ in 0..EACH {
                    until_committed(&*engine, |writer| {
                        let have = number(writer, tree, b"n");
                        writer.put(tree, b"n", &(have + 1).to_be_bytes())
                    });
                }
            })
        })
        .collect();
    adders.into_iter().for_each(|adder| adder.join().expect("no adder panics"));
    assert_eq!(number(&*engine.reader(), tree, b"n"), THREADS * EACH);
}

/// The same by merges, which read nothing: none of them is lost, whether or not one conflicts.
pub fn concurrent_merges_are_all_counted(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    let threads: Vec<_> = (0..4_u64)
        .map(|thread| {
            let engine = engine.share();
            thread::spawn(move || {
                for number in 0..200_u64 {
                    until_committed(&*engine, |writer| {
                        let key = [(number % 3) as u8];
                        writer.merge(tree, &key, Merge::Add(1), Claim::Blind, BlockingMode::MayBlock)?;
                        let best = (thread * 1_000 + number).to_be_bytes();
                        writer.merge(tree, b"max", Merge::Max(&best), Claim::Blind, BlockingMode::MayBlock)
                    });
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("the thread ends well");
    }
    let counted = (0..3).map(|key| engine.value(tree, [key]).expect("the counter is there"));
    let counted =
        counted.map(|bytes| u64::from_le_bytes(bytes.try_into().expect("a counter has eight bytes")));
    assert_eq!(counted.sum::<u64>(), 800);
    assert_eq!(engine.value(tree, "max"), Some(3_199_u64.to_be_bytes().to_vec()));
}

/// Threads that insert their own keys never meet, and everything is there at the end, after a restart too.
pub fn concurrent_inserts_of_different_keys_all_arrive(subject: &Subject) {
    const THREADS: u32 = 4;
    const EACH: u32 = 300;
    let mut engine = subject.open();
    let (documents, index) = (engine.tree("documents"), engine.tree("index"));
    let conflicts = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (engine, conflicts) = (engine.share(), Arc::clone(&conflicts));
            thread::spawn(move || {
                for number in (0..EACH).map(|at| at * THREADS + thread) {
                    let mut writer = engine.begin(Begin::WRITE).expect("a writer begins");
                    writer
                        .put(documents, &number.to_be_bytes(), b"document")
                        .expect("nobody else writes the key");
                    writer.put_blind(index, &number.to_le_bytes(), b"").expect("nobody else writes the key");
                    if writer.commit(Durability::None).is_err() {
                        conflicts.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().expect("no writer panics"));
    assert_eq!(conflicts.load(Ordering::Relaxed), 0, "transactions on different keys conflicted");
    for round in 0..2 {
        let keys: Vec<_> = engine.entries(documents).into_iter().map(|(key, _)| key).collect();
        let expected: Vec<_> = (0..THREADS * EACH).map(|number| number.to_be_bytes().to_vec()).collect();
        assert!(keys == expected, "round {round}: {} of {} documents", keys.len(), expected.len());
        assert_eq!(engine.entries(index).len(), expected.len());
        if !engine.is_durable() {
            return;
        }
        engine = subject.reopen(engine);
    }
}

/// Trees come and go while others are written and checkpoints run.
pub fn trees_come_and_go_beside_writers_and_checkpoints(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("steady");
    let is_over = Arc::new(AtomicBool::new(false));
    let background = {
        let (engine, is_over) = (engine.share(), Arc::clone(&is_over));
        thread::spawn(move || {
            let mut round = 0_u32;
            // At least once, however fast the writers are.
            while round == 0 || !is_over.load(Ordering::SeqCst) {
                let options = pando_storage::TreeOptions::default();
                let passing =
                    engine.create_tree(&format!("passing {round}"), &options).expect("a tree is created");
                until_committed(&*engine, |writer| writer.put(passing, b"k", &round.to_be_bytes()));
                engine.checkpoint().expect("the checkpoint succeeds");
                engine.drop_tree(passing).expect("the tree can be dropped");
                round += 1;
            }
            round
        })
    };
    for number in 0..500_u32 {
        engine.put(tree, number.to_be_bytes(), "v");
    }
    is_over.store(true, Ordering::SeqCst);
    assert!(background.join().expect("the background does not panic") > 0);
    assert_eq!(engine.entries(tree).len(), 500);
    assert_eq!(engine.list_trees().expect("the trees can be listed").len(), 1);
}
