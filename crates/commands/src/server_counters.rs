//! The counters of requests since the start, as `serverStatus` shows them: by command, by class of latency,
//! documents, scans, failures, traffic of the network.
//!
//! Every request adds to a few of them, so they stand in *stripes*: a connection adds to the stripe of its
//! number, and a reader sums all stripes. Two event loops seldom write to one cache line.
//!
//! # Not here
//! `opcounters`: `operation_counters`. The activity on one collection: `pando_catalog::CollectionActivity`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pando_catalog::{ActivityKind, LatencyClass, LatencyFigures, LatencyHistogram, UsageFigures};
use pando_query::explain::PlanSummary;

use crate::request_notes::RequestNotes;

/// A power of two.
const STRIPES: usize = 8;

/// Figures that are added one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Requests of commands that there are not.
    UnknownCommands,
    /// Requests that failed.
    Failures,
    DocumentsReturned,
    DocumentsInserted,
    DocumentsUpdated,
    DocumentsDeleted,
    KeysExamined,
    DocumentsExamined,
    CollectionScans,
    /// Requests that sorted in memory.
    Sorts,
    WriteConflicts,
    /// Requests that met damage on the device.
    Damage,
    /// Updates that went down without a read.
    BlindUpdates,
    /// Updates of clients that wait for no answer, which needed a read all the same.
    ReadUpdates,
    /// Messages that the network has brought.
    NetworkRequests,
    /// Bytes of messages, after decompression and before compression.
    NetworkIn,
    NetworkOut,
    /// The same as they went over the network.
    NetworkPhysicalIn,
    NetworkPhysicalOut,
    /// Connections that were closed as they came, because there were too many.
    RejectedConnections,
    /// Connections with TLS, by its version.
    Tls12,
    Tls13,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// 1.2.
    V1_2,
    /// 1.3.
    V1_3,
}

const FIGURES: usize = Figure::Tls13 as usize + 1;

/// Requests of one command.
#[derive(Debug, Default)]
struct CommandCounters {
    requests: AtomicU64,
    failures: AtomicU64,
}

#[derive(Debug)]
#[repr(align(128))]
struct Stripe {
    figures: [AtomicU64; FIGURES],
    latencies: [LatencyHistogram; LatencyClass::ALL.len()],
    commands: Box<[CommandCounters]>,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct ServerCounters {
    stripes: [Stripe; STRIPES],
}

/// Requests of one command, and those of them that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandFigures {
    pub requests: u64,
    pub failures: u64,
}

/// A request that has ended.
pub(crate) struct EndedRequest<'r> {
    /// The number of its connection.
    pub connection: i64,
    /// The place of its command in the registry; `None` where there is no such command.
    pub command: Option<usize>,
    pub activity: ActivityKind,
    pub took: Duration,
    pub has_failed: bool,
    pub usage: UsageFigures,
    pub notes: &'r RequestNotes,
}

/// The bytes of one message and its reply.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageTraffic {
    /// Of the request, after decompression.
    pub bytes_in: usize,
    /// Of the reply, before compression; 0 where none is due.
    pub bytes_out: usize,
    /// Of the request as it came over the network.
    pub physical_bytes_in: usize,
    /// Of the reply as it goes over the network.
    pub physical_bytes_out: usize,
}

impl Stripe {
    fn new(commands: usize) -> Stripe {
        Stripe {
            figures: std::array::from_fn(|_| AtomicU64::new(0)),
            latencies: std::array::from_fn(|_| LatencyHistogram::default()),
            commands: (0..commands).map(|_| CommandCounters::default()).collect(),
        }
    }

    /// Adds; a zero costs no write.
    fn add(&self, figure: Figure, more: u64) {
        if more > 0 {
            self.figures[figure as usize].fetch_add(more, Ordering::Relaxed);
        }
    }
}

impl ServerCounters {
    /// Counters for so many commands.
    pub fn new(commands: usize) -> ServerCounters {
        ServerCounters { stripes: std::array::from_fn(|_| Stripe::new(commands)) }
    }

    fn stripe(&self, connection: i64) -> &Stripe {
        &self.stripes[connection.unsigned_abs() as usize % STRIPES]
    }

