//! Servers that die or are silent, and folders that cannot be written: a clear message, and what was measured
//! is kept.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{self, Server};

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
    let is_json =
        |entry: &std::fs::DirEntry| entry.path().extension().is_some_and(|extension| extension == "json");
    let kept = || std::fs::read_dir(&out).into_iter().flatten().flatten().filter(is_json).count();
    // The load's file, and the first run's.
    while kept() < 2 {
        assert!(began.elapsed() < Duration::from_secs(120), "the first run ends");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    let causes =
        [") ended ", "server running?", "still running?", "to the server broke", "closed a connection"];
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
fn a_server_that_dies_in_the_first_run_is_told_and_its_run_is_kept_as_flagged() {
    // On a busy machine the run takes longer to begin.
    let begun = [3, 9, 27].into_iter().any(|seconds| dies_in_its_first_run(Duration::from_secs(seconds)));
    assert!(begun, "no run has begun within 27 s");
}

/// Kills the server after a time, and checks what is told. Gives whether the run had begun.
fn dies_in_its_first_run(after: Duration) -> bool {
    let mut server = Server::start();
    server.bench("load --collections 1 --docs 100");
    let child = tool()
        .args(
            "point --collections 1 --docs 100 --clients 1 --duration 60 --warmup 0 --no-ceiling --load no"
                .split(' '),
        )
        .args(["--uri", &server.uri(), "--out"])
        .arg(server.out())
        .spawn()
        .expect("the tool starts");
    std::thread::sleep(after);
    server.kill();
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{text}");
    if !text.contains("ops/s") {
        return false;
    }
    assert!(text.contains("FLAGGED"), "{text}");
    let run = &server.files("point")[0];
    assert!(run["flagged"] == true && run["figures"]["operations"].as_u64() > Some(100), "{run}");
    let seconds = run["figures"]["seconds"].as_f64().expect("a number");
    assert!(seconds < 50.0, "until the end of the server: {seconds}");
    assert!(run["figures"]["failures"].to_string().contains(") ended "), "{}", run["figures"]["failures"]);
    let text = String::from_utf8_lossy(&output.stderr);
    let told = format!("the server (pid {}) ended ", server.process_id());
    assert!(text.contains(&told) && text.contains(" s after the clients began: see its log"), "{text}");
    assert!(!text.contains("/proc/"), "{text}");
    true
}

#[test]
fn a_process_that_is_not_there_is_told_before_anything_is_loaded() {
    let server = Server::start();
    let mut ended = Command::new("true").spawn().expect("it starts");
    ended.wait().expect("it ends");
    let text = server.refused(&format!("point --collections 1 --docs 100 --server-pid {}", ended.id()));
    assert!(text.contains(&format!("--server-pid: there is no process {}", ended.id())), "{text}");
    let text = server.refused("point --collections 1 --docs 100 --load no");
    assert!(text.contains("holds 0 documents"), "nothing was loaded: {text}");
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
        "{} serve --data {{data}} --listen 127.0.0.1:{{port}} --cache {{cache_bytes}}",
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

#[test]
fn a_server_is_not_started_where_another_one_listens_whose_data_stays() {
    let server = Server::start();
    server.bench("load --collections 1 --docs 100");
    let start =
        format!("{} serve --data {{data}} --listen 127.0.0.1:{{port}}", support::program::pando().display());
    let data = server.folder.path().join("other");
    let text = refused(&[
        "load",
        "--collections",
        "1",
        "--docs",
        "7",
        "--uri",
        &server.uri(),
        "--server-command",
        &start,
        "--data-dir",
        &data.to_string_lossy(),
    ]);
    assert!(text.contains("--server-command: a server answers at 127.0.0.1:"), "{text}");
    assert!(text.contains("stop it, or choose another port") && !data.exists(), "{text}");
    let point = "point --collections 1 --docs 100 --clients 1 --duration 1 --warmup 0 --no-ceiling --load no";
    server.bench(point);
}

/// What the tool says of a call that it refuses.
fn refused(arguments: &[&str]) -> String {
    let output = tool().args(arguments).output().expect("the tool starts");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_server_that_is_not_there_hangs_up_or_speaks_otherwise_is_told_at_once() {
    let began = Instant::now();
    let closed =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("loopback");
    let text = refused(&["kv", "--uri", &format!("mongodb://{closed}")]);
    assert!(text.contains("is the server running?") && text.contains("because: "), "{text}");
    for (answer, part) in
        [(&b""[..], "closed a connection"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not a message")]
    {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let address = listener.local_addr().expect("it is bound");
        let server = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = listener.accept().expect("the tool connects");
            // The greeting is read, so that closing is an end and not a reset.
            let _ = stream.read(&mut [0; 4096]);
            stream.write_all(answer).expect("the tool listens");
        });
        let text = refused(&["kv", "--uri", &format!("mongodb://{address}")]);
        assert!(text.contains(part), "{text}");
        server.join().expect("it answered");
    }
    assert!(began.elapsed() < Duration::from_secs(10), "nobody had to wait");
}

#[test]
fn a_missing_ability_of_a_target_is_refused_before_anything_starts() {
    for (arguments, parts) in [
        ("point --api handler", ["--api", "only targets mysql://"]),
        ("point --mysql-engine ndb", ["--mysql-engine", "names no storage engine"]),
        ("point --uri embedded:memory --data-dir x --cap 1GB", ["--cap", "an engine in this process"]),
        ("point --cap 1GB", ["--cap", "--server-command"]),
        ("point --io-cap 200riops", ["--io-cap: a server that runs already", "--server-command"]),
        ("point --cache-mb 64", ["--cache-mb: a server that runs already", "--server-command"]),
        ("load --server-stop x", ["--server-stop: a server that runs already", "--server-command"]),
        ("point --embedded-cache 64", ["--embedded-cache: only targets embedded:", "--cache-mb"]),
        ("point --uri embedded:memory --data-dir x --cache-mb 64", ["--cache-mb", "--embedded-cache"]),
        ("point --server-command x --cache-mb 64", ["--cache-mb: the command", "{cache_bytes}"]),
        ("point --uri mongodb://a,b", ["several hosts", "mongodb://a,b"]),
        ("point --uri mongodb://me:secret@h/?authMechanism=X", ["authMechanism", "SCRAM-SHA-256"]),
    ] {
        let text = refused(&arguments.split(' ').collect::<Vec<_>>());
        assert!(parts.iter().all(|part| text.contains(part)), "{arguments}: {text}");
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn a_full_disk_is_told_with_the_figures_and_leaves_no_half_file() {
    let server = Server::start();
    server.bench("load --collections 1 --docs 100");
    let out = server.folder.path().join("full");
    std::fs::create_dir(&out).expect("it is empty");
    let point = format!(
        "{} point --collections 1 --docs 100 --clients 1 --duration 1 --warmup 0 --no-ceiling --load no --uri {} --out {}",
        env!("CARGO_BIN_EXE_pando-bench"),
        server.uri(),
        out.display()
    );
    // A device of one page, which is full, in a mount namespace of one's own; who may not have one gets files
    // of no length instead.
    let device = format!(
        "mount -t tmpfs -o size=4k none {0} && head -c 4096 /dev/zero > {0}/filler && {point}; code=$?; ls {0}; exit $code",
        out.display()
    );
    let may =
        Command::new("unshare").args(["-rm", "true"]).output().is_ok_and(|output| output.status.success());
    let output = if may {
        Command::new("unshare").args(["-rm", "sh", "-c", &device]).output()
    } else {
        let short = format!("trap '' XFSZ; ulimit -f 0; {point}; code=$?; ls {}; exit $code", out.display());
        Command::new("sh").args(["-c", &short]).output()
    };
    let output = output.expect("a shell starts");
    let (said, shown) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot write") && said.contains("because: "), "{said}");
    assert!(shown.contains("ops/s"), "what was measured is told: {shown}");
    assert!(!shown.lines().any(|line| line.ends_with(".json") || line.ends_with(".part")), "{shown}");
}

#[test]
fn a_run_that_is_interrupted_keeps_those_before_and_a_stubborn_server_is_killed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("loopback").port();
    // The shell does not end on SIGTERM, nor does its sleep: only the server does.
    let start = format!(
        "sh -c \"trap '' TERM; {} serve --data {{data}} --listen 127.0.0.1:{{port}}; sleep 300\"",
        support::program::pando().display()
    );
    let out = folder.path().join("out");
    let child = tool()
        .args(
            "point --collections 1 --docs 100 --clients 1 --duration 1 --warmup 0 --no-ceiling --repeats 30"
                .split(' '),
        )
        .args([
            "--uri",
            &format!("mongodb://127.0.0.1:{port}"),
            "--server-command",
            &start,
            "--server-grace",
            "1",
        ])
        .arg("--data-dir")
        .arg(folder.path().join("data"))
        .arg("--out")
        .arg(&out)
        .spawn()
        .expect("the tool starts");
    let runs = || {
        let names = std::fs::read_dir(&out).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let is_run = |name: &String| name.ends_with(".json") && !name.contains("load");
        names.map(|name| name.to_string_lossy().into_owned()).filter(is_run).count()
    };
    let began = Instant::now();
    while runs() == 0 {
        assert!(began.elapsed() < Duration::from_secs(120), "the first run ends");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("runs that were finished are kept") && text.contains("it is killed"), "{text}");
    assert!((1..30).contains(&runs()), "{}", runs());
    let is_left = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&*folder.path().to_string_lossy())
    };
    assert!(
        !std::fs::read_dir("/proc").expect("it is there").flatten().any(is_left),
        "nothing is left running"
    );
}

#[test]
fn a_server_that_stands_still_for_some_seconds_shows_as_a_dip_and_not_as_a_failure() {
    let server = Server::start();
    server.bench("load --collections 1 --docs 100");
    let child = tool()
        .args("point --collections 1 --docs 100 --clients 2 --duration 12 --warmup 0 --interval 2 --no-ceiling --load no".split(' '))
        .args(["--uri", &server.uri(), "--out"])
        .arg(server.out())
        .spawn()
        .expect("the tool starts");
    std::thread::sleep(Duration::from_secs(4));
    let signal = |name: &str| {
        let told = Command::new("kill").args([name, &server.process_id().to_string()]).status();
        assert!(told.expect("kill is there").success());
    };
    signal("-STOP");
    std::thread::sleep(Duration::from_secs(4));
    signal("-CONT");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = server.files("point").pop().expect("a run");
    assert_eq!(run["figures"]["failed"], 0);
    let operations: Vec<u64> = server
        .text("-c2.seconds.tsv")
        .lines()
        .skip(1)
        .map(|line| line.split('\t').nth(1).and_then(|cell| cell.parse().ok()).expect("a number"))
        .collect();
    let idle = operations.iter().filter(|count| **count == 0).count();
    assert!(operations.len() == 12 && (2..=8).contains(&idle), "{operations:?}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("noisy") && printed.contains("dips"), "{printed}");
    // The longest latency of the intervals is that of the stall, and is in few of them.
    let intervals = run["figures"]["intervals"].as_array().expect("intervals");
    let longest = |interval: &serde_json::Value| interval["units"]["max"].as_f64().unwrap_or(0.0);
    assert_eq!(intervals.len(), 6);
    assert!(intervals.iter().any(|interval| longest(interval) > 2e6), "{intervals:?}");
    assert!(intervals.iter().any(|interval| longest(interval) < 2e6), "{intervals:?}");
}

#[test]
fn a_server_that_hangs_in_the_only_run_is_told_and_its_run_is_kept_as_flagged() {
    let server = Server::start();
    server.bench("load --collections 1 --docs 100");
    let mut child = tool()
        .args(
            "point --collections 1 --docs 100 --clients 2 --duration 20 --warmup 0 --no-ceiling --load no"
                .split(' '),
        )
        .args(["--uri", &server.uri(), "--out"])
        .arg(server.out())
        .spawn()
        .expect("the tool starts");
    // The line of progress comes when half of the window is over.
    let mut said = BufReader::new(child.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    said.by_ref().find(|line| line.contains("operations/s")).expect("a line of progress");
    let stopped = Command::new("kill").args(["-STOP", &server.process_id().to_string()]).status();
    assert!(stopped.expect("kill is there").success());
    let told = said.collect::<Vec<_>>().join("\n");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("the server hangs: after the window 2 units got no reply"), "{told}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("FLAGGED: this is no measurement: 2 operations failed"), "{printed}");
    assert!(printed.contains("failure: the server hangs"), "{printed}");
    let run = &server.files("point")[0];
    assert!(run["flagged"] == true && run["figures"]["operations"].as_u64() > Some(100), "{run}");
}

#[test]
fn a_reader_of_the_output_that_goes_away_costs_the_lines_and_not_the_results() {
    let server = Server::start();
    server.bench("load --collections 1 --docs 100");
    // Both outputs are closed after the first line.
    let piped = |arguments: &str| {
        let command = format!(
            "{{ {} {arguments} 2>&1; echo $? > {1}/code; }} | head -1; cat {1}/code",
            env!("CARGO_BIN_EXE_pando-bench"),
            server.folder.path().display()
        );
        let output = Command::new("sh").args(["-c", &command]).output().expect("a shell starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.contains("panicked"), "{text}");
        assert_eq!(text.lines().last(), Some("0"), "{arguments}: {text}");
        text
    };
    let out = server.out();
    let before = server.files("point").len();
    piped(&format!(
        "point --collections 1 --docs 100 --clients 1 --duration 1 --warmup 0 --no-ceiling --load no --repeats 2 --uri {} --out {}",
        server.uri(),
        out.display()
    ));
    assert_eq!(server.files("point").len(), before + 2, "both runs are kept");
    piped(&format!("compare {0} {0}", out.display()));
    piped(&format!("report {} --page -", out.display()));
}

#[test]
fn a_comparison_cautions_of_caches_and_caps_that_the_tool_or_the_server_knows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = |out: &str, arguments: &[&str]| {
        let output = tool()
            .args(
                "point --collections 1 --docs 100 --clients 1 --duration 1 --warmup 0 --no-ceiling"
                    .split(' '),
            )
            .args(arguments)
            .arg("--out")
            .arg(folder.path().join(out))
            .output()
            .expect("the tool starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let started = |out: &str, megabytes: &str| {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("loopback").port();
        let start = format!(
            "{} serve --data {{data}} --listen 127.0.0.1:{{port}} --unix-socket none --cache {{cache_bytes}}",
            support::program::pando().display()
        );
        let data = folder.path().join(format!("data-{out}"));
        let uri = format!("mongodb://127.0.0.1:{port}");
        let data = data.to_string_lossy();
        run(out, &["--uri", &uri, "--server-command", &start, "--data-dir", &data, "--cache-mb", megabytes]);
    };
    started("small", "64");
    started("large", "256");
    // A server that runs already: the tool knows its cache by serverStatus alone.
    let server = Server::start();
    run("running", &["--uri", &server.uri()]);
    let compared = |first: &str, second: &str| {
        let paths = [first, second].map(|name| folder.path().join(name));
        let output = tool().arg("compare").args(paths).output().expect("the tool starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = compared("small", "large");
    assert!(text.contains("caution: the cache differs: 64 MB | 256 MB"), "{text}");
    let text = compared("large", "small");
    assert!(text.contains("caution: the cache differs: 256 MB | 64 MB"), "the first stands first: {text}");
    let text = compared("small", "running");
    assert!(text.contains("caution: the cache differs: 64 MB | ") && !text.contains("unknown"), "{text}");
    assert!(!compared("small", "small").contains("the cache differs"));
}
