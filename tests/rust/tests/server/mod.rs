//! A real `pando serve` process for tests: on a free port, over a folder of its own.

use std::ffi::OsStr;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mongodb::sync::Client;

/// A server process; ended when dropped.
pub struct Server {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts one with these further arguments.
    pub fn start(arguments: &[&OsStr]) -> Server {
        let program = std::env::var("PANDO").expect("PANDO names the server's binary");
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new(program)
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"])
            .arg(folder.path().join("data"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(process.try_wait().unwrap().is_none(), "the server ended");
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Server { process, port, _folder: folder }
    }

    /// A client with these options in its address.
    pub fn client(&self, options: &str) -> Client {
        self.client_of("", options)
    }

    /// A client of this user: `name:password@`, or nothing.
    pub fn client_of(&self, user: &str, options: &str) -> Client {
        let uri = format!("mongodb://{user}127.0.0.1:{}/?directConnection=true{options}", self.port);
        Client::with_uri_str(uri).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
