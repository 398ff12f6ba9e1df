//! The part of a run that all workloads over MySQL's protocol share. It looks at the servers before a run and
//! at their waits around it, and measures the tool's own ceiling against a null server of this protocol.

use crate::null_server::NullSqlServer;
use crate::server::SqlServer;
use crate::waits::{self, Wait, Waits};
use pando_bench::client::{Clients, Listening, Place};
use pando_bench::error::BenchError;
use pando_bench::run::Measured;
use pando_bench::target::Target;
use pando_bench::workload::load::Loading;
use pando_bench::workload::{Finding, RunNumber, Workload};
use serde_json::json;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A workload over this protocol. It asks its own servers and takes no notice of the target that the lab
/// names.
pub trait SqlWork: Workload + Sized {
    /// Its servers.
    fn server(&self) -> &SqlServer;

    /// A table that is there when a run begins.
    fn first_table(&self) -> String;

    /// The same against another server, which gives the same row for each query of a kind.
    fn on_null_server(&self, server: SqlServer) -> Self;
}

/// A workload in its frame.
pub struct SqlRun<W> {
    inner: W,
    seen: Mutex<Seen>,
}

/// What was waited for.
#[derive(Default)]
struct Seen {
    before: Option<Waits>,
    /// Nothing if the server does not count.
    waits: Option<Vec<Wait>>,
}

impl<W: SqlWork> SqlRun<W> {
    /// This workload, if its servers can do it.
    pub fn new(inner: W) -> Result<SqlRun<W>, BenchError> {
        inner.server().check_api(inner.name())?;
        Ok(SqlRun { inner, seen: Mutex::default() })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: SqlWork> Workload for SqlRun<W> {
    fn original(&self) -> Option<&dyn Workload> {
        Some(&self.inner)
    }

    fn summary(&self) -> String {
        format!("{}; {}", self.inner.summary(), self.inner.server().summary())
    }

    fn parameters(&self) -> serde_json::Value {
        let mut parameters = self.inner.parameters();
        self.inner.server().add_parameters(&mut parameters);
        parameters
    }

    fn loading(&self) -> Option<&dyn Loading> {
        self.inner.loading()
    }

    fn warm_up(&self, target: &Target, clients: u32) -> Result<Option<Clients>, BenchError> {
        self.inner.warm_up(target, clients)
    }

    fn prepare(&self, target: &Target) -> Result<(), BenchError> {
        self.inner.prepare(target)?;
        self.inner.server().check_endpoints(&self.inner.first_table())
    }

    /// From here to [`Workload::verify`] waits are counted, so that those of connecting and of the warm-up
    /// are in them.
    fn clients(&self, target: &Target, clients: u32, run: RunNumber) -> Result<Clients, BenchError> {
        let clients = self.inner.clients(target, clients, run)?;
        let before = Waits::read(&mut self.inner.server().connect()?)?;
        *self.seen() = Seen { before, waits: None };
        Ok(clients)
    }

    fn null_server(&self) -> Result<Option<Box<dyn Listening>>, BenchError> {
        Ok(Some(Box::new(NullSqlServer::start()?)))
    }

    fn null_clients(&self, target: &Target, clients: u32) -> Result<Clients, BenchError> {
        let Place::Tcp(address) = *target.address().place() else { return Ok(Clients::default()) };
        self.inner.on_null_server(self.inner.server().moved_to(address)).clients(
            target,
            clients,
            RunNumber::FIRST,
        )
    }

    fn verify(&self, target: &Target) -> Result<Vec<Finding>, BenchError> {
        let after = Waits::read(&mut self.inner.server().connect()?)?;
        {
            let mut seen = self.seen();
            seen.waits = after.zip(seen.before.take()).map(|(after, before)| after.since(&before));
        }
        self.inner.verify(target)
    }

    fn lines(&self, measured: &Measured) -> Vec<String> {
        let mut lines = self.inner.lines(measured);
        match &self.seen().waits {
            Some(waits) => lines.extend(waits::lines(waits)),
            None => lines.push(
                "waits: the server does not count them; it would with --performance-schema=ON \
                 --performance-schema-instrument='wait/synch/%=ON'"
                    .to_owned(),
            ),
        }
        lines
    }

    fn extras(&self) -> serde_json::Value {
        json!({ "waits": self.seen().waits })
    }
}
