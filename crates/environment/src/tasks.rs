//! Background work, cut in steps so that a simulation can run it.
//!
//! A task is a closure that is called again and again. Its return value says when it wants to be called next.
//! In reality each task has a named thread that sleeps between steps. In a simulation [`SteppedTasks`] keeps
//! them all, and runs one step at a time when the test says so, in an order drawn from the seed.
//!
//! # Invariants
//! - The steps of one task never overlap.
//! - After [`Task::stop`] returns, no step runs any more.
//! - A wake that arrives during a step is not lost: the task is called once more.

mod stepped;

use std::num::NonZero;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Condvar, Mutex};
use crate::{EnvironmentError, Operation};

pub use stepped::SteppedTasks;

/// The answer of a step: when the next one is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do at once.
    Again,
    /// Call again after this time, or when woken.
    Wait(Duration),
    /// Call again when woken.
    Sleep,
    /// The task is over.
    Done,
}

/// A step of a task.
pub type StepFunction = Box<dyn FnMut() -> Step + Send>;

/// A piece of work that is done once.
pub type Work<'w> = Box<dyn FnOnce() + Send + 'w>;

/// The door to background work.
pub trait Spawner: Send + Sync {
    /// Starts a task. The name (at most 15 bytes show in the system's tools) is the thread's.
    fn spawn(&self, name: &str, step: StepFunction) -> Result<Task, EnvironmentError>;

    /// The processors that threads of this process may use at the same time.
    fn processors(&self) -> usize {
        1
    }

    /// Runs works at the same time as far as there are threads, one of which is the caller's; returns when
    /// all have ended. The name (at most 15 bytes show in the system's tools) is that of the other threads.
    fn run_together(&self, _name: &str, works: Vec<Work<'_>>) {
        works.into_iter().for_each(|work| work());
    }

    /// Whether tasks run by themselves. Where they do not, a wait for one is in vain; the caller does its
    /// work instead.
    fn runs_by_itself(&self) -> bool {
        true
    }
}

/// The part of a task that wakers and the runner share.
pub(crate) struct TaskState {
    woken: AtomicBool,
    stopped: AtomicBool,
    // Guards nothing but the sleep itself, so that a wake between the check and the sleep is not lost.
    sleep: Mutex<()>,
    wake_up: Condvar,
}

impl TaskState {
    pub(crate) fn new() -> TaskState {
        TaskState {
            woken: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            sleep: Mutex::new(()),
            wake_up: Condvar::new(),
        }
    }

    pub(crate) fn wake(&self) {
        // A task that is already woken needs no second signal: wakers on the commit path pay one atomic swap.
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.signal();
        }
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.signal();
    }

    fn signal(&self) {
        drop(self.sleep.lock());
        self.wake_up.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(crate) fn take_wake(&self) -> bool {
        self.woken.swap(false, Ordering::SeqCst)
    }

    fn sleep(&self, limit: Option<Duration>) {
        let mut guard = self.sleep.lock();
        if self.woken.load(Ordering::SeqCst) || self.is_stopped() {
            return;
        }
        match limit {
            Some(limit) => drop(self.wake_up.wait_for(&mut guard, limit)),
            None => self.wake_up.wait(&mut guard),
        }
    }
}

/// Wakes a task, from any thread, also after the task has ended.
#[derive(Clone)]
pub struct TaskWaker {
    state: Arc<TaskState>,
}

impl TaskWaker {
    /// Has the task called soon. Cheap when it is already woken.
    pub fn wake(&self) {
        self.state.wake();
    }
}

/// A running task. Dropping it stops it and waits for the step under way.
pub struct Task {
    state: Arc<TaskState>,
    // The steps after `stop`: joining the thread, or leaving the simulated scheduler.
    ending: Option<Ending>,
}

pub(crate) enum Ending {
    Join(JoinHandle<()>),
    Leave(Box<dyn FnOnce() + Send + Sync>),
}

