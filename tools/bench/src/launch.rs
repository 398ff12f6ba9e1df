//! Servers that this tool starts and ends: for capped runs (`--server-command`) and for suites.
//!
//! 1. [`caps`] makes a control group where one is asked for. A shell enters it and becomes the server's
//!    program.
//! 2. The server is a process group of its own. Ctrl-C in the terminal reaches this tool alone, which then
//!    ends the server in order.
//! 3. [`StartedServer::start`] waits until the server answers. The error of a server that dies or is slow has
//!    the end of its log.
//! 4. [`StartedServer::stop`], or dropping it, ends it: by its own stop command or a signal, after a time by
//!    force.

pub mod caps;
mod group;
mod readahead;
mod words;

pub use caps::Caps;
pub use readahead::Readahead;
pub use words::Words;

use crate::error::{BenchError, no_resource, unwritable};
use crate::interrupt::{self, Undo};
use group::Group;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often to look whether a server answers, or has ended.
const STEP: Duration = Duration::from_millis(50);
/// How long a server may take to end when somebody waits for the tool's own end.
const INTERRUPTED_WITHIN: Duration = Duration::from_secs(20);
/// So many lines of a log are shown.
const LOG_LINES: usize = 12;

/// How to start and stop a server. Commands are for a shell; each is one program with its arguments.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Starts it; it stays in the foreground.
    pub start: String,
    /// Ends it; without one it gets SIGTERM.
    pub stop: Option<String>,
    /// How long it may take to answer.
    pub ready_within: Duration,
    /// How long it may take to end.
    pub stop_within: Duration,
    /// Where its output goes.
    pub log: PathBuf,
    pub caps: Caps,
    pub data_folder: Option<PathBuf>,
}

#[derive(Debug)]
pub struct StartedServer {
    launch: Launch,
    child: Child,
    registered: Option<interrupt::Registered>,
    /// After the process: a group can be removed when nobody is in it.
    _group: Option<Group>,
    is_over: bool,
}

impl StartedServer {
    /// Starts it and waits until `answers` is content.
    pub fn start(
        launch: &Launch,
        answers: &dyn Fn() -> Result<(), BenchError>,
    ) -> Result<StartedServer, BenchError> {
        let group = Group::make(launch.caps, launch.data_folder.as_deref(), &launch.start)?;
        let log = File::create(&launch.log).map_err(unwritable(&launch.log))?;
        let into_group = group.as_ref().map_or_else(String::new, Group::enter_command);
        let child = Command::new("sh")
            .arg("-c")
            .arg(format!("{into_group}exec {}", launch.start))
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(unwritable(&launch.log))?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .map_err(no_resource("a shell"))?;
        let registered = Pid::from_raw(child.id().cast_signed()).map(Undo::EndGroup).map(interrupt::register);
        let mut server =
            StartedServer { launch: launch.clone(), child, registered, _group: group, is_over: false };
        server.wait_until(answers)?;
        // Another server may have taken the address meanwhile: its answer says nothing about this one.
        server.check()?;
        Ok(server)
    }

    /// Its process: the shell became it.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs; a server that has ended by itself is told with the end of its log.
    pub fn check(&mut self) -> Result<(), BenchError> {
        let waited = self.child.try_wait();
        match waited.map_err(no_resource("waiting for a process"))? {
            None => Ok(()),
            Some(status) => {
                self.is_over = true;
                self.registered = None;
                Err(BenchError::ServerDied {
                    command: self.launch.start.clone(),
                    status: status.to_string(),
                    log: end_of(&self.launch.log),
                })
            }
        }
    }

    fn wait_until(&mut self, answers: &dyn Fn() -> Result<(), BenchError>) -> Result<(), BenchError> {
        let began = Instant::now();
        loop {
            self.check()?;
            interrupt::check()?;
            let Err(last) = answers() else { return Ok(()) };
            if last.is_refused_login() {
                return Err(last);
            }
            if began.elapsed() > self.launch.ready_within {
                return Err(BenchError::ServerSlow {
                    command: self.launch.start.clone(),
                    seconds: self.launch.ready_within.as_secs(),
                    last: last.to_string(),
                    log: end_of(&self.launch.log),
                });
            }
            std::thread::sleep(STEP);
        }
    }

