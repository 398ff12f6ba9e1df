//! Loading: the phase before the runs. Each workload says how ([`Loading`]); the frame measures it as it
//! measures a run.
//!
//! 1. [`Loading::prepare`]: drop what is there of the workload's own collections, and no other; create the
//!    indexes that are to be there from the start.
//! 2. [`Loading::clients`] insert until all is in. This is the measured window: its operation is the
//!    document, its latency a batch's.
//! 3. [`Loading::finish`]: what comes after, such as indexes; its time is given apart.
//! 4. [`Loading::check`]: a load that lost documents is an error.

use crate::client::{Clients, INTERVAL_S, Misses, Pace, Session};
use crate::error::BenchError;
use crate::run::{self, Counting, Measured, Observer, Plan, ServerEnd};
use crate::target::Target;
use pando_document::{Document, Value, doc};
use pando_measuring::counters::Sources;
use std::time::Instant;

/// MongoDB's code of a drop of what is not there.
const NAMESPACE_NOT_FOUND: i64 = 26;

/// How a workload's data is loaded.
pub trait Loading: Sync {
    /// The load, in one line.
    fn summary(&self) -> String;

    /// All that a repetition needs.
    fn parameters(&self) -> serde_json::Value;

    /// The databases that the data is in; none if it is not known.
    fn databases(&self) -> Vec<String> {
        Vec::new()
    }

    /// The kinds of batches that are told apart.
    fn kinds(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether there is data already. Whether it is the right data is [`Loading::check`]'s question.
    fn is_there(&self, target: &Target) -> Result<bool, BenchError>;

    /// Step 1.
    fn prepare(&self, target: &Target) -> Result<(), BenchError>;

    /// How many clients load.
    fn connections(&self) -> u32;

    /// Step 2.
    fn clients(&self, target: &Target) -> Result<Clients, BenchError>;

    /// Step 3; gives what took time.
    fn finish(&self, _target: &Target) -> Result<Vec<TimedStep>, BenchError> {
        Ok(Vec::new())
    }

    /// Lines about this load that only this workload has.
    fn lines(&self, _measured: &Measured) -> Vec<String> {
        Vec::new()
    }

    /// Step 4: whether the data is what a run needs.
    fn check(&self, target: &Target) -> Result<(), BenchError>;
}

/// No phase that ends by itself takes longer.
pub const LONGEST_SECONDS: u32 = 10_000_000;

/// Loads: the four steps.
pub fn load_measured(
    loading: &dyn Loading,
    target: &Target,
    sources: &mut Sources,
) -> Result<(Measured, Vec<TimedStep>), BenchError> {
    loading.prepare(target)?;
    let clients = loading.clients(target)?;
    let connections = loading.connections();
    let plan = Plan {
        clients: connections,
        threads: connections,
        warmup_s: 0,
        duration_s: LONGEST_SECONDS,
        pace: Pace::Closed,
        interval_s: INTERVAL_S,
    };
    let counting = Counting { kinds: loading.kinds().len(), misses: Misses::AreFaults };
    let measured = run::run(plan, target.address(), clients, counting, Some(Observer::of_costs(sources)))?;
    if let Some(ServerEnd { process, seconds }) = measured.server_end {
        return Err(BenchError::ServerEnded { process, seconds });
    }
    if let Some(message) = measured.tally.failures.first() {
        return Err(BenchError::Load { failed: measured.tally.failed, message: message.clone() });
    }
    let steps = loading.finish(target)?;
    loading.check(target)?;
    Ok((measured, steps))
}

/// Something after the load that took time.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TimedStep {
    /// What.
    pub what: String,
    /// How long.
    pub seconds: f64,
}

impl TimedStep {
    /// Does it, and takes the time.
    pub fn take(what: &str, step: impl FnOnce() -> Result<(), BenchError>) -> Result<TimedStep, BenchError> {
        let began = Instant::now();
        step()?;
        Ok(TimedStep { what: what.to_owned(), seconds: began.elapsed().as_secs_f64() })
    }
}

/// When an index is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexBuild {
    /// Before the load, as the original does: every insert keeps it.
    Before,
    /// After the load.
    After,
    /// Never.
    Never,
}

/// The moment at which the server answers a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// `w: 1`: done, not necessarily synced.
    W1,
    /// `w: 1, j: true`: synced.
    Journaled,
    /// `w: "majority"`: synced on most members.
    Majority,
    /// As the server is set: MySQL's protocol asks for nothing.
    OfServer,
}

impl Durability {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Durability::W1 => "w1",
            Durability::Journaled => "j",
            Durability::Majority => "majority",
            Durability::OfServer => "as the server is set",
        }
    }

    /// The same as a field of a command of MongoDB's protocol.
    pub fn write_concern(self) -> Document {
        match self {
            Durability::W1 | Durability::OfServer => doc! { "w": 1 },
            Durability::Journaled => doc! { "w": 1, "j": true },
            Durability::Majority => doc! { "w": "majority" },
        }
    }
}

/// Drops a collection if it is there.
pub fn drop_collection(session: &mut Session, database: &str, collection: &str) -> Result<(), BenchError> {
    match session.command(database, doc! { "drop": collection }) {
        Ok(_) | Err(BenchError::Refused { code: NAMESPACE_NOT_FOUND, .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

pub(crate) fn count(session: &mut Session, database: &str, collection: &str) -> Result<u64, BenchError> {
    let reply = session.command(database, doc! { "count": collection })?;
    let count = reply.get("n").and_then(Value::as_i64_exact).unwrap_or(0);
    Ok(u64::try_from(count).unwrap_or(0))
}

pub(crate) fn check_count(
    session: &mut Session,
    database: &str,
    collection: &str,
    expected: u64,
) -> Result<(), BenchError> {
    let found = count(session, database, collection)?;
    if found == expected {
        return Ok(());
    }
    Err(BenchError::DataSet { namespace: format!("{database}.{collection}"), found, expected })
}
