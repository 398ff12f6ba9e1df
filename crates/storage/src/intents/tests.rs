//! Tests of intents against a plain map that evicts nothing.

use std::collections::HashMap;

use pando_environment::SeededRandom;

use super::*;
use crate::error::ErrorKind;

const TREE: TreeId = TreeId::new(3);

fn transaction(number: u64) -> TransactionId {
    TransactionId::new(number)
}

fn snapshot(number: u64) -> SnapshotTimestamp {
    SnapshotTimestamp::new(number)
}

fn is_conflict(outcome: Result<Intent, StorageError>) -> bool {
    matches!(outcome, Err(error) if error.kind() == ErrorKind::Conflict)
}

#[test]
fn the_first_to_claim_a_key_wins_and_may_claim_it_again() {
    let intents = Intents::new();
    intents.acquire(transaction(1), snapshot(0), TREE, b"a").expect("nobody has it");
    intents.acquire(transaction(1), snapshot(0), TREE, b"a").expect("the owner may claim it again");
    assert!(is_conflict(intents.acquire(transaction(2), snapshot(0), TREE, b"a")));
    intents
        .acquire(transaction(2), snapshot(0), TreeId::new(4), b"a")
        .expect("another tree's key is another key");
}

#[test]
fn a_released_key_is_free_and_a_committed_one_only_for_snapshots_that_see_it() {
    let intents = Intents::new();
    let first = intents.acquire(transaction(1), snapshot(0), TREE, b"a").expect("nobody has it");
    intents.release(&[first, first]);
    assert!(intents.is_empty());
    let second = intents.acquire(transaction(2), snapshot(0), TREE, b"a").expect("it was released");
    intents.commit(&[second, second], CommitTimestamp::new(7));
    assert!(is_conflict(intents.acquire(transaction(3), snapshot(6), TREE, b"a")));
    intents.acquire(transaction(4), snapshot(7), TREE, b"a").expect("the snapshot sees the commit");
}

#[test]
fn a_claim_is_its_owners_until_the_end_one_by_one_or_widely() {
    let intents = Intents::new();
    let mut claims = Claims::with_intents_max(transaction(1), snapshot(0), 1);
    for key in [b"a", b"b"] {
        claims.claim(&intents, TREE, key).expect("nobody has it");
    }
    let is_claimed = |by, key: &[u8]| intents.is_claimed_by(transaction(by), TREE, key);
    assert!(is_claimed(1, b"a") && is_claimed(1, b"b"));
    assert!(!is_claimed(2, b"a") && !is_claimed(2, b"b") && !is_claimed(1, b"c"));
    claims.commit(&intents, CommitTimestamp::new(3));
    assert!(!is_claimed(1, b"a") && !is_claimed(1, b"b"));
}

#[test]
fn an_intent_given_back_twice_does_not_take_the_key_from_its_next_owner() {
    let intents = Intents::new();
    let first = intents.acquire(transaction(1), snapshot(0), TREE, b"a").expect("nobody has it");
    intents.commit(&[first], CommitTimestamp::new(1));
    intents.acquire(transaction(2), snapshot(1), TREE, b"a").expect("the snapshot sees the commit");
    intents.release(&[first]);
    intents.commit(&[first], CommitTimestamp::new(1));
    assert!(is_conflict(intents.acquire(transaction(3), snapshot(1), TREE, b"a")));
}

#[test]
fn a_rollback_leaves_the_commit_before_it_known() {
    let intents = Intents::new();
    let first = intents.acquire(transaction(1), snapshot(0), TREE, b"a").expect("nobody has it");
    intents.commit(&[first], CommitTimestamp::new(5));
    let second =
        intents.acquire(transaction(2), snapshot(5), TREE, b"a").expect("the snapshot sees the commit");
    intents.release(&[second]);
    assert!(is_conflict(intents.acquire(transaction(3), snapshot(4), TREE, b"a")));
}

