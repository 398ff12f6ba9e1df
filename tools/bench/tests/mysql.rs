//! `point` and `sysbench` against a real MariaDB, which the test starts: needs `mariadb-install-db` and `mariadbd`.
#![cfg(feature = "mysql")]

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A MariaDB with its data in a folder of its own, until it is dropped.
struct MariaDb {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl MariaDb {
    fn start() -> MariaDb {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = format!("--datadir={}", folder.path().join("data").display());
        let installed = Command::new("mariadb-install-db")
            .args(["--no-defaults", &data, "--auth-root-authentication-method=normal", "--skip-test-db"])
            .output()
            .expect("MariaDB is installed (Debian: mariadb-server)");
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let process = Command::new("mariadbd")
            .args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", &data])
            .arg(format!("--port={port}"))
            .arg(format!("--socket={}", folder.path().join("socket").display()))
            .arg(format!("--pid-file={}", folder.path().join("pid").display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("mariadbd starts");
        let server = MariaDb { process, port, folder };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "mariadbd does not listen");
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    fn bench(&self, arguments: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_pando-bench"))
            .args(arguments.split_whitespace())
            .args(["--uri", &format!("mysql://root@127.0.0.1:{}", self.port), "--out"])
            .arg(self.folder.path().join("out"))
            .output()
            .expect("the tool starts")
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        // It is this test's own process, and its data goes with the folder.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn tables_are_loaded_asked_and_verified_and_what_cannot_be_is_refused() {
    let server = MariaDb::start();
    let data = "--collections 2 --docs 400 --batch 100 --clients 4 --warmup 0 --duration 1";
    for workload in ["point", "sysbench"] {
        let output = server.bench(&format!("{workload} {data}"));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("rows that must be there: 800 checked, 0 wrong"), "{text}");
    }
    let unknown = server.bench(&format!("sysbench {data} --mysql-engine NOSUCH --database other"));
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("NOSUCH"));
    let other = server.bench("kv");
    assert!(String::from_utf8_lossy(&other.stderr).contains("only point and sysbench"));
}