    /// Ends it in order. Gives how long that took.
    pub fn stop(mut self) -> Duration {
        let began = Instant::now();
        self.end();
        began.elapsed()
    }

    /// Ends it at once: for servers whose data nobody wants any more.
    pub fn kill(mut self) {
        if !self.is_over {
            self.force();
        }
    }

    fn end(&mut self) {
        if self.is_over || self.check().is_err() {
            return;
        }
        let asked = self.launch.stop.as_ref().is_some_and(|stop| {
            let status = Command::new("sh").arg("-c").arg(stop).stdin(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        });
        if !asked {
            self.signal(Signal::TERM);
        }
        let began = Instant::now();
        while self.check().is_ok() {
            // A second request for the end of the tool ends the server with it: see [`interrupt`].
            let within = if interrupt::requested() { INTERRUPTED_WITHIN } else { self.launch.stop_within };
            let within = within.min(self.launch.stop_within);
            if began.elapsed() > within {
                err_line!("the server did not end within {} s: it is killed", within.as_secs());
                self.force();
            }
            std::thread::sleep(STEP);
        }
        self.is_over = true;
        self.registered = None;
    }

    fn force(&mut self) {
        self.signal(Signal::KILL);
        // A killed process ends; what it leaves is its own to recover.
        let _ = self.child.wait();
        self.is_over = true;
        self.registered = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            // It may have ended in this moment.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for StartedServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// The last lines of a log; empty if there is none.
pub fn end_of(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(LOG_LINES);
    lines[from..].iter().map(|line| format!("\n  | {}", line.chars().take(300).collect::<String>())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(folder: &Path, start: &str) -> Launch {
        Launch {
            start: start.to_owned(),
            stop: None,
            ready_within: Duration::from_millis(400),
            stop_within: Duration::from_millis(300),
            log: folder.join("log"),
            caps: Caps::default(),
            data_folder: None,
        }
    }

    fn is_alive(process: u32) -> bool {
        Path::new("/proc").join(process.to_string()).join("stat").exists()
    }

    #[test]
    fn a_server_that_dies_is_told_with_the_end_of_its_log() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let launch = launch(folder.path(), "sh -c 'echo no port for me; exit 3'");
        let error = StartedServer::start(&launch, &|| Err(BenchError::Closed)).expect_err("it dies");
        let text = error.to_string();
        assert!(text.contains("exit status: 3") && text.contains("| no port for me"), "{text}");
    }

    #[test]
    fn a_server_that_never_answers_is_ended_and_told() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let launch = launch(folder.path(), "sleep 60");
        let error = StartedServer::start(&launch, &|| Err(BenchError::Closed)).expect_err("it is slow");
        assert!(error.to_string().contains("did not answer within"), "{error}");
    }

    #[test]
    fn an_answer_of_somebody_else_does_not_hide_that_the_server_died() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let launch = launch(folder.path(), "sh -c 'echo the port is taken; exit 3'");
        let another_answers = || {
            std::thread::sleep(Duration::from_millis(300));
            Ok(())
        };
        let error = StartedServer::start(&launch, &another_answers).expect_err("it died");
        assert!(error.to_string().contains("the port is taken"), "{error}");
    }

    #[test]
    fn a_server_ends_when_it_is_dropped_even_if_it_does_not_want_to() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let stubborn = launch(folder.path(), "sh -c 'trap \"\" TERM; while true; do sleep 0.05; done'");
        let server = StartedServer::start(&stubborn, &|| Ok(())).expect("it starts");
        let process = server.process();
        assert!(is_alive(process));
        drop(server);
        assert!(!is_alive(process), "it was killed in the end");
    }

    #[test]
    fn a_stop_command_is_asked_before_a_signal() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let said = folder.path().join("said");
        let mut launch =
            launch(folder.path(), &format!("sh -c 'until [ -e {} ]; do sleep 0.02; done'", said.display()));
        launch.stop = Some(format!("touch {}", said.display()));
        StartedServer::start(&launch, &|| Ok(())).expect("it starts").stop();
        assert!(said.exists());
    }
}
