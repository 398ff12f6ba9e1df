//! Prefetch for long scans: background workers read and decode pages that a scan will need after its batch.
//!
//! A scan alone alternates between reading, decoding and delivering. The device rests while the scan decodes,
//! and the other processors rest all the time.
//!
//! # Terms
//! - *Chunk*: neighbouring pages of one leaf, in the order of the scan. One thread reads and decodes a chunk.
//!   A chunk is *queued*, *in progress*, or *ready*.
//! - *Stream*: the chunks ahead of one scan, and its *frontier*: the key up to which chunks were requested.
//! - *Distance*: the bytes before compression from the scan's place to the frontier.
//! - *Scan id*: a hash of a scan's direction and end bound. Scans of one id may share a stream.
//!
//! # Steps
//! 1. A long scan that finds no stream begins one ([`ScanPrefetch::begin`]). Its thread reads the first
//!    chunk, which holds the pages of its batch.
//! 2. A worker, a background task, takes the queued chunk that was requested first
//!    ([`ScanPrefetch::read_next`]).
//! 3. The scan fetches the page that it needs, and the pages behind it that are ready
//!    ([`ScanPrefetch::fetch`]). If the chunk is in progress, the scan waits. If the chunk is still queued,
//!    the scan's thread reads it.
//! 4. Where the distance is too short, the scan is told to request more chunks ([`ScanPrefetch::extend`]).
//!
//! ```text
//!   scan ──▶ │ ready │ in progress │ queued │ queued │ frontier
//!              chunk 1    chunk 2     chunk 3  chunk 4
//! ```
//!
//! # Invariants
//! - A chunk is read once. No scan waits for a chunk that no thread reads, also after a reading thread
//!   panicked.
//! - Pages stay until the scan needs a page of a later chunk: a batch may end within a page, and the next
//!   batch begins with it.
//! - Memory is bounded by [`PrefetchLimits::memory_bytes`] over all streams. The last chunk that is queued,
//!   and the first chunk of a request, may exceed it.
//! - The reads of a worker are charged to the operation that takes the chunk's first page.
//! - A scan ends without notice. A stream that no scan visited for [`IDLE`] is dropped; where another scan
//!   needs the memory, after [`IDLE_UNDER_PRESSURE`].
//! - A page that cannot be read is left out of its chunk. The scan reads it itself, and reports the error.
//!
//! # Not here
//! - Which pages a scan requests: `tree/scan/prefetch.rs`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pando_environment::sync::atomic::{AtomicUsize, Ordering};
use pando_environment::sync::{Condvar, Mutex, OnceLock};
use pando_environment::{Clock, Monotonic, TaskWaker};
use pando_storage::{BlockingMode, DeviceAccount, DeviceReads, OperationWait};

use super::page_cache::BlockKey;
use crate::base::Counter;
use crate::base::Pointer;
use crate::memory::page_memory;

/// The time without a visit of a scan after which a stream is dropped.
const IDLE: Duration = Duration::from_millis(500);
/// The same where another scan needs the memory. A scan that goes on visits its stream every millisecond or
/// sooner, apart from the time that its client takes.
const IDLE_UNDER_PRESSURE: Duration = Duration::from_millis(5);
/// Streams at a time. With more concurrent scans no processor is free to work for them.
const STREAMS_MAX: usize = 64;
/// Estimated bytes of memory for a page beside its contents: its pointer, its key, and the owner of the
/// bytes.
const PAGE_OVERHEAD_BYTES: usize = 160;

/// Pages that were read and decoded, in the order of the scan.
pub(super) type ReadyPages<P> = Vec<(BlockKey, P)>;

/// A hash of a scan's direction and end bound: equal for all batches of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanId(u64);

impl ScanId {
    pub(crate) const fn from_hash(hash: u64) -> ScanId {
        ScanId(hash)
    }
}

