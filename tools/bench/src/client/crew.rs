//! Clients with a thread each, for tasks that wait for their replies.
//!
//! In a closed loop each thread does one unit after the other. In an open loop all threads take units from
//! one schedule. A free thread takes the next unit and sleeps until it is due. If it is due already, its
//! latency counts from that moment.
//!
//! Threads share a few tallies. A tally with histograms for ten kinds takes megabytes, and a unit of a task
//! costs many times the lock.

use super::schedule::Schedule;
use super::script::{Note, Turn, Verdict};
use super::tally::{Notes, UnitEnd, add_notes};
use super::task::{ClientState, Performed};
use super::worker::{Orders, Window};
use super::{Tally, Task, ThreadUsage};
use crate::error::BenchError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long to wait, after the window, for clients that wait for a reply. A batch may take long; a server
/// that hangs takes for ever.
pub const GRACE: Duration = Duration::from_secs(60);
/// How many tallies there are at most.
const TALLIES: usize = 8;

/// The state that the threads of a run share.
pub struct Crew {
    orders: Orders,
    tallies: Vec<Mutex<Tally>>,
    schedule: Option<Mutex<Schedule>>,
    /// Threads that have begun, to give each its tally.
    begun: AtomicUsize,
    /// Threads that ended before the window did.
    over: AtomicUsize,
    clients: usize,
    /// Operations that were done, for whoever prints progress.
    done: Arc<AtomicU64>,
}

impl Crew {
    pub fn new(orders: Orders, clients: usize) -> Crew {
        let tallies = (0..clients.clamp(1, TALLIES)).map(|_| Mutex::new(orders.tally())).collect();
        let schedule = orders.pace.schedule(orders.window.start, 0, 1).map(Mutex::new);
        Crew {
            orders,
            tallies,
            schedule,
            begun: AtomicUsize::new(0),
            over: AtomicUsize::new(0),
            clients,
            done: Arc::default(),
        }
    }

    pub fn done(&self) -> Arc<AtomicU64> {
        self.done.clone()
    }

    pub fn follow(&self, mut task: Box<dyn Task>) -> Result<(), BenchError> {
        let place = self.begun.fetch_add(1, Ordering::Relaxed);
        let tally = &self.tallies[place % self.tallies.len()];
        let window = self.orders.window;
        let mut usage_before = Some(ThreadUsage::now()?);
        let mut measuring = false;
        let mut notes_outside = Notes::new();
        let ended = loop {
            if !measuring && Instant::now() >= window.from {
                usage_before = Some(ThreadUsage::now()?);
                measuring = true;
            }
            if Instant::now() >= window.to() {
                break None;
            }
            if task.prepare() == Turn::Over {
                break Some(());
            }
            let Some(intended) = self.next_beginning(window) else { break None };
            let notes_before = task.notes();
            let begun = Instant::now();
            let performed = task.perform();
            let client = performed.client;
            if measuring && performed.verdict == Verdict::Done {
                self.done.fetch_add(u64::from(performed.operations), Ordering::Relaxed);
            }
            let counted = count(&mut lock(tally), window, intended.unwrap_or(begun), begun, performed);
            if counted == Counted::Yes {
                task.counted();
            }
            // The end of a client is told whenever it happens.
            if client == ClientState::Out {
                break Some(());
            }
            if counted == Counted::No {
                add_notes(&mut notes_outside, &since(task.notes(), &notes_before));
            }
        };
        let mut tally = lock(tally);
        if let Some(before) = usage_before.take() {
            tally.threads.push(ThreadUsage::now()?.since(&before));
        }
        tally.note(&task.notes(), &notes_outside);
        if ended.is_some() && self.over.fetch_add(1, Ordering::AcqRel) + 1 == self.clients {
            tally.over_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Waits until the next unit is due. `Some(None)` in a closed loop; nothing if it is not due in the
    /// window.
    fn next_beginning(&self, window: Window) -> Option<Option<Instant>> {
        let Some(schedule) = &self.schedule else { return Some(None) };
        let due = {
            let mut schedule = schedule.lock().unwrap_or_else(PoisonError::into_inner);
            if schedule.due() >= window.to() {
                return None;
            }
            schedule.take()
        };
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        Some(Some(due))
    }

    /// The counts of all threads. `stuck` threads still wait for a reply and are given up: each is a failure.
    pub fn finish(&self, stuck: usize) -> Tally {
        let mut sum = self.orders.tally();
        for tally in &self.tallies {
            let tally = lock(tally).clone();
            sum.over_at = sum.over_at.max(tally.over_at);
            sum.add(tally);
        }
        sum.fail_unanswered(stuck, GRACE);
        let schedule = self.schedule.as_ref();
        sum.schedules
            .extend(schedule.map(|schedule| schedule.lock().unwrap_or_else(PoisonError::into_inner).clone()));
        sum
    }
}

/// A tally is whole even if a thread panicked while it held it: that run ends with an error anyway.
fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a unit was counted, because it ended in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Yes,
    No,
}

/// What a task counted since it had these notes.
fn since(notes: Vec<Note>, before: &[Note]) -> Vec<Note> {
    let count_before = |name| before.iter().find(|note| note.name == name).map_or(0, |note| note.count);
    let difference = |note: Note| Note { count: note.count.saturating_sub(count_before(note.name)), ..note };
    notes.into_iter().map(difference).collect()
}

/// Counts a unit that ended now, if that is in the window. A lost connection counts whenever it happens.
fn count(
    tally: &mut Tally,
    window: Window,
    intended: Instant,
    begun: Instant,
    mut performed: Performed,
) -> Counted {
    let now = Instant::now();
    if now < window.from || now >= window.to() {
        if now >= window.to() {
            tally.answered_late(intended, window.to());
        }
        if let (ClientState::Out, Verdict::Failed(message)) = (performed.client, performed.verdict) {
            tally.fail(message);
        }
        return Counted::No;
    }
    let second = usize::try_from(now.duration_since(window.from).as_secs()).unwrap_or(usize::MAX);
    if let Some(first) = performed.statements.first_mut() {
        // It has waited with its unit.
        first.latency += begun.saturating_duration_since(intended);
    }
    for statement in &performed.statements {
        tally.statement(statement, second, now);
    }
    tally.retried += performed.retries;
    tally.unit(UnitEnd {
        second,
        latency: now.duration_since(intended),
        service: now.duration_since(begun),
        verdict: performed.verdict,
        operations: performed.operations,
    });
    Counted::Yes
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Misses, Statement};
    use super::*;

    #[test]
    fn the_first_statement_of_a_unit_counts_from_when_the_unit_was_due() {
        let now = Instant::now();
        let before = |ms| now.checked_sub(Duration::from_millis(ms)).expect("the machine runs for longer");
        let window = Window { start: before(1000), from: before(1000), seconds: 60 };
        let statement = |kind| Statement {
            kind: Kind::new(kind),
            latency: Duration::from_millis(5),
            verdict: Verdict::Done,
        };
        let performed = Performed {
            statements: vec![statement(0), statement(1)],
            verdict: Verdict::Done,
            operations: 1,
            retries: 0,
            client: ClientState::GoesOn,
        };
        let mut tally = Tally::of_open_loop(2, Misses::AreFaults);
        assert_eq!(count(&mut tally, window, before(500), before(10), performed), Counted::Yes);
        let longest = |kind: usize| tally.kinds[kind].latencies.max_us();
        assert!((490_000.0..500_000.0).contains(&longest(0)), "{}", longest(0));
        assert!(longest(1) < 6_000.0, "{}", longest(1));
    }
}
