//! A suite from end to end: a real server that it starts and ends, an engine in this process, an
//! interruption, and bad input.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::program;

fn suite_text(duration: u32) -> String {
    format!(
        r#"
        name = "test"
        post = "A"
        about = "both ways to an engine"
        scaled = "everything"
        [[server]]
        name = "over TCP"
        engine = "betree"
        program = "pando"
        start = "{{program}} serve --data {{data}} --listen 127.0.0.1:{{port}} --cache {{cache_bytes}}"
        uri = "mongodb://127.0.0.1:{{port}}"
        durability = "as Pando says"
        cache = [{{ mb = 32 }}]
        [[server]]
        name = "in process"
        engine = "betree"
        uri = "embedded:betree"
        cache = [{{ mb = 32 }}]
        [[run]]
        workload = "point"
        state = "cold"
        clients = [1, 2]
        arguments = {{ collections = 1, docs = 200, duration = {duration}, warmup = 0 }}
        "#
    )
}

fn suite(folder: &Path, text: &str) -> Command {
    let file = folder.join("suite.toml");
    std::fs::write(&file, text).expect("writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pando-bench"));
    command.arg("suite").arg(file).arg("--no-ceiling").arg("--out").arg(folder.join("out"));
    command.arg("--program").arg(format!("pando={}", program::pando().display()));
    command
}

fn text_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The runs that were kept; loads are kept, too.
fn results(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder.join("out/results")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".json") && !name.contains("-load-")).count()
}

/// Whether a process has this folder on its command line.
fn is_served(folder: &Path) -> bool {
    let of_process = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("serve") && line.contains(&*folder.to_string_lossy())
    };
    std::fs::read_dir("/proc").expect("it is there").flatten().any(of_process)
}

#[test]
fn a_suite_measures_every_cell_once_and_ends_its_servers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let first = suite(folder.path(), &suite_text(1)).output().expect("the tool starts");
    let text = text_of(&first);
    assert!(first.status.success(), "{text}");
    assert!(text.contains("[4/4] in process, 32 MB, point, 2 clients") && text.contains("left"), "{text}");
    assert_eq!(results(folder.path()), 4, "{text}");
    assert!(!is_served(folder.path()), "the server was ended");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).expect("a page");
    assert!(
        page.contains("over TCP") && page.contains("in process") && page.contains("as Pando says"),
        "{page}"
    );
    let again = suite(folder.path(), &suite_text(1)).output().expect("the tool starts");
    assert!(
        again.status.success() && !text_of(&again).contains("[1/4]"),
        "nothing is left: {}",
        text_of(&again)
    );
    assert_eq!(results(folder.path()), 4);
}

#[test]
fn an_interrupted_suite_keeps_what_it_has_and_ends_its_server() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let child = suite(folder.path(), &suite_text(4)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the tool starts");
    let began = Instant::now();
    while results(folder.path()) == 0 {
        assert!(began.elapsed() < Duration::from_secs(120), "the first cell ends");
        std::thread::sleep(Duration::from_millis(50));
    }
    let told = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
    assert!(told.success());
    let output = child.wait_with_output().expect("it ends");
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("interrupted: runs that were finished are kept"), "{text}");
    assert!(!is_served(folder.path()), "the server was ended");
    let kept = results(folder.path());
    assert!((1..4).contains(&kept), "{kept}");
    let again = suite(folder.path(), &suite_text(4)).output().expect("the tool starts");
    assert!(again.status.success(), "{}", text_of(&again));
    assert_eq!(results(folder.path()), 4);
}

/// Whether the data of some workload is loaded, as the progress of the suite says.
/// Whether the data is loaded and a cell is changing it.
fn is_changing_loaded_data(folder: &Path) -> bool {
    let text = std::fs::read_to_string(folder.join("out/suite.json")).unwrap_or_default();
    let progress: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let is_loaded = progress["loaded"].as_object().is_some_and(|loaded| !loaded.is_empty());
    is_loaded && !progress["writing"].is_null()
}

