//! Schedules of several writers of one key, which give up or wait.

use pando_environment::sync::atomic::AtomicU64;
use pando_environment::sync::{explore, thread};

use super::*;
use crate::wait_signal::WaitSignal;

const TREE: TreeId = TreeId::new(1);

/// An engine as small as can be: one number, the time that snapshots see, and the intents.
struct Engine {
    intents: Intents,
    /// Time and value of the newest commit, written as an engine publishes: after the intents are settled.
    visible: Mutex<(u64, u64)>,
    next: AtomicU64,
    committed: AtomicU64,
}

impl Engine {
    /// Reads the number, claims the key, and commits one more; gives up where another was first.
    fn add_one(&self, owner: TransactionId) -> bool {
        let (time, value) = *self.visible.lock();
        let Ok(intent) = self.intents.acquire(owner, SnapshotTimestamp::new(time), TREE, b"key") else {
            return false;
        };
        let next = self.next.fetch_add(1, Ordering::SeqCst) + 1;
        if next.is_multiple_of(3) {
            self.intents.release(&[intent]);
            return false;
        }
        self.intents.commit(&[intent], CommitTimestamp::new(next));
        let mut visible = self.visible.lock();
        if next > visible.0 {
            *visible = (next, value + 1);
        }
        self.committed.fetch_add(1, Ordering::SeqCst);
        true
    }
}

#[test]
fn of_the_writers_of_one_key_no_two_build_on_the_same_state() {
    explore(6_000, || {
        let engine = Arc::new(Engine {
            // So few that settled entries are evicted, too.
            intents: Intents::with_entries_max(4),
            visible: Mutex::new((0, 0)),
            next: AtomicU64::new(0),
            committed: AtomicU64::new(0),
        });
        let writers: Vec<_> = (1..=3)
            .map(|writer| {
                let engine = Arc::clone(&engine);
                thread::spawn(move || {
                    for round in 0..3 {
                        engine.add_one(TransactionId::new(writer * 10 + round));
                        let oldest = SnapshotTimestamp::new(0);
                        engine.intents.set_oldest_snapshot(oldest);
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
        assert_eq!(engine.visible.lock().1, engine.committed.load(Ordering::SeqCst), "an update is lost");
    });
}

impl Engine {
    /// Adds one, and waits for as long as others have the key. Every other time it claims widely.
    fn wait_and_add_one(&self, writer: u64) {
        let ticket = self.intents.new_ticket();
        let mut waited: Option<Arc<Contested>> = None;
        for round in 0.. {
            assert!(round < 20, "a writer does not get its turn");
            let (time, value) = *self.visible.lock();
            let snapshot = SnapshotTimestamp::new(time);
            let owner = TransactionId::new(writer * 100 + round);
            let intents_max = (writer % 2) as usize;
            let mut claims = Claims::with_intents_max(owner, snapshot, intents_max);
            claims.present(waited.is_some().then_some(ticket));
            let Err(error) = claims.claim(&self.intents, TREE, b"key") else {
                self.publish(&claims, value);
                claims.release(&self.intents);
                break;
            };
            claims.release(&self.intents);
            let contested = Arc::clone(error.contested_key().expect("the key is told"));
            if contested.contest == Contest::Committed {
                // The commit is about to become visible.
                thread::yield_now();
            }
            let signal = Arc::new(WaitSignal::default());
            let request = WaitRequest { contested, ticket, kept_snapshot: None, started_ms: 0, signal };
            self.intents.enqueue(&request);
            request.signal.wait();
            waited = Some(request.contested);
        }
        if let Some(contested) = waited {
            self.intents.leave(ticket, &contested);
        }
    }

    /// Commits one more, or nothing at every third time.
    fn publish(&self, claims: &Claims, value: u64) {
        let next = self.next.fetch_add(1, Ordering::SeqCst) + 1;
        if next.is_multiple_of(3) {
            return;
        }
        claims.commit(&self.intents, CommitTimestamp::new(next));
        *self.visible.lock() = (next, value + 1);
        self.committed.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn every_writer_that_waits_for_a_key_gets_its_turn() {
    explore(6_000, || {
        let engine = Arc::new(Engine {
            intents: Intents::new(),
            visible: Mutex::new((0, 0)),
            next: AtomicU64::new(0),
            committed: AtomicU64::new(0),
        });
        let writers: Vec<_> = (1..=3)
            .map(|writer| {
                let engine = Arc::clone(&engine);
                thread::spawn(move || {
                    engine.wait_and_add_one(writer * 2);
                    engine.wait_and_add_one(writer * 2 + 1);
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
        assert_eq!(engine.visible.lock().1, engine.committed.load(Ordering::SeqCst), "an update is lost");
        assert_eq!(engine.committed.load(Ordering::SeqCst), 4, "two of six gave their key back");
        assert!(engine.intents.shards.iter().all(|shard| shard.lock().queues.is_empty()));
    });
}
