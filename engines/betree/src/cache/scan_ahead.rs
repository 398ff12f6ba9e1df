//! What long scans will want next, read and decoded by others while a scan is at what it has.
//!
//! A scan alone reads, decodes and hands over by turns: the device rests while it decodes, and other processors all the time.
//!
//! # Terms
//! - *Portion*: neighbouring pages of a leaf in the order in which they are wanted, which one thread reads with one call to the device, and
//!   decodes.
//! - *Landed*: decoded, and waiting for the scan.
//! - *Stream*: the portions ahead of one scan, and the key up to which it has asked.
//!
//! # Steps
//! 1. A scan that finds nothing asked for begins a stream ([`ScanAhead::begin`]).
//! 2. A background task takes the portion that was asked for first, and brings it ([`ScanAhead::help`]).
//! 3. The scan comes by with the page that it wants now, and gets it and those behind it that have landed ([`ScanAhead::fetch`]). It
//!    waits where somebody is at the portion; where nobody is yet, it brings the portion itself. Where too little is ahead it is told to
//!    ask for more ([`ScanAhead::extend`]).
//!
//! # Invariants
//! - A portion is brought once, and nobody waits for one that nobody is at, also when whoever was at it panics.
//! - Pages stay until the scan has come to a later one: a batch may end within a page, with which the next then begins.
//! - All streams have at most as many bytes as the limit says. Where there is no room, the stream that nobody came by for [`TURNS_KEPT`] turns
//!   goes (the scan ended early); if there is none, the scan reads by itself.
//! - What cannot be read does not land: the scan reads it itself, and tells.
//!
//! It does not choose what is asked for; a scan does (`tree/scan/beyond.rs`). It does not know scans: two that come by the same pages
//! share a stream, and the later one may find that it has gone on.

use std::collections::VecDeque;
use std::sync::Arc;

use pando_environment::TaskWaker;
use pando_environment::sync::atomic::{AtomicUsize, Ordering};
use pando_environment::sync::{Condvar, Mutex, MutexGuard, OnceLock};

use super::page_cache::BlockKey;
use crate::counter::Counter;
use crate::format::page::Page;
use crate::space::Pointer;

/// How many fetches and beginnings of others a stream outlives that nobody comes by.
const TURNS_KEPT: u64 = 16;

/// Pages that have landed.
pub(super) type Landed = Vec<(BlockKey, Page)>;

/// What is asked for, and from where on there is more.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    /// The pages of each portion.
    pub(crate) portions: Vec<Vec<Pointer>>,
    /// The key with which what was not asked for begins, or (backwards) ends; `None` where there is nothing more.
    pub(crate) frontier: Option<Box<[u8]>>,
}

/// A scan's leave to ask for more.
#[derive(Debug)]
pub(crate) struct Extension {
    stream: u64,
    pub(crate) frontier: Box<[u8]>,
    /// So many bytes, before compression, are missing.
    pub(crate) bytes: u64,
}

/// What came of fetching.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    /// The page that was wanted, and those behind it.
    pub(crate) pages: Vec<Page>,
    pub(crate) extension: Option<Extension>,
}

#[derive(Debug)]
enum Stage {
    Asked,
    UnderWay,
    Landed(VecDeque<(BlockKey, Page)>),
}

#[derive(Debug)]
struct Portion {
    number: u64,
    pages: Arc<[Pointer]>,
    /// Before compression.
    bytes: usize,
    stage: Stage,
}

impl Portion {
    fn has(&self, key: &BlockKey) -> bool {
        match &self.stage {
            Stage::Landed(landed) => landed.iter().any(|(have, _)| have == key),
            Stage::Asked | Stage::UnderWay => self.pages.iter().any(|page| BlockKey::of(page) == *key),
        }
    }
}

#[derive(Debug)]
struct Stream {
    number: u64,
    /// The turn in which a scan came by.
    used: u64,
    portions: VecDeque<Portion>,
    frontier: Option<Box<[u8]>>,
}

impl Stream {
    fn bytes(&self) -> usize {
        self.portions.iter().map(|portion| portion.bytes).sum()
    }

    /// Bytes behind the portion at which the scan is, the first.
    fn ahead(&self) -> usize {
        self.portions.iter().skip(1).map(|portion| portion.bytes).sum()
    }
}

