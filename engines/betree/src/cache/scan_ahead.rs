//! What long scans will want next, read and decoded by others while a scan is at what it has.
//!
//! A scan alone reads, decodes and hands over by turns: the device rests while it decodes, and other processors all the time.
//!
//! # Terms
//! - *Portion*: neighbouring pages of a leaf in the order in which they are wanted, which one thread reads together and decodes.
//! - *Landed*: decoded, and waiting for the scan.
//! - *Stream*: the portions ahead of one scan, and the key up to which it has asked (the *frontier*).
//! - *Course* of a scan: its direction and where it will end. Scans of one course may share a stream.
//!
//! # Steps
//! 1. A scan that finds nothing asked for begins a stream, and brings the first portion, its batch, itself ([`ScanAhead::begin`]).
//! 2. A helper, a background task, takes the portion that was asked for first, and brings it ([`ScanAhead::help`]).
//! 3. The scan comes by with the page that it wants now, and gets it and those behind it that have landed ([`ScanAhead::fetch`]). It
//!    waits where somebody is at the portion; where nobody is yet, it brings the portion itself. Where too little is ahead it is told to
//!    ask for more ([`ScanAhead::extend`]).
//!
//! # Invariants
//! - A portion is brought once, and nobody waits for one that nobody is at, also when whoever was at it panics.
//! - Pages stay until the scan has come to a later one: a batch may end within a page, with which the next then begins.
//! - Nothing is asked for where all streams have as many bytes as the limit says: they have at most one portion more, and what the last batch
//!   asked for. Then the streams go that nobody came by for [`IDLE_UNDER_PRESSURE`]; if there are none, the scan
//!   reads by itself. After [`IDLE`] every stream goes: a scan ends without a word, and what it left is nobody's.
//! - What cannot be read does not land: the scan reads it itself, and tells.
//!
//! It does not choose what is asked for; a scan does (`tree/scan/beyond.rs`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pando_environment::sync::atomic::{AtomicUsize, Ordering};
use pando_environment::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use pando_environment::{Clock, Monotonic, TaskWaker};
use pando_storage::BlockingMode;

use super::page_cache::BlockKey;
use crate::base::Counter;
use crate::base::Pointer;
use crate::format::page::Page;
use crate::memory::page_memory;

/// How long a stream stays that nobody comes by.
const IDLE: Duration = Duration::from_millis(500);
/// The same where another scan wants the room: a scan that goes on comes by every millisecond or less, but for what its client does meanwhile.
const IDLE_UNDER_PRESSURE: Duration = Duration::from_millis(5);
/// Streams at once. With more scans than this at a time there is no processor that would help.
const STREAMS_MAX: usize = 64;
/// What a page takes beside its bytes, about: its pointer, its key, and what owns the bytes.
const PAGE_BYTES_BESIDE: usize = 160;

/// Pages that have landed.
pub(super) type Landed = Vec<(BlockKey, Page)>;

/// A portion to be asked for.
#[derive(Clone, Debug)]
pub(crate) struct WantedPages {
    pub(crate) pages: Vec<Pointer>,
    /// Bytes before compression, large values that these pages refer to among them: how far the scan comes with it.
    pub(crate) reach: u64,
    /// The key with which what comes after it begins, or (backwards) ends; `None` where there is nothing more.
    pub(crate) frontier: Option<Box<[u8]>>,
}

/// A scan's leave to ask for more.
#[derive(Debug)]
pub(crate) struct Extension {
    stream: u64,
    pub(crate) frontier: Box<[u8]>,
    /// So many bytes of reach are missing.
    pub(crate) missing: u64,
}

/// What came of fetching.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    /// The page that was wanted, and those behind it.
    pub(crate) pages: Vec<Page>,
    pub(crate) extension: Option<Extension>,
}

/// How much there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Bytes of memory of all streams.
    pub(super) limit: usize,
    /// Bytes of reach ahead of one scan.
    pub(super) ahead: u64,
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
    reach: u64,
    /// Of memory once it has landed, counted from when it is asked for.
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
    course: u64,
    /// When a scan came by.
    used: Monotonic,
    portions: VecDeque<Portion>,
    frontier: Option<Box<[u8]>>,
}

impl Stream {
    fn bytes(&self) -> usize {
        self.portions.iter().map(|portion| portion.bytes).sum()
    }

