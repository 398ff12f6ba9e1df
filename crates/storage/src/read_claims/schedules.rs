//! Schedules of readers that begin, read and end beside commits.

use std::sync::Arc;

use pando_environment::sync::atomic::AtomicU64;
use pando_environment::sync::{explore, thread};

use super::*;
use crate::identifiers::CommitTimestamp;

const TREE: TreeId = TreeId::new(1);

/// An engine as small as can be: two numbers that blind writes set, and the time that snapshots see.
#[derive(Default)]
struct Engine {
    claims: ReadClaims,
    /// The time of the newest commit, and the times of the last commit to each of the two keys.
    visible: Mutex<(u64, [u64; 2])>,
    owners: AtomicU64,
}

impl Engine {
    fn owner(&self) -> TransactionId {
        TransactionId::new(self.owners.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Commits a write of one key; gives whether it was made.
    fn write(&self, owner: TransactionId, key: usize) -> bool {
        let token = self.claims.begin_commit();
        let mut note = None;
        if self.claims.wants_notes() {
            let mut written = WrittenKeys::default();
            written.add(TREE, &[key as u8]);
            match self.claims.note(owner, &written) {
                Ok(noted) => note = Some(noted),
                Err(_) => {
                    self.claims.end_commit(token);
                    return false;
                }
            }
        }
        let time = {
            let mut visible = self.visible.lock();
            visible.0 += 1;
            visible.1[key] = visible.0;
            visible.0
        };
        if let Some(note) = note {
            note.settle(CommitTimestamp::new(time));
        }
        self.claims.end_commit(token);
        true
    }

    /// Reads one key and writes the other. What it read must be unchanged at its commit.
    fn read_and_write(&self, key: usize) {
        let entering = self.claims.enter();
        let (snapshot, seen) = *self.visible.lock();
        let owner = self.owner();
        let reads = entering.begin(owner, SnapshotTimestamp::new(snapshot));
        let range = KeyRange::point(&[key as u8]);
        self.claims.claim(&reads, TREE, &range, OwnWrites::None).expect("it has not written");
        if reads.check().is_ok() && self.write(owner, 1 - key) {
            assert_eq!(self.visible.lock().1[key], seen[key], "what it read has changed");
        }
        self.claims.leave(&reads);
    }
}

#[test]
fn the_keys_that_a_reader_has_read_stay_unchanged_until_its_commit() {
    explore(6_000, || {
        let engine = Arc::new(Engine::default());
        let threads: Vec<_> = (0..3)
            .map(|client| {
                let engine = Arc::clone(&engine);
                thread::spawn(move || {
                    if client == 0 {
                        let owner = engine.owner();
                        engine.write(owner, 0);
                        engine.write(owner, 1);
                    } else {
                        engine.read_and_write(client - 1);
                        engine.read_and_write(client - 1);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
    });
}
