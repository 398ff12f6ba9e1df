//! The check of open loops: one at half of the closed loop's rate begins as many units as its schedule says.

use super::{Answer, Effort, QUERIES, null_server, queries};
use crate::client::{Listening, Pace, Spacing};
use crate::error::BenchError;
use crate::run;
use crate::target::Target;
use crate::workload::Workload;

/// How far off it may be, as a share.
const BOUND: f64 = 0.01;

pub fn check(effort: Effort) -> Result<Answer, BenchError> {
    let workload = queries();
    let server = null_server(&workload)?;
    let target = Target::at(server.address());
    let run = |pace| {
        let clients = workload.null_clients(&target, effort.clients)?;
        run::run(effort.plan(pace), server.address(), clients, QUERIES, None)
    };
    let closed = run(Pace::Closed)?.rate();
    let asked = closed / 2.0;
    let measured = run(Pace::Open { rate: asked, spacing: Spacing::Even })?;
    let found = measured.rate();
    let error = (found - asked).abs() / asked;
    let late = measured.tally.latencies.quantile_us(0.5) - service_us(&measured);
    let text = format!(
        "closed loop {closed:.0}/s, open loop asked for {asked:.0}/s and did {found:.0}/s: off by {:.3} % (bound 1 %), {} not begun, \
         median wait for a free client {late:.0} us",
        error * 100.0,
        measured.tally.not_begun
    );
    Ok(Answer { text, holds: error <= BOUND })
}

fn service_us(measured: &run::Measured) -> f64 {
    measured.tally.service.as_ref().map_or(0.0, |service| service.quantile_us(0.5))
}