    /// How far it reaches behind the portion at which the scan is, the first.
    fn ahead(&self) -> u64 {
        self.portions.iter().skip(1).map(|portion| portion.reach).sum()
    }
}

#[derive(Debug, Default)]
struct State {
    streams: Vec<Stream>,
    bytes: usize,
    next: u64,
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The stream of this course that has a page, and the place of the portion in it.
    fn find(&self, course: u64, key: &BlockKey) -> Option<(usize, usize)> {
        let in_stream = |stream: &Stream| stream.portions.iter().position(|portion| portion.has(key));
        let mut streams = self.streams.iter().enumerate().filter(|(_, stream)| stream.course == course);
        streams.find_map(|(at, stream)| Some((at, in_stream(stream)?)))
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

    /// Drops the streams that nobody came by for so long; how many.
    fn drop_idle(&mut self, now: Monotonic, idle: Duration) -> u64 {
        let before = self.streams.len();
        let bytes = &mut self.bytes;
        self.streams.retain(|stream| {
            let stays = now.since(stream.used) < idle;
            *bytes -= if stays { 0 } else { stream.bytes() };
            stays
        });
        (before - self.streams.len()) as u64
    }

    fn has_room(&self, limit: usize) -> bool {
        self.bytes < limit && self.streams.len() < STREAMS_MAX
    }

    /// Adds portions to a stream as long as there is room, the first in any case; how many.
    fn push(&mut self, stream: usize, wanted: Vec<WantedPages>, limit: usize) -> usize {
        let mut count = 0;
        for WantedPages { pages, reach, frontier } in wanted {
            if count > 0 && self.bytes >= limit {
                break;
            }
            let bytes =
                |page: &Pointer| page_memory::footprint(page.raw_length() as usize) + PAGE_BYTES_BESIDE;
            let (number, bytes) = (self.number(), pages.iter().map(bytes).sum());
            self.bytes += bytes;
            let portion = Portion { number, pages: pages.into(), reach, bytes, stage: Stage::Asked };
            self.streams[stream].portions.push_back(portion);
            self.streams[stream].frontier = frontier;
            count += 1;
        }
        count
    }
}

/// Whoever is woken when something is asked for, and what time it is.
struct Helpers {
    wakers: Vec<TaskWaker>,
    clock: Arc<dyn Clock>,
}

/// See the module's head.
#[derive(Default)]
pub(crate) struct ScanAhead {
    state: Mutex<State>,
    /// Told whenever a portion is no longer under way.
    landed: Condvar,
    /// How many streams there are: who finds none takes no lock.
    streams: AtomicUsize,
    helpers: OnceLock<Helpers>,
    /// The helper that is woken next.
    turn: AtomicUsize,
    /// Portions that were brought, by whomever, and of them those that helpers brought; streams that nobody came by any more.
    pub(crate) brought: Counter,
    pub(crate) helped: Counter,
    pub(crate) abandoned: Counter,
}

impl ScanAhead {
    /// Who helps.
    pub(crate) fn set_helpers(&self, wakers: Vec<TaskWaker>, clock: &Arc<dyn Clock>) {
        let helpers = Helpers { wakers, clock: Arc::clone(clock) };
        assert!(self.helpers.set(helpers).is_ok(), "the helpers are started once");
    }

    /// What time it is; `None` where nobody helps.
    pub(super) fn now(&self) -> Option<Monotonic> {
        self.helpers.get().map(|helpers| helpers.clock.monotonic())
    }

    /// Bytes of all streams.
    pub(crate) fn bytes(&self) -> usize {
        if self.is_empty() { 0 } else { self.state.lock().bytes }
    }

    /// Whether there is no stream.
    pub(super) fn is_empty(&self) -> bool {
        self.streams.load(Ordering::Acquire) == 0
    }

    /// Whether a stream can be begun; what nobody came by lately makes room for it.
    pub(super) fn has_room(&self, now: Monotonic, room: Room) -> bool {
        let mut state = self.state.lock();
        if !state.has_room(room.limit) {
            self.abandoned.add(state.drop_idle(now, IDLE_UNDER_PRESSURE));
            self.publish(&state);
        }
        state.has_room(room.limit)
    }

