//! Tests of the queues at intents.

use std::sync::Arc;

use super::*;
use crate::wait_signal::WaitSignal;

const TREE: TreeId = TreeId::new(3);

fn at(number: u64) -> SnapshotTimestamp {
    SnapshotTimestamp::new(number)
}

fn claims(owner: u64, snapshot: u64) -> Claims {
    Claims::new(TransactionId::new(owner), at(snapshot))
}

/// A statement that has lost a claim and waits.
struct Waiter {
    request: WaitRequest,
}

impl Waiter {
    /// Claims the key, loses, and enqueues.
    fn behind(intents: &Intents, claims: &mut Claims, key: &[u8], kept: Option<u64>) -> Waiter {
        let ticket = intents.new_ticket();
        Waiter::with_ticket(intents, claims, key, ticket, kept)
    }

    fn with_ticket(
        intents: &Intents,
        claims: &mut Claims,
        key: &[u8],
        ticket: Ticket,
        kept: Option<u64>,
    ) -> Waiter {
        let error = claims.claim(intents, TREE, key).expect_err("another one has it");
        let contested = Arc::clone(error.contested_key().expect("the key is told"));
        let kept_snapshot = kept.map(at);
        let signal = Arc::new(WaitSignal::default());
        let request = WaitRequest { contested, ticket, kept_snapshot, started_ms: 0, signal };
        intents.enqueue(&request);
        Waiter { request }
    }

    fn is_woken(&self) -> bool {
        self.request.signal.is_fired()
    }

    /// Claims the key with the ticket.
    fn claims_as(&self, intents: &Intents, claims: &mut Claims, key: &[u8]) -> bool {
        claims.present(Some(self.request.ticket));
        claims.claim(intents, TREE, key).is_ok()
    }

    fn leave(&self, intents: &Intents) {
        intents.leave(self.request.ticket, &self.request.contested);
    }
}

fn is_without_queues(intents: &Intents) -> bool {
    intents.shards.iter().all(|shard| shard.lock().queues.is_empty())
}

#[test]
fn a_released_key_goes_to_the_first_that_waits_and_to_no_newcomer() {
    let intents = Intents::new();
    let mut holder = claims(1, 0);
    holder.claim(&intents, TREE, b"a").expect("nobody has it");
    let first = Waiter::behind(&intents, &mut claims(2, 0), b"a", None);
    let second = Waiter::behind(&intents, &mut claims(3, 0), b"a", None);
    assert!(!first.is_woken() && !second.is_woken());
    holder.release(&intents);
    assert!(first.is_woken() && !second.is_woken());
    let newcomer = Waiter::behind(&intents, &mut claims(4, 0), b"a", None);
    assert_eq!(newcomer.request.contested.contest, Contest::Reserved);
    let mut again = claims(5, 0);
    assert!(first.claims_as(&intents, &mut again, b"a"));
    again.release(&intents);
    assert!(second.is_woken() && !newcomer.is_woken());
    second.leave(&intents);
    assert!(newcomer.is_woken(), "one that gives up hands the key over");
    newcomer.leave(&intents);
    newcomer.leave(&intents);
    assert!(is_without_queues(&intents) && intents.is_empty());
}

#[test]
fn after_a_commit_the_key_goes_over_when_the_transaction_ends_and_older_snapshots_have_lost() {
    let intents = Intents::new();
    let mut holder = claims(1, 0);
    holder.claim(&intents, TREE, b"a").expect("nobody has it");
    let kept = Waiter::behind(&intents, &mut claims(2, 0), b"a", Some(0));
    let renewed = Waiter::behind(&intents, &mut claims(3, 0), b"a", None);
    holder.commit(&intents, CommitTimestamp::new(5));
    assert!(!kept.is_woken() && !renewed.is_woken(), "no snapshot sees the commit yet");
    let overtaking = claims(4, 5).claim(&intents, TREE, b"a");
    assert!(overtaking.is_err(), "the key has a queue");
    holder.release(&intents);
    assert!(kept.is_woken() && renewed.is_woken());
    let mut lost = claims(2, 0);
    assert!(!kept.claims_as(&intents, &mut lost, b"a"));
    let mut again = claims(5, 5);
    assert!(renewed.claims_as(&intents, &mut again, b"a"));
    again.release(&intents);
    assert!(is_without_queues(&intents));
}

