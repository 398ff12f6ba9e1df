//! The file of a run: one JSON document with all that is needed to repeat the run and to judge it.

use super::Finding;
use super::settings::tell_apart;
use super::warnings::MachineUsers;
use super::{Figures, durability, warnings};
use crate::client::{Misses, Pace};
use crate::error::{BenchError, make_folder, read_text, unreadable, unwritable};
use crate::run::Plan;
use crate::target::ServerFacts;
use crate::target::uri::without_login;
use crate::why::Why;
use crate::why::profile::flame_graph_path;
use pando_measuring::counters::{Facts, FolderSize, ProcessId};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The form of the file: it grows when a reader of the last form would misunderstand.
pub const FORM: u32 = 2;

/// A run in all its circumstances.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct RunFile {
    pub form: u32,
    /// The workload's name; of a load with ` load` behind it.
    pub workload: String,
    /// The work, in one line.
    pub summary: String,
    /// The unit that the rate counts, in the plural.
    pub operations: String,
    pub tool_version: String,
    pub command_line: Vec<String>,
    /// When the file was written, in seconds since 1970.
    pub written_unix_s: u64,
    /// How it was run.
    pub plan: PlanFacts,
    pub parameters: serde_json::Value,
    pub server_address: String,
    pub server: ServerFacts,
    pub server_process: Option<ProcessId>,
    /// The machine of the tool, and of the server if it runs here.
    pub machine: Facts,
    /// The size of the data folder after the run.
    pub data_folder_size: Option<FolderSize>,
    /// The tool's own ceiling with as many clients, in operations per second.
    pub ceiling: Option<f64>,
    pub figures: Figures,
    /// The checks of the data after the run.
    pub findings: Vec<Finding>,
    /// Lines about this run that only its workload has.
    pub lines: Vec<String>,
    /// Further data of its workload, for programs.
    #[serde(default)]
    pub extras: serde_json::Value,
    pub warnings: Vec<String>,
    /// Whether they are no measurement.
    pub flagged: bool,
    /// The user's own labels: server, engine, cache, state of the data, durability, …
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The meaning of an acknowledged write.
    #[serde(default)]
    pub durability: String,
    #[serde(default)]
    pub why: Why,
    /// The settings that tell it from other runs of its server that were read with it; nothing if these are
    /// its repeats.
    #[serde(skip)]
    pub settings_apart: Option<String>,
}

/// A plan, as the file has it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct PlanFacts {
    pub clients: u32,
    pub threads: u32,
    /// Seconds before the window.
    pub warmup_s: u32,
    /// Seconds of the window at most.
    pub duration_s: u32,
    /// `closed` or `open`.
    pub loop_kind: String,
    /// Of an open loop: units per second that were to begin.
    pub rate: Option<f64>,
    /// Of an open loop: how they were spread.
    pub spacing: Option<String>,
}

impl PlanFacts {
    pub fn of(plan: Plan) -> PlanFacts {
        let (rate, spacing) = match plan.pace {
            Pace::Closed => (None, None),
            Pace::Open { rate, spacing } => (Some(rate), Some(spacing.name().to_owned())),
        };
        PlanFacts {
            clients: plan.clients,
            threads: plan.threads,
            warmup_s: plan.warmup_s,
            duration_s: plan.duration_s,
            loop_kind: if rate.is_none() { "closed" } else { "open" }.to_owned(),
            rate,
            spacing,
        }
    }
}

impl RunFile {
    /// The name of this run in its suite, if that says more than its workload.
    pub fn run_label(&self) -> Option<&str> {
        self.labels.get("run").map(String::as_str).filter(|run| !self.workload.starts_with(run))
    }

    /// Whether it is a measurement whose rate the tool itself limits.
    pub fn is_client_bound(&self) -> bool {
        !self.flagged && warnings::is_client_bound(&self.figures, self.ceiling)
    }

