//! The keeper of partitions that follow the time: it visits the collections with `partitionBy`, has new
//! partitions made ahead, and those that have expired dropped (`pando_catalog`, `partition_keeping`).
//!
//! It runs on the task of the TTL monitor, between two removals of that.
//!
//! # A clock that jumps
//! A partition that is dropped because the clock was wrong is lost. So drops are held until the clock has
//! been *steady* for the length of a slot, ten minutes at most: since the start, and since the time of day
//! has last gone away from the monotonic clock. Partitions are made all the same, since that loses nothing.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pando_catalog::{Caller, Collection, Drops, KeptPartitions, Namespace, Operation};
use pando_environment::Monotonic;

use crate::CommandError;
use crate::shared_state::SharedState;
use crate::write_gate::WriterKind;

/// The longest time for which drops are held.
const HOLD_MAX: Duration = Duration::from_secs(600);

/// The difference of the two clocks that is a jump.
const JUMP_MIN: Duration = Duration::from_secs(30);

/// The longest and the shortest time between two visits. There are four in the time of a slot.
const VISIT_PERIOD_MAX: Duration = Duration::from_secs(10);
const VISIT_PERIOD_MIN: Duration = Duration::from_secs(1);

/// See the module's head.
pub(crate) struct PartitionKeeper {
    clock: SteadyClock,
    next_visit: Monotonic,
    /// The collections of which the log has told that they lack a bound.
    told: BTreeSet<String>,
}

/// The time since which the time of day goes with the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct SteadyClock {
    seen: Monotonic,
    seen_ms: i64,
    since: Monotonic,
}

impl SteadyClock {
    fn new(now: Monotonic, now_ms: i64) -> SteadyClock {
        SteadyClock { seen: now, seen_ms: now_ms, since: now }
    }

    /// Looks at both clocks. Gives the milliseconds of a jump.
    fn observe(&mut self, now: Monotonic, now_ms: i64) -> Option<i64> {
        let passed_ms = i64::try_from(now.since(self.seen).as_millis()).unwrap_or(i64::MAX);
        let jump_ms = now_ms.saturating_sub(self.seen_ms).saturating_sub(passed_ms);
        (self.seen, self.seen_ms) = (now, now_ms);
        if u128::from(jump_ms.unsigned_abs()) < JUMP_MIN.as_millis() {
            return None;
        }
        self.since = now;
        Some(jump_ms)
    }

    /// Whether the clock is steady for long enough to drop partitions of this length.
    fn allows_drops(&self, every_ms: i64) -> bool {
        let every = Duration::from_millis(every_ms.unsigned_abs());
        self.seen.since(self.since) >= every.min(HOLD_MAX)
    }
}

impl PartitionKeeper {
    pub fn new(shared: &SharedState) -> PartitionKeeper {
        let now = shared.environment.clock().monotonic();
        PartitionKeeper {
            clock: SteadyClock::new(now, shared.now_ms()),
            next_visit: now,
            told: BTreeSet::new(),
        }
    }

    /// Whether documents of a collection may be removed because the time has come by its schedule.
    pub fn may_drop(&self, shared: &SharedState, collection: &Collection) -> bool {
        let is_steady = |every_ms| self.clock.allows_drops(every_ms);
        shared.ttl.is_enabled() && collection.schedule().is_none_or(|schedule| is_steady(schedule.every_ms()))
    }

    /// Visits all collections, if it is time to or one of them has a new schedule.
    pub fn visit(&mut self, shared: &SharedState, is_stopping: &AtomicBool) {
        let now = shared.environment.clock().monotonic();
        let has_new_schedule = shared.ttl.take_new_schedule();
        if now < self.next_visit && !has_new_schedule {
            return;
        }
        if let Some(jump_ms) = self.clock.observe(now, shared.now_ms()) {
            tracing::warn!(
                seconds = jump_ms / 1000,
                "the clock of this machine has jumped; partitions by time are dropped again when it has been steady for \
                 ten minutes"
            );
        }
        let mut period = VISIT_PERIOD_MAX;
        for collection in scheduled(shared) {
            if is_stopping.load(Ordering::SeqCst) {
                return;
            }
            let every_ms = collection.schedule().map_or(i64::MAX, |schedule| schedule.every_ms());
            period = period.min(Duration::from_millis(every_ms.unsigned_abs() / 4)).max(VISIT_PERIOD_MIN);
            self.keep(shared, &collection, is_stopping);
        }
        self.next_visit = shared.environment.clock().monotonic().plus(period);
    }

