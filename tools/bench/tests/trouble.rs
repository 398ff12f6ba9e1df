//! Servers that die or are silent, and folders that cannot be written: a clear message, and what was measured is kept.

mod support;

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::Server;

fn tool() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pando-bench"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_server_that_dies_during_a_run_costs_that_run_and_not_those_before() {
    let mut server = Server::start();
    let arguments =
        "point --collections 1 --docs 100 --clients 2 --duration 2 --warmup 0 --no-ceiling --repeats 5";
    let child = tool()
        .args(arguments.split_whitespace())
        .args(["--uri", &server.uri(), "--out"])
        .arg(server.out())
        .spawn()
        .expect("the tool starts");
    let began = Instant::now();
    let out = server.out();
    let kept = || std::fs::read_dir(&out).into_iter().flatten().flatten().count();
    // The load's file, and the first run's.
    while kept() < 2 {
        assert!(began.elapsed() < Duration::from_secs(120), "the first run ends");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    let causes = [
        "is the server still running?",
        "is the server running?",
        "a connection to the server broke",
        "closed a connection",
    ];
    assert!(causes.iter().any(|cause| text.contains(cause)), "{text}");
    assert!(!server.files("point").is_empty(), "the runs before are kept");
    assert!(String::from_utf8_lossy(&output.stdout).contains("ops/s"), "and told");
}

#[test]
fn a_server_that_accepts_and_says_nothing_is_told_from_one_that_is_slow() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
    let address = listener.local_addr().expect("it is bound");
    let output = tool().args(["point", "--clients", "1", "--uri", &format!("mongodb://{address}")]).output();
    let output = output.expect("the tool starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("did not answer hello within"), "{text}");
}

#[test]
fn a_folder_that_cannot_be_written_is_told_before_anything_is_measured() {
    let server = Server::start();
    let file = server.folder.path().join("file");
    std::fs::write(&file, "").expect("writable");
    let output = tool()
        .args(["point", "--clients", "1", "--uri", &server.uri(), "--out"])
        .arg(file.join("out"))
        .output()
        .expect("the tool starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("cannot write") && output.stdout.is_empty(), "{text}");
}

#[test]
fn a_server_of_the_tools_own_is_started_capped_and_ended() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("loopback").port();
    let start = format!(
        "{} serve --data {{data}} --listen 127.0.0.1:{{port}} --cache {{cache_mb}}MB",
        support::program::pando().display()
    );
    let run = |caps: &[&str]| {
        tool()
            .args("point --collections 1 --docs 100 --clients 1 --duration 1 --warmup 0 --no-ceiling --cache-mb 20".split(' '))
            .args(["--uri", &format!("mongodb://127.0.0.1:{port}"), "--server-command", &start, "--data-dir"])
            .arg(folder.path().join("data"))
            .args(caps)
            .output()
            .expect("the tool starts")
    };
    let output = run(&[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "it was ended");
    let output = run(&["--cap", "400MB"]);
    let text = String::from_utf8_lossy(&output.stderr);
    // Who may not make control groups is told what to run instead.
    assert!(output.status.success() || text.contains("systemd-run"), "{text}");
}
