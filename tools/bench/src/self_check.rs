//! The self-check: the cost of this tool and the truth of its figures, against its own null server in one
//! process.
//!
//! | part | question | bound |
//! |---|---|---|
//! | [`floor`] | what does a point query cost the client above a bare loop of reads and writes of the same bytes? | 4 us |
//! | [`counters`] | how much slower are runs whose counters are read? | 1 % |
//! | [`open_loop`] | does an open loop at half of what the closed one reaches hold its schedule? | within 1 % |
//! | [`degrees`] | is a file LinkBench's own table of degrees? | by all totals |
//! | [`seed`] | do two runs of one seed send the same requests? | all |
//!
//! Comparisons alternate within one call, since other work on the machine disturbs any single figure. How the
//! client compares with drivers is `tests/measurements/drivers.py`, since drivers are no part of this tool.

pub mod command;
pub mod counters;
pub mod degrees;
pub mod floor;
pub mod open_loop;
pub mod seed;

use crate::client::{INTERVAL_S, Misses, NullServer, Pace};
use crate::command::point;
use crate::error::BenchError;
use crate::run::{Counting, Plan};
use crate::workload::Workload;
use crate::workload::point::PointQuery;

/// How long and how often to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub clients: u32,
    /// Seconds of one measurement.
    pub seconds: u32,
    /// Measurements of each kind.
    pub rounds: u32,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub text: String,
    pub holds: bool,
}

impl Effort {
    fn plan(self, pace: Pace) -> Plan {
        Plan {
            clients: self.clients,
            threads: 1,
            warmup_s: 0,
            duration_s: self.seconds,
            pace,
            interval_s: INTERVAL_S,
        }
    }
}

const QUERIES: Counting = Counting { kinds: 0, misses: Misses::AreFaults };

/// Point queries with their defaults.
fn queries() -> PointQuery {
    point::workload(&point::command().get_matches_from(["point"]))
}

fn null_server(workload: &PointQuery) -> Result<NullServer, BenchError> {
    NullServer::start(&workload.null_reply().ok_or(BenchError::Closed)?)
}

fn median(values: Vec<f64>) -> f64 {
    pando_measuring::number::median(values).unwrap_or(0.0)
}
