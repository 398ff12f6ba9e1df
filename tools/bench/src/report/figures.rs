//! Every number of a run. An operation is a query, a transaction, a request; in a load or an insert workload
//! a document.

use super::intervals::IntervalFigures;
use crate::client::{INTERVAL_S, KindTally, Second, ThreadUsage};
use crate::run::Measured;
use crate::why::checkpoints::{Checkpoint, Watched};
use pando_measuring::counters::{Pressure, Shares, Usage};
use pando_measuring::histogram::Latencies;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The numbers of a run; what could not be counted is left out.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Figures {
    /// The length of the window in seconds.
    pub seconds: f64,
    pub operations: u64,
    /// Units that were done: as many as operations, unless a unit is a batch.
    pub units: u64,
    /// Statements that did not find what they asked for.
    pub missed: u64,
    /// Units that were refused or answered wrongly.
    pub failed: u64,
    /// Statements that were done once more because the server said so.
    pub retried: u64,
    /// Messages of the first failures.
    pub failures: Vec<String>,
    /// Operations per second.
    pub rate: f64,
    /// Latencies of units: in an open loop from when they were to begin.
    pub latency_us: LatencyFigures,
    /// In an open loop: latencies from when they did begin.
    pub service_us: Option<LatencyFigures>,
    /// In an open loop: units that were due before the end of the run and had not begun then.
    pub not_begun: u64,
    /// In an open loop: how long the first of these had waited.
    pub longest_wait_us: f64,
    /// How long the first of the units had been under way at the window's end that were answered after it.
    #[serde(default)]
    pub longest_unanswered_us: f64,
    pub kinds: Vec<KindFigures>,
    /// Counts that only some workloads have.
    pub notes: BTreeMap<String, u64>,
    pub per_operation: Costs,
    #[serde(default)]
    pub per_second: Costs,
    /// How the time of all cores was used.
    pub machine: Option<Shares>,
    /// Share (0..=1) of the window in which somebody on the machine waited for a core, a device, memory.
    pub pressure: Option<PressureShares>,
    /// Where the disk columns come from.
    pub disk_source: Option<String>,
    /// Share (0..=1) of the window in which each thread of the client ran.
    pub client_threads_busy: Vec<f64>,
    /// Resident memory of the server at the end, in bytes.
    pub server_resident_bytes: Option<u64>,
    /// Each second of the window.
    pub timeline: Vec<TimelineSecond>,
    /// Seconds of an interval.
    #[serde(default = "interval_s")]
    pub interval_s: u32,
    /// Each interval of the window.
    #[serde(default)]
    pub intervals: Vec<IntervalFigures>,
    /// The checkpoints of the server that were under way in the window, as it says itself; nothing if it does
    /// not.
    #[serde(default)]
    pub checkpoints: Option<Vec<Checkpoint>>,
    /// How often each latency of a unit occurred: pairs of microseconds, to two digits, and a count.
    pub histogram_us: Vec<(f64, u64)>,
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct LatencyFigures {
    pub mean: f64,
    /// A quarter took at most so long.
    pub p25: f64,
    pub p50: f64,
    /// Three quarters took at most so long.
    pub p75: f64,
    /// Nine of ten took at most so long.
    pub p90: f64,
    /// 95 of a hundred took at most so long.
    pub p95: f64,
    /// 99 of a hundred took at most so long.
    pub p99: f64,
    /// 999 of a thousand took at most so long.
    pub p999: f64,
    pub max: f64,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct KindFigures {
    pub name: String,
    /// Statements that found what they asked for.
    pub done: u64,
    /// Those that did not. Where misses are part of the work, they are in the latencies and in the rate.
    pub missed: u64,
    pub failed: u64,
    pub latency_us: LatencyFigures,
    /// When the last one was over, in seconds of the window.
    pub last_s: Option<f64>,
    /// In each second: how many were done, and their mean latency in microseconds.
    pub timeline: Vec<(u64, f64)>,
    /// As [`Figures::histogram_us`].
    pub histogram_us: Vec<(f64, u64)>,
}

impl KindFigures {
    /// Whether there was one: else its latencies are no figures.
    pub fn is_used(&self) -> bool {
        self.done + self.missed + self.failed > 0
    }
}

/// The costs of an operation, or of a second.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Costs {
    pub disk_reads: Option<f64>,
    pub disk_writes: Option<f64>,
    /// Kilobytes read from the disk.
    pub read_kb: Option<f64>,
    /// Kilobytes written to the disk.
    pub written_kb: Option<f64>,
    pub server_switches: Option<f64>,
    pub client_switches: Option<f64>,
    pub machine_switches: Option<f64>,
    pub server_cpu_us: Option<f64>,
    pub server_user_us: Option<f64>,
    pub client_cpu_us: Option<f64>,
    pub server_major_faults: Option<f64>,
}

/// Shares (0..=1) of the window in which somebody waited.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct PressureShares {
    pub cpu: Option<f64>,
    pub io: Option<f64>,
    pub memory: Option<f64>,
}