impl Task {
    pub(crate) fn new(state: Arc<TaskState>, ending: Ending) -> Task {
        Task { state, ending: Some(ending) }
    }

    /// Has the task called soon.
    pub fn wake(&self) {
        self.state.wake();
    }

    /// A handle by which others wake the task.
    pub fn waker(&self) -> TaskWaker {
        TaskWaker { state: Arc::clone(&self.state) }
    }

    /// Stops the task: when this returns, no step runs any more. The same as dropping it.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.state.stop();
        match self.ending.take() {
            // The last owner of a task may be the task itself; it cannot wait for its own end.
            Some(Ending::Join(thread)) if thread.thread().id() != thread::current().id() => {
                // A panic in the task has already been reported by the panic hook, with the thread's name.
                let _ended = thread.join();
            }
            Some(Ending::Join(_)) | None => {}
            Some(Ending::Leave(leave)) => leave(),
        }
    }
}

/// One thread per task.
pub(crate) struct ThreadSpawner;

impl Spawner for ThreadSpawner {
    fn spawn(&self, name: &str, step: StepFunction) -> Result<Task, EnvironmentError> {
        let state = Arc::new(TaskState::new());
        let shared = Arc::clone(&state);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run_steps(&shared, step))
            .map_err(|source| EnvironmentError::io(Operation::Spawn, name.as_ref(), source))?;
        Ok(Task::new(state, Ending::Join(thread)))
    }

    fn processors(&self) -> usize {
        std::thread::available_parallelism().map_or(1, NonZero::get)
    }

    fn run_together(&self, name: &str, works: Vec<Work<'_>>) {
        let threads = works.len().saturating_sub(1);
        let works = std::sync::Mutex::new(works.into_iter());
        // The lock is held for the take alone: what is taken runs without it.
        let take = || works.lock().unwrap_or_else(PoisonError::into_inner).next();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let run_all = || std::iter::from_fn(take).for_each(|work| work());
                // Where there is no thread to be had, the others do its work.
                let _others = std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, run_all);
            }
            std::iter::from_fn(take).for_each(|work| work());
        });
    }
}

fn run_steps(state: &TaskState, mut step: StepFunction) {
    while !state.is_stopped() {
        state.take_wake();
        match step() {
            Step::Again => {}
            Step::Wait(limit) => state.sleep(Some(limit)),
            Step::Sleep => state.sleep(None),
            Step::Done => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_runs_a_step_at_once_and_again_when_woken() {
        let (sender, receiver) = mpsc::channel();
        let task = ThreadSpawner
            .spawn(
                "counter",
                Box::new(move || {
                    sender.send(std::thread::current().name().map(str::to_owned)).unwrap();
                    Step::Sleep
                }),
            )
            .unwrap();
        assert_eq!(receiver.recv().unwrap().as_deref(), Some("counter"));
        task.wake();
        receiver.recv_timeout(Duration::from_secs(10)).expect("the wake leads to a second step");
    }

    #[test]
    fn works_run_together_and_all_have_ended_at_the_return() {
        let done = AtomicU32::new(0);
        let meeting = std::sync::Barrier::new(2);
        let works = (0..2).map(|_| -> Work<'_> {
            Box::new(|| {
                // Each waits for the other: on one thread this would never end.
                meeting.wait();
                done.fetch_add(1, Ordering::SeqCst);
            })
        });
        ThreadSpawner.run_together("together", works.collect());
        assert_eq!(done.load(Ordering::SeqCst), 2);
        assert!(ThreadSpawner.processors() >= 1);
    }

    #[test]
    fn after_stop_no_step_runs() {
        let steps = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&steps);
        let task = ThreadSpawner
            .spawn(
                "busy",
                Box::new(move || {
                    counted.fetch_add(1, Ordering::SeqCst);
                    Step::Wait(Duration::from_micros(50))
                }),
            )
            .unwrap();
        let waker = task.waker();
        task.stop();
        let ran = steps.load(Ordering::SeqCst);
        waker.wake();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(steps.load(Ordering::SeqCst), ran);
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
