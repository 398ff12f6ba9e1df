//! A `pando serve` process on ports and folders of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The program with these arguments, and without what the tests' own environment might say.
pub fn pando(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pando"));
    let variables = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PANDO_"));
    for (name, _) in variables {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program to its end, half a minute at most: exit status, standard output, standard error.
pub fn run(arguments: &[&str]) -> (ExitStatus, String, String) {
    let process = pando(arguments).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&process);
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(process.wait_with_output()));
    let Ok(output) = ended.recv_timeout(Duration::from_secs(30)) else {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        panic!("{arguments:?} does not end");
    };
    let output = output.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status, text(output.stdout), text(output.stderr))
}

/// A server that is killed when dropped.
pub struct Server {
    pub process: Child,
    /// `host:port` of its first address.
    pub address: String,
    /// Everything that its first message says.
    pub welcome: String,
}

impl Server {
    /// A server whose data is in memory.
    pub fn in_memory() -> Server {
        Server::start(&["--engine", "memory", "--listen", "127.0.0.1:0"])
    }

    /// A server over a folder.
    pub fn over(folder: &Path) -> Server {
        Server::start(&["--data", folder.to_str().unwrap(), "--listen", "127.0.0.1:0"])
    }

    /// Starts a server and waits until it says that it is ready.
    pub fn start(arguments: &[&str]) -> Server {
        let mut process = pando(&[&["serve"], arguments].concat()).spawn().unwrap();
        let mut welcome = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        while !welcome.contains("mongosh ") {
            if output.read_line(&mut welcome).unwrap() == 0 {
                let mut log = String::new();
                process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
                panic!("the server ended instead of being ready: {welcome}{log}");
            }
        }
        let address = welcome.rsplit("mongodb://").next().unwrap().trim().to_owned();
        Server { process, address, welcome }
    }

    /// The process's number.
    pub fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.process)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for the process to end, ten seconds at most, and gives its log.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut log = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (status, log)
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Threads.
    pub fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap().count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
