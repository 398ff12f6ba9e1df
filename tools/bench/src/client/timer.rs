//! A timer of the kernel that an event loop can wait for: epoll itself counts in whole milliseconds, which is
//! many times a query.

use crate::error::{BenchError, no_resource};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// A timer that rings once each time it is set.
#[derive(Debug)]
pub struct Timer {
    file: OwnedFd,
}

impl Timer {
    /// A timer whose ringing comes as an event with this token.
    pub fn new(registry: &Registry, token: Token) -> Result<Timer, BenchError> {
        let resource = no_resource("a timer");
        let file = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)
            .map_err(|error| resource(error.into()))?;
        registry.register(&mut SourceFd(&file.as_raw_fd()), token, Interest::READABLE).map_err(resource)?;
        Ok(Timer { file })
    }

    /// Rings after this time, and no more at the time that was set before.
    pub fn ring_after(&self, time: Duration) -> Result<(), BenchError> {
        // A time of 0 would turn the timer off.
        let time = time.max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.file, TimerfdTimerFlags::empty(), &once)
            .map(|_| ())
            .map_err(no_resource("a timer"))
    }
}