    /// Begins a stream with at least two portions, and brings the first of them. False where there is no room.
    pub(super) fn begin(
        &self,
        course: u64,
        now: Monotonic,
        (wanted, room): (Vec<WantedPages>, Room),
        bring: impl FnOnce(&[Pointer]) -> Landed,
    ) -> bool {
        let mut state = self.state.lock();
        if wanted.len() < 2 || !state.has_room(room.limit) {
            return false;
        }
        let number = state.number();
        state.streams.push(Stream { number, course, used: now, portions: VecDeque::new(), frontier: None });
        let stream = state.streams.len() - 1;
        let count = state.push(stream, wanted, room.limit);
        let mut first = self.take(&mut state.streams[stream].portions[0]);
        self.publish(&state);
        drop(state);
        self.wake(count - 1);
        first.landed = bring(&first.pages);
        true
    }

    /// Goes on with a stream, if it is still there.
    pub(super) fn extend(&self, extension: &Extension, wanted: Vec<WantedPages>, room: Room) {
        let mut state = self.state.lock();
        let stream = state.streams.iter().position(|stream| {
            // Another scan of this course may have asked for the same.
            stream.number == extension.stream && stream.frontier.as_ref() == Some(&extension.frontier)
        });
        let count = stream.map_or(0, |at| state.push(at, wanted, room.limit));
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
        self.helped.add(1);
        true
    }

    /// Drops what nobody came by for [`IDLE`]; after which time there is something to be looked at again, if anything is left.
    pub(super) fn tidy(&self, now: Monotonic) -> Option<Duration> {
        if self.is_empty() {
            return None;
        }
        let mut state = self.state.lock();
        self.abandoned.add(state.drop_idle(now, IDLE));
        self.publish(&state);
        (!state.streams.is_empty()).then_some(IDLE)
    }

    /// The first of these pages, which lie one behind the other in the direction of the scan, and those behind it that have landed with it.
    /// Nothing where it was not asked for, could not be read, or has not landed and the caller must not block. If too little is ahead and there is room, the stream may be extended.
    pub(super) fn fetch(
        &self,
        (course, pages): (u64, &[BlockKey]),
        now: Monotonic,
        (room, blocking): (Room, BlockingMode),
        bring: impl Fn(&[Pointer]) -> Landed,
    ) -> Fetched {
        let Some(first) = pages.first() else { return Fetched::default() };
        let mut state = self.state.lock();
        while let Some((stream, portion)) = state.find(course, first) {
            state.streams[stream].used = now;
            pass(&mut state, stream, portion);
            let portion = &mut state.streams[stream].portions[0];
            match &mut portion.stage {
                Stage::Asked | Stage::UnderWay if blocking == BlockingMode::CachedOnly => break,
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
                    return Fetched { pages, extension: extension(&state, stream, room) };
                }
            }
        }
        Fetched::default()
    }

    fn take(&self, portion: &mut Portion) -> Taken<'_> {
        portion.stage = Stage::UnderWay;
        Taken { ahead: self, number: portion.number, pages: Arc::clone(&portion.pages), landed: Vec::new() }
    }

    fn publish(&self, state: &State) {
        self.streams.store(state.streams.len(), Ordering::Release);
    }

    /// Wakes a helper for each of so many portions, by turns: one that was woken for the last is at it.
    fn wake(&self, portions: usize) {
        let wakers = self.helpers.get().map_or(&[][..], |helpers| &helpers.wakers);
        let count = portions.min(wakers.len());
        let first = self.turn.fetch_add(count, Ordering::Relaxed);
        (0..count).for_each(|more| wakers[first.wrapping_add(more) % wakers.len()].wake());
    }
}

/// Drops the portions of a stream before the one to which the scan has come.
fn pass(state: &mut MutexGuard<'_, State>, stream: usize, portion: usize) {
    for _ in 0..portion {
        if let Some(passed) = state.streams[stream].portions.pop_front() {
            state.bytes -= passed.bytes;
        }
    }
}

fn extension(state: &State, stream: usize, room: Room) -> Option<Extension> {
    let stream = &state.streams[stream];
    let missing = room.ahead.saturating_sub(stream.ahead());
    let is_worth_it = missing > 0 && state.bytes < room.limit;
    let frontier = stream.frontier.clone().filter(|_| is_worth_it)?;
    Some(Extension { stream: stream.number, frontier, missing })
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
