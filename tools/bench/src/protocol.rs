//! The seam between the lab and the protocols of servers. MongoDB's is built in ([`MongoServer`]). Another
//! one comes from a crate of its own, which gives its [`Protocol`] to [`run_program`](crate::run_program):
//! see `tools/bench-mysql`.
//!
//! A [`Server`] answers the questions that the lab asks beside the measured work: facts, numbers, sizes,
//! checkpoints. It also turns a [`Job`], the workload of the command line, into the same workload over its
//! own protocol.

use crate::error::BenchError;
use crate::target::{ServerFacts, Target};
use crate::why::checkpoints::{MongoTeller, Teller, force};
use crate::why::sizes::Sizes;
use crate::why::status::{self, Status};
use crate::workload::Workload;
use crate::workload::commands::Commands;
use crate::workload::iibench::Iibench;
use crate::workload::kv::KeyValue;
use crate::workload::linkbench::LinkBench;
use crate::workload::point::PointQuery;
use crate::workload::sysbench::workload::Sysbench;
use clap::ArgMatches;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A protocol beside MongoDB's.
pub trait Protocol: Sync {
    /// The beginning of its targets: `NAME://`.
    fn scheme(&self) -> &'static str;

    /// The server that the arguments name. Nothing is sent yet.
    fn server(&self, matches: &ArgMatches) -> Result<Arc<dyn Server>, BenchError>;
}

/// A server that is measured.
pub trait Server: std::fmt::Debug + Send + Sync {
    /// Its address.
    fn target(&self) -> Target;

    /// The server's description of itself; an error if it does not answer, or cannot do what is asked.
    fn facts(&self) -> Result<ServerFacts, BenchError>;

    /// The server's own counters; empty if it has none.
    fn status(&self) -> Status;

    /// How large its data is; `folder` is its data folder.
    fn sizes(&self, folder: Option<&Path>) -> Sizes;

    /// The same, where documents, data and indexes are those of these databases only, as far as it can tell
    /// them apart.
    fn sizes_in(&self, _databases: &[String], folder: Option<&Path>) -> Sizes {
        self.sizes(folder)
    }

    /// Has it write a checkpoint; gives how long that took.
    fn force_checkpoint(&self) -> Result<Duration, BenchError>;

    /// A connection that asks for its checkpoints.
    fn teller(&self) -> Result<Box<dyn Teller>, BenchError>;

    /// A job over its protocol; refused if it cannot be done there.
    fn workload(&self, job: Job) -> Result<Box<dyn Workload>, BenchError>;
}

/// A workload as the command line describes it.
#[derive(Clone, Debug)]
pub enum Job {
    /// Point queries.
    Point(PointQuery),
    /// The transaction mix.
    Sysbench(Sysbench),
    /// Reads of single rows.
    KeyValue(KeyValue),
    /// Inserts under secondary indexes.
    Iibench(Iibench),
    /// A social graph.
    LinkBench(Box<LinkBench>),
    /// Commands of the user's own.
    Commands(Commands),
}

impl Job {
    pub(crate) fn into_workload(self) -> Box<dyn Workload> {
        match self {
            Job::Point(workload) => Box::new(workload),
            Job::Sysbench(workload) => Box::new(workload),
            Job::KeyValue(workload) => Box::new(workload),
            Job::Iibench(workload) => Box::new(workload),
            Job::LinkBench(workload) => workload,
            Job::Commands(workload) => Box::new(workload),
        }
    }
}

/// A server of MongoDB's protocol, or an engine in this process.
#[derive(Clone, Debug)]
pub(crate) struct MongoServer {
    target: Target,
}

impl MongoServer {
    pub fn at(target: Target) -> MongoServer {
        MongoServer { target }
    }
}

impl Server for MongoServer {
    fn target(&self) -> Target {
        self.target.clone()
    }

    fn facts(&self) -> Result<ServerFacts, BenchError> {
        ServerFacts::ask(&self.target)
    }

    fn status(&self) -> Status {
        status::sample(&self.target)
    }

    fn sizes(&self, folder: Option<&Path>) -> Sizes {
        Sizes::of(&self.target, &[], folder)
    }

    fn sizes_in(&self, databases: &[String], folder: Option<&Path>) -> Sizes {
        Sizes::of(&self.target, databases, folder)
    }

    fn force_checkpoint(&self) -> Result<Duration, BenchError> {
        force(&self.target)
    }

    fn teller(&self) -> Result<Box<dyn Teller>, BenchError> {
        Ok(Box::new(MongoTeller::open(&self.target)?))
    }

    fn workload(&self, job: Job) -> Result<Box<dyn Workload>, BenchError> {
        Ok(job.into_workload())
    }
}