    /// Counts a request.
    pub fn count(&self, request: &EndedRequest<'_>) {
        let stripe = self.stripe(request.connection);
        match request.command {
            Some(command) => {
                let command = &stripe.commands[command];
                command.requests.fetch_add(1, Ordering::Relaxed);
                if request.has_failed {
                    command.failures.fetch_add(1, Ordering::Relaxed);
                }
                // MongoDB counts each write that fails, and no unknown command.
                let failures = u64::from(request.has_failed) + request.notes.write_errors;
                stripe.add(Figure::Failures, failures);
                stripe.latencies[request.activity.class() as usize].add(request.took);
            }
            None => stripe.add(Figure::UnknownCommands, 1),
        }
        let notes = request.notes;
        let noted = |count: Option<u64>| count.unwrap_or(0);
        stripe.add(Figure::DocumentsReturned, noted(notes.returned));
        stripe.add(Figure::DocumentsInserted, noted(notes.inserted));
        stripe.add(Figure::DocumentsUpdated, noted(notes.modified));
        stripe.add(Figure::DocumentsDeleted, noted(notes.deleted));
        stripe.add(Figure::BlindUpdates, noted(notes.blind));
        stripe.add(Figure::ReadUpdates, noted(notes.not_blind));
        stripe.add(Figure::KeysExamined, request.usage.keys_examined);
        stripe.add(Figure::DocumentsExamined, request.usage.documents_examined);
        stripe.add(Figure::CollectionScans, u64::from(notes.plan == PlanSummary::Collection));
        stripe.add(Figure::Sorts, u64::from(notes.has_sort_stage));
        stripe.add(Figure::WriteConflicts, request.usage.conflicts);
        stripe.add(Figure::Damage, u64::from(notes.damage.is_some()));
    }

    /// Counts a message and its reply.
    pub fn count_message(&self, connection: i64, traffic: MessageTraffic) {
        let stripe = self.stripe(connection);
        stripe.add(Figure::NetworkRequests, 1);
        stripe.add(Figure::NetworkIn, traffic.bytes_in as u64);
        stripe.add(Figure::NetworkOut, traffic.bytes_out as u64);
        stripe.add(Figure::NetworkPhysicalIn, traffic.physical_bytes_in as u64);
        stripe.add(Figure::NetworkPhysicalOut, traffic.physical_bytes_out as u64);
    }

    /// Counts a connection that was closed as it came.
    pub fn count_rejection(&self) {
        // It has no number.
        self.stripe(0).add(Figure::RejectedConnections, 1);
    }

    /// Counts a connection with TLS.
    pub fn count_tls(&self, connection: i64, version: TlsVersion) {
        let figure = match version {
            TlsVersion::V1_2 => Figure::Tls12,
            TlsVersion::V1_3 => Figure::Tls13,
        };
        self.stripe(connection).add(figure, 1);
    }

    /// The sum of a figure.
    pub fn figure(&self, figure: Figure) -> u64 {
        self.stripes.iter().map(|stripe| stripe.figures[figure as usize].load(Ordering::Relaxed)).sum()
    }

    /// The times of a class.
    pub fn latencies(&self, class: LatencyClass) -> LatencyFigures {
        let mut sum = LatencyFigures::default();
        for stripe in &self.stripes {
            stripe.latencies[class as usize].add_to(&mut sum);
        }
        sum
    }

    /// The requests of a command, by its place in the registry.
    pub fn command(&self, command: usize) -> CommandFigures {
        self.stripes.iter().fold(CommandFigures::default(), |sum, stripe| {
            let counters = &stripe.commands[command];
            CommandFigures {
                requests: sum.requests + counters.requests.load(Ordering::Relaxed),
                failures: sum.failures + counters.failures.load(Ordering::Relaxed),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_all_connections_are_summed() {
        let counters = ServerCounters::new(3);
        let notes = RequestNotes {
            returned: Some(2),
            inserted: Some(1),
            upserted: Some(1),
            write_errors: 2,
            ..RequestNotes::default()
        };
        let usage = UsageFigures { keys_examined: 4, ..UsageFigures::default() };
        for connection in 0..20 {
            counters.count(&EndedRequest {
                connection,
                command: (connection < 18).then_some(1),
                activity: ActivityKind::Query,
                took: Duration::from_micros(10),
                has_failed: connection % 2 == 1,
                usage,
                notes: &notes,
            });
        }
        assert_eq!(counters.command(1), CommandFigures { requests: 18, failures: 9 });
        assert_eq!(counters.command(0), CommandFigures::default());
        let wanted = [
            (Figure::UnknownCommands, 2),
            // Nine requests as a whole, and two writes in each of 18.
            (Figure::Failures, 45),
            (Figure::DocumentsReturned, 40),
            (Figure::DocumentsInserted, 20),
            (Figure::KeysExamined, 80),
            (Figure::CollectionScans, 0),
        ];
        for (figure, sum) in wanted {
            assert_eq!(counters.figure(figure), sum, "{figure:?}");
        }
        let reads = counters.latencies(LatencyClass::Reads);
        assert_eq!((reads.operations, reads.micros), (18, 180));
    }
}
