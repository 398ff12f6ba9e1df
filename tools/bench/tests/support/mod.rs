//! A real server for the tests, and the tool against it.

pub mod program;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A server with its data in a folder of its own, until it is dropped.
pub struct Server {
    process: Child,
    port: u16,
    pub folder: tempfile::TempDir,
}

impl Server {
    /// Starts `pando serve`.
    pub fn start() -> Server {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (process, port) = program::serve(&folder.path().join("data"));
        Server { process, port, folder }
    }

    /// Where it is. Not every test asks.
    pub fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}", self.port)
    }

    /// Its process.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.process.kill().expect("it is this test's own process");
    }

    /// Calls the tool against it, with files under `out` in its folder; gives what it printed.
    pub fn bench(&self, arguments: &str) -> String {
        self.ended(arguments, 0)
    }

    /// The same, whose run must be flagged.
    pub fn flagged(&self, arguments: &str) -> String {
        self.ended(arguments, 1)
    }

    fn ended(&self, arguments: &str, expected: i32) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_pando-bench"))
            .args(arguments.split_whitespace())
            .args(["--uri", &format!("mongodb://127.0.0.1:{}", self.port), "--out"])
            .arg(self.out())
            .output()
            .expect("the tool starts");
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(expected), "{arguments}\n{text}");
        text
    }

    /// Starts the tool against it, and does not wait.
    pub fn start_bench(&self, arguments: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pando-bench"));
        command.args(arguments.split_whitespace());
        command.args(["--uri", &format!("mongodb://127.0.0.1:{}", self.port)]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the tool starts")
    }

    /// Calls the tool against it, which must refuse; gives what it says.
    pub fn refused(&self, arguments: &str) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_pando-bench"))
            .args(arguments.split_whitespace())
            .args(["--uri", &format!("mongodb://127.0.0.1:{}", self.port)])
            .output()
            .expect("the tool starts");
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Where the tool writes its files.
    pub fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// The files of this workload's runs, with their names.
    pub fn files(&self, workload: &str) -> Vec<serde_json::Value> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(self.out())
            .expect("the tool wrote files")
            .map(|entry| entry.expect("readable").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .collect();
        paths.sort();
        let read = |path: &PathBuf| std::fs::read_to_string(path).expect("readable");
        let files = paths.iter().map(|path| serde_json::from_str(&read(path)).expect("JSON"));
        files.filter(|file: &serde_json::Value| file["workload"] == workload).collect()
    }

    /// The text of the only file that ends so.
    pub fn text(&self, suffix: &str) -> String {
        let entries = std::fs::read_dir(self.out()).expect("the tool wrote files");
        let paths = entries.map(|entry| entry.expect("readable").path());
        let found: Vec<PathBuf> = paths.filter(|path| path.to_string_lossy().ends_with(suffix)).collect();
        assert_eq!(found.len(), 1, "{suffix}: {found:?}");
        std::fs::read_to_string(&found[0]).expect("readable")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is this test's own process, and its data goes with the folder.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
