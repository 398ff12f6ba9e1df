//! The profiler and the log of slow requests.
//!
//! # Terms
//! - *Slow*: a request that took longer than the threshold, `slowms`.
//! - *Level* of a database: 0 records no request, 1 the slow ones, 2 all.
//! - *Entry*: the document about one request ([`entry`]).
//!
//! # Steps
//! 1. At the end of a request its time is compared with the threshold. That is all for a request that is not
//!    slow, while no database is profiled.
//! 2. Otherwise its entry is made. It goes to the log if the request is slow (one line of JSON), and to the
//!    queue of its database's `system.profile` as the level says. Of the slow requests only a part is taken,
//!    the sample rate. A filter of the database decides in the place of threshold and sample rate.
//! 3. The queue is written by a chore every second, and before a request that names `system.profile`
//!    (`system_profile`). So a request of an event loop is recorded, too, and waits for nothing.
//!
//! # Not here
//! Requests under way: the table of operations.

mod entry;
mod queue;
mod settings;

use std::time::Duration;

use pando_document::{JsonFormat, RawDocument, RawDocumentBuf, to_json};
use pando_environment::Random;

pub(crate) use self::entry::ObservedRequest;
pub(crate) use self::queue::ProfileQueue;
pub use self::settings::ProfilerOptions;
pub(crate) use self::settings::{FilterSettings, ProfilerSettings};

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Profiler {
    pub settings: ProfilerSettings,
    pub queue: ProfileQueue,
}

/// Where the entry of a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Destinations {
    log: bool,
    profile: bool,
}

impl Profiler {
    /// With the settings of the start.
    pub fn new(options: ProfilerOptions) -> Profiler {
        Profiler { settings: ProfilerSettings::new(options), queue: ProfileQueue::default() }
    }

    /// Whether a request that took this long may be logged or recorded.
    #[inline]
    pub fn is_of_interest(&self, took: Duration) -> bool {
        self.settings.is_slow(took) || self.settings.has_profiled()
    }

    /// Logs and records a request, as the settings of its database say.
    #[cold]
    pub fn observe(&self, request: &ObservedRequest<'_>, random: &dyn Random) {
        let database = self.settings.of(request.database);
        let is_slow = self.settings.is_slow(request.took);
        if !is_slow && database.level == 0 && database.filter.is_none() {
            return;
        }
        let entry = request.entry();
        let Destinations { log, profile } = match &database.filter {
            Some(filter) => {
                let matches = filter.filter.matches(&entry).unwrap_or(false);
                Destinations {
                    log: matches,
                    profile: database.level == 2 || (database.level == 1 && matches),
                }
            }
            None => {
                let log = is_slow && is_sampled(self.settings.sample_rate(), random);
                Destinations { log, profile: database.level == 2 || (database.level == 1 && log) }
            }
        };
        if log {
            log_line(request, &entry);
        }
        if profile && request.works_on_database() {
            self.queue.push(request.database, entry);
        }
    }
}

fn is_sampled(rate: f64, random: &dyn Random) -> bool {
    // The upper 53 bits are a number from 0 to 1 that a double holds exactly.
    rate >= 1.0 || ((random.next_u64() >> 11) as f64) < rate * (1_u64 << 53) as f64
}

/// Writes one line of JSON. Fields that people do not look for in a log are left out.
fn log_line(request: &ObservedRequest<'_>, entry: &RawDocument) {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    match request.log_document(entry) {
        Ok(line) => tracing::info!("slow query: {}", json(&line)),
        Err(error) => tracing::warn!(?error, "a slow query cannot be logged; report this defect"),
    }
}

fn json(document: &RawDocumentBuf) -> String {
    to_json(pando_document::RawValue::Document(document), JsonFormat::Relaxed)
}

#[cfg(test)]
mod tests;