#[test]
fn a_suite_that_was_interrupted_while_a_cell_deleted_and_inserted_goes_on_with_new_data() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = |duration| {
        let writing =
            suite_text(duration).replace("\"point\"", "\"sysbench\"").replace("\"cold\"", "\"warm\"");
        writing.replace("clients = [1, 2]", "clients = [8]")
    };
    let mut command = suite(folder.path(), &text(30));
    let command = command.args(["--servers", "over TCP"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the tool starts");
    let began = Instant::now();
    while !is_changing_loaded_data(folder.path()) {
        assert!(began.elapsed() < Duration::from_secs(120), "the load ends");
        std::thread::sleep(Duration::from_millis(50));
    }
    let told = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
    assert!(told.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output));
    assert_eq!(results(folder.path()), 0);
    let mut again = suite(folder.path(), &text(1));
    let again = again.args(["--servers", "over TCP"]).output().expect("the tool starts");
    let said = text_of(&again);
    assert!(again.status.success() && said.contains("loading"), "{said}");
    assert_eq!(results(folder.path()), 1, "{said}");
}

#[test]
fn results_of_a_suite_before_an_edit_are_in_no_report_and_its_cells_draw_other_keys() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let embedded = |text: &str| {
        let mut command = suite(folder.path(), text);
        let output = command.args(["--servers", "in process"]).output().expect("the tool starts");
        assert!(output.status.success(), "{}", text_of(&output));
        std::fs::read_to_string(folder.path().join("out/report.html")).expect("a page")
    };
    assert!(embedded(&suite_text(1)).contains("3 runs, "), "two cells and a load");
    let page = embedded(&suite_text(1).replace("docs = 200", "docs = 300"));
    assert_eq!(results(folder.path()), 4, "those of before are kept");
    assert!(page.contains("3 runs, ") && !page.contains("docs 200"), "{page}");
    let runs = ["0", "1"].map(|run| texts_with(&format!("\"--first-run\",\"{run}\""), folder.path()));
    assert_eq!(runs, [2, 2], "each cell of a server has draws of its own");
}

/// How many results have this text in them.
fn texts_with(part: &str, folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder.join("out/results")).expect("there are results").flatten();
    let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    texts.filter(|text| text.contains(part)).count()
}

#[test]
fn a_server_that_dies_or_a_folder_that_cannot_be_written_is_told_and_the_rest_is_measured() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let broken = suite_text(1).replace("serve --data", "serve --no-such-option --data");
    let output = suite(folder.path(), &broken).output().expect("the tool starts");
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("the server ended by itself") && text.contains("--no-such-option"), "{text}");
    assert!(text.contains("2 of 4 runs of the suite failed"), "{text}");
    assert_eq!(results(folder.path()), 2, "the engine in process was measured");
    let caveat = "2 runs of the suite failed and are missing here: over TCP, point (2)";
    let written =
        |name: &str| std::fs::read_to_string(folder.path().join("out").join(name)).expect("written");
    assert!(written("report.html").contains(caveat) && written("tables.md").contains(caveat));
    let later = Command::new(env!("CARGO_BIN_EXE_pando-bench"))
        .args(["report", "out", "--page", "later.html"])
        .current_dir(folder.path())
        .output()
        .expect("the tool starts");
    assert!(later.status.success(), "{}", text_of(&later));
    let page = std::fs::read_to_string(folder.path().join("later.html")).expect("written");
    assert!(page.contains(caveat), "a report that is made later says so, too");
    let whole = suite(folder.path(), &suite_text(1)).output().expect("the tool starts");
    assert!(whole.status.success(), "{}", text_of(&whole));
    assert!(
        !written("report.html").contains("of the suite failed"),
        "cells that were made again are no caveat"
    );
}

