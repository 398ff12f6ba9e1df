//! The counts of the measured window, of one worker or of all.
//!
//! Done, missed, failed and retried are counted apart, and by kind where a workload has kinds. Only what was
//! done has a latency. Whether a miss counts as work is the workload's to say: a point query must find its
//! document, a LinkBench request for a deleted node is a good answer.

use super::script::{Note, Verdict};
use super::{Schedule, Statement, ThreadUsage};
use pando_measuring::histogram::{CoarseLatencies, Latencies};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Seconds of an interval where nothing else is said, as the original tools have them.
pub const INTERVAL_S: u32 = 10;
/// How many different messages about failures are kept.
const FAILURES_KEPT: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misses {
    /// All data must be there: one miss flags the run.
    AreFaults,
    /// They happen, count as work, and are reported.
    AreExpected,
}

#[derive(Clone, Debug)]
pub struct Tally {
    misses: Misses,
    /// Latencies of the units that were done: in an open loop from when they were to begin.
    pub latencies: Latencies,
    /// In an open loop: from when they did begin.
    pub service: Option<Latencies>,
    pub kinds: Vec<KindTally>,
    /// Each second of the window.
    pub seconds: Vec<Second>,
    /// Each interval of the window.
    pub intervals: Vec<IntervalTally>,
    /// How many seconds an interval has.
    interval_s: u32,
    /// Statements that did not find what they asked for.
    pub missed: u64,
    /// Units that were refused, answered wrongly, or not answered.
    pub failed: u64,
    /// Those of them that had no reply some time after the window: the server may hang.
    pub unanswered: u64,
    /// Statements that were done once more.
    pub retried: u64,
    /// The first failures' messages, each once.
    pub failures: Vec<String>,
    /// The usage of each worker's thread; one entry for one worker.
    pub threads: Vec<ThreadUsage>,
    /// Counts that only some scripts have.
    pub notes: Notes,
    /// Of an open loop: the schedule of each worker, with the units that nobody has begun.
    pub schedules: Vec<Schedule>,
    /// Units of an open loop that were due before the end of the run and had not begun then.
    pub not_begun: u64,
    /// How long the first of them had waited by then.
    pub longest_wait: Duration,
    /// How long the first of the units had been under way at the window's end that were answered after it.
    pub longest_unanswered: Duration,
    /// When the last client was over, if all were over before the window was.
    pub over_at: Option<Instant>,
}

/// Counts of scripts, by their names.
pub type Notes = BTreeMap<&'static str, u64>;

#[derive(Clone, Debug)]
pub struct KindTally {
    /// In an open loop the first statement of a unit counts from when the unit was to begin.
    pub latencies: Latencies,
    /// Those that did not find what they asked for.
    pub missed: u64,
    pub failed: u64,
    /// When the last one was over.
    pub last_at: Option<Instant>,
    /// In each second of the window: how many were done, and how long they took together.
    pub seconds: Vec<(u64, Duration)>,
}

/// The latencies of one interval: its percentiles are not to be had from those of its seconds.
#[derive(Clone, Debug, Default)]
pub struct IntervalTally {
    pub units: CoarseLatencies,
    /// By kind of statement; none where no kind was done yet.
    pub kinds: Vec<CoarseLatencies>,
}

impl IntervalTally {
    fn kind(&mut self, index: usize) -> &mut CoarseLatencies {
        if self.kinds.len() <= index {
            self.kinds.resize(index + 1, CoarseLatencies::default());
        }
        &mut self.kinds[index]
    }

    fn add(&mut self, other: &IntervalTally) {
        self.units.add(&other.units);
        other.kinds.iter().enumerate().for_each(|(index, theirs)| self.kind(index).add(theirs));
    }
}

/// The counts of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    pub operations: u64,
    pub units: u64,
    /// The sum of their latencies.
    pub latency_sum: Duration,
    pub latency_max: Duration,
}

impl Second {
    fn add(&mut self, other: &Second) {
        self.operations += other.operations;
        self.units += other.units;
        self.latency_sum += other.latency_sum;
        self.latency_max = self.latency_max.max(other.latency_max);
    }
}

#[derive(Clone, Debug)]
pub struct UnitEnd {
    /// The second of the window in which it ended.
    pub second: usize,
    pub latency: Duration,
    pub service: Duration,
    /// How it went.
    pub verdict: Verdict,
    pub operations: u32,
}

