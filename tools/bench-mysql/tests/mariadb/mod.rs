//! A real MariaDB for the tests, and the tool against it.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A MariaDB with its data in a folder of its own, until it is dropped.
pub struct MariaDb {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl MariaDb {
    /// Starts one with these options.
    pub fn start(options: &[&str]) -> MariaDb {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = format!("--datadir={}", folder.path().join("data").display());
        let installed = Command::new("mariadb-install-db")
            .args(["--no-defaults", &data, "--auth-root-authentication-method=normal", "--skip-test-db"])
            .output()
            .expect("MariaDB is installed (Debian: mariadb-server, mariadb-plugin-rocksdb)");
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let log = std::fs::File::create(folder.path().join("log")).expect("it is writable");
        let process = Command::new("mariadbd")
            // Loopback of two addresses, for the test of several endpoints; a small pool, for the machine's
            // sake.
            .args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1,127.0.0.2", &data])
            .args(["--innodb-buffer-pool-size=64M", "--skip-name-resolve"])
            .arg(format!("--port={port}"))
            .arg(format!("--socket={}", folder.path().join("socket").display()))
            .arg(format!("--pid-file={}", folder.path().join("pid").display()))
            .args(options)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("mariadbd starts");
        let mut server = MariaDb { process, port, folder };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.process.try_wait().expect("it is our own process");
            let in_time = began.elapsed() < Duration::from_secs(60);
            if ended.is_some() || !in_time {
                let log = std::fs::read_to_string(server.folder.path().join("log")).unwrap_or_default();
                panic!("mariadbd does not listen: {log}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Calls the tool against it, with files under `out` in its folder.
    pub fn bench(&self, arguments: &str) -> Output {
        self.bench_at(arguments, &[format!("127.0.0.1:{}", self.port)])
    }

    /// The same against these endpoints.
    pub fn bench_at(&self, arguments: &str, endpoints: &[String]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_pando-bench-mysql"))
            .args(arguments.split_whitespace())
            .args(["--uri", &format!("mysql://root@{}", endpoints.join(",")), "--out"])
            .arg(self.folder.path().join("out"))
            .output()
            .expect("the tool starts")
    }

    /// The file of this workload's run that was written last.
    pub fn last_file(&self, workload: &str) -> serde_json::Value {
        let entries = std::fs::read_dir(self.folder.path().join("out")).expect("the tool wrote files");
        let mut files: Vec<(std::time::SystemTime, serde_json::Value)> = entries
            .map(|entry| entry.expect("readable").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .map(|path| {
                let written = path.metadata().and_then(|facts| facts.modified()).expect("it is there");
                let text = std::fs::read_to_string(&path).expect("readable");
                (written, serde_json::from_str(&text).expect("JSON"))
            })
            .filter(|(_, file): &(_, serde_json::Value)| file["workload"] == workload)
            .collect();
        files.sort_by_key(|(written, _)| *written);
        files.pop().expect("a run of this workload").1
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        // It is this test's own process, and its data goes with the folder.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
