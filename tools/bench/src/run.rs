//! One measured run: so many clients, a warm-up, a window.
//!
//! 1. All clients connect; only then the clock starts.
//! 2. The workers begin; the window opens when the warm-up is over.
//! 3. This thread samples the machine's counters at both edges of the window and at each of its seconds, and
//!    prints progress.
//! 4. The window closes at its end, or when all clients are over, whichever is first. The workers' tallies
//!    are added up. If the server's process ends within the window, the run has what was counted until then.

use crate::client::{
    Address, CREW_GRACE, Clients, Connection, Crew, EmbeddedClient, Misses, Orders, Pace, Place, Tally, Task,
    Window, Worker,
};
use crate::error::{BenchError, no_resource};
use crate::interrupt;
use pando_measuring::counters::{ProcessId, Sample, Sources, Usage};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) mod settle;

/// How often progress is printed.
const PROGRESS_S: u32 = 10;
const SECOND: Duration = Duration::from_secs(1);

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Clients, each with a connection of its own.
    pub clients: u32,
    /// Threads of the tool that drive them, if they are scripts.
    pub threads: u32,
    /// Seconds before the window.
    pub warmup_s: u32,
    /// Seconds of the window, at least 1; the most that it lasts if the clients are over before.
    pub duration_s: u32,
    /// Closed loop, or so many units per second.
    pub pace: Pace,
    /// Seconds of the intervals whose latencies are kept apart.
    pub interval_s: u32,
}

/// The facts of a workload that the counting needs.
#[derive(Clone, Copy, Debug)]
pub struct Counting {
    /// How many kinds of statements there are.
    pub kinds: usize,
    /// Whether a miss is a fault or part of the work.
    pub misses: Misses,
}

/// The measurements of a run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// How it was run.
    pub plan: Plan,
    /// When the window opened.
    pub from: Instant,
    /// The length of the window: the planned one, or until all clients were over.
    pub seconds: f64,
    /// The counts of the clients.
    pub tally: Tally,
    /// The costs, if they were to be counted.
    pub usage: Option<Usage>,
    /// The costs of each second.
    pub usage_per_second: Vec<Usage>,
    /// The size of the data folder on the device at the end of each interval, in bytes; empty if its place is
    /// not known.
    pub folder_bytes: Vec<u64>,
    /// The end of the server's process, if it came within the window.
    pub server_end: Option<ServerEnd>,
}

/// The end of a server's process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerEnd {
    /// The process.
    pub process: ProcessId,
    /// How long after the clients began.
    pub seconds: f64,
}

impl Measured {
    /// Operations done per second of the window.
    pub fn rate(&self) -> f64 {
        self.tally.operations() as f64 / self.seconds
    }
}

/// Threads at work. The receiver is disconnected when the last of them is over.
struct Underway {
    workers: Vec<JoinHandle<Result<Tally, BenchError>>>,
    crews: Vec<(Arc<Crew>, Vec<JoinHandle<Result<(), BenchError>>>)>,
    over: Receiver<()>,
    /// Operations that each worker has done, as of its last second.
    done: Vec<Arc<AtomicU64>>,
}

/// Whether all threads have done their work. One that has may need a moment more to be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    All,
    NotAll,
}

/// The observation of a run from outside: its costs, and what the caller looks at.
pub struct Observer<'a> {
    /// The counters of the machine and of the server.
    pub sources: &'a mut Sources,
    /// Is called when the window opens and when it closes.
    pub at_edge: Option<&'a mut dyn FnMut()>,
}

