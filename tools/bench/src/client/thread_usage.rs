//! The CPU time and context switches of a thread of this tool, so that the client's cost stands apart from
//! the server's.

use pando_measuring::counters::{CounterError, switches_of_this_thread};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct ThreadUsage {
    /// CPU time, user and system, in microseconds.
    pub cpu_us: f64,
    pub switches: u64,
}

impl ThreadUsage {
    /// Of the calling thread, since it began.
    pub fn now() -> Result<ThreadUsage, CounterError> {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
        let cpu = seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0));
        Ok(ThreadUsage { cpu_us: cpu.as_secs_f64() * 1e6, switches: switches_of_this_thread()? })
    }

    /// The difference from an earlier reading.
    #[must_use]
    pub fn since(&self, before: &ThreadUsage) -> ThreadUsage {
        ThreadUsage {
            cpu_us: self.cpu_us - before.cpu_us,
            switches: self.switches.saturating_sub(before.switches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_this_thread_shows_and_sleep_does_not() {
        let before = ThreadUsage::now().expect("/proc is there");
        std::thread::sleep(Duration::from_millis(20));
        let slept = ThreadUsage::now().expect("/proc is there").since(&before);
        assert!(slept.cpu_us < 15_000.0 && slept.switches >= 1, "{slept:?}");
    }
}
