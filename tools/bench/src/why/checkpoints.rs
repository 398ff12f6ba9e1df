//! The checkpoints of the server during a run, as the server itself reports them, and the work that it had
//! put off.
//!
//! # Terms
//! - *Checkpoint*: the time in which the server brings its data files up to date.
//! - *Behind*: acknowledged bytes that are not in the data files yet. A checkpoint or a merge still has to
//!   write them.
//! - *Background*: bytes that the server wrote besides its log, by checkpoints, flushes and merges.
//!
//! # Steps
//! 1. A [`Teller`] asks a server over a connection of its own. Each protocol has one.
//! 2. A [`Watch`] lets it ask twice a second, on a thread of its own: a server that stands still must not
//!    delay the tool's counters.
//! 3. [`Watched`] turns the answers into checkpoints and seconds of a window. A server counts a checkpoint
//!    when it is over, with the time that it took, from which the beginning follows. Both are right to half a
//!    second, and to the length of an answer.
//!
//! [`words`] has the names of the servers' numbers, [`force`] asks for a checkpoint. A server that does not
//! count its checkpoints has none here. That does not mean that it wrote none.

mod force;
mod words;

pub use force::{cannot_be_forced, force};

use crate::client::Session;
use crate::error::{BenchError, no_resource};
use crate::target::Target;
use pando_document::{Document, doc};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a server is asked.
const EVERY: Duration = Duration::from_millis(500);
/// How long an answer is waited for when the run is over.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// A server's report of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Told {
    /// Its checkpoints; nothing if it does not count them.
    pub checkpoints: Option<Counted>,
    /// See *behind*, in bytes.
    pub behind: Option<u64>,
    /// See *background*: bytes since the server began.
    pub background: Option<u64>,
}

/// Checkpoints so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// How many are over.
    pub over: u64,
    /// How long these took in all, in seconds.
    pub seconds: f64,
    /// Whether one is under way.
    pub is_running: bool,
}

impl Told {
    fn is_nothing(&self) -> bool {
        *self == Told::default()
    }
}

/// Somebody who can ask a server.
pub trait Teller: Send {
    /// The report of now.
    fn ask(&mut self) -> Result<Told, BenchError>;
}

#[derive(Debug)]
pub(crate) struct MongoTeller {
    session: Session,
    /// With every part left out that is not needed: the rest costs the server more than these.
    command: Document,
}

impl MongoTeller {
    /// Connects, and looks which parts the server's status has.
    pub fn open(target: &Target) -> Result<MongoTeller, BenchError> {
        let mut session = Session::open(target.address())?;
        let whole = session.command("admin", doc! { "serverStatus": 1 })?;
        let mut command = doc! { "serverStatus": 1 };
        for name in whole.names().filter(|name| !words::PARTS.contains(name) && *name != "ok") {
            command.push(name, 0);
        }
        Ok(MongoTeller { session, command })
    }
}

impl Teller for MongoTeller {
    fn ask(&mut self) -> Result<Told, BenchError> {
        let status = self.session.command("admin", self.command.clone())?;
        Ok(words::of_server_status(&status))
    }
}

/// Asks until it is told to end.
pub struct Watch {
    end: Sender<()>,
    thread: JoinHandle<()>,
    told: Arc<Mutex<Vec<(Instant, Told)>>>,
}

impl Watch {
    /// Begins to ask; nothing if the server says nothing of this.
    pub fn start(mut teller: Box<dyn Teller>) -> Result<Option<Watch>, BenchError> {
        let first = teller.ask()?;
        if first.is_nothing() {
            return Ok(None);
        }
        let (end, ended) = channel();
        // The first second of the run begins with this report.
        let told = Arc::new(Mutex::new(vec![(Instant::now(), first)]));
        let list = told.clone();
        let ask = move || {
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                // One that is refused or lost is not asked again: the run itself will show why.
                let Ok(told) = teller.ask() else { return };
                list.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), told));
            }
            // The end of the run.
            if let Ok(told) = teller.ask() {
                list.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), told));
            }
        };
        let thread = std::thread::Builder::new().name("checkpoints".to_owned()).spawn(ask);
        let thread = thread.map_err(no_resource("a thread"))?;
        Ok(Some(Watch { end, thread, told }))
    }

    /// Ends; gives what was told. Who waits for a server that hangs is left to wait.
    pub fn finish(self) -> Watched {
        drop(self.end);
        let began = Instant::now();
        while !self.thread.is_finished() && began.elapsed() < WAIT_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
        let told = std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner));
        Watched { told }
    }
}