/// One second of the window.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct TimelineSecond {
    pub operations: u64,
    pub units: u64,
    /// Their mean latency.
    pub mean_us: f64,
    /// Their longest.
    pub max_us: f64,
    pub disk_reads: Option<u64>,
    pub disk_writes: Option<u64>,
    /// Bytes read from the disk.
    pub read_bytes: Option<u64>,
    /// Bytes written to the disk.
    pub written_bytes: Option<u64>,
    pub server_cpu_us: Option<f64>,
    #[serde(default)]
    pub server_switches: Option<u64>,
    pub server_resident_bytes: Option<u64>,
    #[serde(default)]
    pub checkpoint: Option<bool>,
    /// Bytes that the server had put off at its end.
    #[serde(default)]
    pub behind_bytes: Option<u64>,
    /// Bytes that the server wrote besides its log.
    #[serde(default)]
    pub background_bytes: Option<u64>,
}

fn interval_s() -> u32 {
    INTERVAL_S
}

impl LatencyFigures {
    fn of(latencies: &Latencies) -> LatencyFigures {
        LatencyFigures {
            mean: latencies.mean_us(),
            p25: latencies.quantile_us(0.25),
            p50: latencies.quantile_us(0.5),
            p75: latencies.quantile_us(0.75),
            p90: latencies.quantile_us(0.9),
            p95: latencies.quantile_us(0.95),
            p99: latencies.quantile_us(0.99),
            p999: latencies.quantile_us(0.999),
            max: latencies.max_us(),
        }
    }
}

impl Figures {
    pub fn new(measured: &Measured, kinds: &[String]) -> Figures {
        let Measured { tally, seconds, usage, .. } = measured;
        let seconds = *seconds;
        let operations = tally.operations();
        let usage = usage.as_ref();
        let of_kind = |(name, kind): (&String, &KindTally)| KindFigures {
            name: name.clone(),
            done: tally.found(kind),
            missed: kind.missed,
            failed: kind.failed,
            latency_us: LatencyFigures::of(&kind.latencies),
            last_s: kind.last_at.map(|last| last.duration_since(measured.from).as_secs_f64()),
            timeline: kind.seconds.iter().map(|(count, sum)| (*count, mean_us(*count, *sum))).collect(),
            histogram_us: kind.latencies.buckets_us(),
        };
        Figures {
            seconds,
            operations,
            units: tally.done(),
            missed: tally.missed,
            failed: tally.failed,
            retried: tally.retried,
            failures: tally.failures.clone(),
            rate: operations as f64 / seconds,
            latency_us: LatencyFigures::of(&tally.latencies),
            service_us: tally.service.as_ref().map(LatencyFigures::of),
            not_begun: tally.not_begun,
            longest_wait_us: tally.longest_wait.as_secs_f64() * 1e6,
            longest_unanswered_us: tally.longest_unanswered.as_secs_f64() * 1e6,
            kinds: kinds.iter().zip(&tally.kinds).map(of_kind).collect(),
            notes: tally.notes.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            per_operation: Costs::by(measured, operations as f64),
            per_second: Costs::by(measured, seconds),
            machine: usage.map(|usage| usage.machine),
            pressure: usage.map(|usage| PressureShares::of(usage.pressure, usage.seconds)),
            disk_source: usage.and_then(|usage| Some(usage.disk.as_ref()?.source.clone())),
            client_threads_busy: tally.threads.iter().map(|thread| thread.cpu_us / 1e6 / seconds).collect(),
            server_resident_bytes: usage.and_then(|usage| Some(usage.server.as_ref()?.resident_bytes)),
            timeline: timeline(&tally.seconds, &measured.usage_per_second),
            interval_s: measured.plan.interval_s,
            intervals: IntervalFigures::of(
                &tally.intervals,
                kinds.len(),
                &measured.folder_bytes,
                tally.seconds.len().div_ceil(measured.plan.interval_s.max(1) as usize),
            ),
            checkpoints: None,
            histogram_us: tally.latencies.buckets_us(),
        }
    }

    /// With what the server told of its checkpoints during the window, which opened at this moment.
    pub fn with_told(mut self, told: &Watched, from: Instant) -> Figures {
        self.checkpoints = told.checkpoints(from, self.seconds);
        let seconds = told.seconds(from, self.timeline.len());
        for ((place, second), told) in self.timeline.iter_mut().enumerate().zip(seconds) {
            let under_way = |all: &Vec<Checkpoint>| all.iter().any(|checkpoint| checkpoint.is_in(place));
            second.checkpoint = self.checkpoints.as_ref().map(under_way);
            second.behind_bytes = told.behind;
            second.background_bytes = told.background;
        }
        self
    }

