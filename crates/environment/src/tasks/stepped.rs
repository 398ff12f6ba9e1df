//! The simulated scheduler: tasks run one step at a time, when a test says so, in an order drawn from a seed.

use std::sync::{Arc, Weak};

use super::{Ending, Spawner, Step, StepFunction, Task, TaskState};
use crate::sync::Mutex;
use crate::{Clock, EnvironmentError, MockClock, Monotonic, SeededRandom};

/// How many steps [`SteppedTasks::run_until_idle`] takes before it calls the tasks a loop without end.
const STEPS_MAX: u32 = 1_000_000;

/// All tasks of a simulation.
pub struct SteppedTasks {
    // A scheduler hands itself to its tasks, so that a dropped task leaves it.
    itself: Weak<SteppedTasks>,
    clock: Arc<MockClock>,
    random: SeededRandom,
    tasks: Mutex<Vec<Entry>>,
}

struct Entry {
    state: Arc<TaskState>,
    // Out of its place while its step runs, so that a step may spawn, wake and stop other tasks.
    step: Option<StepFunction>,
    due: Due,
}

#[derive(Clone, Copy)]
enum Due {
    Now,
    At(Monotonic),
    WhenWoken,
}

impl SteppedTasks {
    /// A scheduler without tasks.
    pub fn new(seed: u64, clock: Arc<MockClock>) -> Arc<SteppedTasks> {
        Arc::new_cyclic(|itself| SteppedTasks {
            itself: Weak::clone(itself),
            clock,
            random: SeededRandom::new(seed),
            tasks: Mutex::new(Vec::new()),
        })
    }

    /// Runs one step of one task that is due, chosen by the seed. False when none is due.
    pub fn run_one(&self) -> bool {
        let Some((state, mut step)) = self.take_due() else { return false };
        let next = step();
        let mut tasks = self.tasks.lock();
        let Some(at) = tasks.iter().position(|entry| Arc::ptr_eq(&entry.state, &state)) else { return true };
        let due = match next {
            Step::Again => Due::Now,
            Step::Wait(time) => Due::At(self.clock.monotonic().plus(time)),
            Step::Sleep => Due::WhenWoken,
            Step::Done => {
                tasks.remove(at);
                return true;
            }
        };
        tasks[at].due = due;
        tasks[at].step = Some(step);
        true
    }

    /// Runs steps until no task is due at the clock's present time.
    ///
    /// # Panics
    /// After a million steps: a task then keeps itself awake for ever.
    pub fn run_until_idle(&self) {
        for _ in 0..STEPS_MAX {
            if !self.run_one() {
                return;
            }
        }
        panic!("after {STEPS_MAX} steps a task is still due: it keeps itself awake");
    }

    /// Forgets all tasks, as the death of the process does.
    pub fn forget_all(&self) {
        self.tasks.lock().clear();
    }

    fn take_due(&self) -> Option<(Arc<TaskState>, StepFunction)> {
        let now = self.clock.monotonic();
        let mut tasks = self.tasks.lock();
        let mut ready = Vec::new();
        for (at, entry) in tasks.iter_mut().enumerate() {
            if entry.step.is_none() || entry.state.is_stopped() {
                continue;
            }
            if entry.state.take_wake() {
                entry.due = Due::Now;
            }
            let is_ready = match entry.due {
                Due::Now => true,
                Due::At(time) => time <= now,
                Due::WhenWoken => false,
            };
            if is_ready {
                ready.push(at);
            }
        }
        if ready.is_empty() {
            return None;
        }
        let chosen = ready[usize::try_from(self.random.below(ready.len() as u64)).unwrap_or_default()];
        let entry = &mut tasks[chosen];
        entry.step.take().map(|step| (Arc::clone(&entry.state), step))
    }

    fn leave(&self, state: &Arc<TaskState>) {
        let left = {
            let mut tasks = self.tasks.lock();
            let at = tasks.iter().position(|entry| Arc::ptr_eq(&entry.state, state));
            at.map(|at| tasks.remove(at))
        };
        // The step's captures may own other tasks: they are dropped without the lock.
        drop(left);
    }
}

impl Spawner for SteppedTasks {
    fn runs_by_itself(&self) -> bool {
        false
    }

    fn spawn(&self, _name: &str, step: StepFunction) -> Result<Task, EnvironmentError> {
        let state = Arc::new(TaskState::new());
        self.tasks.lock().push(Entry { state: Arc::clone(&state), step: Some(step), due: Due::Now });
        let (scheduler, leaving) = (Weak::clone(&self.itself), Arc::clone(&state));
        let leave = move || {
            if let Some(scheduler) = scheduler.upgrade() {
                scheduler.leave(&leaving);
            }
        };
        Ok(Task::new(state, Ending::Leave(Box::new(leave))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    fn counter(tasks: &SteppedTasks, next: Step) -> (Arc<AtomicU32>, Task) {
        let steps = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&steps);
        let task = tasks
            .spawn(
                "counter",
                Box::new(move || {
                    counted.fetch_add(1, Ordering::SeqCst);
                    next
                }),
            )
            .unwrap();
        (steps, task)
    }

    #[test]
    fn no_task_runs_until_the_test_says_so() {
        let clock = Arc::new(MockClock::new());
        let tasks = SteppedTasks::new(1, Arc::clone(&clock));
        let (steps, _task) = counter(&tasks, Step::Wait(Duration::from_millis(100)));
        assert_eq!(steps.load(Ordering::SeqCst), 0);
        tasks.run_until_idle();
        assert_eq!(steps.load(Ordering::SeqCst), 1);
        clock.advance(Duration::from_millis(99));
        tasks.run_until_idle();
        assert_eq!(steps.load(Ordering::SeqCst), 1);
        clock.advance(Duration::from_millis(1));
        tasks.run_until_idle();
        assert_eq!(steps.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_sleeping_task_runs_when_woken_and_a_dropped_one_never() {
        let tasks = SteppedTasks::new(2, Arc::new(MockClock::new()));
        let (steps, task) = counter(&tasks, Step::Sleep);
        tasks.run_until_idle();
        task.wake();
        tasks.run_until_idle();
        assert_eq!(steps.load(Ordering::SeqCst), 2);
        let waker = task.waker();
        drop(task);
        waker.wake();
        tasks.run_until_idle();
        assert_eq!(steps.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_task_that_is_done_is_gone() {
        let tasks = SteppedTasks::new(3, Arc::new(MockClock::new()));
        let (steps, task) = counter(&tasks, Step::Done);
        tasks.run_until_idle();
        task.wake();
        assert!(!tasks.run_one());
        assert_eq!(steps.load(Ordering::SeqCst), 1);
    }
}
