//! A whole run: for each peer its phases, each in a process of its own, with progress; then the files.
//!
//! 1. Write the setup, from which measuring processes take theirs.
//! 2. Peer by peer, phase by phase: make the memory group, start the process, wait, read its outcome.
//! 3. A phase that fails is noted, and the phases that need it are left out. All others go on.
//! 4. Write the results, print the tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use pando_measuring::counters::Facts;
use pando_measuring::page_cache;

use crate::error::{BenchError, on_file};
use crate::figures::{Outcome, Results, read_json, write_json};
use crate::memory_group::MemoryGroup;
use crate::peer::PeerKind;
use crate::report;
use crate::setup::{Phase, Setup};

/// Sizes of the growing cache, in percent of the documents' bytes.
pub const PERCENTS: [u64; 5] = [1, 2, 4, 8, 16];
/// The file with the results, in the folder of a run.
pub const RESULTS: &str = "results.json";
const SETUP: &str = "setup.json";
/// No phase takes longer, however slow the peer: then it is ended.
const PHASE_TIME_MAX: Duration = Duration::from_secs(1_800);
const LOOK_PERIOD: Duration = Duration::from_millis(20);

/// A run to be made, and its folders.
#[derive(Clone, Debug)]
pub struct Run {
    /// How.
    pub setup: Setup,
    pub peers: Vec<PeerKind>,
    pub phases: Vec<Phase>,
    /// Where results go.
    pub out: PathBuf,
    /// Where stores are made, and removed again.
    pub scratch: PathBuf,
}

struct Running<'r> {
    run: &'r Run,
    outcomes: Vec<Outcome>,
    failures: Vec<String>,
    versions: BTreeMap<String, String>,
    began: Instant,
}

pub fn run(run: &Run) -> Result<Results, BenchError> {
    for folder in [&run.out, &run.scratch] {
        std::fs::create_dir_all(folder).map_err(on_file("make the folder", folder))?;
    }
    write_json(&run.out.join(SETUP), &run.setup)?;
    let machine = machine();
    let mut running = Running {
        run,
        outcomes: Vec::new(),
        failures: Vec::new(),
        versions: BTreeMap::new(),
        began: Instant::now(),
    };
    for peer in &run.peers {
        running.measure_peer(*peer);
        let stores = run.scratch.join(peer.name());
        running.versions.extend(rocksdb_version(&stores).map(|version| (peer.name().to_owned(), version)));
        // Stores are large, and what is left over of one is nobody's.
        let _gone = std::fs::remove_dir_all(stores);
        // A run that is interrupted leaves the peers that are done.
        write_json(&run.out.join(RESULTS), &running.results(&machine))?;
    }
    let results = running.results(&machine);
    report::write_files(&results, &run.out)?;
    Ok(results)
}

