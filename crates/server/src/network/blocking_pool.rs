//! The blocking pools: threads for requests that have to wait, for the device or for a lock.
//!
//! There are two, so that logins and the commands of an operator do not queue behind long requests that have
//! taken every thread ([`Priority`]). RocksDB has two pools of background threads for the same reason.
//!
//! A thread is started when there is a job and no idle thread, up to a limit. It ends after ten idle seconds,
//! so that a server whose data is all cached has no such thread.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pando_commands::Priority;
use parking_lot::{Condvar, Mutex};
use tracing::error;

use super::placement::Processors;
use super::responder::Responder;
use crate::error_text::panic_text;

/// An idle thread ends after this time.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Threads for requests of high priority. They are short, and each is started on demand only.
const HIGH_PRIORITY_THREADS: usize = 4;

/// Larger output buffers go back to the allocator after use.
const BUFFER_KEPT_BYTES: usize = 256 * 1024;

/// The working memory of one thread of the pool. It is kept between jobs.
#[derive(Default)]
pub(crate) struct Workspace {
    pub(crate) responder: Responder,
    pub(crate) out: Vec<u8>,
}

/// Work for one thread of the pool.
pub(crate) type Job = Box<dyn FnOnce(&mut Workspace) + Send>;

/// One pool for each priority.
#[derive(Clone)]
pub(crate) struct BlockingPools {
    normal: BlockingPool,
    high: BlockingPool,
}

impl BlockingPools {
    /// Pools without threads yet. The number is that of the threads of normal priority.
    pub(crate) fn new(threads_max: usize) -> BlockingPools {
        BlockingPools {
            normal: BlockingPool::new(threads_max),
            high: BlockingPool::new(HIGH_PRIORITY_THREADS),
        }
    }

    /// The pool for requests of a priority.
    pub(crate) fn of(&self, priority: Priority) -> &BlockingPool {
        match priority {
            Priority::Normal => &self.normal,
            Priority::High => &self.high,
        }
    }

    /// The number of threads, for tests and statistics.
    pub(crate) fn threads(&self) -> usize {
        self.normal.threads() + self.high.threads()
    }
}

/// One pool. All clones are handles to it.
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
    fn new(threads_max: usize) -> BlockingPool {
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

    /// Queues a job. Jobs start in the order of submission.
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
        let mut state = self.shared.state.lock();
        state.threads -= 1;
        error!(
            "cannot start a blocking thread beside {} others ({error}); requests that wait take longer; raise the limit of \
             threads of this user (ulimit -u) or lower --blocking-threads",
            state.threads
        );
        // With other threads the job waits for one of them. With none it runs here and holds up this I/O
        // thread.
        let stranded = if state.threads == 0 { state.jobs.pop_front() } else { None };
        drop(state);
        if let Some(job) = stranded {
            run(job, &mut Workspace::default());
        }
    }

    fn threads(&self) -> usize {
        self.shared.state.lock().threads
    }
}

impl Shared {
    fn work(&self) {
        // The I/O thread that started this one may be bound to a processor, and a new thread inherits that.
        self.processors.allow();
        let mut workspace = Workspace::default();
        while let Some(job) = self.next_job() {
            run(job, &mut workspace);
        }
    }

    /// The next job. `None` ends the thread, which is no longer counted then.
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

/// Runs a job. The panics of a handler and of the network side are caught closer to it. One that comes here
/// must not end the thread.
fn run(job: Job, workspace: &mut Workspace) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(workspace))) {
        error!(
            "a request in the blocking pool panicked ({}), and its connection hangs; report this defect with the log line \
             of the panic",
            panic_text(panic.as_ref())
        );
    }
    workspace.out.clear();
    workspace.out.shrink_to(BUFFER_KEPT_BYTES);
}