    /// The users of a machine without idle time, of a run that is a measurement.
    pub fn machine_users(&self) -> Option<MachineUsers> {
        warnings::machine_users(&self.figures, self.machine.cores).filter(|_| !self.flagged)
    }

    /// Writes it into a folder, which is made if it is not there; gives the file's path.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, BenchError> {
        make_folder(folder)?;
        let path = self.free_path(folder);
        let text = serde_json::to_string(self)
            .map_err(|error| BenchError::WriteReport { path: path.clone(), source: error.into() })?;
        write_whole(&path, &(text + "\n"))?;
        if let Some(profile) = &self.why.profile {
            write_whole(&flame_graph_path(&path), &profile.flame_graph)?;
        }
        Ok(path)
    }

    /// Two runs may end within one second: the second one gets a number.
    fn free_path(&self, folder: &Path) -> PathBuf {
        let workload = self.workload.replace(' ', "-");
        let stem = format!("{workload}-{}-c{}", self.written_unix_s, self.plan.clients);
        let first = folder.join(format!("{stem}.json"));
        let others = (2..).map(|number: u32| folder.join(format!("{stem}-{number}.json")));
        std::iter::once(first).chain(others).find(|path| !path.exists()).unwrap_or_default()
    }

    pub fn read(path: &Path) -> Result<RunFile, BenchError> {
        let text = read_text(path)?;
        let form = |line, cause| BenchError::FileForm { path: path.to_owned(), line, cause };
        let mut file: RunFile = serde_json::from_str(&text)
            .map_err(|error| form(error.line(), format!("this is no file of a run: {error}")))?;
        if file.form != FORM {
            return Err(form(1, format!("its form is {}, this tool reads {FORM}", file.form)));
        }
        if let Some(profile) = &mut file.why.profile {
            // Without its graph, a profile has its symbols still.
            profile.flame_graph = std::fs::read_to_string(flame_graph_path(path)).unwrap_or_default();
        }
        Ok(file)
    }

    /// Reads all of a folder, in order of their writing. Of a suite's folder, those of its runs as the suite
    /// is now: files of an earlier form of it, or of an earlier build of a server, are no repeats of these.
    pub fn read_folder(folder: &Path) -> Result<Vec<RunFile>, BenchError> {
        let chosen = reported(folder)?;
        let folder = &runs_in(folder);
        let is_chosen = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            chosen.as_ref().is_none_or(|chosen| chosen.contains(&name))
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable(&folder))? {
            let path = entry.map_err(unreadable(&folder))?.path();
            if path.extension().is_some_and(|extension| extension == "json") && is_chosen(&path) {
                files.push(RunFile::read(&path)?);
            }
        }
        files.sort_by_key(|file| (file.written_unix_s, file.plan.clients));
        tell_apart(&mut files);
        Ok(files)
    }
}

/// The part of a file that is the same in all runs of one call of the tool.
#[derive(Debug)]
pub struct Circumstances {
    pub server_address: String,
    pub server: ServerFacts,
    pub server_process: Option<ProcessId>,
    pub machine: Facts,
    /// Which counter the disk figures come from, as of the beginning.
    pub disk_source: String,
    /// See [`RunFile::labels`].
    pub labels: BTreeMap<String, String>,
}

/// The part of a file that belongs to one run.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// See [`RunFile::workload`].
    pub workload: String,
    /// See [`RunFile::summary`].
    pub summary: String,
    /// See [`RunFile::operations`].
    pub operations: &'static str,
    /// See [`RunFile::parameters`].
    pub parameters: serde_json::Value,
    /// Whether a miss is a fault or part of the work.
    pub misses: Misses,
    /// How it was run.
    pub plan: Plan,
    pub ceiling: Option<f64>,
    /// See [`RunFile::findings`].
    pub findings: Vec<Finding>,
    /// See [`RunFile::lines`].
    pub lines: Vec<String>,
    /// See [`RunFile::extras`].
    pub extras: serde_json::Value,
    /// See [`RunFile::why`].
    pub why: Why,
}

