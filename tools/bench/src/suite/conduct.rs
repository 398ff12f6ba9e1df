//! The conductor of a suite. For each cell it starts the server, brings it into the state of the cell,
//! measures and ends it.
//!
//! Each cell is a call of this program, so that one which hangs or dies takes nothing else with it, and what
//! it measured is what its command line would measure alone. A cell that fails is told, and the suite goes on
//! with the next.

use super::file::{State, Suite, program};
use super::kept::{Done, Kept, ServerMark};
use super::matrix::Cell;
use super::page_cache;
use crate::cli::URI_VARIABLE;
use crate::client::Address;
use crate::error::{BenchError, make_folder, no_resource, unwritable};
use crate::interrupt::{self, Undo};
use crate::launch::Readahead;
use crate::launch::caps::parse_bytes;
use crate::launch::{Caps, Launch, StartedServer, Words, end_of};
use crate::report::failed_cells::FailedCell;
use crate::report::file::results_in;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often to look at a call under way.
const STEP: Duration = Duration::from_millis(100);

/// Where things are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder of results and of what is kept.
    pub out: PathBuf,
    pub data: PathBuf,
    /// Where programs are, if not in the search path.
    pub programs: BTreeMap<String, PathBuf>,
    /// Arguments that every call of a workload gets besides.
    pub further: Vec<String>,
}

pub struct Conductor<'a> {
    suite: &'a Suite,
    /// The cells that reports are about.
    reported: &'a [Cell],
    places: &'a Places,
    kept: Kept,
    running: Option<Running>,
    began: Instant,
    /// Set back when the suite is over.
    _readahead: Option<Readahead>,
}

/// When the server of a cell was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// For this cell.
    Now,
    Before,
}

struct Running {
    server: StartedServer,
    /// Which one, with which cache.
    key: String,
    uri: String,
}

/// How a suite ended.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Cells that were measured now or before.
    pub done: usize,
    /// Of these, those that are no measurement.
    pub flagged: usize,
    pub failed: usize,
}