impl Tally {
    /// An empty tally of a workload with so many kinds of statements.
    pub fn new(kinds: usize, misses: Misses) -> Tally {
        let none = KindTally {
            latencies: Latencies::new(),
            missed: 0,
            failed: 0,
            last_at: None,
            seconds: Vec::new(),
        };
        Tally {
            misses,
            latencies: Latencies::new(),
            service: None,
            kinds: vec![none; kinds],
            seconds: Vec::new(),
            intervals: Vec::new(),
            interval_s: INTERVAL_S,
            missed: 0,
            failed: 0,
            unanswered: 0,
            retried: 0,
            failures: Vec::new(),
            threads: Vec::new(),
            notes: BTreeMap::new(),
            schedules: Vec::new(),
            not_begun: 0,
            longest_wait: Duration::ZERO,
            longest_unanswered: Duration::ZERO,
            over_at: None,
        }
    }

    /// The same, for an open loop, where latencies from the intended and from the real beginning differ.
    pub fn of_open_loop(kinds: usize, misses: Misses) -> Tally {
        Tally { service: Some(Latencies::new()), ..Tally::new(kinds, misses) }
    }

    /// The same, with intervals of so many seconds.
    pub fn by_intervals_of(self, seconds: u32) -> Tally {
        Tally { interval_s: seconds.max(1), ..self }
    }

    /// The interval that this second is in.
    fn interval(&mut self, second: usize) -> &mut IntervalTally {
        let place = second / self.interval_s as usize;
        if self.intervals.len() <= place {
            self.intervals.resize(place + 1, IntervalTally::default());
        }
        &mut self.intervals[place]
    }

    /// Counts a statement that has a kind and ended now, in this second of the window.
    pub fn statement(&mut self, statement: &Statement, second: usize, now: Instant) {
        let kind = &mut self.kinds[statement.kind.index()];
        kind.last_at = Some(now);
        let counts = match statement.verdict {
            Verdict::Done => true,
            Verdict::Missed => {
                kind.missed += 1;
                self.missed += 1;
                self.misses == Misses::AreExpected
            }
            Verdict::Failed(_) => {
                kind.failed += 1;
                false
            }
        };
        if counts {
            kind.latencies.record(statement.latency);
            if kind.seconds.len() <= second {
                kind.seconds.resize(second + 1, (0, Duration::ZERO));
            }
            kind.seconds[second].0 += 1;
            kind.seconds[second].1 += statement.latency;
            self.interval(second).kind(statement.kind.index()).record(statement.latency);
        }
    }

    /// Counts a unit that is over. A miss of a unit that is one statement with a kind was counted with that.
    pub fn unit(&mut self, unit: UnitEnd) {
        match unit.verdict {
            Verdict::Done => self.unit_done(&unit),
            Verdict::Missed => {
                if self.kinds.is_empty() {
                    self.missed += 1;
                }
                if self.misses == Misses::AreExpected {
                    self.unit_done(&unit);
                }
            }
            Verdict::Failed(message) => self.fail(message),
        }
    }

    /// A unit that is worth no operations, such as a query beside inserts, shows in its statements only.
    fn unit_done(&mut self, unit: &UnitEnd) {
        if unit.operations == 0 {
            return;
        }
        self.latencies.record(unit.latency);
        if let Some(service) = &mut self.service {
            service.record(unit.service);
        }
        if self.seconds.len() <= unit.second {
            self.seconds.resize(unit.second + 1, Second::default());
        }
        self.seconds[unit.second].add(&Second {
            operations: u64::from(unit.operations),
            units: 1,
            latency_sum: unit.latency,
            latency_max: unit.latency,
        });
        self.interval(unit.second).units.record(unit.latency);
    }

    /// Remembers a unit that was to begin at this time, and was under way at the end of the window.
    pub fn answered_late(&mut self, intended: Instant, window_end: Instant) {
        let waited = window_end.saturating_duration_since(intended);
        self.longest_unanswered = self.longest_unanswered.max(waited);
    }

    pub fn fail(&mut self, message: String) {
        self.failed += 1;
        self.keep_failure(message);
    }