    /// The seconds of the window that are whole: the last one of a run that ended by itself is shorter, and
    /// would pass for a drop.
    pub fn whole_seconds(&self) -> &[TimelineSecond] {
        let whole = (self.seconds + 1e-3).floor() as usize;
        &self.timeline[..whole.min(self.timeline.len())]
    }

    /// The client's share (0..=1) of the CPU time that it and the server used together.
    pub fn client_share(&self) -> Option<f64> {
        let (client, server) = (self.per_operation.client_cpu_us?, self.per_operation.server_cpu_us?);
        (client + server > 0.0).then(|| client / (client + server))
    }
}

impl Figures {
    /// The share (0..=1) of the CPU time of all cores that neither the client nor the server used; nothing if
    /// the server's is not known, which may be on this machine. An engine in this process has no client
    /// apart.
    pub fn others_share(&self, cores: usize) -> Option<f64> {
        let machine = self.machine?;
        self.server_resident_bytes?;
        let known_us = [self.per_second.server_cpu_us, self.per_second.client_cpu_us];
        let known: f64 = known_us.into_iter().flatten().sum::<f64>() / 1e6 / cores.max(1) as f64;
        Some((machine.user + machine.system - known).max(0.0))
    }
}

impl PressureShares {
    fn of(pressure: Pressure, seconds: f64) -> PressureShares {
        let share = |us: Option<u64>| us.map(|us| us as f64 / 1e6 / seconds);
        PressureShares {
            cpu: share(pressure.cpu_us),
            io: share(pressure.io_us),
            memory: share(pressure.memory_us),
        }
    }
}

fn mean_us(count: u64, sum: Duration) -> f64 {
    if count == 0 { 0.0 } else { sum.as_secs_f64() * 1e6 / count as f64 }
}

/// The counts of the clients beside the costs.
fn timeline(seconds: &[Second], usages: &[Usage]) -> Vec<TimelineSecond> {
    let entry = |(place, second): (usize, &Second)| {
        let usage = usages.get(place);
        let disk = usage.and_then(|usage| Some(&usage.disk.as_ref()?.counts));
        let server = usage.and_then(|usage| usage.server.as_ref());
        TimelineSecond {
            operations: second.operations,
            units: second.units,
            mean_us: mean_us(second.units, second.latency_sum),
            max_us: second.latency_max.as_secs_f64() * 1e6,
            disk_reads: disk.and_then(|disk| disk.reads),
            disk_writes: disk.and_then(|disk| disk.writes),
            read_bytes: disk.map(|disk| disk.read_bytes),
            written_bytes: disk.map(|disk| disk.written_bytes),
            server_cpu_us: server.map(pando_measuring::counters::ServerUsage::cpu_us),
            server_switches: server.map(|server| server.switches),
            server_resident_bytes: server.map(|server| server.resident_bytes),
            ..TimelineSecond::default()
        }
    };
    seconds.iter().enumerate().map(entry).collect()
}

impl Costs {
    /// The usage divided by so many operations or seconds; nothing by none.
    fn by(measured: &Measured, parts: f64) -> Costs {
        if parts <= 0.0 {
            return Costs::default();
        }
        let usage = measured.usage.as_ref();
        let each = |sum: f64| sum / parts;
        let disk = usage.and_then(|usage| Some(&usage.disk.as_ref()?.counts));
        let server = usage.and_then(|usage| usage.server.as_ref());
        // The kernel counts ticks. Less than one is not measured, and is not zero either.
        let with_cpu = server.filter(|server| server.cpu_us() > 0.0);
        let threads = &measured.tally.threads;
        // An engine in this process has no threads of a client that would be apart.
        let of_threads =
            |of: fn(&ThreadUsage) -> f64| (!threads.is_empty()).then(|| each(threads.iter().map(of).sum()));
        Costs {
            disk_reads: disk.and_then(|disk| disk.reads).map(|reads| each(reads as f64)),
            disk_writes: disk.and_then(|disk| disk.writes).map(|writes| each(writes as f64)),
            read_kb: disk.map(|disk| each(disk.read_bytes as f64 / 1024.0)),
            written_kb: disk.map(|disk| each(disk.written_bytes as f64 / 1024.0)),
            server_switches: server.map(|server| each(server.switches as f64)),
            client_switches: of_threads(|thread| thread.switches as f64),
            machine_switches: usage.map(|usage| each(usage.machine_switches as f64)),
            server_cpu_us: with_cpu.map(|server| each(server.cpu_us())),
            server_user_us: with_cpu.map(|server| each(server.user_us)),
            client_cpu_us: of_threads(|thread| thread.cpu_us),
            server_major_faults: server.map(|server| each(server.major_faults as f64)),
        }
    }
}

