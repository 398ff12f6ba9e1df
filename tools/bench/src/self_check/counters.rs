//! How much slower runs are whose counters are read. Two figures: rates with and without, in turn; and what one reading of all
//! counters costs, once a second, which other work on the machine does not disturb.

use super::{Answer, Effort, QUERIES, median, null_server, queries};
use crate::client::{Pace, ThreadUsage};
use crate::counters::Sources;
use crate::error::BenchError;
use crate::run;
use crate::target::Target;
use crate::workload::Workload;

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
    let mut sources = Sources::find(server.address(), None, folder);
    let mut rate = |counted: bool| -> Result<f64, BenchError> {
        let clients = workload.null_clients(&target, effort.clients)?;
        let sources = counted.then_some(&mut sources);
        Ok(run::run(effort.plan(Pace::Closed), server.address(), clients, QUERIES, sources)?.rate())
    };
    let mut ratios = Vec::new();
    for round in 0..effort.rounds {
        // Who goes first changes: a machine that slows down meanwhile must not count for one side.
        let (first, second) = (rate(round % 2 == 0)?, rate(round % 2 != 0)?);
        ratios.push(if round % 2 == 0 { first / second } else { second / first });
    }
    let before = ThreadUsage::now()?;
    for _ in 0..READINGS {
        sources.sample()?;
    }
    let reading_us = ThreadUsage::now()?.since(&before).cpu_us / f64::from(READINGS);
    let share = reading_us / 1e6;
    let text = format!(
        "rate with counters by rate without: median {:.4} of {} pairs; a reading of all counters costs {reading_us:.0} us of CPU, once \
         a second: {:.3} % of a core (bound 1 %)",
        median(ratios),
        effort.rounds,
        share * 100.0
    );
    Ok(Answer { text, holds: share < BOUND })
}
