//! A server process over a folder of its own; ended when dropped.
#![allow(dead_code, reason = "each test file uses its part")]

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mongodb::sync::Client;

/// See the module's head.
pub struct Server {
    process: Child,
    pub port: u16,
    _folder: tempfile::TempDir,
}

impl Server {
    pub fn start() -> Server {
        Server::with_options(&[])
    }

    /// A server with further options of its command line.
    pub fn with_options(options: &[&str]) -> Server {
        let program = std::env::var("PANDO").expect("PANDO names the server's binary");
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new(program)
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"])
            .arg(folder.path().join("data"))
            .args(options)
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

    pub fn client(&self, options: &str) -> Client {
        let uri = format!("mongodb://127.0.0.1:{}/?directConnection=true{options}", self.port);
        Client::with_uri_str(uri).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