/// CPU time of the machine in the unit of post E: percent of all cores times a million, by the rate.
pub fn cpu_percent_by_rate(machine: Shares, rate: f64) -> f64 {
    (machine.user + machine.system) * 100.0 * 1e6 / rate.max(1e-9)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::client::UnitEnd;
    use crate::client::{Misses, Pace, Tally, Verdict};
    use crate::run::Plan;
    use pando_measuring::counters::{DiskCounts, DiskUsage, ServerUsage};

    /// A run of one client that counted this, over 2 seconds.
    pub fn measured(tally: Tally, usage: Option<Usage>) -> Measured {
        let plan =
            Plan { clients: 1, threads: 1, warmup_s: 0, duration_s: 2, pace: Pace::Closed, interval_s: 10 };
        let usage_per_second = usage.iter().cloned().collect();
        Measured {
            plan,
            from: Instant::now(),
            seconds: 2.0,
            tally,
            usage,
            usage_per_second,
            folder_bytes: vec![5_000_000],
            server_end: None,
        }
    }

    /// So many units of 100 us in the first second.
    pub fn tally(units: u64) -> Tally {
        let mut tally = Tally::new(0, Misses::AreFaults);
        let us = Duration::from_micros(100);
        let unit = UnitEnd { second: 0, latency: us, service: us, verdict: Verdict::Done, operations: 1 };
        (0..units).for_each(|_| tally.unit(unit.clone()));
        tally.threads = vec![ThreadUsage { cpu_us: 50.0, switches: 20 }];
        tally
    }

    pub fn usage() -> Usage {
        let counts = DiskCounts { reads: Some(5), writes: None, read_bytes: 10_240, written_bytes: 0 };
        let server =
            ServerUsage { user_us: 100.0, system_us: 50.0, switches: 30, major_faults: 0, resident_bytes: 1 };
        Usage {
            seconds: 2.0,
            machine: Shares { idle: 0.5, user: 0.3, system: 0.2 },
            machine_switches: 60,
            server: Some(server),
            disk: Some(DiskUsage { counts, source: "a disk".into() }),
            pressure: Pressure { cpu_us: None, io_us: Some(1_000_000), memory_us: None },
        }
    }

    #[test]
    fn costs_are_divided_by_operations() {
        let figures = Figures::new(&measured(tally(10), Some(usage())), &[]);
        assert_eq!((figures.operations, figures.rate), (10, 5.0));
        let each = &figures.per_operation;
        assert_eq!((each.disk_reads, each.read_kb, each.written_kb), (Some(0.5), Some(1.0), Some(0.0)));
        assert_eq!(
            (each.server_cpu_us, each.server_user_us, each.client_cpu_us),
            (Some(15.0), Some(10.0), Some(5.0))
        );
        assert_eq!((each.server_switches, each.client_switches), (Some(3.0), Some(2.0)));
        let second = &figures.per_second;
        assert_eq!(
            (second.disk_reads, second.read_kb, second.server_cpu_us),
            (Some(2.5), Some(5.0), Some(75.0))
        );
        assert_eq!(figures.client_share(), Some(0.25));
        assert_eq!(figures.pressure.and_then(|pressure| pressure.io), Some(0.5));
        assert_eq!(figures.timeline[0].disk_reads, Some(5));
    }

    #[test]
    fn cpu_below_a_tick_of_the_kernels_clock_is_not_counted_rather_than_zero() {
        let mut usage = usage();
        let server = usage.server.as_mut().expect("there is a server");
        (server.user_us, server.system_us) = (0.0, 0.0);
        let figures = Figures::new(&measured(tally(10), Some(usage)), &[]);
        assert_eq!((figures.per_operation.server_cpu_us, figures.per_second.server_user_us), (None, None));
        assert_eq!(figures.per_operation.server_switches, Some(3.0), "the rest is counted");
        assert_eq!(figures.client_share(), None, "a share of an unknown time");
    }

    #[test]
    fn the_last_fraction_of_a_second_is_no_whole_one() {
        let second = |operations| Second { operations, ..Second::default() };
        let mut tally = tally(10);
        tally.seconds = vec![second(10), second(10), second(1)];
        let mut run = measured(tally, None);
        run.seconds = 2.1;
        let whole = Figures::new(&run, &[]).whole_seconds().iter().map(|s| s.operations).collect::<Vec<_>>();
        assert_eq!(whole, [10, 10]);
        run.seconds = 3.0;
        assert_eq!(Figures::new(&run, &[]).whole_seconds().len(), 3);
    }

    #[test]
    fn a_run_without_operations_has_no_costs_rather_than_infinite_ones() {
        let figures = Figures::new(&measured(Tally::new(0, Misses::AreFaults), Some(usage())), &[]);
        assert_eq!(figures.rate, 0.0);
        assert_eq!(figures.per_operation.server_cpu_us, None);
    }
}
