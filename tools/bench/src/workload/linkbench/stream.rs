//! LinkBench's `csvstream`: for each client and interval (`displayfreq`), a line per operation with
//! percentiles of a sample of at most `maxsamples` latencies.
//!
//! As the original's, with what it lacks: DELETE_LINK has lines, too, and the duration of an interval is in
//! microseconds, as its column says. A list's length stands in lines of a pretended operation, RANGE_SIZE.
//! The warm-up is not in it: the first interval begins with the first request that is counted.

use super::mix::{OPERATIONS, Operation};
use pando_measuring::random::{Generator, Random};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The operations, and RANGE_SIZE behind them.
const KINDS: usize = OPERATIONS.len() + 1;
const RANGE_SIZE: usize = OPERATIONS.len();

const HEAD: &str = "threadID,timestamp,op,totalops,totalerrors,ops,sampleDuration_us,sampleOps,mean_us,min_us,p25_us,p50_us,\
                    p75_us,p90_us,p95_us,p99_us,max_us\n";

/// The lines of all clients of a run.
#[derive(Debug)]
pub struct StreamLog {
    every: Duration,
    samples_max: usize,
    lines: Mutex<String>,
}

impl StreamLog {
    /// An empty one, of intervals of so many seconds, and so many samples of an operation in each.
    pub fn new(every_s: u32, samples_max: u32) -> StreamLog {
        StreamLog {
            every: Duration::from_secs(every_s.into()),
            samples_max: samples_max as usize,
            lines: Mutex::default(),
        }
    }

    /// All lines so far, with their heading.
    pub fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{HEAD}{lines}")
    }

    pub fn clear(&self) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[derive(Clone, Debug, Default)]
struct Sample {
    ops: u64,
    sum: f64,
    min: u64,
    max: u64,
    /// A sample of the latencies: each of them is in it with the same probability.
    kept: Vec<u64>,
}

#[derive(Debug)]
pub struct ClientStream {
    log: Arc<StreamLog>,
    client: u32,
    random: Random,
    /// When the interval began; nothing before the first request.
    began: Option<Instant>,
    samples: Vec<Sample>,
    /// Operations and failures since the client began.
    totals: Vec<(u64, u64)>,
}

impl ClientStream {
    /// Of this client, counted from 0.
    pub fn new(log: Arc<StreamLog>, client: u32) -> ClientStream {
        ClientStream {
            log,
            client,
            // The sample has a source of its own, so that it changes no draw of the workload.
            random: Random::for_client(Generator::Xoshiro, 0, client.into()),
            began: None,
            samples: vec![Sample::default(); KINDS],
            totals: vec![(0, 0); KINDS],
        }
    }

    pub fn done(&mut self, operation: Operation, latency: Duration) {
        self.take(operation.kind().index(), u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
        let now = Instant::now();
        let began = *self.began.get_or_insert_with(|| now.checked_sub(latency).unwrap_or(now));
        if now.duration_since(began) >= self.log.every {
            self.write();
        }
    }

    /// Takes in one that failed: it has no latency.
    pub fn failed(&mut self, operation: Operation) {
        self.totals[operation.kind().index()].1 += 1;
    }

    pub fn listed(&mut self, links: u32) {
        self.take(RANGE_SIZE, links.into());
    }

    fn take(&mut self, kind: usize, value: u64) {
        let (sample, most) = (&mut self.samples[kind], self.log.samples_max);
        self.totals[kind].0 += 1;
        sample.min = if sample.ops == 0 { value } else { sample.min.min(value) };
        sample.max = sample.max.max(value);
        sample.sum += value as f64;
        sample.ops += 1;
        if sample.kept.len() < most {
            sample.kept.push(value);
        } else {
            let place = self.random.below(u32::try_from(sample.ops).unwrap_or(u32::MAX)) as usize;
            if let Some(kept) = sample.kept.get_mut(place) {
                *kept = value;
            }
        }
    }

    fn write(&mut self) {
        let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let duration_us = self.began.map_or(0, |began| began.elapsed().as_micros());
        let mut lines = String::new();
        for (kind, sample) in self.samples.iter_mut().enumerate().filter(|(_, sample)| sample.ops > 0) {
            let name = OPERATIONS.get(kind).map_or("RANGE_SIZE", |operation| operation.name());
            let (total, errors) = self.totals[kind];
            sample.kept.sort_unstable();
            let Sample { ops, sum, min, max, kept } = &*sample;
            let at = |percent: usize| kept[(kept.len() * percent / 100).min(kept.len() - 1)];
            // Writing to a string does not fail.
            let _ = write!(
                lines,
                "{},{timestamp},{name},{total},{errors},{ops},{duration_us},{},{:.1},{min}",
                self.client,
                kept.len(),
                sum / *ops as f64
            );
            for percent in [25, 50, 75, 90, 95, 99] {
                let _ = write!(lines, ",{}", at(percent));
            }
            let _ = writeln!(lines, ",{max}");
            *sample = Sample::default();
        }
        self.log.lines.lock().unwrap_or_else(PoisonError::into_inner).push_str(&lines);
        self.began = Some(Instant::now());
    }
}

impl Drop for ClientStream {
    /// The last interval is shorter.
    fn drop(&mut self) {
        self.write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_originals_columns_and_deletes_have_lines_too() {
        let log = Arc::new(StreamLog::new(3600, 100));
        let mut stream = ClientStream::new(log.clone(), 7);
        (1..=100).for_each(|us| stream.done(Operation::DeleteLink, Duration::from_micros(us)));
        stream.failed(Operation::DeleteLink);
        stream.listed(12);
        drop(stream);
        let text = log.text();
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert!(rows.len() == 3 && rows.iter().all(|row| row.len() == 17), "{text}");
        let names_and_counts = |row: &[&str]| (row[0].to_owned(), row[2].to_owned(), row[3..6].join(" "));
        assert_eq!(names_and_counts(&rows[1]), ("7".into(), "DELETE_LINK".into(), "100 1 100".into()));
        assert_eq!(rows[1][7..].join(" "), "100 50.5 1 26 51 76 91 96 100 100");
        assert_eq!((rows[2][2], rows[2][16]), ("RANGE_SIZE", "12"));
    }

    #[test]
    fn of_many_latencies_a_fair_sample_is_kept() {
        let log = Arc::new(StreamLog::new(3600, 200));
        let mut stream = ClientStream::new(log.clone(), 0);
        (0..20_000).for_each(|us| stream.done(Operation::GetNode, Duration::from_micros(us)));
        assert_eq!((stream.samples[3].kept.len(), stream.samples[3].ops), (200, 20_000));
        let mean = stream.samples[3].kept.iter().sum::<u64>() as f64 / 200.0;
        // Five standard deviations of the mean of 200 uniform values.
        assert!((mean - 10_000.0).abs() < 2050.0, "{mean}");
    }
}
