//! On which processors I/O threads run.
//!
//! The kernel wakes a thread near whoever woke it. On few cores that puts two I/O threads behind the interrupts of one core while
//! the other idles: with cold reads at 64 clients on two cores, a third of the time was spent waiting for a core beside an idle
//! one. So where there is one I/O thread per processor, each stays on its own. Where the process may use less than its processors
//! (a quota of a container), or was told how many threads to run, the kernel places them: threads of several such processes would
//! otherwise meet on the first processors of the machine.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tracing::debug;

/// Who places the I/O threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The kernel.
    Free,
    /// Each stays on a processor of its own, if there are as many of them as processors that the process may use.
    OnePerProcessor,
}

/// The processor of each of `threads` threads; `None` where the kernel places them.
pub(crate) fn processors(placement: Placement, threads: usize) -> Vec<Option<usize>> {
    let allowed: Vec<usize> = match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).collect(),
        Err(_) => Vec::new(),
    };
    if placement == Placement::OnePerProcessor && allowed.len() == threads {
        allowed.into_iter().map(Some).collect()
    } else {
        vec![None; threads]
    }
}

/// The processors that a thread may run on.
pub(crate) struct Processors(Option<CpuSet>);

impl Processors {
    /// Those of the calling thread.
    pub(crate) fn of_this_thread() -> Processors {
        Processors(sched_getaffinity(None).ok())
    }

    /// Lets the calling thread run on them.
    pub(crate) fn allow(&self) {
        if let Some(set) = &self.0
            && let Err(error) = sched_setaffinity(None, set)
        {
            debug!(%error, "a thread stays on the processor of the thread that started it");
        }
    }
}

/// Keeps the calling thread on a processor. Where that is refused it stays where it may be.
pub(crate) fn stay_on(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    if let Err(error) = sched_setaffinity(None, &set) {
        debug!(%error, processor, "an I/O thread is left to the kernel's placement");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_threads_as_processors_have_one_each() {
        let allowed = std::thread::available_parallelism().map_or(1, usize::from);
        let placed = processors(Placement::OnePerProcessor, allowed);
        // A quota below the processors leaves the placement to the kernel.
        if let Some(first) = placed[0] {
            assert_eq!(placed.iter().flatten().collect::<std::collections::BTreeSet<_>>().len(), allowed);
            std::thread::spawn(move || {
                stay_on(first);
                let set = sched_getaffinity(None).unwrap();
                assert!(set.is_set(first));
                assert_eq!(set.count(), 1);
            })
            .join()
            .unwrap();
        }
    }

    #[test]
    fn other_numbers_of_threads_are_left_to_the_kernel() {
        let allowed = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(processors(Placement::Free, allowed).iter().all(Option::is_none));
        assert!(processors(Placement::OnePerProcessor, 1_000).iter().all(Option::is_none));
    }
}