impl<'a> Observer<'a> {
    /// One that looks at the costs alone.
    pub fn of_costs(sources: &'a mut Sources) -> Observer<'a> {
        Observer { sources, at_edge: None }
    }
}

/// Runs clients against the server at an address; without an observer, what it costs is not looked at.
pub fn run(
    plan: Plan,
    address: impl Into<Address>,
    clients: Clients,
    counting: Counting,
    observer: Option<Observer<'_>>,
) -> Result<Measured, BenchError> {
    let address = address.into();
    let parts = plan.threads.clamp(1, plan.clients.max(1));
    let orders = |start: Instant, part| Orders {
        window: Window { start, from: start + SECOND * plan.warmup_s, seconds: plan.duration_s },
        pace: plan.pace,
        part,
        parts,
        kinds: counting.kinds,
        misses: counting.misses,
        interval_s: plan.interval_s,
    };
    let mut groups: Vec<Vec<Connection>> = (0..parts).map(|_| Vec::new()).collect();
    let mut crews = Vec::new();
    // Tasks beside scripts have a pace of their own.
    let pace = if clients.scripts.is_empty() { plan.pace } else { Pace::Closed };
    if let Place::Embedded(store) = address.place() {
        let client = |script| -> Box<dyn Task> { Box::new(EmbeddedClient::new(store, script)) };
        crews.push((plan.pace, clients.scripts.into_iter().map(client).collect::<Vec<_>>()));
    } else {
        for (client, script) in clients.scripts.into_iter().enumerate() {
            groups[client % parts as usize].push(Connection::open(address.clone(), script)?);
        }
    }
    crews.push((pace, clients.tasks));
    groups.retain(|group| !group.is_empty());
    crews.retain(|(_, tasks)| !tasks.is_empty());
    let start = Instant::now();
    let window = orders(start, 0).window;
    let crews = crews.into_iter().map(|(pace, tasks)| (Orders { pace, ..orders(start, 0) }, tasks)).collect();
    let underway = start_all(groups, |part| orders(start, part), crews)?;
    let Watched { usage, usage_per_second, folder_bytes, server_end } =
        watch(plan, window, &underway, observer)?;
    let ended = if is_over_by(&underway, window.to() + CREW_GRACE)? { Ended::All } else { Ended::NotAll };
    let mut tally = Tally::new(counting.kinds, counting.misses).by_intervals_of(plan.interval_s);
    let mut over_at = Some(window.from);
    for part in join(underway, ended)? {
        // The run ended early only if every worker did.
        over_at = over_at.and_then(|so_far| Some(part.over_at?.max(so_far)));
        tally.add(part);
    }
    if matches!(address.place(), Place::Embedded(_)) {
        // Clients and engine are the same threads: there is no client whose cost could be told.
        tally.threads.clear();
    }
    tally.count_overdue(over_at.map_or(window.to(), |over| over.min(window.to())));
    let planned = f64::from(plan.duration_s);
    let seconds = over_at.map_or(planned, |over| over.duration_since(window.from).as_secs_f64().max(1e-6));
    // Seconds in which nothing was done are seconds of the window, too.
    tally.seconds.resize(seconds.ceil() as usize, crate::client::Second::default());
    Ok(Measured {
        plan,
        from: window.from,
        seconds,
        tally,
        usage,
        usage_per_second,
        folder_bytes,
        server_end,
    })
}

fn start_all(
    groups: Vec<Vec<Connection>>,
    orders: impl Fn(u32) -> Orders,
    crews_to_be: Vec<(Orders, Vec<Box<dyn Task>>)>,
) -> Result<Underway, BenchError> {
    let (begun, over) = channel();
    let (mut workers, mut done) = (Vec::new(), Vec::new());
    for (part, group) in groups.into_iter().enumerate() {
        let counter = Arc::new(AtomicU64::new(0));
        let worker = Worker::new(group, orders(u32::try_from(part).unwrap_or(0)), counter.clone())?;
        done.push(counter);
        workers.push(spawn("clients", begun.clone(), move || worker.run())?);
    }
    let mut crews = Vec::new();
    for (orders, tasks) in crews_to_be {
        let crew = Arc::new(Crew::new(orders, tasks.len()));
        done.push(crew.done());
        let mut handles = Vec::new();
        for task in tasks {
            let crew = crew.clone();
            handles.push(spawn("client", begun.clone(), move || crew.follow(task))?);
        }
        crews.push((crew, handles));
    }
    Ok(Underway { workers, crews, over, done })
}

/// A thread that holds its end of the channel until it is over.
fn spawn<T: Send + 'static>(
    name: &str,
    begun: Sender<()>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, BenchError> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let outcome = work();
        drop(begun);
        outcome
    });
    thread.map_err(no_resource("a thread"))
}

