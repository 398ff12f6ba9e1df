//! The processors on which I/O threads run.
//!
//! The kernel wakes a thread near the thread that woke it. On few cores that puts two I/O threads behind the
//! interrupts of one core while the other core idles. With cold reads at 64 clients on two cores, the threads
//! waited for a third of the time beside an idle core. So where there is one I/O thread for each processor,
//! each stays on its own.
//!
//! The kernel places the threads where the process may use less than its processors (a quota of a container),
//! or was told how many threads to run. Threads of several such processes would otherwise meet on the first
//! processors of the machine.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tracing::debug;

/// The choice of a processor for each I/O thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The kernel chooses.
    Free,
    /// Each thread stays on a processor of its own, if there is one for each.
    OnePerProcessor,
}

/// The processor of each of `threads` threads; `None` where the kernel chooses.
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

/// A set of processors.
pub(crate) struct Processors(Option<CpuSet>);

impl Processors {
    /// The processors that the calling thread may run on.
    pub(crate) fn of_this_thread() -> Processors {
        Processors(sched_getaffinity(None).ok())
    }

    /// Lets the calling thread run on these processors.
    pub(crate) fn allow(&self) {
        if let Some(set) = &self.0
            && let Err(error) = sched_setaffinity(None, set)
        {
            debug!(%error, "a blocking thread stays on the processor of the I/O thread that started it");
        }
    }
}

/// Binds the calling thread to a processor. If the kernel refuses, the thread runs where it may.
pub(crate) fn stay_on(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    if let Err(error) = sched_setaffinity(None, &set) {
        debug!(%error, processor, "an I/O thread cannot be bound to its processor");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_a_processor_of_its_own_if_there_are_as_many() {
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