#[test]
fn a_server_that_runs_already_is_measured_and_left_running() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut server, port) = program::serve(&folder.path().join("elsewhere"));
    let text = format!(
        r#"
        name = "running"
        about = "a server that somebody else runs"
        [[server]]
        name = "theirs"
        engine = "betree"
        uri = "mongodb://127.0.0.1:{port}"
        cache = [{{ mb = 256, name = "as it is" }}]
        [[run]]
        workload = "point"
        state = "warm"
        clients = [2]
        arguments = {{ collections = 1, docs = 200, duration = 1, warmup = 0 }}
        "#
    );
    let output = suite(folder.path(), &text).output().expect("the tool starts");
    let shown = text_of(&output);
    let is_running = server.try_wait().expect("it is our own process").is_none();
    let _ = server.kill();
    let _ = server.wait();
    assert!(output.status.success() && is_running, "{shown}");
    assert_eq!(results(folder.path()), 1, "{shown}");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).expect("a page");
    assert!(page.contains("running before the suite"), "{page}");
}

#[test]
fn bad_suites_are_refused_before_anything_starts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (from, to, expected) in [
        ("about =", "aboot =", "unknown field `aboot`"),
        ("clients = [1, 2]", "clients = [0]", "numbers above 0"),
        ("docs = 200", "dogs = 200", "--dogs"),
        ("program = \"pando\"", "program = \"no-such-server\"", "needs `no-such-server`, which is not there"),
        ("program = \"pando\"", "program = \"no-such-server\"", "--program no-such-server=PATH"),
    ] {
        let output =
            suite(folder.path(), &suite_text(1).replace(from, to)).output().expect("the tool starts");
        let text = text_of(&output);
        assert!(output.status.code() == Some(2) && text.contains(expected), "{to}: {text}");
    }
    assert_eq!(results(folder.path()), 0);
}

#[test]
fn a_check_names_each_cell_once_with_its_repeats() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = suite_text(1).replace("post = \"A\"", "repeats = 3");
    let output = suite(folder.path(), &text).arg("--check").output().expect("the tool starts");
    let said = text_of(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(
        said.matches("in process, 32 MB, point, 1 client, 3 times: point --clients 1").count(),
        1,
        "{said}"
    );
    assert_eq!(results(folder.path()), 0);
}

#[test]
fn everything_that_servers_of_a_suite_lack_is_told_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = suite_text(1)
        .replace("program = \"pando\"", "program = \"no-such-server\"")
        .replace("embedded:betree", "mysql://root@127.0.0.1:3306")
        .replace("\"cold\"", "\"warm\"");
    let said = text_of(&suite(folder.path(), &text).output().expect("the tool starts"));
    let parts = [
        "server `over TCP` needs `no-such-server`",
        "server `in process` speaks MySQL's protocol: use the program pando-bench-mysql",
        "--servers NAME,NAME",
    ];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}

#[test]
fn a_second_call_on_a_folder_is_refused_and_the_first_one_goes_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = suite_text(3);
    let first = suite(folder.path(), &text).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let first = first.expect("the tool starts");
    let began = Instant::now();
    while !is_served(folder.path()) {
        assert!(began.elapsed() < Duration::from_secs(60), "the first server starts");
        std::thread::sleep(Duration::from_millis(20));
    }
    let second = suite(folder.path(), &text).output().expect("the tool starts");
    let said = text_of(&second);
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("another call (pid {}) is using ", first.id())), "{said}");
    let first = first.wait_with_output().expect("it ends");
    assert!(first.status.success(), "{}", text_of(&first));
    assert_eq!(results(folder.path()), 4, "{}", text_of(&first));
}

#[test]
fn caches_of_one_size_under_two_caps_are_two_rows_and_equal_ones_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let caches = |caches: &str| suite_text(1).replacen("cache = [{ mb = 32 }]", caches, 1);
    let two = caches(r#"cache = [{ mb = 32, cap = "400MB" }, { mb = 32, cap = "1GB" }]"#);
    let checked = suite(folder.path(), &two).arg("--check").output().expect("the tool starts");
    let text = text_of(&checked);
    assert!(checked.status.success(), "{text}");
    for name in ["over TCP, 32 MB, cap 400MB, point", "over TCP, 32 MB, cap 1GB, point"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let twice = caches("cache = [{ mb = 32 }, { mb = 32 }]");
    let refused = suite(folder.path(), &twice).arg("--check").output().expect("the tool starts");
    let text = text_of(&refused);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("server `over TCP`: two caches are called"), "{text}");
}
