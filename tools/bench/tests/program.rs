//! The program as its users call it, without a server.

use std::process::{Command, Output};

fn bench(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pando-bench"));
    command.args(arguments.split_whitespace()).output().expect("the program starts")
}

#[test]
fn the_tool_measures_itself_against_its_null_server() {
    let output =
        bench("point --null-server --clients 1,8 --threads 2 --duration 1 --warmup 0 --dist zipf:0.99");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for clients in ["1", "8"] {
        let row =
            rows.iter().find(|row| row.first() == Some(&clients)).expect("a row for each number of clients");
        let rate: f64 = row[1].parse().expect("a rate");
        assert!(rate > 100.0, "{text}");
    }
}

#[test]
fn a_server_that_is_not_there_is_named_with_what_to_do() {
    let output = bench("point --uri mongodb://127.0.0.1:1 --clients 1");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("127.0.0.1:1") && text.contains("is the server running?"), "{text}");
    assert!(text.contains("because:"), "{text}");
}

#[test]
fn an_unusable_address_is_refused_with_its_reason() {
    let output = bench("load --uri mongodb://user:secret@127.0.0.1/?authMechanism=PLAIN");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("SCRAM-SHA-256") && !text.contains("secret"), "{text}");
}

#[test]
fn help_names_every_subcommand_and_unknown_arguments_are_refused() {
    let help = bench("--help");
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(text.contains("point") && text.contains("load"), "{text}");
    assert_eq!(bench("point --wings 2").status.code(), Some(2));
    let bare = bench("");
    let text = String::from_utf8_lossy(&bare.stderr);
    assert!(
        bare.status.code() == Some(2) && text.contains("Examples:") && text.contains("self-check"),
        "{text}"
    );
}

/// A call in a folder of its own; what it printed if it succeeded.
fn printed(folder: &std::path::Path, arguments: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pando-bench"));
    let output = command.args(arguments.split_whitespace()).current_dir(folder).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_report_to_standard_output_is_all_that_stands_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = "point --uri embedded:memory --data-dir data --out out --collections 1 --docs 100 --clients 1 --duration 1 --warmup 0 \
               --no-ceiling";
    printed(folder.path(), run);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("the tool wrote it");
    for option in ["--page", "--markdown"] {
        printed(folder.path(), &format!("report out {option} file"));
        assert_eq!(printed(folder.path(), &format!("report out {option} -")), read("file"), "{option}");
    }
    assert!(!folder.path().join("-").exists() && !folder.path().join("out/report.html").exists());
}

#[test]
fn a_file_or_folder_beside_the_tables_is_never_standard_output() {
    for arguments in [
        "point --out -",
        "linkbench -csvstats -",
        "linkbench -csvstream -",
        "suite x.toml --out -",
        "suite x.toml --stores -",
    ] {
        let output = bench(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(text.contains("standard output has the tables of the runs"), "{arguments}: {text}");
    }
}

#[test]
fn a_profile_without_a_folder_for_it_is_refused_with_what_to_add() {
    for arguments in ["point --profile", "sysbench --profile dwarf --clients 1"] {
        let output = bench(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(text.contains("--profile: ") && text.contains("give --out DIR"), "{arguments}: {text}");
    }
}