#[test]
fn one_that_enqueues_too_late_has_the_key_at_once() {
    let intents = Intents::new();
    let mut holder = claims(1, 0);
    holder.claim(&intents, TREE, b"a").expect("nobody has it");
    let error = claims(2, 0).claim(&intents, TREE, b"a").expect_err("it is held");
    holder.release(&intents);
    let signal = Arc::new(WaitSignal::default());
    let contested = Arc::clone(error.contested_key().expect("the key is told"));
    let ticket = intents.new_ticket();
    let request = WaitRequest { contested, ticket, kept_snapshot: None, started_ms: 0, signal };
    intents.enqueue(&request);
    assert!(request.signal.is_fired());
    assert!(claims(3, 0).claim(&intents, TREE, b"a").is_err(), "it is reserved");
    intents.leave(ticket, &request.contested);
    claims(3, 0).claim(&intents, TREE, b"a").expect("it is free again");
    assert!(is_without_queues(&intents));
}

#[test]
fn an_earlier_ticket_passes_a_later_one_and_keeps_its_place() {
    let intents = Intents::new();
    let early = intents.new_ticket();
    let mut holder = claims(1, 0);
    holder.claim(&intents, TREE, b"a").expect("nobody has it");
    let late = Waiter::behind(&intents, &mut claims(2, 0), b"a", None);
    let last = Waiter::behind(&intents, &mut claims(3, 0), b"a", None);
    holder.release(&intents);
    assert!(late.is_woken());
    let mut passing = claims(4, 0);
    passing.present(Some(early));
    passing.claim(&intents, TREE, b"a").expect("an earlier ticket may");
    let late_again = Waiter::with_ticket(&intents, &mut claims(5, 0), b"a", late.request.ticket, None);
    passing.release(&intents);
    assert!(late_again.is_woken() && !last.is_woken());
    late_again.leave(&intents);
    last.leave(&intents);
    assert!(is_without_queues(&intents));
}

#[test]
fn waits_for_wide_claims_and_ranges_end_with_their_holders() {
    for is_range in [false, true] {
        for is_commit in [false, true] {
            let intents = Intents::new();
            let mut holder = Claims::with_intents_max(TransactionId::new(1), at(0), 0);
            if is_range {
                let all = KeyRange::all();
                assert_eq!(holder.claim_range(&intents, TREE, &all).ok(), Some(true));
            } else {
                holder.claim(&intents, TREE, b"a").expect("nobody has it");
            }
            let waiter = Waiter::behind(&intents, &mut claims(2, 0), b"a", None);
            assert!(!waiter.is_woken());
            if is_commit {
                holder.commit(&intents, CommitTimestamp::new(3));
                assert!(!waiter.is_woken());
            }
            holder.release(&intents);
            assert!(waiter.is_woken());
            assert!(waiter.claims_as(&intents, &mut claims(3, 3), b"a"));
            assert!(is_without_queues(&intents));
        }
    }
}

#[test]
fn a_wide_holder_or_that_of_a_range_keeps_its_key_while_another_one_ends() {
    for is_range in [false, true] {
        let intents = Intents::new();
        let mut holder = Claims::with_intents_max(TransactionId::new(1), at(0), 0);
        if is_range {
            let point = KeyRange::point(b"a");
            assert_eq!(holder.claim_range(&intents, TREE, &point).ok(), Some(true));
        } else {
            holder.claim(&intents, TREE, b"a").expect("nobody has it");
        }
        let waiter = Waiter::behind(&intents, &mut claims(2, 0), b"a", None);
        let mut other = Claims::with_intents_max(TransactionId::new(3), at(0), 0);
        other.claim(&intents, TREE, b"b").expect("nobody has it");
        other.release(&intents);
        assert!(!waiter.is_woken(), "the key is still held");
        holder.release(&intents);
        assert!(waiter.is_woken());
        assert!(waiter.claims_as(&intents, &mut claims(4, 0), b"a"));
        assert!(is_without_queues(&intents));
    }
}