/// A chunk that a scan requests.
#[derive(Clone, Debug)]
pub(crate) struct ChunkRequest {
    pub(crate) pages: Vec<Pointer>,
    /// Bytes before compression, those of the large values to which the pages refer included.
    pub(crate) raw_bytes: u64,
    /// The key with which the next chunk begins (forwards) or ends (backwards). `None` at the end of the
    /// scan.
    pub(crate) frontier: Option<Box<[u8]>>,
}

/// Tells a scan to request more chunks.
#[derive(Debug)]
pub(crate) struct StreamExtension {
    stream: u64,
    pub(crate) frontier: Box<[u8]>,
    /// The bytes before compression that the distance lacks.
    pub(crate) lacking_bytes: u64,
}

/// The result of a fetch.
#[derive(Debug)]
pub(crate) struct Fetched<P> {
    /// The page that the scan needs, and those behind it.
    pub(crate) pages: Vec<P>,
    pub(crate) extension: Option<StreamExtension>,
}

impl<P> Default for Fetched<P> {
    fn default() -> Fetched<P> {
        Fetched { pages: Vec::new(), extension: None }
    }
}

/// Bounds of prefetch.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrefetchLimits {
    /// Bytes of memory of all streams.
    pub(super) memory_bytes: usize,
    /// The distance of one scan, in bytes before compression.
    pub(super) distance_bytes: u64,
}

/// A scan that begins a stream or fetches from one.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanVisit {
    pub(super) scan: ScanId,
    pub(super) now: Monotonic,
    pub(super) limits: PrefetchLimits,
}

#[derive(Debug)]
enum ChunkState<P> {
    Queued,
    InProgress,
    Ready(VecDeque<(BlockKey, P)>),
}

#[derive(Debug)]
struct Chunk<P> {
    number: u64,
    pages: Arc<[Pointer]>,
    raw_bytes: u64,
    /// Bytes of memory once it is ready. They count from the request on.
    memory_bytes: usize,
    /// Reads of a worker that no operation was charged for yet.
    uncharged: DeviceReads,
    state: ChunkState<P>,
}

impl<P> Chunk<P> {
    fn has(&self, key: &BlockKey) -> bool {
        match &self.state {
            ChunkState::Ready(ready) => ready.iter().any(|(have, _)| have == key),
            ChunkState::Queued | ChunkState::InProgress => {
                self.pages.iter().any(|page| BlockKey::of(page) == *key)
            }
        }
    }
}

#[derive(Debug)]
struct Stream<P> {
    number: u64,
    scan: ScanId,
    /// The time of the last visit of a scan.
    visited: Monotonic,
    chunks: VecDeque<Chunk<P>>,
    frontier: Option<Box<[u8]>>,
}

impl<P> Stream<P> {
    fn memory_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.memory_bytes).sum()
    }

    /// The distance from the end of the first chunk, in which the scan is, to the frontier.
    fn distance_bytes(&self) -> u64 {
        self.chunks.iter().skip(1).map(|chunk| chunk.raw_bytes).sum()
    }

    /// The extension that a scan should request, if its distance is too short and there is memory.
    fn extension(&self, memory_bytes: usize, limits: PrefetchLimits) -> Option<StreamExtension> {
        let lacking_bytes = limits.distance_bytes.saturating_sub(self.distance_bytes());
        let is_worth_it = lacking_bytes > 0 && memory_bytes < limits.memory_bytes;
        let frontier = self.frontier.clone().filter(|_| is_worth_it)?;
        Some(StreamExtension { stream: self.number, frontier, lacking_bytes })
    }
}

#[derive(Debug)]
struct State<P> {
    streams: Vec<Stream<P>>,
    memory_bytes: usize,
    last_number: u64,
}

impl<P> Default for State<P> {
    fn default() -> State<P> {
        State { streams: Vec::new(), memory_bytes: 0, last_number: 0 }
    }
}

/// A chunk's stream, and the place of the chunk in it.
#[derive(Clone, Copy)]
struct ChunkPlace {
    stream: usize,
    chunk: usize,
}