/// Writes a file whole or not at all: half a file, of a disk that is full, would later pass for a run.
pub fn write_whole(path: &Path, text: &str) -> Result<(), BenchError> {
    let beside = path.with_extension("part");
    let written = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|source| {
        // If it cannot be removed either, its name says what it is.
        let _ = std::fs::remove_file(&beside);
        BenchError::WriteReport { path: path.to_owned(), source }
    })
}

/// Writes a page that may be there already: it stays whole until the new one is. A path that is no file, such
/// as /dev/stdout or a pipe, is written to and never replaced.
pub fn replace_page(path: &Path, text: &str) -> Result<(), BenchError> {
    match std::fs::metadata(path) {
        Ok(there) if there.is_file() => {
            // A link to a page stays one.
            let real = path.canonicalize().map_err(unwritable(path))?;
            match write_whole(&real, text) {
                // The page can be written, and nothing beside it.
                Err(BenchError::WriteReport { source, .. })
                    if source.kind() == ErrorKind::PermissionDenied =>
                {
                    std::fs::write(&real, text).map_err(unwritable(path))
                }
                written => written,
            }
        }
        Ok(_) => std::fs::write(path, text).map_err(unwritable(path)),
        Err(_) => write_whole(path, text),
    }
}

impl Circumstances {
    pub fn run_file(&self, facts: RunFacts, figures: Figures) -> RunFile {
        let flagged = warnings::is_flagged(&figures, facts.misses, &facts.findings);
        RunFile {
            form: FORM,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            command_line: std::env::args().map(|argument| without_login(&argument)).collect(),
            written_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
            plan: PlanFacts::of(facts.plan),
            server_address: self.server_address.clone(),
            server: self.server.clone(),
            server_process: self.server_process,
            machine: self.machine.clone(),
            data_folder_size: self.machine.data_folder.as_deref().map(FolderSize::of),
            warnings: warnings::warnings(&figures, &facts, self),
            durability: durability::stated(&facts.parameters, &self.server, &self.labels),
            labels: self.labels.clone(),
            why: facts.why,
            flagged,
            workload: facts.workload,
            summary: facts.summary,
            operations: facts.operations.to_owned(),
            parameters: facts.parameters,
            ceiling: facts.ceiling,
            findings: facts.findings,
            lines: facts.lines,
            extras: facts.extras,
            figures,
            settings_apart: None,
        }
    }
}

/// The file of a suite's progress, in the folder of its results.
pub fn suite_file(folder: &Path) -> PathBuf {
    folder.join("suite.json")
}

pub fn results_in(folder: &Path) -> PathBuf {
    folder.join("results")
}

/// The folder that has the files of runs: of a suite's folder a folder in it, else the folder itself.
pub fn runs_in(folder: &Path) -> PathBuf {
    if suite_file(folder).exists() { results_in(folder) } else { folder.to_owned() }
}

/// The part of a suite's progress that says which files are those of the suite as it is now.
#[derive(serde::Deserialize)]
struct Progress {
    #[serde(default)]
    reported: Option<BTreeSet<String>>,
}

