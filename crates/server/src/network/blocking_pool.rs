//! Threads for requests that have to wait: for the device, for a lock.
//!
//! They are started when there is work and nobody to do it, up to a limit, and end when they have had nothing to do for a
//! while, so that a server whose data is all cached has none.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tracing::error;

use super::exchange::{Exchange, panic_text};
use super::placement::Processors;

/// A thread with nothing to do ends after this time.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Larger output buffers go back to the allocator after use.
const BUFFER_KEPT_BYTES: usize = 256 * 1024;

/// What one thread of the pool keeps between jobs.
pub(crate) struct Workspace {
    pub(crate) exchange: Exchange,
    pub(crate) out: Vec<u8>,
}

/// Work for one thread of the pool.
pub(crate) type Job = Box<dyn FnOnce(&mut Workspace) + Send>;

/// The pool. Clones are handles to the same one.
#[derive(Clone)]
pub(crate) struct BlockingPool {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    work_came: Condvar,
    threads_max: usize,
    processors: Processors,
}

struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl BlockingPool {
    /// A pool without threads yet.
    pub(crate) fn new(threads_max: usize) -> BlockingPool {
        assert!(threads_max > 0, "a pool needs at least one thread");
        let state = State { jobs: VecDeque::new(), threads: 0, idle: 0 };
        BlockingPool {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                work_came: Condvar::new(),
                threads_max,
                processors: Processors::of_this_thread(),
            }),
        }
    }

    /// Has a job done, in the order of submission as far as there are threads.
    pub(crate) fn submit(&self, job: Job) {
        let mut state = self.shared.state.lock();
        state.jobs.push_back(job);
        if state.idle < state.jobs.len() && state.threads < self.shared.threads_max {
            state.threads += 1;
            drop(state);
            self.start_thread();
        } else {
            drop(state);
            self.shared.work_came.notify_one();
        }
    }

    fn start_thread(&self) {
        let shared = Arc::clone(&self.shared);
        let started = thread::Builder::new().name("pando-blocking".to_owned()).spawn(move || shared.work());
        let Err(error) = started else { return };
        error!(%error, "cannot start a thread for requests that wait");
        let mut state = self.shared.state.lock();
        state.threads -= 1;
        // With other threads the job waits for one of them. With none it is done here: slowly, but done.
        let stranded = if state.threads == 0 { state.jobs.pop_front() } else { None };
        drop(state);
        if let Some(job) = stranded {
            run(job, &mut Workspace { exchange: Exchange::new(), out: Vec::new() });
        }
    }

    /// Threads alive, for tests and statistics.
    pub(crate) fn threads(&self) -> usize {
        self.shared.state.lock().threads
    }
}

impl Shared {
    fn work(&self) {
        // An I/O thread started this one, which would otherwise have to stay where that stays.
        self.processors.allow();
        let mut workspace = Workspace { exchange: Exchange::new(), out: Vec::new() };
        while let Some(job) = self.next_job() {
            run(job, &mut workspace);
        }
    }

    /// The next job, or none if the thread is to end; it is then no longer counted.
    fn next_job(&self) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            state.idle += 1;
            let timed_out = self.work_came.wait_for(&mut state, IDLE_MAX).timed_out();
            state.idle -= 1;
            if timed_out && state.jobs.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }
}

/// Does a job. Handlers' panics are caught closer to them; one that comes here is a defect of the network side, and must not
/// take the thread with it.
fn run(job: Job, workspace: &mut Workspace) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(workspace))) {
        error!(panic = panic_text(panic.as_ref()), "a job of the blocking pool panicked");
    }
    workspace.out.clear();
    workspace.out.shrink_to(BUFFER_KEPT_BYTES);
}