impl<P> State<P> {
    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The chunk of this scan that has a page.
    fn find(&self, scan: ScanId, key: &BlockKey) -> Option<ChunkPlace> {
        let streams = self.streams.iter().enumerate();
        streams.filter(|(_, stream)| stream.scan == scan).find_map(|(at, stream)| {
            let chunk = stream.chunks.iter().position(|chunk| chunk.has(key))?;
            Some(ChunkPlace { stream: at, chunk })
        })
    }

    /// The queued chunk that was requested first.
    fn next_queued(&mut self) -> Option<&mut Chunk<P>> {
        let chunks = self.streams.iter_mut().flat_map(|stream| &mut stream.chunks);
        chunks.filter(|chunk| matches!(chunk.state, ChunkState::Queued)).min_by_key(|chunk| chunk.number)
    }

    fn chunk(&mut self, number: u64) -> Option<&mut Chunk<P>> {
        let mut chunks = self.streams.iter_mut().flat_map(|stream| &mut stream.chunks);
        chunks.find(|chunk| chunk.number == number)
    }

    /// Drops the streams that no scan visited for `idle`. Returns their number.
    fn drop_idle(&mut self, now: Monotonic, idle: Duration) -> u64 {
        let before = self.streams.len();
        let memory_bytes = &mut self.memory_bytes;
        self.streams.retain(|stream| {
            let stays = now.since(stream.visited) < idle;
            *memory_bytes -= if stays { 0 } else { stream.memory_bytes() };
            stays
        });
        (before - self.streams.len()) as u64
    }

    /// Drops the chunks of a stream before the one that the scan has reached.
    fn drop_passed(&mut self, reached: ChunkPlace) {
        for passed in self.streams[reached.stream].chunks.drain(..reached.chunk) {
            self.memory_bytes -= passed.memory_bytes;
        }
    }

    fn has_room(&self, limits: PrefetchLimits) -> bool {
        self.memory_bytes < limits.memory_bytes && self.streams.len() < STREAMS_MAX
    }

    /// Queues chunks as long as there is memory, the first in any case. Returns the number of queued chunks.
    fn queue(&mut self, stream: usize, requests: Vec<ChunkRequest>, limits: PrefetchLimits) -> usize {
        let mut count = 0;
        for ChunkRequest { pages, raw_bytes, frontier } in requests {
            if count > 0 && self.memory_bytes >= limits.memory_bytes {
                break;
            }
            let bytes_of =
                |page: &Pointer| page_memory::footprint(page.raw_length() as usize) + PAGE_OVERHEAD_BYTES;
            let (number, memory_bytes) = (self.next_number(), pages.iter().map(bytes_of).sum());
            self.memory_bytes += memory_bytes;
            let (pages, state, uncharged) = (pages.into(), ChunkState::Queued, DeviceReads::NONE);
            let chunk = Chunk { number, pages, raw_bytes, memory_bytes, uncharged, state };
            self.streams[stream].chunks.push_back(chunk);
            self.streams[stream].frontier = frontier;
            count += 1;
        }
        count
    }
}

/// The background tasks that read chunks, and their clock.
struct Workers {
    wakers: Vec<TaskWaker>,
    clock: Arc<dyn Clock>,
}

/// See the module's head.
pub(crate) struct ScanPrefetch<P> {
    state: Mutex<State<P>>,
    /// Notified whenever a chunk leaves the state `InProgress`.
    ready: Condvar,
    /// Number of streams. A scan that finds none here takes no lock.
    streams: AtomicUsize,
    workers: OnceLock<Workers>,
    /// The worker that is woken next.
    turn: AtomicUsize,
    /// Chunks that any thread read.
    pub(crate) chunks_read: Counter,
    /// Of these, the chunks that workers read.
    pub(crate) chunks_read_by_workers: Counter,
    /// Streams that were dropped because no scan visited them.
    pub(crate) streams_abandoned: Counter,
}

impl<P> Default for ScanPrefetch<P> {
    fn default() -> ScanPrefetch<P> {
        ScanPrefetch {
            state: Mutex::default(),
            ready: Condvar::default(),
            streams: AtomicUsize::default(),
            workers: OnceLock::default(),
            turn: AtomicUsize::default(),
            chunks_read: Counter::default(),
            chunks_read_by_workers: Counter::default(),
            streams_abandoned: Counter::default(),
        }
    }
}