/// A server's reports during a run.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    told: Vec<(Instant, Told)>,
}

/// A checkpoint, in seconds of a window: it may have begun before it, and may go on after it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Checkpoint {
    /// When it began.
    pub from_s: f64,
    /// When it was over, or when the watching was.
    pub to_s: f64,
}

impl Checkpoint {
    /// How long it took.
    pub fn seconds(&self) -> f64 {
        self.to_s - self.from_s
    }

    /// Whether it was under way at some time in this second of the window.
    pub fn is_in(&self, second: usize) -> bool {
        self.from_s < second as f64 + 1.0 && self.to_s >= second as f64
    }
}

/// A second of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ToldSecond {
    /// See *behind*: bytes at its end.
    pub behind: Option<u64>,
    /// See *background*: bytes in it.
    pub background: Option<u64>,
}

impl Watched {
    /// The checkpoints that were under way in a window; nothing if the server does not count them.
    pub fn checkpoints(&self, from: Instant, seconds: f64) -> Option<Vec<Checkpoint>> {
        let counted =
            self.told.iter().filter_map(|(at, told)| Some((seconds_since(from, *at), told.checkpoints?)));
        let counted: Vec<(f64, Counted)> = counted.collect();
        let (first, last) = (counted.first()?, counted.last()?);
        let mut found: Vec<Checkpoint> = Vec::new();
        // When the one that is under way was seen first.
        let mut running_from = first.1.is_running.then_some(first.0);
        for pair in counted.windows(2) {
            let ((_, before), (at, now)) = (pair[0], pair[1]);
            if now.over > before.over {
                let took = (now.seconds - before.seconds).max(0.0);
                let began = running_from.map_or(at - took, |seen| seen.min(at - took));
                found.push(Checkpoint { from_s: began, to_s: at });
                running_from = None;
            }
            if now.is_running {
                running_from.get_or_insert(at);
            }
        }
        found.extend(running_from.map(|began| Checkpoint { from_s: began, to_s: last.0 }));
        found.retain(|checkpoint| checkpoint.to_s >= 0.0 && checkpoint.from_s < seconds);
        Some(found)
    }

    /// The seconds of a window.
    pub fn seconds(&self, from: Instant, seconds: usize) -> Vec<ToldSecond> {
        let at_end = |edge: f64| {
            // The last report before the edge; an edge before the first report has none.
            self.told.iter().rev().find(|(at, _)| seconds_since(from, *at) <= edge).map(|(_, told)| *told)
        };
        let second = |place: usize| {
            let (before, now) = (at_end(place as f64), at_end(place as f64 + 1.0));
            let written = |told: Option<Told>| told.and_then(|told| told.background);
            ToldSecond {
                behind: now.and_then(|told| told.behind),
                background: written(now).zip(written(before)).map(|(now, before)| now.saturating_sub(before)),
            }
        };
        (0..seconds).map(second).collect()
    }
}

