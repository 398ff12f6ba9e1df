//! The workloads, one per file or folder, and the trait that the frame runs them by.
//!
//! # The phases of a run
//! 1. *Load* ([`Loading`]): the data, unless it is there.
//! 2. *Warm-up*: seconds of the same work, or a pass of its own ([`Workload::warm_up`]).
//! 3. *Run*: the clients of [`Workload::clients`], until the window or their work is over.
//! 4. *Verify* ([`Workload::verify`]): whether the data is what the work must have left.
//!
//! Connections, timing, counting and reporting are the frame's and the same for all.
//!
//! | workload | one unit | file |
//! |---|---|---|
//! | `point` | a query by `_id` | [`point`] |
//! | `sysbench` | a transaction of 18 statements | [`sysbench`] |
//! | `kv` | a read of one row | [`kv`] |
//! | `iibench` | an insert of a batch | [`iibench`] |
//! | `linkbench` | a request on a social graph | [`linkbench`] |
//! | `commands` | a command of the user's own | [`commands`] |

pub mod commands;
pub mod iibench;
pub(crate) mod insert;
pub mod kv;
pub mod linkbench;
pub mod load;
pub mod point;
pub(crate) mod spread;
pub mod sysbench;
#[cfg(test)]
mod tests;

use crate::client::{Clients, Listening, Misses, NullServer};
use crate::error::BenchError;
use crate::report::Figures;
pub use crate::report::Finding;
use crate::report::csv::CsvFile;
use crate::run::Measured;
use crate::target::Target;
use load::Loading;
use pando_document::Document;
use pando_measuring::random::RUNS_FROM_BIT;
use std::time::{SystemTime, UNIX_EPOCH};

/// The place of a run among those of one call, or of one server in a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunNumber(u32);

impl RunNumber {
    /// The first one.
    pub const FIRST: RunNumber = RunNumber(0);

    /// The highest number of the first run of a call: behind it there is room for the repeats of that call.
    pub const FIRST_MAX: u16 = 60_000;

    /// The run with this number, from 0.
    pub fn new(number: u32) -> RunNumber {
        RunNumber(number)
    }

    /// The one behind it.
    pub fn next(self) -> RunNumber {
        RunNumber(self.0 + 1)
    }

    /// The number of the stream of draws of a client. Those of the first run are the numbers of the clients.
    pub fn stream(self, client: u32) -> u64 {
        u64::from(client) | u64::from(self.0) << RUNS_FROM_BIT
    }
}

/// A measured workload.
pub trait Workload: Sync {
    /// The workload that this one repeats over another protocol. Where this one does not describe itself,
    /// that one does. A workload without an original describes itself.
    fn original(&self) -> Option<&dyn Workload> {
        None
    }

    /// Its name: the subcommand, and in reports.
    fn name(&self) -> &'static str {
        self.original().map_or("", |original| original.name())
    }

    /// The work, in one line.
    fn summary(&self) -> String {
        self.original().map_or_else(String::new, |original| original.summary())
    }

    /// All that a repetition needs: parameters, seed and generator.
    fn parameters(&self) -> serde_json::Value {
        self.original().map_or(serde_json::Value::Null, |original| original.parameters())
    }

    /// The unit that the rate counts, in the plural: "queries".
    fn operations(&self) -> &'static str {
        self.original().map_or("operations", |original| original.operations())
    }

    /// The kinds of statements that are told apart; none if a unit is one statement.
    fn kinds(&self) -> Vec<String> {
        self.original().map_or_else(Vec::new, |original| original.kinds())
    }

    /// Whether a miss is a fault or part of the work.
    fn misses(&self) -> Misses {
        self.original().map_or(Misses::AreFaults, |original| original.misses())
    }

    /// How to load; nothing if there is nothing to load.
    fn loading(&self) -> Option<&dyn Loading> {
        None
    }

    /// Clients of a pass that comes before the run and is not counted.
    fn warm_up(&self, _target: &Target, _clients: u32) -> Result<Option<Clients>, BenchError> {
        Ok(None)
    }

    /// That the server can do what is asked; refused before anything is loaded.
    fn check_ability(&self, _target: &Target) -> Result<(), BenchError> {
        Ok(())
    }

    /// Prepares the server right before the clients of a run begin, such as by making empty collections.
    fn prepare(&self, _target: &Target) -> Result<(), BenchError> {
        Ok(())
    }

    /// The clients of a run. What they draw hangs on the run, so that a second one does not repeat the first
    /// over what that has warmed or changed; not so for `kv` and `iibench`, whose runs are of the same rows.
    fn clients(&self, target: &Target, clients: u32, run: RunNumber) -> Result<Clients, BenchError>;

    /// A reply with which the clients of [`Workload::null_clients`] are content, for the null server; nothing
    /// if there is none, and then the tool's own ceiling is not known.
    fn null_reply(&self) -> Option<Document> {
        None
    }

    /// A server that answers at once.
    fn null_server(&self) -> Result<Option<Box<dyn Listening>>, BenchError> {
        let Some(reply) = self.null_reply() else { return Ok(None) };
        Ok(Some(Box::new(NullServer::start(&reply)?)))
    }

    /// The clients that the tool's own ceiling is measured with.
    fn null_clients(&self, target: &Target, clients: u32) -> Result<Clients, BenchError> {
        self.clients(target, clients, RunNumber::FIRST)
    }

    /// How many seconds to wait at most, after a run, until the server is idle: for workloads whose rate
    /// hangs on what it may put off. None: not at all.
    fn settle_s(&self) -> u32 {
        self.original().map_or(0, |original| original.settle_s())
    }

    /// The databases that its data is in; none if it is not known.
    fn databases(&self) -> Vec<String> {
        self.loading().map_or_else(Vec::new, Loading::databases)
    }

    /// Whether the data is as it must be after a run.
    fn verify(&self, _target: &Target) -> Result<Vec<Finding>, BenchError> {
        Ok(Vec::new())
    }

    /// Lines about this run that only this workload has.
    fn lines(&self, measured: &Measured) -> Vec<String> {
        self.original().map_or_else(Vec::new, |original| original.lines(measured))
    }

    /// Further data for the file of the run that was verified last.
    fn extras(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Files in the columns of the original tool.
    fn csv(&self, figures: &Figures) -> Vec<CsvFile> {
        self.original().map_or_else(Vec::new, |original| original.csv(figures))
    }
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
