//! Queues of the statements that wait for a claimed key, first come first served.
//!
//! # Terms
//! - *Contested key* ([`Contested`]): the key of a lost claim.
//! - *Ticket* ([`Ticket`]): the place of a statement in the order of arrival. The statement keeps it until it
//!   ends, also where it waits for several keys one after the other.
//! - *Reserved* key: a free one that was handed over to the holder of a ticket, and not claimed yet.
//!
//! # Algorithm
//! 1. The loser of a claim rolls back and enqueues ([`Intents::enqueue`]). That looks at the key once more
//!    under the lock of its shard. A key that has become free is reserved for the loser at once.
//! 2. The holder of the key ends. The key is reserved for the earliest ticket of the queue, and the signal of
//!    its waiter fires. After a commit this happens only when new snapshots see the commit, because an older
//!    snapshot would lose to it. Waiters whose snapshot stays have lost: their signals fire, too.
//! 3. The waiter runs again, and claims the key with its ticket.
//! 4. At its end, or before it waits for another key, it leaves ([`Intents::leave`]). A key that is still
//!    reserved for it goes to the next one.
//!
//! # Invariants
//! - A key that has a queue is claimed with a ticket only, so no newcomer overtakes those who wait.
//! - An earlier ticket may claim a key that is reserved for a later one. So the earliest ticket waits only
//!   for transactions that run, never for others that wait.
//! - A shard without queues costs a claim one look at an empty list.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;

use pando_environment::sync::atomic::Ordering;

use super::{Intent, Intents, RangeClaims, Shard};
use crate::contest::Contested;
use crate::identifiers::{SnapshotTimestamp, TransactionId, TreeId};
use crate::wait_signal::WaitSignal;

/// The place of a statement in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(NonZeroU64);

/// A wait to be enqueued.
#[derive(Clone, Debug)]
pub struct WaitRequest {
    /// The key.
    pub contested: Arc<Contested>,
    /// The place of the statement.
    pub ticket: Ticket,
    /// The snapshot with which the statement runs again, unless it takes a newer one.
    pub kept_snapshot: Option<SnapshotTimestamp>,
    /// Milliseconds since 1970, for lists of waits.
    pub started_ms: i64,
    /// Fired when the key is reserved for the statement, or when the statement has lost.
    pub signal: Arc<WaitSignal>,
}

/// The queue of one key.
#[derive(Debug)]
pub(super) struct Queue {
    fingerprint: u64,
    reserved: Option<Ticket>,
    /// The earliest ticket first.
    waiters: VecDeque<WaitRequest>,
}

/// A key that a live transaction has claimed.
#[derive(Clone, Debug)]
pub struct HeldKey {
    /// The transaction.
    pub owner: TransactionId,
    /// The tree of the key.
    pub tree: TreeId,
    /// The first bytes of the key.
    pub start: Vec<u8>,
    /// Whether these are all.
    pub is_whole: bool,
}

impl Intents {
    /// A ticket behind all others.
    pub fn new_ticket(&self) -> Ticket {
        let number = self.last_ticket.fetch_add(1, Ordering::Relaxed) + 1;
        Ticket(NonZeroU64::new(number).expect("tickets are numbered from one"))
    }

    /// Has a statement wait for a contested key, unless the key is free: then it is reserved for the
    /// statement, and its signal fires at once. A statement that waits for this key already keeps its place.
    pub fn enqueue(&self, request: &WaitRequest) {
        let contested = &request.contested;
        let mut shard = self.shard(contested.fingerprint).lock();
        let is_held = shard.is_held(contested, &self.ranges);
        let queue = shard.queue_of(contested.fingerprint);
        queue.waiters.retain(|waiter| waiter.ticket != request.ticket);
        let is_mine = match queue.reserved {
            Some(reserved) => request.ticket <= reserved,
            None => queue.waiters.is_empty(),
        };
        if is_mine && !is_held {
            queue.reserved = Some(request.ticket);
            drop(shard);
            return request.signal.fire();
        }
        if queue.reserved == Some(request.ticket) {
            queue.reserved = None;
        }
        if queue.reserved == Some(request.ticket) {
            // A range was claimed meanwhile, or the key was never free. The next end hands it over again.
            queue.reserved = None;
        }
        let place = queue.waiters.partition_point(|waiter| waiter.ticket < request.ticket);
        queue.waiters.insert(place, request.clone());
    }

    /// Gives up the place of a ticket in the queue of a key. If the key is reserved for it, the next one gets
    /// the key. Safe to repeat.
    pub fn leave(&self, ticket: Ticket, contested: &Contested) {
        let fingerprint = contested.fingerprint;
        let signals = {
            let mut shard = self.shard(fingerprint).lock();
            let Some(queue) = shard.queues.iter_mut().find(|queue| queue.fingerprint == fingerprint) else {
                return;
            };
            queue.waiters.retain(|waiter| waiter.ticket != ticket);
            let had_key = queue.reserved == Some(ticket);
            if had_key {
                queue.reserved = None;
            }
            if had_key || queue.waiters.is_empty() {
                shard.hand_over(fingerprint, &self.ranges)
            } else {
                Vec::new()
            }
        };
        fire(signals);
    }