#[test]
fn settled_entries_that_all_snapshots_see_are_swept() {
    let intents = Intents::new();
    for number in 1..=100_000_u64 {
        let key = number.to_le_bytes();
        let intent =
            intents.acquire(transaction(number), snapshot(number - 1), TREE, &key).expect("each key is new");
        intents.commit(&[intent], CommitTimestamp::new(number));
        intents.set_oldest_snapshot(snapshot(number));
    }
    let bound = SHARDS * SWEEP_ENTRIES_MIN * 2;
    assert!(intents.len() <= bound, "{} entries are left", intents.len());
}

#[test]
fn a_long_snapshot_cannot_make_the_table_grow_past_its_cap_and_conflicts_are_never_missed() {
    let cap = 6_400;
    let intents = Intents::with_entries_max(cap);
    for number in 1..=50_000_u64 {
        let key = number.to_le_bytes();
        let intent =
            intents.acquire(transaction(number), snapshot(number - 1), TREE, &key).expect("each key is new");
        intents.commit(&[intent], CommitTimestamp::new(number));
    }
    assert!(intents.len() <= cap + SHARDS * SWEEP_ENTRIES_MIN, "{} entries", intents.len());
    let old = transaction(60_000);
    for number in 1..=50_000_u64 {
        let outcome = intents.acquire(old, snapshot(number - 1), TREE, &number.to_le_bytes());
        assert!(is_conflict(outcome), "the commit {number} was forgotten");
    }
    intents
        .acquire(transaction(60_001), snapshot(50_000), TREE, b"a new key")
        .expect("a new snapshot meets no one");
}

/// The answers that the table must give, from a map that evicts nothing.
#[derive(Default)]
struct Model {
    keys: HashMap<u64, (Option<TransactionId>, u64)>,
}

impl Model {
    fn allows(&self, owner: TransactionId, snapshot: u64, key: u64) -> bool {
        match self.keys.get(&key) {
            Some((Some(holder), _)) => *holder == owner,
            Some((None, committed)) => *committed <= snapshot,
            None => true,
        }
    }
}

struct Running {
    id: TransactionId,
    snapshot: u64,
    intents: Vec<Intent>,
    keys: Vec<u64>,
}

/// Runs random transactions over few keys. `exact`: the cap is never reached, so that every answer equals the
/// model's; otherwise the table may refuse more than the model, and never less.
fn run_against_the_model(seed: u64, entries_max: usize, key_count: u64, exact: bool) {
    let intents = Intents::with_entries_max(entries_max);
    let mut model = Model::default();
    let random = SeededRandom::new(seed);
    let mut running: Vec<Running> = Vec::new();
    let mut now = 0_u64;
    for number in 1..40_000_u64 {
        if running.len() < 8 {
            running.push(Running { id: transaction(number), snapshot: now, intents: vec![], keys: vec![] });
        }
        let at = random.below(running.len() as u64) as usize;
        if random.below(4) > 0 {
            let one = &mut running[at];
            let key = random.below(key_count);
            let allowed = model.allows(one.id, one.snapshot, key);
            match intents.acquire(one.id, snapshot(one.snapshot), TREE, &key.to_le_bytes()) {
                Ok(intent) => {
                    assert!(allowed, "seed {seed}: a conflict on {key} was missed at step {number}");
                    model.keys.entry(key).or_insert((None, 0)).0 = Some(one.id);
                    one.intents.push(intent);
                    one.keys.push(key);
                }
                Err(_) => {
                    assert!(!exact || !allowed, "seed {seed}: a false conflict on {key} at step {number}")
                }
            }
            continue;
        }
        let one = running.swap_remove(at);
        let commits = random.below(2) == 0;
        if commits {
            now += 1;
            intents.commit(&one.intents, CommitTimestamp::new(now));
        } else {
            intents.release(&one.intents);
        }
        for key in one.keys {
            let entry = model.keys.get_mut(&key).expect("the transaction claimed it");
            *entry = (None, if commits { now } else { entry.1 });
        }
        let oldest = running.iter().map(|one| one.snapshot).min().unwrap_or(now);
        intents.set_oldest_snapshot(snapshot(oldest));
    }
}

#[test]
fn random_transactions_get_the_answers_of_a_table_that_forgets_nothing() {
    for seed in 0..4 {
        run_against_the_model(seed, 1 << 20, 200, true);
        run_against_the_model(seed, 1 << 20, 20_000, true);
    }
}