impl<P: Clone> ScanPrefetch<P> {
    /// Sets the workers to wake when chunks are queued.
    pub(crate) fn set_workers(&self, wakers: Vec<TaskWaker>, clock: &Arc<dyn Clock>) {
        let workers = Workers { wakers, clock: Arc::clone(clock) };
        assert!(self.workers.set(workers).is_ok(), "the workers are started once");
    }

    /// The time. `None` where there are no workers.
    pub(super) fn now(&self) -> Option<Monotonic> {
        self.workers.get().map(|workers| workers.clock.monotonic())
    }

    /// Bytes of memory of all streams.
    pub(crate) fn memory_bytes(&self) -> usize {
        if self.is_empty() { 0 } else { self.state.lock().memory_bytes }
    }

    /// Whether there is no stream.
    pub(super) fn is_empty(&self) -> bool {
        self.streams.load(Ordering::Acquire) == 0
    }

    /// Whether a stream can begin. Idle streams give up their memory for it.
    pub(super) fn has_room(&self, now: Monotonic, limits: PrefetchLimits) -> bool {
        let mut state = self.state.lock();
        if !state.has_room(limits) {
            self.streams_abandoned.add(state.drop_idle(now, IDLE_UNDER_PRESSURE));
            self.publish(&state);
        }
        state.has_room(limits)
    }

    /// Begins a stream with at least two chunks, and reads the first of them. False where there is no room.
    pub(super) fn begin(
        &self,
        visit: ScanVisit,
        requests: Vec<ChunkRequest>,
        read: impl FnOnce(&[Pointer]) -> ReadyPages<P>,
    ) -> bool {
        let ScanVisit { scan, now, limits } = visit;
        let mut state = self.state.lock();
        if requests.len() < 2 || !state.has_room(limits) {
            return false;
        }
        let number = state.next_number();
        state.streams.push(Stream { number, scan, visited: now, chunks: VecDeque::new(), frontier: None });
        let stream = state.streams.len() - 1;
        let count = state.queue(stream, requests, limits);
        let mut first = self.take(&mut state.streams[stream].chunks[0]);
        self.publish(&state);
        drop(state);
        self.wake(count - 1);
        first.ready = read(&first.pages);
        true
    }

    /// Adds chunks to a stream, if it still exists.
    pub(super) fn extend(
        &self,
        extension: &StreamExtension,
        requests: Vec<ChunkRequest>,
        limits: PrefetchLimits,
    ) {
        let mut state = self.state.lock();
        let stream = state.streams.iter().position(|stream| {
            // Another scan of this id may have extended it meanwhile.
            stream.number == extension.stream && stream.frontier.as_ref() == Some(&extension.frontier)
        });
        let count = stream.map_or(0, |at| state.queue(at, requests, limits));
        drop(state);
        self.wake(count);
    }

    /// Reads the queued chunk that was requested first. False if no chunk is queued.
    pub(super) fn read_next(&self, read: impl FnOnce(&[Pointer]) -> ReadyPages<P>) -> bool {
        let mut state = self.state.lock();
        let Some(chunk) = state.next_queued() else { return false };
        let mut taken = self.take(chunk);
        drop(state);
        let account = Arc::new(DeviceAccount::default());
        let charge = account.charge_thread();
        taken.ready = read(&taken.pages);
        drop(charge);
        // The operation waited for them at most in part, which it is charged for where it waits.
        taken.uncharged = DeviceReads { time: Duration::ZERO, ..account.reads() };
        self.chunks_read_by_workers.add(1);
        true
    }

    /// Drops the streams that no scan visited for [`IDLE`]. Returns the time after which to call it again;
    /// `None` without streams.
    pub(super) fn drop_abandoned(&self, now: Monotonic) -> Option<Duration> {
        if self.is_empty() {
            return None;
        }
        let mut state = self.state.lock();
        self.streams_abandoned.add(state.drop_idle(now, IDLE));
        self.publish(&state);
        (!state.streams.is_empty()).then_some(IDLE)
    }