impl<'a> Conductor<'a> {
    /// Prepares the folders, and reads what earlier calls did. Reports are about these cells: all of the
    /// suite, whichever servers are measured now.
    pub fn new(
        suite: &'a Suite,
        reported: &'a [Cell],
        places: &'a Places,
    ) -> Result<Conductor<'a>, BenchError> {
        for folder in [&places.out, &results_in(&places.out), &places.data] {
            make_folder(folder)?;
        }
        let kept = Kept::read(&places.out)?;
        let readahead =
            suite.readahead_kb.map(|kilobytes| Readahead::set(&places.data, kilobytes)).transpose()?;
        let began = Instant::now();
        Ok(Conductor { suite, reported, places, kept, running: None, began, _readahead: readahead })
    }

    /// Writes the progress.
    fn keep(&mut self) -> Result<(), BenchError> {
        self.kept.report_on(self.reported);
        self.kept.write(&self.places.out)
    }

    /// Goes through all cells.
    pub fn conduct(mut self) -> Result<Outcome, BenchError> {
        let cells = self.suite.cells();
        // All cells of these servers are tried again, or are no part of the suite any more.
        let servers = &self.suite.servers;
        self.kept.failed.retain(|_, cell| servers.iter().all(|server| server.name != cell.server));
        // The list of reported files follows the suite, also where nothing is left to measure.
        self.keep()?;
        let mut outcome = Outcome { done: 0, flagged: 0, failed: 0 };
        for (place, cell) in cells.iter().enumerate() {
            if let Some(done) = self.kept.done_of(cell) {
                outcome.done += 1;
                outcome.flagged += usize::from(done.flagged);
                continue;
            }
            interrupt::check()?;
            out_line!("[{}/{}] {}; {}", place + 1, cells.len(), cell.name(), self.left(&cells[place..]));
            match self.measure(cell) {
                Ok(done) => {
                    outcome.done += 1;
                    outcome.flagged += usize::from(done.flagged);
                    let flag = if done.flagged { ", FLAGGED: no measurement" } else { "" };
                    out_line!("        done in {}{flag}", in_words(done.seconds));
                    self.kept.done.insert(cell.key(), done);
                    self.kept.moving.clear();
                    self.keep()?;
                }
                // If the cell was changing data, that stays noted, and the next call loads the data again.
                Err(BenchError::Interrupted) => return Err(BenchError::Interrupted),
                Err(error) => {
                    outcome.failed += 1;
                    let cause = with_causes(&error);
                    out_line!("        FAILED: {cause}");
                    let (server, run) = (cell.server.name.clone(), cell.run.name().to_owned());
                    self.kept.failed.insert(cell.key(), FailedCell { server, run, cause });
                    self.kept.forget_unfinished();
                    self.keep()?;
                    // The server's state is unknown now.
                    self.stop()?;
                }
            }
        }
        self.stop()?;
        Ok(outcome)
    }

    /// How long it has been, and how long it will be.
    fn left(&self, cells: &[Cell]) -> String {
        let mut loads: Vec<String> = Vec::new();
        let mut seconds = 0.0;
        for cell in cells.iter().filter(|cell| !self.kept.has(cell)) {
            seconds += self.expected_seconds(cell);
            let key = cell.data_key();
            if cell.has_load() && !self.kept.loaded.contains_key(&key) && !loads.contains(&key) {
                loads.push(key);
            }
        }
        let known: Vec<f64> = self.kept.loaded.values().copied().collect();
        if !known.is_empty() {
            seconds += loads.len() as f64 * known.iter().sum::<f64>() / known.len() as f64;
        }
        let loading = if known.is_empty() && !loads.is_empty() { " and loading" } else { "" };
        format!(
            "{} so far, about {}{loading} left",
            in_words(self.began.elapsed().as_secs_f64()),
            in_words(seconds)
        )
    }

    /// As long as cells of the same run took, or as its arguments say.
    fn expected_seconds(&self, cell: &Cell) -> f64 {
        let name = format!(", {}, ", cell.run.name());
        let same: Vec<f64> = self
            .kept
            .done
            .values()
            .filter(|done| done.name.contains(&name))
            .map(|done| done.seconds)
            .collect();
        let planned = cell.planned_seconds() + f64::from(self.suite.settle_s);
        if same.is_empty() { planned } else { same.iter().sum::<f64>() / same.len() as f64 }
    }

    fn measure(&mut self, cell: &Cell) -> Result<Done, BenchError> {
        let began = Instant::now();
        self.empty_if_fresh(cell)?;
        // Loading is not what a later cell like this will take.
        let loading = self.load_if_missing(cell)?;
        let state = self.bring_into_state(cell)?;
        std::thread::sleep(Duration::from_secs(u64::from(self.suite.settle_s)));
        let mut arguments = cell.arguments();
        arguments
            .extend(["--repeats", "1", "--first-run", cell.place.to_string().as_str()].map(str::to_owned));
        if cell.has_load() {
            arguments.extend(["--load", "no"].map(str::to_owned));
        }
        if cell.writes() {
            self.kept.begin_write(cell);
            self.keep()?;
        }
        let (status, files) = self.call(cell, arguments, &state)?;
        // 1 is the code of a run that was measured and is flagged: something in it failed, or the data was
        // wrong behind it.
        let flagged = !status.success();
        if flagged {
            self.kept.forget_unfinished();
        } else {
            self.kept.end_write();
        }
        let seconds = (began.elapsed() - loading).as_secs_f64();
        Ok(Done { name: cell.name(), seconds, flagged, files, build: cell.server.build.clone() })
    }

    fn empty_if_fresh(&mut self, cell: &Cell) -> Result<(), BenchError> {
        if cell.run.state != State::Fresh {
            return Ok(());
        }
        // Nobody wants what it would still write.
        self.kill()?;
        let folder = self.data_folder(cell);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(unwritable(folder))?;
            // The device may have its own work with what was removed: not in the next measurement.
            rustix::fs::sync();
        }
        // Whatever this server had loaded is gone.
        let its_own = cell.server.data_owner();
        self.kept.loaded.retain(|key, _| !key.starts_with(&its_own));
        self.keep()
    }

    /// Loads, unless the data is there; gives how long that took.
    fn load_if_missing(&mut self, cell: &Cell) -> Result<Duration, BenchError> {
        let key = cell.data_key();
        if !cell.has_load() || self.kept.loaded.contains_key(&key) {
            return Ok(Duration::ZERO);
        }
        let began = Instant::now();
        out_line!("        loading");
        let cache = cell.server.load_cache.clone().unwrap_or_else(|| cell.cache.clone());
        let loader = Cell { cache, ..cell.clone() };
        self.start(&loader)?;
        let mut arguments = loader.arguments();
        arguments.extend(["--load", "only"].map(str::to_owned));
        // It drops what is there before it loads.
        self.kept.begin_write(cell);
        self.keep()?;
        let (_, files) = self.call(&loader, arguments, "load")?;
        self.kept.end_write();
        self.kept.add_load(cell, files);
        // Another load of the same collections is gone.
        let family = cell.data_family();
        self.kept.loaded.retain(|other, _| !other.starts_with(&family));
        self.kept.loaded.insert(key, began.elapsed().as_secs_f64());
        self.kept.moving.clear();
        self.keep()?;
        Ok(began.elapsed())
    }

    /// After data is loaded: the server runs with the cell's cache, and nothing is in memory that may not be.
    fn bring_into_state(&mut self, cell: &Cell) -> Result<String, BenchError> {
        if cell.run.state == State::Cold {
            self.stop()?;
            let how = page_cache::drop_of(&self.data_folder(cell))?;
            self.start(cell)?;
            return Ok(format!("cold: server started anew, {how}"));
        }
        let begun = self.start(cell)?;
        Ok(match cell.run.state {
            State::Fresh => "fresh: a new server with an empty folder, loaded right before".to_owned(),
            _ => warm_in_words(cell, begun).to_owned(),
        })
    }

    fn data_folder(&self, cell: &Cell) -> PathBuf {
        self.places.data.join(slug(&cell.server.name))
    }

    /// Starts the server with the cell's cache, unless it runs so.
    fn start(&mut self, cell: &Cell) -> Result<Begun, BenchError> {
        let key = serde_json::json!([cell.server.name, cell.cache]).to_string();
        if let Some(running) = &mut self.running {
            if running.key == key && running.server.check().is_ok() {
                return Ok(Begun::Before);
            }
            self.stop()?;
        }
        let Some(start) = &cell.server.start else { return Ok(Begun::Before) };
        let folder = self.data_folder(cell);
        let port = free_port()?;
        let mut words =
            Words::new().with("port", port).with("data", folder.display()).with_cache(cell.cache.mb);
        if let Some(name) = &cell.server.program {
            let path = program(name, &self.places.programs).unwrap_or_else(|| PathBuf::from(name));
            words = words.with("program", path.display());
        }
        self.set_up(cell, &folder, &words)?;
        if cell.cache.cap.is_some() {
            // Pages that somebody else has read would be there for nothing, beside the cap.
            page_cache::drop_of(&folder)?;
        }
        let launch = Launch {
            start: cell.server.fill(&words, "start", start)?,
            stop: cell.server.stop.as_ref().map(|stop| cell.server.fill(&words, "stop", stop)).transpose()?,
            ready_within: Duration::from_secs(cell.server.ready_s),
            stop_within: Duration::from_secs(cell.server.stop_s),
            log: self.places.out.join(format!("{}.log", slug(&cell.server.name))),
            caps: caps_of(cell)?,
            data_folder: Some(folder),
        };
        let address = Address::from(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let answers = || {
            let connected = address.connect();
            connected.map(drop).map_err(|source| BenchError::Connect { address: address.to_string(), source })
        };
        let server = StartedServer::start(&launch, &answers)?;
        self.kept.server = ServerMark::of(server.process());
        self.keep()?;
        let uri = cell.server.fill(&words, "uri", &cell.server.uri)?;
        self.running = Some(Running { server, key, uri });
        Ok(Begun::Now)
    }

    fn set_up(&self, cell: &Cell, folder: &Path, words: &Words) -> Result<(), BenchError> {
        if folder.exists() {
            return Ok(());
        }
        std::fs::create_dir_all(folder).map_err(unwritable(folder))?;
        let Some(setup) = &cell.server.setup else { return Ok(()) };
        let output = Command::new("sh")
            .arg("-c")
            .arg(cell.server.fill(words, "setup", setup)?)
            .stdin(Stdio::null())
            .output()
            .map_err(no_resource("a shell"))?;
        if output.status.success() {
            return Ok(());
        }
        // A folder that is half set up must not pass for one that is ready.
        std::fs::remove_dir_all(folder).map_err(unwritable(folder))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let cause = format!("{}: {}", output.status, said.lines().last().unwrap_or_default());
        Err(BenchError::Program { program: "setup", cause })
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        self.running.take().map_or(Ok(()), |running| {
            running.server.stop();
            self.forget_server()
        })
    }

    /// Ends the server at once.
    fn kill(&mut self) -> Result<(), BenchError> {
        self.running.take().map_or(Ok(()), |running| {
            running.server.kill();
            self.forget_server()
        })
    }

    fn forget_server(&mut self) -> Result<(), BenchError> {
        self.kept.server = None;
        self.keep()
    }

    /// Calls this program; gives how it ended, and its files, which are in the folder of results then.
    fn call(
        &mut self,
        cell: &Cell,
        mut arguments: Vec<String>,
        state: &str,
    ) -> Result<(ExitStatus, Vec<String>), BenchError> {
        let folder = self.places.out.join("under-way");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(unwritable(&folder))?;
        }
        std::fs::create_dir_all(&folder).map_err(unwritable(&folder))?;
        let uri = self.running.as_ref().map_or(&cell.server.uri, |running| &running.uri).clone();
        arguments.extend(["--out".to_owned(), folder.display().to_string()]);
        if !cell.server.is_somebody_elses() {
            arguments.extend(["--data-dir".to_owned(), self.data_folder(cell).display().to_string()]);
        }
        for (name, text) in self.labels(cell, state) {
            arguments.extend(["--label".to_owned(), format!("{name}={text}")]);
        }
        arguments.extend(self.places.further.clone());
        let log = folder.join("output.txt");
        let status = self.run_tool(&arguments, &uri, &log)?;
        if !status.success() && status.code() != Some(1) {
            return Err(BenchError::Program {
                program: "pando-bench",
                cause: format!("{status}: {}{}", arguments.join(" "), end_of(&log)),
            });
        }
        Ok((status, self.keep_files(&folder)?))
    }

    fn labels(&self, cell: &Cell, state: &str) -> Vec<(&'static str, String)> {
        let mut labels = vec![
            ("suite", self.suite.name.clone()),
            ("server", cell.server.name.clone()),
            ("engine", cell.server.engine.clone()),
            ("cache", cell.cache.name()),
            ("cache_mb", cell.cache.mb.to_string()),
            ("run", cell.run.name().to_owned()),
            ("state", state.to_owned()),
            ("repeat", cell.repeat.to_string()),
        ];
        labels.extend(self.suite.post.clone().map(|post| ("post", post)));
        labels.extend(self.suite.scaled.clone().map(|scaled| ("scaled", scaled)));
        labels.extend(cell.server.durability.clone().map(|durability| ("durability", durability)));
        labels.extend(cell.cache.io_cap.clone().map(|io_cap| ("io_cap", io_cap)));
        labels.extend(cell.cache.caps().map(|caps| ("cap", caps)));
        labels
    }

    /// The URI goes by the environment: it may have a password, and a list of processes shows arguments.
    fn run_tool(&mut self, arguments: &[String], uri: &str, log: &Path) -> Result<ExitStatus, BenchError> {
        let resource = no_resource("another process of this program");
        let output = File::create(log).map_err(unwritable(log))?;
        let tool = std::env::current_exe().map_err(resource)?;
        let mut child = Command::new(tool)
            .args(arguments)
            .env(URI_VARIABLE, uri)
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(unwritable(log))?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .map_err(resource)?;
        let group = Pid::from_raw(child.id().cast_signed());
        let _registered = group.map(Undo::EndGroup).map(interrupt::register);
        let signal = |signal| group.map(|group| kill_process_group(group, signal));
        let began = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(resource)? {
                return Ok(status);
            }
            let too_long = began.elapsed() > Duration::from_secs(self.suite.limit_s);
            if interrupt::requested() || too_long {
                signal(Signal::KILL);
                child.wait().map_err(resource)?;
                interrupt::check()?;
                let cause = format!("it took longer than limit_s = {} and was ended", self.suite.limit_s);
                return Err(BenchError::Program { program: "pando-bench", cause });
            }
            std::thread::sleep(STEP);
        }
    }

    /// Moves a call's files to the results; what it printed stays where it is. They are whole results when
    /// the cell is kept as done.
    fn keep_files(&mut self, folder: &Path) -> Result<Vec<String>, BenchError> {
        let results = results_in(&self.places.out);
        let mut moves = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unwritable(&results))? {
            let entry = entry.map_err(unwritable(&results))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "output.txt" && !name.starts_with("server-") {
                moves.push((entry.path(), free_name(&results, &name)));
            }
        }
        moves.sort();
        self.kept.moving = moves.iter().map(|(_, name)| name.clone()).collect();
        self.keep()?;
        for (path, name) in moves {
            std::fs::rename(path, results.join(name)).map_err(unwritable(&results))?;
        }
        Ok(self.kept.moving.clone())
    }
}

