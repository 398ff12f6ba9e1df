//! Every workload against engines in this process, small.

use std::process::Command;

fn bench(folder: &std::path::Path, arguments: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pando-bench"))
        .args(arguments.split_whitespace())
        .arg("--data-dir")
        .arg(folder.join("data"))
        .arg("--out")
        .arg(folder.join("out"))
        .output()
        .expect("the tool starts");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments}\n{text}");
    text
}

#[test]
fn all_five_workloads_run_on_every_engine_that_is_built_in() {
    for engine in ["betree", "memory"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = |arguments: &str| bench(folder.path(), &format!("{arguments} --uri embedded:{engine}"));
        run("point --collections 2 --docs 300 --clients 1,3 --duration 1 --warmup 0");
        run("sysbench --collections 2 --docs 300 --clients 2 --duration 1 --warmup 0 --no-ceiling");
        run("kv --rows 500 --reads 200 --rounds 2 --clients 3 --no-ceiling");
        run(
            "iibench --docs 3000 --batch 100 --clients 2 --queries 10 --query-interval 1 --query-begin 100 --no-ceiling",
        );
        let printed = run("linkbench --nodes 300 --max-degree 20 --clients 3 --duration 1 --no-ceiling");
        assert!(printed.contains("counts against visible links"), "{printed}");
    }
}

#[test]
fn an_open_loop_keeps_its_schedule_without_a_socket() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    bench(
        folder.path(),
        "point --collections 1 --docs 100 --clients 4 --duration 2 --warmup 0 --no-ceiling --rate 200 --uri embedded:memory",
    );
    let files = std::fs::read_dir(folder.path().join("out")).expect("the tool wrote files");
    let run = files
        .flatten()
        .find(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            name.starts_with("point-1") && name.ends_with(".json")
        })
        .expect("a run");
    let text = std::fs::read_to_string(run.path()).expect("readable");
    let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let number = |name: &str| file["figures"][name].as_u64().expect("a number");
    // A machine that is busy with other things may be late; what was due is on the schedule all the same.
    let due = number("units") + number("not_begun");
    assert!((392..=408).contains(&due), "{due} of 400");
    assert!(file["figures"]["per_operation"]["client_cpu_us"].is_null(), "no client apart");
    assert!(file["figures"]["per_operation"]["server_cpu_us"].is_number());
}

/// The files of runs of a workload.
fn runs(folder: &std::path::Path, workload: &str) -> Vec<serde_json::Value> {
    let entries = std::fs::read_dir(folder.join("out")).expect("the tool wrote files").flatten();
    let files =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "json"));
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).expect("readable");
    let files = files.map(|path| serde_json::from_str(&read(path)).expect("JSON"));
    files.filter(|file: &serde_json::Value| file["workload"] == workload).collect()
}

#[test]
fn notes_count_the_window_and_not_the_warm_up() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let uri = "--uri embedded:betree --no-ceiling";
    bench(folder.path(), "load --collections 1 --docs 100 --uri embedded:betree");
    let find = r#"{"find":"sbtest1","limit":1}"#;
    bench(
        folder.path(),
        &format!("commands --database sbtest --command {find} --clients 3 --duration 1 --warmup 1 {uri}"),
    );
    let figures = &runs(folder.path(), "commands")[0]["figures"];
    assert!(figures["units"].as_u64().is_some_and(|units| units > 10), "{figures}");
    assert_eq!(figures["notes"]["documents in the answers"], figures["units"]);
}

/// The text of the file in the output whose name ends so.
fn written(folder: &std::path::Path, end: &str) -> String {
    let entries = std::fs::read_dir(folder.join("out")).expect("the tool wrote files").flatten();
    let found = entries.map(|entry| entry.path()).find(|path| path.display().to_string().ends_with(end));
    std::fs::read_to_string(found.expect("there is one")).expect("readable")
}

#[test]
fn linkbench_counts_and_streams_requests_of_the_window_and_none_of_the_warm_up() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    bench(
        folder.path(),
        "linkbench -l -r --nodes 300 --max-degree 20 -D requesters=2 -D requests=50 -D warmup_time=1 --duration 30 \
         --no-ceiling --uri embedded:memory",
    );
    let figures = &runs(folder.path(), "linkbench")[0]["figures"];
    let number = |name: &str| figures[name].as_u64().expect("a number");
    assert_eq!(number("failed"), 0, "{figures}");
    let stream = written(folder.path(), ".csvstream.csv");
    let lines = stream.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let requests = lines.filter(|cells| cells[2] != "RANGE_SIZE");
    let streamed: u64 = requests.map(|cells| cells[5].parse::<u64>().expect("a number")).sum();
    assert_eq!(streamed, 100, "{stream}");
    assert_eq!(number("operations"), 100, "{figures}");
}

#[test]
fn sizes_are_those_of_the_workloads_own_databases() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    bench(folder.path(), "load --collections 2 --docs 5000 --uri embedded:betree");
    bench(folder.path(), "iibench --docs 1000 --clients 1 --settle 0 --no-ceiling --uri embedded:betree");
    let sizes = &runs(folder.path(), "iibench")[0]["why"]["sizes"];
    let documents = sizes["documents"].as_u64().expect("it says so");
    assert!((100_000..200_000).contains(&documents), "without the two collections of another one: {sizes}");
}

#[test]
fn a_closed_and_an_open_loop_have_a_row_each() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let point = "point --collections 1 --docs 100 --clients 2 --duration 1 --warmup 0 --no-ceiling --uri embedded:memory";
    bench(folder.path(), point);
    bench(folder.path(), &format!("{point} --rate 100"));
    let output = Command::new(env!("CARGO_BIN_EXE_pando-bench"))
        .args(["report", "out", "--markdown", "tables.md"])
        .current_dir(folder.path())
        .output()
        .expect("the tool starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tables = std::fs::read_to_string(folder.path().join("tables.md")).expect("it was written");
    for row in ["| point, 2 clients, closed loop |", "| point, 2 clients, open loop of 100/s (even) |"] {
        assert!(tables.contains(row), "{row}\n{tables}");
    }
}

#[test]
fn an_engine_that_is_not_built_in_is_refused_with_those_that_are() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_pando-bench"))
        .args(["point", "--uri", "embedded:rocks", "--data-dir"])
        .arg(folder.path())
        .output()
        .expect("the tool starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("there is no engine 'rocks'") && text.contains("betree"), "{text}");
}
