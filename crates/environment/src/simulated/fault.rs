//! Faults that a test orders from the simulated disk.

use std::io;
use std::path::Path;

use crate::Operation;

/// One way to misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with EIO and has no effect. A failed sync drops the bytes that it should have written,
    /// as Linux does. Reads still show them, later syncs succeed without them, and they are gone after a
    /// crash.
    InputOutputError,
    /// The call fails with ENOSPC and has no effect.
    NoSpace,
    /// Of a write, only the first half arrives, and then the call fails with EIO.
    ShortWrite,
    /// A write is acknowledged and not carried out.
    LostWrite,
    /// A write is acknowledged and lands this many sectors further on (or back).
    MisdirectedWrite {
        /// Distance in sectors.
        sectors: i32,
    },
    /// One bit of what is written arrives flipped.
    BitFlip {
        /// Which bit of the buffer, counted modulo its length.
        bit: u64,
    },
    /// A read returns, sector by sector, the bytes before the last write to it.
    StaleRead,
}

impl Fault {
    /// The system error of faults that fail the call.
    pub(super) fn error(self) -> Option<io::Error> {
        match self {
            Fault::InputOutputError | Fault::ShortWrite => Some(rustix::io::Errno::IO.into()),
            Fault::NoSpace => Some(rustix::io::Errno::NOSPC.into()),
            Fault::LostWrite | Fault::MisdirectedWrite { .. } | Fault::BitFlip { .. } | Fault::StaleRead => {
                None
            }
        }
    }
}

/// When to misbehave: at the matching calls from the `skip`-th on, `times` times.
#[derive(Clone, Debug)]
pub struct FaultRule {
    operation: Operation,
    path_part: String,
    skip: u64,
    times: u64,
    fault: Fault,
}

impl FaultRule {
    /// The next call of this operation on any path misbehaves, once.
    pub fn new(operation: Operation, fault: Fault) -> FaultRule {
        FaultRule { operation, path_part: String::new(), skip: 0, times: 1, fault }
    }

    /// Only on paths that contain this text.
    #[must_use]
    pub fn on(mut self, path_part: &str) -> FaultRule {
        path_part.clone_into(&mut self.path_part);
        self
    }

    /// Lets this many matching calls pass first.
    #[must_use]
    pub fn after(mut self, calls: u64) -> FaultRule {
        self.skip = calls;
        self
    }

    /// Misbehaves this many times.
    #[must_use]
    pub fn times(mut self, times: u64) -> FaultRule {
        self.times = times;
        self
    }

    /// Misbehaves until the faults are cleared.
    #[must_use]
    pub fn always(self) -> FaultRule {
        self.times(u64::MAX)
    }

    /// Counts a call; the fault, if this is a call to misbehave at.
    pub(super) fn strike(&mut self, operation: Operation, path: &Path) -> Option<Fault> {
        if operation != self.operation || self.times == 0 || !path.to_string_lossy().contains(&self.path_part)
        {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        self.times -= 1;
        Some(self.fault)
    }
}
