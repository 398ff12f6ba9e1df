//! A profile of the server: `perf record` of its process over warm-up and window, as top symbols and a flame
//! graph.
//!
//! 1. [`Recording::start`] starts perf beside the run; it ends with the window, or is told to.
//! 2. [`Recording::finish`] lets `perf script` print the stacks, and folds them.
//!
//! The graph is an SVG without scripts, and needs nothing from outside.

use crate::error::BenchError;
use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options as FoldOptions};
use pando_measuring::counters::ProcessId;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Samples per second and processor: not in step with timers of round numbers.
const FREQUENCY: &str = "199";
/// So many symbols are kept.
const SYMBOLS: usize = 40;

/// Where processors were.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Profile {
    pub samples: u64,
    /// Functions that ran, and their share (0..=1) of the samples, the most first.
    pub symbols: Vec<(String, f64)>,
    /// The flame graph; beside the run's file, not in it.
    #[serde(skip)]
    pub flame_graph: String,
}

#[derive(Debug)]
pub struct Recording {
    perf: Child,
    file: PathBuf,
}

impl Recording {
    /// Starts to record a process for so many seconds, with stacks by `fp` or `dwarf`.
    pub fn start(server: ProcessId, stacks: &str, seconds: u32) -> Result<Recording, BenchError> {
        let file = std::env::temp_dir().join(format!("pando-bench-{}.perf", std::process::id()));
        let perf = Command::new("perf")
            .args(["record", "-q", "-F", FREQUENCY, "--call-graph", stacks, "-p", &server.to_string(), "-o"])
            .arg(&file)
            .args(["--", "sleep", &seconds.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("{error}; Debian's package is linux-perf")))?;
        Ok(Recording { perf, file })
    }

    /// Ends it, and says where the processors were.
    pub fn finish(self) -> Result<Profile, BenchError> {
        if let Some(process) = Pid::from_raw(self.perf.id().cast_signed()) {
            // It may have ended by itself.
            let _ = kill_process(process, Signal::INT);
        }
        let output = self.perf.wait_with_output().map_err(|error| failed(error.to_string()))?;
        let script =
            Command::new("perf").args(["script", "-i"]).arg(&self.file).stderr(Stdio::null()).output();
        let size = std::fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        let _ = std::fs::remove_file(&self.file);
        let script = script.map_err(|error| failed(error.to_string()))?;
        if size == 0 || script.stdout.is_empty() {
            let said = String::from_utf8_lossy(&output.stderr);
            let cause = format!(
                "{}; it needs /proc/sys/kernel/perf_event_paranoid of at most 1, or root",
                said.trim().lines().last().unwrap_or("no samples")
            );
            return Err(failed(cause));
        }
        of_script(&script.stdout)
    }
}

fn failed(cause: String) -> BenchError {
    BenchError::Program { program: "perf", cause }
}

/// Folds what `perf script` printed.
fn of_script(script: &[u8]) -> Result<Profile, BenchError> {
    let mut folded = Vec::new();
    let wrong = |error: std::io::Error| failed(format!("its stacks cannot be read: {error}"));
    Folder::from(FoldOptions::default()).collapse(script, &mut folded).map_err(wrong)?;
    let folded = String::from_utf8_lossy(&folded).into_owned();
    let mut by_symbol: BTreeMap<&str, u64> = BTreeMap::new();
    // A sample weighs as much as the time, or the cycles, that it stands for.
    let mut weights = 0;
    for line in folded.lines() {
        let Some((stack, weight)) = line.rsplit_once(' ') else { continue };
        let weight = weight.parse::<u64>().unwrap_or(0);
        weights += weight;
        *by_symbol.entry(stack.rsplit(';').next().unwrap_or(stack)).or_default() += weight;
    }
    let samples = String::from_utf8_lossy(script).lines().filter(|line| begins_sample(line)).count() as u64;
    let mut symbols: Vec<(String, f64)> = by_symbol
        .into_iter()
        .map(|(symbol, weight)| (symbol.to_owned(), weight as f64 / weights.max(1) as f64))
        .collect();
    symbols.sort_by(|a, b| b.1.total_cmp(&a.1));
    symbols.truncate(SYMBOLS);
    let mut options = inferno::flamegraph::Options::default();
    options.title = "Where the server's processors were".to_owned();
    let mut graph = Vec::new();
    inferno::flamegraph::from_lines(&mut options, folded.lines(), &mut graph).map_err(wrong)?;
    Ok(Profile { samples, symbols, flame_graph: without_script(&String::from_utf8_lossy(&graph)) })
}

/// A sample is a line of its own, and under it a line for each function, set in.
fn begins_sample(line: &str) -> bool {
    !line.is_empty() && !line.starts_with([' ', '\t', '#'])
}

/// The picture alone: what its script does (zooming, searching) needs a page of its own.
fn without_script(graph: &str) -> String {
    let around = graph
        .split_once("<script")
        .and_then(|(before, rest)| Some((before, rest.split_once("</script>")?.1)));
    around.map_or_else(|| graph.to_owned(), |(before, after)| format!("{before}{after}"))
}

/// Where a run's flame graph is, by the path of its file.
pub fn flame_graph_path(run: &Path) -> PathBuf {
    run.with_extension("flame.svg")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_become_symbols_with_their_shares_and_a_graph_without_scripts() {
        let sample = |leaf: &str| {
            format!(
                "server 1 10.0: 5025125 cpu-clock:pppH:\n\t1000 {leaf}+0x1 (/bin/server)\n\t2000 main+0x2 (/bin/server)\n\n"
            )
        };
        let script = [sample("read"), sample("read"), sample("read"), sample("write")].concat();
        let profile = of_script(script.as_bytes()).expect("the form of perf");
        assert_eq!(profile.samples, 4);
        assert_eq!(profile.symbols[0], ("read".to_owned(), 0.75));
        assert!(profile.flame_graph.contains("<svg") && !profile.flame_graph.contains("<script"));
    }

    #[test]
    fn a_script_without_samples_is_an_error() {
        assert!(of_script(b"").is_err());
    }
}
