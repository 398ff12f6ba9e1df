//! The check of the counters: the slowdown of runs whose counters are read.
//!
//! - Rates with and without counters, in turn.
//! - The CPU of this process per query with and without them, which other work on the machine disturbs less.
//! - The cost of one reading of all counters, which happens once a second. No other work disturbs it, so it
//!   decides.

use super::{Answer, Effort, QUERIES, median, null_server, queries};
use crate::client::{Listening, Pace, ThreadUsage};
use crate::error::BenchError;
use crate::run::{self, Observer};
use crate::target::Target;
use crate::workload::Workload;
use pando_measuring::counters::{ProcessId, Sources};
use rustix::time::{ClockId, clock_gettime};

/// How much slower a run may be, as a share.
const BOUND: f64 = 0.01;
/// Readings of all counters whose cost is taken.
const READINGS: u32 = 200;

/// Measures both.
pub fn check(effort: Effort) -> Result<Answer, BenchError> {
    let workload = queries();
    let server = null_server(&workload)?;
    let target = Target::at(server.address());
    let folder = std::env::current_dir().ok();
    let mut sources = Sources::find(ProcessId::behind_port(server.address()), folder);
    let mut measure = |counted: bool| -> Result<(f64, f64), BenchError> {
        let clients = workload.null_clients(&target, effort.clients)?;
        let observer = counted.then(|| Observer::of_costs(&mut sources));
        let before = process_cpu_us();
        let measured = run::run(effort.plan(Pace::Closed), server.address(), clients, QUERIES, observer)?;
        let cpu = process_cpu_us() - before;
        Ok((measured.rate(), cpu / measured.tally.operations().max(1) as f64))
    };
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for round in 0..effort.rounds {
        // The sides take turns: a machine that slows down meanwhile must not count for one of them.
        let (first, second) = (measure(round % 2 == 0)?, measure(round % 2 != 0)?);
        let (with, without) = if round % 2 == 0 { (first, second) } else { (second, first) };
        rates.push(with.0 / without.0);
        costs.push(with.1 / without.1);
    }
    let before = ThreadUsage::now()?;
    for _ in 0..READINGS {
        sources.sample()?;
    }
    let reading_us = ThreadUsage::now()?.since(&before).cpu_us / f64::from(READINGS);
    let share = reading_us / 1e6;
    let text = format!(
        "with counters by without, medians of {} pairs: rate {:.4}, CPU a query {:.4}; a reading of all counters costs {reading_us:.0} us of \
         CPU, once a second: {:.3} % of a core (bound 1 %)",
        effort.rounds,
        median(rates),
        median(costs),
        share * 100.0
    );
    Ok(Answer { text, holds: share < BOUND })
}

fn process_cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