#[test]
fn a_table_with_almost_no_room_refuses_more_and_misses_nothing() {
    for seed in 0..4 {
        run_against_the_model(seed, 256, 5_000, false);
    }
}

#[test]
fn short_keys_of_neighbouring_trees_do_not_meet() {
    let mut seen = std::collections::HashSet::new();
    for tree in 1..20 {
        for number in 0..2_000_u64 {
            for length in [2, 3, 4, 8] {
                let key = &number.to_be_bytes()[8 - length..];
                assert!(seen.insert(fingerprint(TreeId::new(tree), key)), "tree {tree}, {key:?}");
            }
        }
    }
}

#[test]
fn widely_claimed_keys_are_refused_to_others_until_the_end_and_afterwards_to_older_snapshots() {
    let intents = Intents::new();
    let (large, small) = (TransactionId::new(1), TransactionId::new(2));
    let tree = TreeId::new(7);
    let mut claims = Claims::with_intents_max(large, snapshot(10), 3);
    for key in 0..5_000_u32 {
        claims.claim(&intents, tree, &key.to_be_bytes()).expect("nobody has it");
        claims.claim(&intents, tree, &key.to_be_bytes()).expect("its own does not conflict");
    }
    let conflicts = |owner, at: u64, keys: std::ops::Range<u32>| {
        let mut other = Claims::new(owner, snapshot(at));
        let refused = keys.filter(|key| other.claim(&intents, tree, &key.to_be_bytes()).is_err()).count();
        other.release(&intents);
        refused
    };
    assert_eq!(conflicts(small, 10, 0..5_000), 5_000);
    assert!(conflicts(small, 10, 10_000..15_000) < 400, "one in fifty without need");
    assert!(intents.len() < 10, "{} entries", intents.len());
    assert!(intents.wide_memory() > 0);
    claims.commit(&intents, CommitTimestamp::new(20));
    claims.release(&intents);
    assert_eq!(conflicts(small, 19, 0..5_000), 5_000, "a snapshot that does not see the commit");
    assert_eq!(conflicts(small, 20, 0..5_000), 0);
    assert!(intents.wide_memory() > 0, "a snapshot that does not see it may still come along");
    intents.set_oldest_snapshot(snapshot(20));
    assert_eq!(conflicts(small, 20, 0..5_000), 0);
    assert_eq!(intents.wide_memory(), 0);
}

#[test]
fn a_wide_claim_meets_what_others_have_claimed_or_committed_one_by_one_and_gives_its_own_back() {
    let intents = Intents::new();
    let (large, small) = (TransactionId::new(1), TransactionId::new(2));
    let tree = TreeId::new(7);
    let mut claims = Claims::with_intents_max(large, snapshot(10), 0);
    let owned = intents.acquire(small, snapshot(10), tree, b"owned").expect("nobody has it");
    assert!(claims.claim(&intents, tree, b"owned").is_err());
    intents.commit(&[owned], CommitTimestamp::new(11));
    assert!(claims.claim(&intents, tree, b"owned").is_err(), "it was updated after the snapshot");
    claims.claim(&intents, tree, b"free").expect("nobody has it");
    assert!(intents.acquire(small, snapshot(11), tree, b"free").is_err());
    claims.release(&intents);
    intents.acquire(small, snapshot(11), tree, b"free").expect("it was given back");
}

#[test]
fn no_key_of_a_tree_without_claims_is_taken_for_claimed_however_many_there_are_elsewhere() {
    let intents = Intents::new();
    let mut claims = Claims::with_intents_max(transaction(1), snapshot(0), 0);
    for key in 0..20_000_u32 {
        claims.claim(&intents, TREE, &key.to_be_bytes()).expect("nobody has it");
    }
    let other = TreeId::new(TREE.get() + 1);
    let is_claimed = |tree, key: u32| intents.is_claimed_by(transaction(1), tree, &key.to_be_bytes());
    assert!((0..20_000).all(|key| is_claimed(TREE, key)));
    assert!(!(0..20_000).any(|key| is_claimed(other, key)));
    claims.release(&intents);
}