    /// So many units had no reply when the grace after the window was over.
    pub fn fail_unanswered(&mut self, units: usize, grace: Duration) {
        if units > 0 {
            self.failed += units as u64;
            self.unanswered += units as u64;
            let seconds = grace.as_secs();
            self.keep_failure(format!("{units} units got no reply within {seconds} s after the window"));
        }
    }

    /// Keeps a message that is not there yet: one cause mostly makes thousands of equal messages.
    pub fn keep_failure(&mut self, message: String) {
        if self.failures.len() < FAILURES_KEPT && !self.failures.contains(&message) {
            self.failures.push(message);
        }
    }

    /// Counts the units that were due before the end of the run and have not begun. Only the whole run knows
    /// its end: the window's, or that of the last client whose work was over before.
    pub fn count_overdue(&mut self, end: Instant) {
        for mut schedule in self.schedules.drain(..) {
            let (count, first) = schedule.take_until(end);
            self.not_begun += count;
            let waited = first.map_or(Duration::ZERO, |first| end.duration_since(first));
            self.longest_wait = self.longest_wait.max(waited);
        }
    }

    /// Takes in what scripts counted besides, less what they counted outside of the window.
    pub fn note(&mut self, notes: &[Note], outside: &Notes) {
        add_notes(&mut self.notes, notes);
        for (name, count) in outside {
            let sum = self.notes.entry(name).or_default();
            *sum = sum.saturating_sub(*count);
        }
    }

    /// The statements of a kind that found what they asked for. Expected misses have a latency, too, and are
    /// counted apart.
    pub fn found(&self, kind: &KindTally) -> u64 {
        let missed = if self.misses == Misses::AreExpected { kind.missed } else { 0 };
        kind.latencies.count().saturating_sub(missed)
    }

    pub fn add(&mut self, other: Tally) {
        assert_eq!(self.kinds.len(), other.kinds.len(), "workers of one run have the same kinds");
        self.latencies.add(&other.latencies);
        if let Some(theirs) = &other.service {
            self.service.get_or_insert_with(Latencies::new).add(theirs);
        }
        for (sum, kind) in self.kinds.iter_mut().zip(&other.kinds) {
            sum.latencies.add(&kind.latencies);
            sum.missed += kind.missed;
            sum.failed += kind.failed;
            sum.last_at = sum.last_at.max(kind.last_at);
            sum.seconds.resize(sum.seconds.len().max(kind.seconds.len()), (0, Duration::ZERO));
            for (sum, second) in sum.seconds.iter_mut().zip(&kind.seconds) {
                *sum = (sum.0 + second.0, sum.1 + second.1);
            }
        }
        self.seconds.resize(self.seconds.len().max(other.seconds.len()), Second::default());
        self.seconds.iter_mut().zip(&other.seconds).for_each(|(sum, second)| sum.add(second));
        assert_eq!(self.interval_s, other.interval_s, "workers of one run have the same intervals");
        self.intervals.resize(self.intervals.len().max(other.intervals.len()), IntervalTally::default());
        self.intervals.iter_mut().zip(&other.intervals).for_each(|(sum, interval)| sum.add(interval));
        self.missed += other.missed;
        self.failed += other.failed;
        self.unanswered += other.unanswered;
        self.retried += other.retried;
        other.failures.into_iter().for_each(|message| self.keep_failure(message));
        self.threads.extend(other.threads);
        for (name, count) in other.notes {
            *self.notes.entry(name).or_default() += count;
        }
        self.schedules.extend(other.schedules);
        self.not_begun += other.not_begun;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.longest_unanswered = self.longest_unanswered.max(other.longest_unanswered);
    }

    pub fn done(&self) -> u64 {
        self.latencies.count()
    }

    /// Operations that were done: of a load the documents.
    pub fn operations(&self) -> u64 {
        self.seconds.iter().map(|second| second.operations).sum()
    }
}