impl Drop for Conductor<'_> {
    fn drop(&mut self) {
        if self.stop().is_err() {
            err_line!("{} could not be written", self.places.out.display());
        }
    }
}

/// Two cells may end within one second, and their files have names by the second.
fn free_name(folder: &Path, name: &str) -> String {
    if !folder.join(name).exists() {
        return name.to_owned();
    }
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let others = (2..).map(|number: u32| format!("{stem}-{number}.{extension}"));
    others.into_iter().find(|name| !folder.join(name).exists()).unwrap_or_default()
}

fn caps_of(cell: &Cell) -> Result<Caps, BenchError> {
    let wrong = |cause| cell.server.wrong("cap", cause);
    Ok(Caps {
        memory_bytes: cell.cache.cap.as_deref().map(parse_bytes).transpose().map_err(wrong)?,
        io: cell.cache.io_cap.as_deref().map_or(Ok(Default::default()), str::parse).map_err(wrong)?,
    })
}

fn free_port() -> Result<u16, BenchError> {
    let resource = no_resource("a free port");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(resource)?;
    Ok(listener.local_addr().map_err(resource)?.port())
}

/// A warm state in words. A server that was started for this cell has in its cache only what the warm-up
/// brings: reports mark such a run.
fn warm_in_words(cell: &Cell, begun: Begun) -> &'static str {
    match begun {
        _ if cell.server.is_somebody_elses() => {
            "warm: the server was running before the suite; a warm-up before the window"
        }
        // Each call opens the engine anew.
        _ if cell.is_embedded() => "warm: the engine was started right before; a warm-up before the window",
        Begun::Now => "warm: the server was started right before; a warm-up before the window",
        Begun::Before => "warm: a warm-up before the window",
    }
}

/// A name that a file may have.
fn slug(name: &str) -> String {
    name.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '-' }).collect()
}

fn with_causes(error: &BenchError) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}, because: {cause}"))
}

fn in_words(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_run_of_a_server_that_was_just_started_says_so() {
        let cells = crate::suite::matrix::tests::suite().cells();
        let (started, embedded) = (&cells[0], &cells[8]);
        let mark = crate::report::page::STARTED_RIGHT_BEFORE;
        assert!(warm_in_words(started, Begun::Now).contains(mark));
        assert!(!warm_in_words(started, Begun::Before).contains(mark));
        assert!(warm_in_words(embedded, Begun::Before).contains(mark), "each call opens it");
    }
}
