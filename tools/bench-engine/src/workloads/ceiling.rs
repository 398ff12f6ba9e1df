//! The rate of the device: random reads of the size that a peer reads, with as many threads, past the
//! kernel's page cache. By `fio` where it is installed, by a loop of this tool elsewhere; of the store's own
//! largest file.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pando_environment::AlignedBuffer;

use crate::counters::largest_file;
use crate::error::{BenchError, on_file};
use crate::figures::Figures;
use crate::random::Random;

/// Reads are whole multiples of this.
const READ_UNIT: u64 = 4096;

/// Reads for a time, as a peer did: `bytes_a_read` on average.
pub fn run(folder: &Path, threads: u64, bytes_a_read: f64, time: Duration) -> Result<Figures, BenchError> {
    let mut figures = Figures::default();
    let read_bytes = ((bytes_a_read / READ_UNIT as f64).round() as u64).max(1) * READ_UNIT;
    let Some((file, bytes)) = largest_file(folder).filter(|(_, bytes)| *bytes >= 64 * read_bytes) else {
        return Ok(figures);
    };
    figures.set("read_bytes", read_bytes as f64);
    match by_fio(&file, threads, read_bytes, time) {
        Some(rate) => {
            figures.set("rate", rate);
            figures.set("by_fio", 1.0);
        }
        None => figures.set("rate", by_loop(&file, bytes, threads, read_bytes, time)?),
    }
    Ok(figures)
}

/// The rate by `fio`; nothing where it does not run.
fn by_fio(file: &Path, threads: u64, read_bytes: u64, time: Duration) -> Option<f64> {
    let output = Command::new("fio")
        .args(["--name=ceiling", "--readonly", "--rw=randread", "--direct=1", "--ioengine=psync", "--thread"])
        .args([
            "--group_reporting",
            "--time_based",
            "--norandommap",
            "--randrepeat=0",
            "--output-format=json",
        ])
        .arg(format!("--filename={}", file.display()))
        .arg(format!("--numjobs={threads}"))
        .arg(format!("--bs={read_bytes}"))
        .arg(format!("--runtime={}", time.as_secs().max(1)))
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let json: serde_json::Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
    json.get("jobs")?.get(0)?.get("read")?.get("iops")?.as_f64().filter(|rate| *rate > 0.0)
}

fn by_loop(
    file: &Path,
    bytes: u64,
    threads: u64,
    read_bytes: u64,
    time: Duration,
) -> Result<f64, BenchError> {
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    let opened = File::options().read(true).custom_flags(flags).open(file).or_else(|_| File::open(file));
    let opened = opened.map_err(on_file("open", file))?;
    let reads = AtomicU64::new(0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..threads)
            .map(|reader| {
                let (opened, reads) = (&opened, &reads);
                scope.spawn(move || -> std::io::Result<()> {
                    let mut random = Random::new(reader);
                    let mut buffer = AlignedBuffer::zeroed(read_bytes as usize);
                    while began.elapsed() < time {
                        let place = random.below(bytes / read_bytes) * read_bytes;
                        opened.read_exact_at(&mut buffer, place)?;
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        readers.into_iter().try_for_each(|reader| reader.join().expect("readers do not panic"))
    })
    .map_err(on_file("read", file))?;
    Ok(reads.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_reads_a_file_and_counts() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).expect("it is writable");
        let rate = by_loop(&path, 1 << 20, 2, 4096, Duration::from_millis(50)).expect("it is readable");
        assert!(rate > 10.0, "{rate}");
    }

    #[test]
    fn a_store_without_a_large_file_has_no_ceiling() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let figures = run(folder.path(), 1, 4096.0, Duration::from_millis(10)).expect("nothing is read");
        assert_eq!(figures.get("rate"), None);
    }
}