    fn keep(&mut self, shared: &SharedState, collection: &Collection, is_stopping: &AtomicBool) {
        let namespace = collection.namespace();
        let drops = if self.may_drop(shared, collection) { Drops::Due } else { Drops::Held };
        match catch_unwind(AssertUnwindSafe(|| try_keep(shared, collection, drops, is_stopping))) {
            Ok(Ok(kept)) => self.tell(namespace, &kept),
            Ok(Err(CommandError::Failed(failure))) if failure.code.is_interruption() => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, %namespace, "cannot make or drop partitions by time; trying again soon");
            }
            Err(_) => tracing::error!(
                %namespace,
                "making or dropping partitions by time has panicked, and runs again later; report this defect with the \
                 log line of the panic"
            ),
        }
    }

    fn tell(&mut self, namespace: &Namespace, kept: &KeptPartitions) {
        if !kept.dropped.ids.is_empty() {
            let (partitions, documents) = (kept.dropped.ids.len(), kept.dropped.documents);
            tracing::info!(%namespace, partitions, documents, "dropped partitions whose documents have expired");
        }
        if kept.is_busy {
            return;
        }
        let name = namespace.to_string();
        if kept.ends_left == 0 {
            self.told.remove(&name);
        } else if self.told.insert(name) {
            tracing::warn!(
                %namespace,
                "a partition of this collection becomes longer than 'partitionBy.every': there are documents from the \
                 future, or as many partitions as there can be; its documents are removed one by one when they expire"
            );
        }
    }
}

fn try_keep(
    shared: &SharedState,
    collection: &Collection,
    drops: Drops,
    is_stopping: &AtomicBool,
) -> Result<KeptPartitions, CommandError> {
    let now_ms = shared.now_ms();
    if !collection.needs_keeping(now_ms, drops)? {
        return Ok(KeptPartitions::default());
    }
    let clock = shared.environment.clock();
    let operation = Arc::new(Operation::new(clock));
    // Closing the store interrupts it.
    let _entered = shared.running.enter_background("PartitionKeeper", &operation);
    if is_stopping.load(Ordering::SeqCst) {
        return Ok(KeptPartitions { is_busy: true, ..KeptPartitions::default() });
    }
    let _pass = shared.write_gate.enter(WriterKind::Alone, Caller::may_block(&operation), &**clock)?;
    let kept = shared.catalog.keep_partitions(collection.namespace(), (now_ms, drops), &operation)?;
    shared.ttl.count_removed(kept.dropped.documents);
    Ok(kept)
}

/// The collections of the store whose partitions follow the time.
fn scheduled(shared: &SharedState) -> Vec<Arc<Collection>> {
    let catalog = &shared.catalog;
    let all = catalog.databases().into_iter().flat_map(|database| catalog.collections(&database));
    all.filter(|collection| collection.schedule().is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::default().plus(Duration::from_secs(seconds))
    }

    #[test]
    fn a_clock_is_steady_until_it_jumps_in_either_direction() {
        let mut clock = SteadyClock::new(at(0), 1_000_000);
        assert!(!clock.allows_drops(60_000));
        assert_eq!(clock.observe(at(60), 1_061_000), None);
        assert!(clock.allows_drops(60_000) && !clock.allows_drops(61_000));
        assert_eq!(clock.observe(at(600), 1_601_000), None);
        assert!(clock.allows_drops(i64::MAX));
        assert_eq!(clock.observe(at(610), 90_000_000), Some(88_389_000));
        assert!(!clock.allows_drops(1_000));
        assert_eq!(clock.observe(at(611), 90_001_000), None);
        assert!(clock.allows_drops(1_000));
        assert_eq!(clock.observe(at(612), 1_613_000), Some(-88_389_000));
        assert!(!clock.allows_drops(1_000));
    }
}
