//! The progress of a suite, in `DIR/suite.json`. It is written after each step, so that an interruption costs
//! one cell.

use super::matrix::Cell;
use crate::error::{BenchError, read_text, unwritable};
use crate::report::failed_cells::FailedCell;
use crate::report::file::{results_in, suite_file, write_whole};
use pando_measuring::counters::ProcessId;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a server that was left behind may take to end.
const END_WITHIN: Duration = Duration::from_secs(30);
/// How often to look whether it has.
const STEP: Duration = Duration::from_millis(50);

/// The progress that is kept between calls.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Kept {
    /// Cells that are done, by their keys.
    pub done: BTreeMap<String, Done>,
    /// Cells whose last try failed, by their keys.
    #[serde(default)]
    pub failed: BTreeMap<String, FailedCell>,
    /// The data that is loaded, by its key, and how many seconds that took.
    pub loaded: BTreeMap<String, f64>,
    /// The files of loads, by the definitions of their data.
    #[serde(default)]
    pub loads: BTreeMap<String, Loads>,
    /// The family of data that the call under way changes or loads. If that call does not end well, nothing
    /// of the family is loaded any more: it may have deleted what it was about to insert again.
    #[serde(default)]
    pub writing: Option<String>,
    /// The files that reports are made of: those of the suite as its file is now. Results of an earlier form
    /// of the suite, or of an earlier build of a server, stay in the folder and are no repeats of these.
    #[serde(default)]
    pub reported: Option<BTreeSet<String>>,
    /// Files that are being moved to the results, of a cell that is not done: if a call ends there, they are
    /// nobody's.
    #[serde(default)]
    pub moving: Vec<String>,
    /// A server that is running, if the call that started it was killed.
    pub server: Option<ServerMark>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Done {
    pub name: String,
    /// How long it took, server and load included.
    pub seconds: f64,
    /// Whether it is no measurement; its files are there to see why.
    pub flagged: bool,
    pub files: Vec<String>,
    /// The build of the server's program ([`super::file::ServerEntry::build`]).
    #[serde(default)]
    pub build: Option<String>,
}

/// The loads of one definition of data, by one build of the server's program.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Loads {
    pub build: Option<String>,
    pub files: Vec<String>,
}

/// A process that is told from others that get its number later by when it began.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ServerMark {
    process: u32,
    began_ticks: u64,
}

impl ServerMark {
    pub fn of(process: u32) -> Option<ServerMark> {
        Some(ServerMark { process, began_ticks: ProcessId::new(process).began_ticks()? })
    }

    /// Ends it, if it is that one still: by force if it does not end within this time.
    fn end(&self, within: Duration) -> bool {
        let process = i32::try_from(self.process).ok().and_then(Pid::from_raw);
        let Some(group) = process.filter(|_| self.runs()) else { return false };
        // It may have ended in this moment.
        let _ = kill_process_group(group, Signal::TERM);
        let began = Instant::now();
        while self.runs() {
            if began.elapsed() > within {
                let _ = kill_process_group(group, Signal::KILL);
                break;
            }
            std::thread::sleep(STEP);
        }
        true
    }

    fn runs(&self) -> bool {
        ServerMark::of(self.process).as_ref() == Some(self)
    }
}

impl Kept {
    /// Reads what an earlier call left; a server that it left behind is ended.
    pub fn read(folder: &Path) -> Result<Kept, BenchError> {
        let path = suite_file(folder);
        if !path.exists() {
            return Ok(Kept::default());
        }
        let text = read_text(&path)?;
        let mut kept: Kept = serde_json::from_str(&text).map_err(|error| BenchError::FileForm {
            path: path.clone(),
            line: error.line(),
            cause: format!("{error}; remove it to begin anew"),
        })?;
        if kept.server.take().is_some_and(|server| server.end(END_WITHIN)) {
            out_line!("a server that an earlier call left behind was ended");
        }
        for file in std::mem::take(&mut kept.moving) {
            // It may not have been moved yet.
            let _ = std::fs::remove_file(results_in(folder).join(file));
        }
        kept.forget_unfinished();
        // Files that somebody removed are to be measured again.
        let results = results_in(folder);
        kept.done.retain(|_, done| done.files.iter().all(|file| results.join(file).exists()));
        Ok(kept)
    }