fn join(underway: Underway, ended: Ended) -> Result<Vec<Tally>, BenchError> {
    let mut tallies = Vec::new();
    for handle in underway.workers {
        tallies.push(handle.join().map_err(|_| BenchError::ThreadPanicked)??);
    }
    for (crew, handles) in underway.crews {
        // A thread that waits in the driver for a server that hangs is not waited for.
        let is_over = |handle: &JoinHandle<_>| ended == Ended::All || handle.is_finished();
        let (over, stuck): (Vec<_>, Vec<_>) = handles.into_iter().partition(is_over);
        for handle in over {
            handle.join().map_err(|_| BenchError::ThreadPanicked)??;
        }
        tallies.push(crew.finish(stuck.len()));
    }
    Ok(tallies)
}

#[derive(Default)]
struct Watched {
    usage: Option<Usage>,
    usage_per_second: Vec<Usage>,
    folder_bytes: Vec<u64>,
    server_end: Option<ServerEnd>,
}

/// Samples the counters at the edges of the window and of its seconds, and the size of the data at the end of
/// each interval.
fn watch(
    plan: Plan,
    window: Window,
    underway: &Underway,
    observer: Option<Observer<'_>>,
) -> Result<Watched, BenchError> {
    let is_over = |moment: Instant| is_over_by(underway, moment);
    let mut all_over = is_over(window.from)?;
    let Some(Observer { sources, mut at_edge }) = observer else {
        let _ = all_over || is_over(window.to())?;
        return Ok(Watched::default());
    };
    let first = sample(sources, window)?;
    if let Some(look) = &mut at_edge {
        look();
    }
    let (mut last, mut per_second, mut folder_bytes) = (first.clone(), Vec::new(), Vec::new());
    let mut server_end = None;
    for second in 1..=window.seconds {
        if all_over {
            break;
        }
        all_over = is_over(window.from + SECOND * second)?;
        let sample = match sample(sources, window) {
            Err(BenchError::ServerEnded { process, seconds }) => {
                server_end = Some(ServerEnd { process, seconds });
                break;
            }
            sample => sample?,
        };
        per_second.push(sources.between(&last, &sample));
        last = sample;
        if second % plan.interval_s.max(1) == 0 || second == window.seconds || all_over {
            folder_bytes.extend(sources.folder_bytes());
        }
        if second % PROGRESS_S == 0 && second < window.seconds {
            print_progress(second, underway);
        }
    }
    if let Some(look) = &mut at_edge {
        look();
    }
    // A server that ended within the first second has been looked at once only.
    let usage = (server_end.is_none() || !per_second.is_empty()).then(|| sources.between(&first, &last));
    Ok(Watched { usage, usage_per_second: per_second, folder_bytes, server_end })
}

/// The counters now. If they cannot be read because the server has ended, the error says so, and when.
fn sample(sources: &mut Sources, window: Window) -> Result<Sample, BenchError> {
    sources.sample().map_err(|error| match sources.server() {
        Some(process) if process.began_ticks().is_none() => {
            BenchError::ServerEnded { process, seconds: window.start.elapsed().as_secs_f64() }
        }
        _ => error.into(),
    })
}

/// Waits for a moment; whether all clients are over before. Somebody who asks for the end is heard within a
/// second.
fn is_over_by(underway: &Underway, moment: Instant) -> Result<bool, BenchError> {
    loop {
        interrupt::check()?;
        let left = moment.saturating_duration_since(Instant::now());
        match underway.over.recv_timeout(left.min(SECOND)) {
            Err(RecvTimeoutError::Disconnected) => return Ok(true),
            _ if left <= SECOND => return Ok(false),
            _ => {}
        }
    }
}

fn print_progress(second: u32, underway: &Underway) {
    let done: u64 = underway.done.iter().map(|done| done.load(std::sync::atomic::Ordering::Relaxed)).sum();
    err_line!("{second} s : {done} operations : {:.0} operations/s", done as f64 / f64::from(second));
}