/// Adds the notes of a script to a sum.
pub fn add_notes(sum: &mut Notes, notes: &[Note]) {
    for note in notes {
        *sum.entry(note.name).or_default() += note.count;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    const US: Duration = Duration::from_micros(5);

    fn end(second: usize, verdict: Verdict) -> UnitEnd {
        UnitEnd { second, latency: US, service: US, verdict, operations: 1 }
    }

    fn statement(verdict: Verdict) -> Statement {
        Statement { kind: Kind::new(1), latency: US, verdict }
    }

    #[test]
    fn misses_and_failures_are_counted_apart_from_work() {
        let mut tally = Tally::new(0, Misses::AreFaults);
        tally.unit(end(1, Verdict::Done));
        tally.unit(end(1, Verdict::Missed));
        tally.unit(end(1, Verdict::Failed("no".into())));
        assert_eq!((tally.done(), tally.missed, tally.failed), (1, 1, 1));
        assert_eq!(tally.seconds.iter().map(|second| second.operations).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn expected_misses_are_counted_and_are_work() {
        let mut tally = Tally::new(2, Misses::AreExpected);
        tally.statement(&statement(Verdict::Missed), 0, Instant::now());
        tally.unit(end(0, Verdict::Missed));
        assert_eq!((tally.done(), tally.missed, tally.kinds[1].missed), (1, 1, 1));
        assert_eq!(tally.kinds[1].latencies.count(), 1);
        tally.statement(&statement(Verdict::Done), 0, Instant::now());
        let kind = &tally.kinds[1];
        assert_eq!(
            (kind.latencies.count(), tally.found(kind), kind.missed),
            (2, 1, 1),
            "a miss has a latency"
        );
        assert_eq!(tally.kinds[0].latencies.count(), 0);
    }

    #[test]
    fn a_batch_is_one_unit_and_many_operations() {
        let mut tally = Tally::new(0, Misses::AreFaults);
        tally.unit(UnitEnd { operations: 1000, ..end(0, Verdict::Done) });
        assert_eq!((tally.done(), tally.operations()), (1, 1000));
    }

    #[test]
    fn an_open_loop_tells_waiting_from_service() {
        let mut tally = Tally::of_open_loop(0, Misses::AreFaults);
        tally.unit(UnitEnd { latency: US * 100, ..end(0, Verdict::Done) });
        let service = tally.service.expect("the loop is open");
        assert!(tally.latencies.max_us() > 490.0 && service.max_us() < 6.0);
    }

    #[test]
    fn workers_add_up_second_by_second() {
        let (mut a, mut b) = (Tally::new(0, Misses::AreFaults), Tally::new(0, Misses::AreFaults));
        a.unit(end(0, Verdict::Done));
        b.unit(end(0, Verdict::Done));
        b.unit(UnitEnd { latency: US * 2, ..end(2, Verdict::Done) });
        (0..9).for_each(|number| b.fail(format!("no {number}")));
        a.fail("no 3".into());
        b.note(&[Note { name: "links", count: 5 }], &Notes::from([("links", 2)]));
        a.note(&[Note { name: "links", count: 1 }], &Notes::new());
        a.add(b);
        assert_eq!(a.seconds.iter().map(|second| second.units).collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!((a.seconds[0].latency_sum, a.seconds[2].latency_max), (US * 2, US * 2));
        assert_eq!((a.failed, a.failures.len()), (10, FAILURES_KEPT));
        assert_eq!(a.failures[..2], ["no 3", "no 0"], "equal messages are kept once");
        assert_eq!(a.notes["links"], 4);
    }

    #[test]
    fn intervals_keep_their_latencies_apart_by_kind_and_add_up() {
        let new = || Tally::new(2, Misses::AreFaults).by_intervals_of(2);
        let (mut a, mut b) = (new(), new());
        a.unit(UnitEnd { latency: US, ..end(1, Verdict::Done) });
        b.unit(UnitEnd { latency: US * 100, ..end(2, Verdict::Done) });
        b.unit(UnitEnd { latency: US * 3, ..end(5, Verdict::Done) });
        b.statement(&statement(Verdict::Done), 5, Instant::now());
        a.statement(&statement(Verdict::Failed("no".into())), 5, Instant::now());
        a.add(b);
        let counts: Vec<u64> = a.intervals.iter().map(|interval| interval.units.count()).collect();
        assert_eq!(counts, [1, 1, 1], "seconds 0 and 1, 2 and 3, 4 and 5");
        assert!(a.intervals[1].units.quantile_us(0.5) > 490.0 && a.intervals[0].units.max_us() < 6.0);
        let kinds: Vec<u64> = a.intervals[2].kinds.iter().map(CoarseLatencies::count).collect();
        assert_eq!(kinds, [0, 1], "what failed has no latency");
    }
}