    /// Whether a cell was measured, with this build of its server.
    pub fn has(&self, cell: &Cell) -> bool {
        self.done_of(cell).is_some()
    }

    /// The measurement of a cell with this build of its server.
    pub fn done_of(&self, cell: &Cell) -> Option<&Done> {
        self.done.get(&cell.key()).filter(|done| done.build == cell.server.build)
    }

    /// Notes that the data of a cell's family is about to be changed or loaded. It is to be written before
    /// that begins.
    pub fn begin_write(&mut self, cell: &Cell) {
        self.writing = Some(cell.data_family());
    }

    /// After a change or a load that ended well.
    pub fn end_write(&mut self) {
        self.writing = None;
    }

    /// After a change or a load that may not have ended well: its data is to be loaded again.
    pub fn forget_unfinished(&mut self) {
        if let Some(family) = self.writing.take() {
            self.loaded.retain(|key, _| !key.starts_with(&family));
        }
    }

    /// Keeps the files of a load, and drops those of another build of the server.
    pub fn add_load(&mut self, cell: &Cell, files: Vec<String>) {
        let loads = self.loads.entry(cell.data_definition()).or_default();
        if loads.build != cell.server.build {
            *loads = Loads { build: cell.server.build.clone(), files: Vec::new() };
        }
        loads.files.extend(files);
    }

    /// Chooses the files of reports: those of all cells of the suite, whether or not this call measures their
    /// servers. The build of a server that it does not measure is not known, and any will do.
    pub fn report_on(&mut self, cells: &[Cell]) {
        let mut files = BTreeSet::new();
        for cell in cells {
            let is_of = |build: &Option<String>| cell.server.build.is_none() || *build == cell.server.build;
            let done = self.done.get(&cell.key()).filter(|done| is_of(&done.build));
            let loads = self.loads.get(&cell.data_definition()).filter(|loads| is_of(&loads.build));
            let of_cell = done.map(|done| &done.files).into_iter().chain(loads.map(|loads| &loads.files));
            files.extend(of_cell.flatten().cloned());
        }
        self.reported = Some(files);
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, folder: &Path) -> Result<(), BenchError> {
        let path = suite_file(folder);
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::other);
        write_whole(&path, &text.map_err(unwritable(&path))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::file::runs_in;
    use std::os::unix::process::CommandExt;

    fn done(file: &str, build: Option<&str>) -> Done {
        Done {
            name: file.into(),
            seconds: 1.0,
            flagged: false,
            files: vec![file.into()],
            build: build.map(str::to_owned),
        }
    }

    #[test]
    fn finished_runs_are_kept_and_removed_ones_are_done_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(results_in(folder.path())).expect("it is empty");
        std::fs::write(results_in(folder.path()).join("a.json"), "{}").expect("writable");
        let mut kept = Kept::read(folder.path()).expect("nothing is there yet");
        kept.done.insert("a".into(), done("a.json", None));
        kept.done.insert("b".into(), done("b.json", None));
        kept.write(folder.path()).expect("writable");
        let again = Kept::read(folder.path()).expect("it was written");
        assert_eq!(again.done.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(runs_in(folder.path()), results_in(folder.path()), "so a report of the folder finds them");
        assert_eq!(runs_in(&results_in(folder.path())), results_in(folder.path()));
    }

    #[test]
    fn files_of_a_cell_that_was_not_done_when_the_call_ended_are_no_results() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let results = results_in(folder.path());
        std::fs::create_dir(&results).expect("it is empty");
        std::fs::write(results.join("a.json"), "{}").expect("writable");
        std::fs::write(results.join("b.json"), "{}").expect("writable");
        let moving = vec!["b.json".to_owned(), "b.tps.tsv".to_owned()];
        Kept { moving, ..Kept::default() }.write(folder.path()).expect("writable");
        assert!(Kept::read(folder.path()).expect("it was written").moving.is_empty());
        assert!(results.join("a.json").exists() && !results.join("b.json").exists());
    }