    /// Fetches the first of these pages, and those behind it that are ready in the same chunk. The pages are
    /// given in the order of the scan.
    ///
    /// The result is empty if the first page was not requested or could not be read, and in mode `CachedOnly`
    /// if it is not ready. The result has an extension if the stream's distance is too short and there is
    /// memory.
    pub(super) fn fetch(
        &self,
        visit: ScanVisit,
        pages: &[BlockKey],
        blocking: BlockingMode,
        read: impl Fn(&[Pointer]) -> ReadyPages<P>,
    ) -> Fetched<P> {
        let Some(first) = pages.first() else { return Fetched::default() };
        let mut state = self.state.lock();
        while let Some(place) = state.find(visit.scan, first) {
            state.streams[place.stream].visited = visit.now;
            state.drop_passed(place);
            let memory_bytes = state.memory_bytes;
            let stream = &mut state.streams[place.stream];
            let chunk = &mut stream.chunks[0];
            match &mut chunk.state {
                ChunkState::Queued | ChunkState::InProgress if blocking == BlockingMode::CachedOnly => break,
                ChunkState::Queued => {
                    let mut taken = self.take(chunk);
                    drop(state);
                    taken.ready = read(&taken.pages);
                    drop(taken);
                    state = self.state.lock();
                }
                ChunkState::InProgress => {
                    let waiting = DeviceAccount::waiting(OperationWait::Device);
                    let began = self.now();
                    self.ready.wait(&mut state);
                    drop(waiting);
                    if let (Some(began), Some(now)) = (began, self.now()) {
                        DeviceAccount::charge(DeviceReads { time: now.since(began), ..DeviceReads::NONE });
                    }
                }
                ChunkState::Ready(ready) => {
                    while ready.pop_front_if(|(key, _)| key != first).is_some() {}
                    let found = ready.iter().zip(pages).take_while(|((have, _), needed)| have == *needed);
                    let pages = found.map(|((_, page), _)| page.clone()).collect();
                    DeviceAccount::charge(std::mem::take(&mut chunk.uncharged));
                    return Fetched { pages, extension: stream.extension(memory_bytes, visit.limits) };
                }
            }
        }
        Fetched::default()
    }

    fn take(&self, chunk: &mut Chunk<P>) -> TakenChunk<'_, P> {
        chunk.state = ChunkState::InProgress;
        let pages = Arc::clone(&chunk.pages);
        let (ready, uncharged) = (Vec::new(), DeviceReads::NONE);
        TakenChunk { prefetch: self, number: chunk.number, pages, ready, uncharged }
    }

    fn publish(&self, state: &State<P>) {
        self.streams.store(state.streams.len(), Ordering::Release);
    }

    /// Wakes a worker for each chunk. It takes turns, because the worker that was woken last is busy.
    fn wake(&self, chunks: usize) {
        let wakers = self.workers.get().map_or(&[][..], |workers| &workers.wakers);
        let count = chunks.min(wakers.len());
        let first = self.turn.fetch_add(count, Ordering::Relaxed);
        (0..count).for_each(|more| wakers[first.wrapping_add(more) % wakers.len()].wake());
    }
}

/// A chunk that a thread reads. When it is dropped the chunk becomes ready, unless its stream is gone or has
/// passed it.
struct TakenChunk<'a, P> {
    prefetch: &'a ScanPrefetch<P>,
    number: u64,
    pages: Arc<[Pointer]>,
    ready: ReadyPages<P>,
    uncharged: DeviceReads,
}

impl<P> Drop for TakenChunk<'_, P> {
    fn drop(&mut self) {
        let ready: VecDeque<_> = std::mem::take(&mut self.ready).into();
        self.prefetch.chunks_read.add(1);
        if let Some(chunk) = self.prefetch.state.lock().chunk(self.number) {
            chunk.state = ChunkState::Ready(ready);
            chunk.uncharged = self.uncharged;
        }
        self.prefetch.ready.notify_all();
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod toy;
