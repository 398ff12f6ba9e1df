//! What is the same for all workloads over MySQL's protocol: a frame around each, which looks at the servers before a run and
//! at their waits around it, and measures the tool's own ceiling against a null server of this protocol.

use super::SqlServer;
use super::waits::{self, Wait, Waits};
use crate::address::Place;
use crate::client::{Clients, Misses, NullReply};
use crate::error::BenchError;
use crate::report::Figures;
use crate::report::csv::CsvFile;
use crate::run::Measured;
use crate::target::Target;
use crate::workload::load::Loading;
use crate::workload::{Finding, Workload};
use serde_json::json;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A workload over this protocol. It asks its own servers, whatever target the frame names.
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
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn summary(&self) -> String {
        format!("{}; {}, durable as the server is set", self.inner.summary(), self.inner.server().summary())
    }

    fn parameters(&self) -> serde_json::Value {
        let mut parameters = self.inner.parameters();
        self.inner.server().add_parameters(&mut parameters);
        parameters
    }

    fn operations(&self) -> &'static str {
        self.inner.operations()
    }

    fn kinds(&self) -> Vec<String> {
        self.inner.kinds()
    }

    fn misses(&self) -> Misses {
        self.inner.misses()
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

    /// From here to [`Workload::verify`] waits are counted, so that those of connecting and of the warm-up are in them.
    fn clients(&self, target: &Target, clients: u32) -> Result<Clients, BenchError> {
        let clients = self.inner.clients(target, clients)?;
        let before = Waits::read(&mut self.inner.server().connect()?)?;
        *self.seen() = Seen { before, waits: None };
        Ok(clients)
    }

    fn null_reply(&self) -> Option<NullReply> {
        Some(NullReply::Sql)
    }

    fn null_clients(&self, target: &Target, clients: u32) -> Result<Clients, BenchError> {
        let Place::Tcp(address) = *target.address().place() else { return Ok(Clients::default()) };
        self.inner.on_null_server(self.inner.server().moved_to(address)).clients(target, clients)
    }

    fn settle_s(&self) -> u32 {
        self.inner.settle_s()
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

    fn csv(&self, figures: &Figures) -> Vec<CsvFile> {
        self.inner.csv(figures)
    }

    fn extras(&self) -> serde_json::Value {
        json!({ "waits": self.seen().waits })
    }
}