#[derive(Debug, Default)]
struct State {
    streams: Vec<Stream>,
    bytes: usize,
    turn: u64,
    next: u64,
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The stream that has a page, and the place of the portion in it.
    fn find(&self, key: &BlockKey) -> Option<(usize, usize)> {
        let in_stream = |stream: &Stream| stream.portions.iter().position(|portion| portion.has(key));
        self.streams.iter().enumerate().find_map(|(at, stream)| Some((at, in_stream(stream)?)))
    }

    /// The next portion for a helper: of those that nobody is at the one that was asked for first.
    fn asked(&mut self) -> Option<&mut Portion> {
        let portions = self.streams.iter_mut().flat_map(|stream| &mut stream.portions);
        portions.filter(|portion| matches!(portion.stage, Stage::Asked)).min_by_key(|portion| portion.number)
    }

    fn portion(&mut self, number: u64) -> Option<&mut Portion> {
        let mut portions = self.streams.iter_mut().flat_map(|stream| &mut stream.portions);
        portions.find(|portion| portion.number == number)
    }

    fn remove_stream(&mut self, at: usize) {
        let stream = self.streams.swap_remove(at);
        self.bytes -= stream.bytes();
    }

    /// Makes room for so many bytes, if there are streams that nobody wants any more; whether there is room, and how many streams went.
    fn make_room(&mut self, bytes: usize, limit: usize) -> (bool, u64) {
        let mut dropped = 0;
        while self.bytes + bytes > limit {
            let oldest = self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.used);
            let Some((at, stream)) = oldest else { break };
            if stream.used + TURNS_KEPT > self.turn {
                break;
            }
            self.remove_stream(at);
            dropped += 1;
        }
        (self.bytes + bytes <= limit, dropped)
    }

    /// Adds portions to a stream; how many.
    fn push(&mut self, stream: usize, asking: Asking) -> usize {
        let count = asking.portions.len();
        for pages in asking.portions {
            let (number, bytes) = (self.number(), bytes_of(&pages));
            self.bytes += bytes;
            let portion = Portion { number, pages: pages.into(), bytes, stage: Stage::Asked };
            self.streams[stream].portions.push_back(portion);
        }
        self.streams[stream].frontier = asking.frontier;
        count
    }
}

fn bytes_of(pages: &[Pointer]) -> usize {
    pages.iter().map(|page| page.raw_length() as usize).sum()
}

/// See the module's head.
#[derive(Default)]
pub(crate) struct ScanAhead {
    state: Mutex<State>,
    /// Told whenever a portion is no longer under way.
    landed: Condvar,
    /// How many streams there are: who finds none takes no lock.
    streams: AtomicUsize,
    helpers: OnceLock<Vec<TaskWaker>>,
    /// Portions that were brought, by whomever, and streams that nobody came by any more.
    pub(crate) brought: Counter,
    pub(crate) abandoned: Counter,
}

impl ScanAhead {
    /// Whoever is woken when something is asked for.
    pub(crate) fn set_helpers(&self, helpers: Vec<TaskWaker>) {
        assert!(self.helpers.set(helpers).is_ok(), "the helpers are started once");
    }

    /// Whether there is somebody to help.
    pub(crate) fn has_helpers(&self) -> bool {
        self.helpers.get().is_some_and(|helpers| !helpers.is_empty())
    }

    /// Bytes of all streams.
    pub(crate) fn bytes(&self) -> usize {
        if self.is_empty() { 0 } else { self.state.lock().bytes }
    }

    fn is_empty(&self) -> bool {
        self.streams.load(Ordering::Acquire) == 0
    }

    /// Begins a stream, if there is room for what it asks for.
    pub(super) fn begin(&self, asking: Asking, limit: usize) {
        if asking.portions.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        state.turn += 1;
        let bytes = asking.portions.iter().map(|pages| bytes_of(pages)).sum();
        let (has_room, dropped) = state.make_room(bytes, limit);
        self.abandoned.add(dropped);
        let mut count = 0;
        if has_room {
            let (number, used) = (state.number(), state.turn);
            state.streams.push(Stream { number, used, portions: VecDeque::new(), frontier: None });
            let last = state.streams.len() - 1;
            count = state.push(last, asking);
        }
        self.publish(&state);
        drop(state);
        self.wake(count);
    }