    #[test]
    fn data_that_an_interrupted_cell_was_changing_is_loaded_again_and_other_data_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cells = crate::suite::matrix::tests::suite().cells();
        let (writing, other) = (&cells[cells.len() - 1], &cells[0]);
        assert!(writing.writes() && !other.writes());
        let mut kept = Kept::default();
        for cell in [writing, other] {
            kept.loaded.insert(cell.data_key(), 1.0);
        }
        kept.begin_write(writing);
        kept.write(folder.path()).expect("writable");
        let mut again = Kept::read(folder.path()).expect("it was written");
        assert_eq!(again.loaded.keys().collect::<Vec<_>>(), [&other.data_key()]);
        again.loaded.insert(writing.data_key(), 1.0);
        again.begin_write(writing);
        again.end_write();
        again.write(folder.path()).expect("writable");
        assert_eq!(Kept::read(folder.path()).expect("it was written").loaded.len(), 2, "it ended well");
    }

    #[test]
    fn reports_have_the_files_of_the_suite_as_it_is_now_and_of_these_builds() {
        let mut suite = crate::suite::matrix::tests::suite();
        let mut kept = Kept::default();
        let keys = |suite: &crate::suite::file::Suite| suite.cells()[0].key();
        kept.done.insert(keys(&suite), done("before-the-edit.json", None));
        suite.settle_s = 7;
        kept.done.insert(keys(&suite), done("after.json", Some("built once")));
        kept.add_load(&suite.cells()[0], vec!["load.json".to_owned()]);
        let reported = |kept: &mut Kept, suite: &crate::suite::file::Suite| {
            kept.report_on(&suite.cells());
            kept.reported.clone().unwrap_or_default().into_iter().collect::<Vec<_>>()
        };
        assert_eq!(reported(&mut kept, &suite), ["after.json", "load.json"]);
        suite.servers[0].build = Some("built anew".to_owned());
        assert!(!kept.has(&suite.cells()[0]), "another build is another measurement");
        assert_eq!(reported(&mut kept, &suite), Vec::<String>::new());
        suite.servers[0].build = Some("built once".to_owned());
        assert!(kept.has(&suite.cells()[0]));
        assert_eq!(reported(&mut kept, &suite), ["after.json"], "the load was of no build that is known");
    }

    #[test]
    fn a_server_that_was_left_behind_is_ended_and_another_process_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut child =
            std::process::Command::new("sleep").arg("60").process_group(0).spawn().expect("it starts");
        let mark = ServerMark::of(child.id()).expect("it runs");
        let other = ServerMark { began_ticks: mark.began_ticks + 1, ..mark.clone() };
        assert!(!other.end(Duration::ZERO), "it began at another time");
        Kept { server: Some(mark), ..Kept::default() }.write(folder.path()).expect("writable");
        Kept::read(folder.path()).expect("it was written");
        assert!(!child.wait().expect("it ended").success());
    }

    #[test]
    fn a_server_that_was_left_behind_and_does_not_want_to_end_is_killed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let ready = folder.path().join("ready");
        let stubborn = format!("trap '' TERM; touch {}; while true; do sleep 0.05; done", ready.display());
        let mut child = std::process::Command::new("sh")
            .args(["-c", &stubborn])
            .process_group(0)
            .spawn()
            .expect("it starts");
        let mark = ServerMark::of(child.id()).expect("it runs");
        while !ready.exists() {
            std::thread::sleep(STEP);
        }
        assert!(mark.end(Duration::from_millis(100)));
        let status = child.wait().expect("it ended");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }

    #[test]
    fn a_file_that_is_none_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(suite_file(folder.path()), "{").expect("writable");
        assert!(Kept::read(folder.path()).expect_err("it is broken").to_string().contains("begin anew"));
    }
}
