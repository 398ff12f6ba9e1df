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