    /// Hands the keys of a transaction that has ended over to those who wait for them. A commit calls it when
    /// new snapshots see it.
    pub(super) fn hand_over(&self, intents: &[Intent]) {
        for intent in intents {
            let mut shard = self.shard(intent.fingerprint).lock();
            let signals = shard.hand_over(intent.fingerprint, &self.ranges);
            drop(shard);
            fire(signals);
        }
    }

    /// Hands all free keys over: a transaction with wide claims or ranges has ended, or a claim of a range
    /// has failed.
    pub(super) fn hand_over_all(&self) {
        for shard in &self.shards {
            let mut signals = Vec::new();
            let mut shard = shard.lock();
            let queued: Vec<u64> = shard.queues.iter().map(|queue| queue.fingerprint).collect();
            for fingerprint in queued {
                signals.extend(shard.hand_over(fingerprint, &self.ranges));
            }
            drop(shard);
            fire(signals);
        }
    }

    /// The statements that wait, with the transaction that has the key of each at the moment.
    pub fn waits(&self) -> Vec<(WaitRequest, Option<TransactionId>)> {
        let mut waits = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            for queue in &shard.queues {
                let slot = shard.table.find(queue.fingerprint, |slot| slot.fingerprint == queue.fingerprint);
                let holder = slot.and_then(|slot| slot.owner);
                waits.extend(queue.waiters.iter().map(|waiter| (waiter.clone(), holder)));
            }
        }
        waits.sort_by_key(|(wait, _)| wait.ticket);
        waits
    }

    /// The keys that live transactions have claimed one by one, at most so many.
    pub fn held_keys(&self, keys_max: usize) -> Vec<HeldKey> {
        let mut held = Vec::new();
        for shard in &self.shards {
            for slot in shard.lock().table.iter() {
                if held.len() == keys_max {
                    return held;
                }
                if let Some(owner) = slot.owner {
                    let (start, is_whole) = slot.key.bytes();
                    held.push(HeldKey { owner, tree: slot.key.tree(), start: start.to_vec(), is_whole });
                }
            }
        }
        held
    }
}

/// Fires signals outside of the locks, because each may call back into a network thread.
pub(super) fn fire(signals: Vec<Arc<WaitSignal>>) {
    signals.into_iter().for_each(|signal| signal.fire());
}

impl Shard {
    /// Whether another transaction has the key at the moment: by itself, widely, or in a range.
    fn is_held(&self, contested: &Contested, ranges: &RangeClaims) -> bool {
        let is_other = |owner: Option<TransactionId>| owner.is_some_and(|owner| owner != contested.requester);
        let slot = self.table.find(contested.fingerprint, |slot| slot.fingerprint == contested.fingerprint);
        slot.is_some_and(|slot| is_other(slot.owner))
            || self
                .wide
                .iter()
                .any(|wide| is_other(wide.owner) && wide.keys.may_contain(contested.fingerprint))
            || ranges.is_held(contested.requester, contested.tree, &contested.key)
    }

    fn queue_of(&mut self, fingerprint: u64) -> &mut Queue {
        let at = self.queues.iter().position(|queue| queue.fingerprint == fingerprint).unwrap_or_else(|| {
            self.queues.push(Queue { fingerprint, reserved: None, waiters: VecDeque::new() });
            self.queues.len() - 1
        });
        &mut self.queues[at]
    }

    /// Whether a key waits for statements that came earlier than the holder of this ticket.
    pub(super) fn is_reserved(&self, fingerprint: u64, ticket: Option<Ticket>) -> bool {
        let queue = self.queues.iter().find(|queue| queue.fingerprint == fingerprint);
        queue.is_some_and(|queue| match (queue.reserved, ticket) {
            (Some(reserved), Some(ticket)) => ticket > reserved,
            _ => true,
        })
    }

    /// The key was claimed by the one for whom it was reserved, or by an earlier one.
    #[cold]
    pub(super) fn end_reservation(&mut self, fingerprint: u64) {
        if let Some(at) = self.queues.iter().position(|queue| queue.fingerprint == fingerprint) {
            self.queues[at].reserved = None;
            if self.queues[at].waiters.is_empty() {
                self.queues.swap_remove(at);
            }
        }
    }

    /// Reserves a free key for the first of its queue. Gives the signals to fire.
    #[cold]
    pub(super) fn hand_over(&mut self, fingerprint: u64, ranges: &RangeClaims) -> Vec<Arc<WaitSignal>> {
        let Some(at) = self.queues.iter().position(|queue| queue.fingerprint == fingerprint) else {
            return Vec::new();
        };
        let queue = &self.queues[at];
        if queue.reserved.is_some() {
            return Vec::new();
        }
        let Some(first) = queue.waiters.front() else {
            self.queues.swap_remove(at);
            return Vec::new();
        };
        if self.is_held(&first.contested, ranges) {
            return Vec::new();
        }
        let slot = self.table.find(fingerprint, |slot| slot.fingerprint == fingerprint);
        let queue = &mut self.queues[at];
        let mut signals = Vec::new();
        if let Some(slot) = slot {
            queue.waiters.retain(|waiter| {
                let has_lost = waiter.kept_snapshot.is_some_and(|kept| !kept.sees(slot.committed));
                if has_lost {
                    signals.push(Arc::clone(&waiter.signal));
                }
                !has_lost
            });
        }
        match queue.waiters.pop_front() {
            Some(first) => {
                queue.reserved = Some(first.ticket);
                signals.push(first.signal);
            }
            None => drop(self.queues.swap_remove(at)),
        }
        signals
    }
}
