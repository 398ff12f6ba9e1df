//! Every number of a run. An operation is a query, or in a load a document.

use crate::client::Tally;
use crate::counters::Usage;
use crate::histogram::Latencies;

/// The numbers of a run; what could not be counted is left out.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Figures {
    /// Operations that were done.
    pub operations: u64,
    /// Requests that did not find their document.
    pub missed: u64,
    /// Requests that were refused or answered wrongly.
    pub failed: u64,
    /// Messages of the first failures.
    pub failures: Vec<String>,
    /// Operations per second.
    pub rate: f64,
    /// Latencies of requests (in a load: of batches).
    pub latency_us: LatencyFigures,
    /// What one operation cost.
    pub per_operation: PerOperation,
    /// Share (0..=1) of all cores' time in which nothing ran.
    pub machine_idle: Option<f64>,
    /// Share (0..=1) of the window in which each thread of the client ran.
    pub client_threads_busy: Vec<f64>,
    /// Resident memory of the server at the end, in bytes.
    pub server_resident_bytes: Option<u64>,
    /// Operations in each second of the window.
    pub per_second: Vec<u64>,
}

/// Latencies in microseconds.
#[derive(Clone, Debug, serde::Serialize)]
pub struct LatencyFigures {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// What one operation cost.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct PerOperation {
    /// Read requests of the disk.
    pub disk_reads: Option<f64>,
    /// Kilobytes read from the disk.
    pub read_kb: Option<f64>,
    /// Kilobytes written to the disk.
    pub written_kb: Option<f64>,
    /// Context switches of the server's threads.
    pub server_switches: Option<f64>,
    /// Context switches of the client's threads.
    pub client_switches: Option<f64>,
    /// Context switches of the whole machine.
    pub machine_switches: Option<f64>,
    /// CPU time of the server, user and system.
    pub server_cpu_us: Option<f64>,
    /// CPU time of the client's threads.
    pub client_cpu_us: Option<f64>,
    /// Page faults of the server that read from the disk.
    pub server_major_faults: Option<f64>,
}

impl LatencyFigures {
    fn of(latencies: &Latencies) -> LatencyFigures {
        LatencyFigures {
            mean: latencies.mean_us(),
            p50: latencies.quantile_us(0.5),
            p90: latencies.quantile_us(0.9),
            p95: latencies.quantile_us(0.95),
            p99: latencies.quantile_us(0.99),
            p999: latencies.quantile_us(0.999),
            max: latencies.max_us(),
        }
    }
}

impl Figures {
    /// The figures of a tally over a window of so many seconds. `per_second` counts operations, which in a load are more
    /// than requests.
    pub fn new(tally: &Tally, per_second: &[u64], seconds: f64, usage: Option<&Usage>) -> Figures {
        let operations: u64 = per_second.iter().sum();
        let cpu_us = |tally: &Tally| tally.threads.iter().map(|thread| thread.cpu_us).collect::<Vec<_>>();
        Figures {
            operations,
            missed: tally.missed,
            failed: tally.failed,
            failures: tally.failures.clone(),
            rate: operations as f64 / seconds,
            latency_us: LatencyFigures::of(&tally.latencies),
            per_operation: PerOperation::of(tally, usage, operations),
            machine_idle: usage.map(|usage| usage.machine_idle),
            client_threads_busy: cpu_us(tally).into_iter().map(|us| us / 1e6 / seconds).collect(),
            server_resident_bytes: usage.and_then(|usage| Some(usage.server.as_ref()?.resident_bytes)),
            per_second: per_second.to_vec(),
        }
    }

    /// The client's share (0..=1) of the CPU time that it and the server used together.
    pub fn client_share(&self) -> Option<f64> {
        let (client, server) = (self.per_operation.client_cpu_us?, self.per_operation.server_cpu_us?);
        Some(client / (client + server))
    }
}

impl PerOperation {
    fn of(tally: &Tally, usage: Option<&Usage>, operations: u64) -> PerOperation {
        if operations == 0 {
            return PerOperation::default();
        }
        let each = |sum: f64| sum / operations as f64;
        let disk = usage.and_then(|usage| usage.disk.as_ref());
        let server = usage.and_then(|usage| usage.server.as_ref());
        PerOperation {
            disk_reads: disk.and_then(|disk| disk.reads).map(|reads| each(reads as f64)),
            read_kb: disk.map(|disk| each(disk.read_bytes as f64 / 1024.0)),
            written_kb: disk.map(|disk| each(disk.written_bytes as f64 / 1024.0)),
            server_switches: server.map(|server| each(server.switches as f64)),
            client_switches: Some(each(tally.threads.iter().map(|thread| thread.switches as f64).sum())),
            machine_switches: usage.map(|usage| each(usage.machine_switches as f64)),
            server_cpu_us: server.map(|server| each(server.cpu_us)),
            client_cpu_us: Some(each(tally.threads.iter().map(|thread| thread.cpu_us).sum())),
            server_major_faults: server.map(|server| each(server.major_faults as f64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{ThreadUsage, Verdict};
    use crate::counters::{DiskCounts, ServerUsage};
    use std::time::Duration;

    fn tally() -> Tally {
        let mut tally = Tally::new();
        (0..10).for_each(|_| tally.record(0, Duration::from_micros(100), Verdict::Done));
        tally.threads = vec![ThreadUsage { cpu_us: 50.0, switches: 20 }];
        tally
    }

    fn usage() -> Usage {
        let disk = DiskCounts { reads: Some(5), writes: None, read_bytes: 10_240, written_bytes: 0 };
        let server = ServerUsage { cpu_us: 150.0, switches: 30, major_faults: 0, resident_bytes: 1 };
        Usage {
            seconds: 2.0,
            machine_idle: 0.5,
            machine_switches: 60,
            server: Some(server),
            disk: Some(disk),
        }
    }

    #[test]
    fn costs_are_divided_by_operations() {
        let figures = Figures::new(&tally(), &[10], 2.0, Some(&usage()));
        assert_eq!((figures.operations, figures.rate), (10, 5.0));
        let each = &figures.per_operation;
        assert_eq!((each.disk_reads, each.read_kb, each.written_kb), (Some(0.5), Some(1.0), Some(0.0)));
        assert_eq!((each.server_cpu_us, each.client_cpu_us), (Some(15.0), Some(5.0)));
        assert_eq!((each.server_switches, each.client_switches), (Some(3.0), Some(2.0)));
        assert_eq!(figures.client_share(), Some(0.25));
    }

    #[test]
    fn a_run_without_operations_has_no_costs_rather_than_infinite_ones() {
        let figures = Figures::new(&Tally::new(), &[], 2.0, Some(&usage()));
        assert_eq!(figures.rate, 0.0);
        assert_eq!(figures.per_operation.server_cpu_us, None);
    }
}