    /// Goes on with a stream, if it is still there and there is room.
    pub(super) fn extend(&self, extension: &Extension, asking: Asking, limit: usize) {
        let mut state = self.state.lock();
        let bytes = asking.portions.iter().map(|pages| bytes_of(pages)).sum();
        let (has_room, dropped) = state.make_room(bytes, limit);
        self.abandoned.add(dropped);
        let stream = state.streams.iter().position(|stream| {
            // Another scan by the same way may have asked for the same.
            stream.number == extension.stream && stream.frontier.as_ref() == Some(&extension.frontier)
        });
        let count = match stream {
            Some(at) if has_room => state.push(at, asking),
            _ => 0,
        };
        self.publish(&state);
        drop(state);
        self.wake(count);
    }

    /// Brings the portion that was asked for first; false if there is none.
    pub(super) fn help(&self, bring: impl FnOnce(&[Pointer]) -> Landed) -> bool {
        let mut state = self.state.lock();
        let Some(portion) = state.asked() else { return false };
        let mut taken = self.take(portion);
        drop(state);
        taken.landed = bring(&taken.pages);
        true
    }

    /// The first of these pages, which lie one behind the other in the direction of the scan, and those behind it that have landed with it.
    /// Nothing where it was not asked for, or could not be read. A stream that has less than `ahead` bytes before it may be extended.
    pub(super) fn fetch(
        &self,
        pages: &[BlockKey],
        ahead: usize,
        bring: impl Fn(&[Pointer]) -> Landed,
    ) -> Fetched {
        let Some(first) = pages.first() else { return Fetched::default() };
        if self.is_empty() {
            return Fetched::default();
        }
        let mut state = self.state.lock();
        state.turn += 1;
        while let Some((stream, portion)) = state.find(first) {
            let turn = state.turn;
            state.streams[stream].used = turn;
            self.pass(&mut state, stream, portion);
            let portion = &mut state.streams[stream].portions[0];
            match &mut portion.stage {
                Stage::Asked => {
                    let mut taken = self.take(portion);
                    drop(state);
                    taken.landed = bring(&taken.pages);
                    drop(taken);
                    state = self.state.lock();
                }
                Stage::UnderWay => self.landed.wait(&mut state),
                Stage::Landed(landed) => {
                    while landed.pop_front_if(|(key, _)| key != first).is_some() {}
                    let found = landed.iter().zip(pages).take_while(|((have, _), wanted)| have == *wanted);
                    let pages = found.map(|((_, page), _)| page.clone()).collect();
                    return Fetched { pages, extension: extension(&state.streams[stream], ahead) };
                }
            }
        }
        Fetched::default()
    }

    /// Drops the portions of a stream before the one to which the scan has come.
    fn pass(&self, state: &mut MutexGuard<'_, State>, stream: usize, portion: usize) {
        for _ in 0..portion {
            if let Some(passed) = state.streams[stream].portions.pop_front() {
                state.bytes -= passed.bytes;
            }
        }
    }

    fn take(&self, portion: &mut Portion) -> Taken<'_> {
        portion.stage = Stage::UnderWay;
        Taken { ahead: self, number: portion.number, pages: Arc::clone(&portion.pages), landed: Vec::new() }
    }

    fn publish(&self, state: &State) {
        self.streams.store(state.streams.len(), Ordering::Release);
    }

    fn wake(&self, portions: usize) {
        for helper in self.helpers.get().into_iter().flatten().take(portions) {
            helper.wake();
        }
    }
}

fn extension(stream: &Stream, ahead: usize) -> Option<Extension> {
    let missing = ahead.saturating_sub(stream.ahead());
    let frontier = stream.frontier.clone().filter(|_| missing > 0)?;
    Some(Extension { stream: stream.number, frontier, bytes: missing as u64 })
}

/// A portion that somebody is at. When it is dropped, what was brought has landed, unless the stream is gone or past it.
struct Taken<'a> {
    ahead: &'a ScanAhead,
    number: u64,
    pages: Arc<[Pointer]>,
    landed: Landed,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let landed: VecDeque<_> = std::mem::take(&mut self.landed).into();
        self.ahead.brought.add(1);
        if let Some(portion) = self.ahead.state.lock().portion(self.number) {
            portion.stage = Stage::Landed(landed);
        }
        self.ahead.landed.notify_all();
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod toy;