/// The names of the files that reports of a suite's folder are about; nothing where all are: in other
/// folders, and in those of earlier tools.
fn reported(folder: &Path) -> Result<Option<BTreeSet<String>>, BenchError> {
    let path = suite_file(folder);
    if !path.exists() {
        return Ok(None);
    }
    let progress: Progress = serde_json::from_str(&read_text(&path)?).map_err(|error| {
        BenchError::FileForm { path: path.clone(), line: error.line(), cause: error.to_string() }
    })?;
    Ok(progress.reported)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::figures::tests::{measured, tally};
    use super::*;

    /// Of a server that is nowhere.
    pub fn circumstances() -> Circumstances {
        let server = ServerFacts {
            version: Some("1".to_owned()),
            git_version: None,
            allocator: None,
            replica_set: None,
            wire_version: None,
            settings: None,
            cache_bytes: None,
        };
        Circumstances {
            server_address: "127.0.0.1:1".to_owned(),
            server,
            server_process: None,
            machine: Facts::gather(None, None),
            disk_source: "none".to_owned(),
            labels: BTreeMap::new(),
        }
    }

    /// The file of a run that reached this rate.
    pub fn file(workload: &str, clients: u32, rate: f64) -> RunFile {
        let plan =
            Plan { clients, threads: 1, warmup_s: 0, duration_s: 2, pace: Pace::Closed, interval_s: 10 };
        let facts = RunFacts {
            workload: workload.to_owned(),
            summary: "a summary".to_owned(),
            operations: "queries",
            parameters: serde_json::json!({ "seed": 1 }),
            misses: Misses::AreFaults,
            plan,
            ceiling: None,
            findings: Vec::new(),
            lines: Vec::new(),
            extras: serde_json::Value::Null,
            why: Why::default(),
        };
        let mut figures = Figures::new(&measured(tally(10), None), &[]);
        figures.rate = rate;
        circumstances().run_file(facts, figures)
    }

    #[test]
    fn written_results_are_read_again_and_none_is_overwritten() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let written = file("sysbench load", 4, 5.0);
        let paths = [written.write(folder.path()), written.write(folder.path())];
        let [first, second] = paths.map(|path| path.expect("it is writable"));
        assert_ne!(first, second);
        let files = RunFile::read_folder(folder.path()).expect("they are whole");
        assert_eq!(files.len(), 2);
        assert_eq!((files[0].figures.rate, files[0].plan.clients), (5.0, 4));
    }

    #[test]
    fn a_page_is_replaced_as_a_whole_and_what_is_no_file_is_written_to() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (page, old, link) =
            (folder.path().join("a.html"), folder.path().join("old"), folder.path().join("link"));
        replace_page(&page, "before").expect("it is writable");
        std::fs::hard_link(&page, &old).expect("of one file system");
        std::os::unix::fs::symlink(&page, &link).expect("it is writable");
        replace_page(&link, "after").expect("it is writable");
        let read = |path: &Path| std::fs::read_to_string(path).expect("it is there");
        assert_eq!((read(&page), read(&old)), ("after".to_owned(), "before".to_owned()));
        assert!(link.is_symlink(), "the link stays");
        replace_page(Path::new("/dev/null"), "nothing").expect("it is writable");
        assert!(!Path::new("/dev/null").is_file(), "a device stays one");
    }

    #[test]
    fn a_suites_folder_gives_the_files_that_belong_to_the_suite_as_it_is_now() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let results = results_in(folder.path());
        let now = file("point", 4, 5.0).write(&results).expect("it is writable");
        file("point", 4, 50.0).write(&results).expect("it is writable");
        let suite = |text: &str| std::fs::write(suite_file(folder.path()), text).expect("it is writable");
        let rates = || -> Vec<f64> {
            let files = RunFile::read_folder(folder.path()).expect("they are whole");
            files.iter().map(|file| file.figures.rate).collect()
        };
        suite("{}");
        assert_eq!(rates().len(), 2, "an earlier tool did not say which");
        let name = now.file_name().expect("it has a name").to_string_lossy().into_owned();
        suite(&format!("{{\"reported\": [\"{name}\", \"removed.json\"]}}"));
        assert_eq!(rates(), [5.0]);
    }

    #[test]
    fn a_file_that_is_none_of_a_run_is_named_with_its_line() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("other.json");
        std::fs::write(&path, "{\n\"a\": 1}\n").expect("it is writable");
        let error = RunFile::read(&path).expect_err("it is none");
        assert!(error.to_string().contains("other.json, line 2"), "{error}");
        assert!(RunFile::read(&folder.path().join("missing.json")).is_err());
    }
}
