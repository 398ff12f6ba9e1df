//! The whole tool, end to end, with sizes of nothing: every phase of betree, its files, and what it refuses.

use std::path::Path;
use std::process::{Command, Output};

fn run(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pando-bench-engine"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program was built")
}

#[test]
fn every_phase_of_betree_is_measured_checked_and_written_down() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sizes =
        ["--cache", "2MB", "--headroom", "256MB", "--scale", "3", "--seconds", "0.05", "--trees", "50"];
    let all = ["all", "--peers", "betree", "--out", "out", "--log", "2MB", "--batch", "500"];
    let output = run(&[&all[..], &sizes[..]].concat(), folder.path());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    for title in ["Random inserts", "all cached", "A growing cache", "Many trees", "Recovery"] {
        assert!(text.contains(title), "{title} is missing in {text}");
    }
    let out = folder.path().join("out");
    let json = std::fs::read_to_string(out.join("results.json")).expect("it was written");
    let results: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(results["failures"], serde_json::json!([]));
    // Nine phases, one of them in five sizes.
    assert_eq!(results["outcomes"].as_array().map(Vec::len), Some(13));
    let page = std::fs::read_to_string(out.join("engines.md")).expect("it was written");
    assert!(page.contains("| seconds a GB |"), "{page}");
    assert!(!out.join("scratch/betree").exists(), "stores are removed");
    let again = run(&["report", "out"], folder.path());
    assert_eq!(String::from_utf8_lossy(&again.stdout), text);
}

#[test]
fn wrong_arguments_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (arguments, word) in [
        (["all", "--peers", "oracle"], "betree"),
        (["all", "--phases", "lukewarm"], "capped"),
        (["all", "--cache", "1KB"], "64MB"),
        (["report", "nowhere", "--"], "nowhere"),
    ] {
        let output = run(&arguments, folder.path());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(word), "{errors}");
    }
}