#[test]
fn a_statement_that_loses_its_reserved_key_to_a_holder_is_woken_again() {
    let intents = Intents::new();
    let mut holder = claims(1, 0);
    holder.claim(&intents, TREE, b"a").expect("nobody has it");
    let waiter = Waiter::behind(&intents, &mut claims(2, 0), b"a", None);
    holder.release(&intents);
    assert!(waiter.is_woken(), "the key is reserved");
    // A range takes no notice of queues.
    let mut ranged = claims(3, 0);
    assert_eq!(ranged.claim_range(&intents, TREE, &KeyRange::all()).ok(), Some(true));
    let again = Waiter::with_ticket(&intents, &mut claims(4, 0), b"a", waiter.request.ticket, None);
    assert!(!again.is_woken());
    ranged.release(&intents);
    assert!(again.is_woken());
    again.leave(&intents);
    assert!(is_without_queues(&intents));
}

#[test]
fn a_claim_of_a_range_that_fails_wakes_those_who_have_met_it() {
    let intents = Arc::new(Intents::new());
    let mut holder = claims(1, 0);
    holder.claim(&intents, TREE, b"x").expect("nobody has it");
    let shard_of = |key| intents.shard(fingerprint(TREE, key));
    assert!(!std::ptr::eq(shard_of(b"a"), shard_of(b"x")), "the test needs keys of two shards");
    // The claim of the range stops at this shard.
    let stop = shard_of(b"x").lock();
    let claimer = {
        let intents = Arc::clone(&intents);
        std::thread::spawn(move || claims(2, 0).claim_range(&intents, TREE, &KeyRange::all()).is_err())
    };
    while !intents.ranges.is_held(TransactionId::new(3), TREE, b"a") {
        std::thread::yield_now();
    }
    let waiter = Waiter::behind(&intents, &mut claims(3, 0), b"a", None);
    assert!(!waiter.is_woken());
    drop(stop);
    assert!(claimer.join().expect("it does not panic"), "another one holds a key of the range");
    assert!(waiter.is_woken());
    waiter.leave(&intents);
    assert!(is_without_queues(&intents));
}

#[test]
fn all_keys_of_a_transaction_are_free_when_the_first_waiter_is_woken() {
    for is_commit in [false, true] {
        let intents = Arc::new(Intents::new());
        let mut holder = Claims::with_intents_max(TransactionId::new(1), at(0), 2);
        for key in [b"a", b"b", b"c"] {
            holder.claim(&intents, TREE, key).expect("nobody has it");
        }
        let waiter = Waiter::behind(&intents, &mut claims(2, 0), b"a", None);
        let free = Arc::new(AtomicU64::new(0));
        let (seen, count) = (Arc::clone(&intents), Arc::clone(&free));
        waiter.request.signal.when_fired(move || {
            let mut others = claims(3, 3);
            let gets =
                [&b"b"[..], b"c"].into_iter().filter(|key| others.claim(&seen, TREE, key).is_ok()).count();
            count.store(gets as u64, Ordering::SeqCst);
        });
        if is_commit {
            holder.commit(&intents, CommitTimestamp::new(3));
        }
        holder.release(&intents);
        assert_eq!(free.load(Ordering::SeqCst), 2);
        waiter.leave(&intents);
        assert!(is_without_queues(&intents));
    }
}

#[test]
fn lists_show_who_waits_for_whom_and_which_keys_are_held() {
    let intents = Intents::new();
    let mut holder = claims(1, 0);
    holder.claim(&intents, TREE, b"a key of more than eleven bytes").expect("nobody has it");
    holder.claim(&intents, TREE, b"a").expect("nobody has it");
    let waiter = Waiter::behind(&intents, &mut claims(2, 0), b"a", None);
    let waits = intents.waits();
    assert_eq!(waits.len(), 1);
    assert_eq!(waits[0].0.contested.requester, TransactionId::new(2));
    assert_eq!(waits[0].1, Some(TransactionId::new(1)));
    let mut held = intents.held_keys(10);
    held.sort_by_key(|held| held.start.len());
    assert!(held[0].is_whole && held[0].start == b"a" && !held[1].is_whole);
    assert_eq!(intents.held_keys(1).len(), 1);
    waiter.leave(&intents);
    assert!(intents.waits().is_empty());
}