impl Running<'_> {
    fn results(&self, machine: &BTreeMap<String, String>) -> Results {
        Results {
            setup: self.run.setup.clone(),
            machine: machine.clone(),
            seconds: self.began.elapsed().as_secs_f64(),
            outcomes: self.outcomes.clone(),
            failures: self.failures.clone(),
            versions: self.versions.clone(),
        }
    }

    fn measure_peer(&mut self, peer: PeerKind) {
        for phase in self.run.phases.clone() {
            let applies = match phase {
                Phase::Trees | Phase::TreesAgain => peer.suits_many_trees(),
                Phase::Crash | Phase::Recovery => peer == PeerKind::Betree,
                _ => true,
            };
            if !applies || !self.has_what_it_needs(peer, phase) {
                continue;
            }
            let percents: &[u64] = if phase == Phase::Growing { &PERCENTS } else { &[0] };
            for percent in percents {
                self.measure(peer, phase, *percent);
            }
        }
    }

    fn outcome(&self, peer: PeerKind, phase: Phase) -> Option<&Outcome> {
        self.outcomes.iter().find(|outcome| outcome.peer == peer && outcome.phase == phase)
    }

    fn has_what_it_needs(&self, peer: PeerKind, phase: Phase) -> bool {
        let needed = match phase {
            Phase::Growing | Phase::Updates | Phase::Compacted => Phase::Capped,
            Phase::TreesAgain => Phase::Trees,
            Phase::Recovery => Phase::Crash,
            _ => return true,
        };
        self.outcome(peer, needed).is_some()
    }

    fn measure(&mut self, peer: PeerKind, phase: Phase, percent: u64) {
        let size = if percent > 0 { format!(" {percent} %") } else { String::new() };
        eprint!(
            "{:>5.0} s  {}, {}{size} ... ",
            self.began.elapsed().as_secs_f64(),
            peer.title(),
            phase.name()
        );
        let began = Instant::now();
        match self.measure_in_a_process(peer, phase, percent) {
            Ok(outcome) => {
                eprintln!("{:.0} s{}", began.elapsed().as_secs_f64(), report::headline(&outcome));
                if let Some(failure) = &outcome.failure {
                    eprintln!("        and failed: {failure}");
                    self.failures.push(failure.clone());
                }
                self.outcomes.push(outcome);
            }
            Err(error) => {
                let text = report::with_causes(&error);
                eprintln!("failed: {text}");
                self.failures.push(format!("{}, {}{size}: {text}", peer.title(), phase.name()));
            }
        }
    }

    fn measure_in_a_process(
        &self,
        peer: PeerKind,
        phase: Phase,
        percent: u64,
    ) -> Result<Outcome, BenchError> {
        let run = self.run;
        let folder = run.scratch.join(peer.name()).join(phase.store());
        if phase.store() == phase.name() {
            // A store that an earlier run left behind is not this one's.
            let _nothing_there = std::fs::remove_dir_all(&folder);
        }
        std::fs::create_dir_all(&folder).map_err(on_file("make the folder", &folder))?;
        let path = run.scratch.join(format!("{}-{}.json", peer.name(), phase.name()));
        let _nothing_there = std::fs::remove_file(&path);
        let cache_bytes = match phase {
            Phase::Growing => run.setup.documents() * crate::data::DOCUMENT_BYTES * percent / 100,
            _ => run.setup.cache_bytes,
        };
        // The kernel charges pages of the store to the process that read them: they would be outside the
        // cap.
        page_cache::forget(&folder).map_err(on_file("drop from the page cache", &folder))?;
        let group = phase.is_capped().then(|| MemoryGroup::create(cache_bytes + run.setup.headroom_bytes));
        let mut command = Command::new(std::env::current_exe().map_err(on_file("find", "this program"))?);
        command.arg("measure").arg(run.out.join(SETUP)).args([peer.name(), phase.name()]);
        command.arg(&folder).arg(&path).args(["--percent", &percent.to_string()]);
        if let Some(Ok(group)) = &group {
            command.arg("--group").arg(group.folder());
        }
        if let Some(crash) = self.outcome(peer, Phase::Crash) {
            let figure = |name| crash.figures.get(name).unwrap_or(0.0);
            let acknowledged = format!("{},{}", figure("crash.documents"), figure("crash.log_mb"));
            command.args(["--acknowledged", &acknowledged]);
        }
        let child = command.spawn().map_err(on_file("start", "the measuring process"))?;
        let ended = wait(child, peer, phase);
        let mut outcome: Outcome = match (ended, path.exists()) {
            (Err(error), true) => {
                let outcome: Outcome = read_json(&path)?;
                Outcome { failure: Some(report::with_causes(&error)), ..outcome }
            }
            (ended, _) => ended.and_then(|()| read_json(&path))?,
        };
        let _gone = std::fs::remove_file(&path);
        if let Some(Err(why)) = group {
            outcome.notes.push(format!("no cap of memory: {why}"));
        }
        Ok(outcome)
    }
}

/// Waits for a measuring process; ends it when it takes too long.
fn wait(mut child: Child, peer: PeerKind, phase: Phase) -> Result<(), BenchError> {
    let failed = |ended: String| BenchError::Child {
        peer: peer.title().to_owned(),
        phase: phase.name().to_owned(),
        ended,
    };
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Err(error) => return Err(failed(format!("cannot be waited for: {error}"))),
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(failed(format!("ended with {status}"))),
            Ok(None) if began.elapsed() > PHASE_TIME_MAX => {
                let _ended_meanwhile = child.kill();
                let _ended_meanwhile = child.wait();
                return Err(failed(format!("took more than {} s", PHASE_TIME_MAX.as_secs())));
            }
            Ok(None) => std::thread::sleep(LOOK_PERIOD),
        }
    }
}

/// The version of RocksDB that wrote a store below a folder, as its file of options says it. The library that
/// is linked may be another one than the crate builds, and tells its version nowhere else.
fn rocksdb_version(stores: &Path) -> Option<String> {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries(stores).flat_map(|store| entries(&store.path()));
    let options = files.filter(|file| file.file_name().to_string_lossy().starts_with("OPTIONS-"));
    let mut texts = options.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts.find_map(|text| {
        text.lines().find_map(|line| Some(line.trim().strip_prefix("rocksdb_version=")?.to_owned()))
    })
}

/// The facts without which a figure cannot be compared with another.
fn machine() -> BTreeMap<String, String> {
    let facts = Facts::gather(None, None);
    [
        ("processor", facts.cpu_model.unwrap_or_default()),
        ("cores", facts.cores.to_string()),
        ("memory", facts.memory_kb.map_or_else(String::new, |kb| format!("{kb} kB"))),
        ("kernel", facts.kernel.unwrap_or_default()),
        ("load at the beginning", facts.load_average.unwrap_or_default()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

pub fn report_again(folder: &Path) -> Result<Results, BenchError> {
    let results: Results = read_json(&folder.join(RESULTS))?;
    report::write_files(&results, folder)?;
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_rocksdb_is_read_from_the_options_of_a_store() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = folder.path().join("capped");
        std::fs::create_dir(&store).expect("it is empty");
        assert_eq!(rocksdb_version(folder.path()), None);
        let text = "[Version]\n  rocksdb_version=7.8.3\n  options_file_version=1.1\n";
        std::fs::write(store.join("OPTIONS-000007"), text).expect("writable");
        assert_eq!(rocksdb_version(folder.path()).as_deref(), Some("7.8.3"));
    }
}