/// Seconds from one moment to another, below 0 if it was before.
fn seconds_since(from: Instant, at: Instant) -> f64 {
    match at.checked_duration_since(from) {
        Some(after) => after.as_secs_f64(),
        None => -from.duration_since(at).as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers at these milliseconds of the window: how many are over, how long they took in all, whether one
    /// is under way.
    fn watched(from: Instant, answers: &[(i64, u64, f64, bool)]) -> Watched {
        let told = answers.iter().map(|(ms, over, seconds, is_running)| {
            let offset = Duration::from_millis(ms.unsigned_abs());
            let at = if *ms < 0 { from - offset } else { from + offset };
            let checkpoints = Some(Counted { over: *over, seconds: *seconds, is_running: *is_running });
            (at, Told { checkpoints, behind: Some(*over * 100), background: Some(*over * 1000) })
        });
        Watched { told: told.collect() }
    }

    fn spans(answers: &[(i64, u64, f64, bool)], seconds: f64) -> Vec<(f64, f64)> {
        let from = Instant::now() + Duration::from_secs(3600);
        let found = watched(from, answers).checkpoints(from, seconds).expect("it counts");
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        found.iter().map(|checkpoint| (rounded(checkpoint.from_s), rounded(checkpoint.to_s))).collect()
    }

    #[test]
    fn a_checkpoint_began_as_long_before_its_end_as_it_took() {
        let answers =
            [(0, 4, 9.0, false), (500, 4, 9.0, false), (1000, 5, 9.3, false), (1500, 5, 9.3, false)];
        assert_eq!(spans(&answers, 10.0), [(0.7, 1.0)]);
    }

    #[test]
    fn one_that_was_seen_under_way_began_then_at_the_latest() {
        let answers = [(0, 1, 1.0, false), (500, 1, 1.0, true), (1000, 1, 1.0, true), (1500, 2, 1.2, false)];
        assert_eq!(spans(&answers, 10.0), [(0.5, 1.5)], "the server rounds, or counts only a part of it");
    }

    #[test]
    fn one_that_is_not_over_lasts_until_the_watching_ends_and_another_begins_at_once() {
        let answers = [(0, 1, 1.0, true), (500, 2, 2.0, true), (1000, 2, 2.0, true)];
        assert_eq!(spans(&answers, 10.0), [(-0.5, 0.5), (0.5, 1.0)]);
    }

    #[test]
    fn checkpoints_before_or_after_the_window_are_in_none() {
        let answers =
            [(-3000, 1, 1.0, false), (-2000, 2, 1.1, false), (2000, 2, 1.1, false), (9000, 3, 1.2, false)];
        assert_eq!(spans(&answers, 5.0), []);
        let from = Instant::now();
        assert_eq!(Watched::default().checkpoints(from, 5.0), None, "nobody counts");
    }

    #[test]
    fn seconds_have_what_was_told_last_in_them() {
        let from = Instant::now() + Duration::from_secs(3600);
        let answers =
            [(-100, 1, 0.0, false), (400, 2, 0.0, false), (900, 4, 0.0, false), (2900, 5, 0.0, false)];
        let seconds = watched(from, &answers).seconds(from, 3);
        let found: Vec<_> = seconds.iter().map(|second| (second.behind, second.background)).collect();
        assert_eq!(found, [(Some(400), Some(3000)), (Some(400), Some(0)), (Some(500), Some(1000))]);
        let late = watched(from, &[(1500, 1, 0.0, false)]).seconds(from, 2);
        assert_eq!(late, [ToldSecond::default(), ToldSecond { behind: Some(100), background: None }]);
    }

    #[test]
    fn a_second_is_marked_if_a_checkpoint_touches_it() {
        let checkpoint = Checkpoint { from_s: 1.2, to_s: 3.0 };
        let marked: Vec<usize> = (0..5).filter(|second| checkpoint.is_in(*second)).collect();
        assert_eq!(marked, [1, 2, 3]);
    }

    struct Script(Vec<Told>);

    impl Teller for Script {
        fn ask(&mut self) -> Result<Told, BenchError> {
            self.0.pop().ok_or(BenchError::Closed)
        }
    }

    #[test]
    fn a_server_that_says_nothing_is_not_watched_and_a_lost_one_not_asked_again() {
        assert!(Watch::start(Box::new(Script(vec![Told::default()]))).expect("it answers").is_none());
        assert!(Watch::start(Box::new(Script(Vec::new()))).is_err());
        let one = Told { behind: Some(1), ..Told::default() };
        let watch =
            Watch::start(Box::new(Script(vec![one, one]))).expect("it answers").expect("it says something");
        while !watch.thread.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(watch.finish().told.len(), 2);
    }
}
