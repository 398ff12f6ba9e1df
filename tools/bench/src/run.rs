//! One measured run: so many clients, a warm-up, a window.
//!
//! 1. All clients connect; only then the clock starts.
//! 2. The workers begin; the window opens when the warm-up is over.
//! 3. This thread sleeps, and samples the machine's counters at both edges of the window.
//! 4. The workers' tallies are added up.

use crate::client::{Connection, Tally, Window, Worker};
use crate::counters::{Sources, Usage};
use crate::error::BenchError;
use crate::workload::Workload;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// How often the server's threads are looked at within the window, so that none ends unseen.
const NOTICE_THREADS: Duration = Duration::from_secs(5);

/// How to run.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Plan {
    /// Clients, each with a connection of its own.
    pub clients: u32,
    /// Threads of the tool that drive them.
    pub threads: u32,
    /// Seconds before the window.
    pub warmup_s: u32,
    /// Seconds of the window, at least 1.
    pub duration_s: u32,
}

/// What a run measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// How it was run.
    pub plan: Plan,
    /// What the clients counted.
    pub tally: Tally,
    /// What it cost, if that was to be counted.
    pub usage: Option<Usage>,
}

impl Measured {
    /// Requests done per second of the window.
    pub fn rate(&self) -> f64 {
        self.tally.done() as f64 / f64::from(self.plan.duration_s)
    }
}

/// Runs a workload against the server at an address; without `sources`, what it costs is not looked at.
pub fn run(
    plan: Plan,
    address: SocketAddr,
    workload: &dyn Workload,
    sources: Option<&mut Sources>,
) -> Result<Measured, BenchError> {
    let threads = plan.threads.clamp(1, plan.clients);
    let mut groups: Vec<Vec<Connection>> = (0..threads).map(|_| Vec::new()).collect();
    for client in 0..plan.clients {
        let connection = Connection::open(address, workload.script(client)?)?;
        groups[(client % threads) as usize].push(connection);
    }
    let window =
        Window { from: Instant::now() + Duration::from_secs(plan.warmup_s.into()), seconds: plan.duration_s };
    let mut handles = Vec::new();
    for group in groups {
        let worker = Worker::new(group, window)?;
        let thread = std::thread::Builder::new().name("clients".into()).spawn(move || worker.run());
        handles.push(thread.map_err(|source| BenchError::Resource { what: "a thread", source })?);
    }
    let usage = sources.map(|sources| watch(window, sources)).transpose()?;
    let mut tally = Tally::new();
    for handle in handles {
        tally.add(handle.join().map_err(|_| BenchError::ThreadPanicked)??);
    }
    // Seconds in which nothing was done are seconds of the window, too.
    tally.per_second.resize(plan.duration_s as usize, 0);
    Ok(Measured { plan, tally, usage })
}

/// Samples the counters at the edges of the window.
fn watch(window: Window, sources: &mut Sources) -> Result<Usage, BenchError> {
    sleep_until(window.from);
    let before = sources.sample()?;
    while Instant::now() + NOTICE_THREADS < window.to() {
        std::thread::sleep(NOTICE_THREADS);
        sources.notice_threads()?;
    }
    sleep_until(window.to());
    Ok(Usage::between(&before, &sources.sample()?))
}

fn sleep_until(moment: Instant) {
    std::thread::sleep(moment.saturating_duration_since(Instant::now()));
}
