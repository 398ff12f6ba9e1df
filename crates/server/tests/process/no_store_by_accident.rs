//! Folders that are no store: commands that read make none, and no store is made beside foreign files.

use std::path::Path;

use crate::running_server::{Server, run};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs a command that must fail, and gives what it says.
fn refusal(arguments: &[&str]) -> String {
    let (status, out, said) = run(arguments);
    assert!(!status.success(), "{arguments:?} was accepted: {out}");
    said
}

#[test]
fn a_command_that_reads_makes_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let typo = folder.path().join("typo");
    let (data, to) = (typo.to_str().unwrap(), folder.path().join("backup"));
    let empty = tempfile::tempdir().unwrap();
    for data in [data, empty.path().to_str().unwrap()] {
        for arguments in [
            &["export", "--db", "a", "--collection", "b", "--data", data][..],
            &["backup", "--data", data, "--to", to.to_str().unwrap()],
            &["verify", data],
            &["verify", data, "--collections"],
            &["restore", data, "--to", to.to_str().unwrap()],
        ] {
            let said = refusal(arguments);
            assert!(said.contains(data), "{said}");
        }
    }
    let said = refusal(&["verify", data]);
    assert!(said.contains("there is no store in") && said.contains("does not exist"), "{said}");
    assert_eq!(names(folder.path()), [""; 0]);
    assert_eq!(names(empty.path()), [""; 0]);
}

#[test]
fn no_store_is_made_beside_files_of_another_program() {
    let lines = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
    std::fs::write(lines.path(), "{\"a\":1}\n").unwrap();
    for (file, owner) in [
        ("WiredTiger", "MongoDB"),
        ("mongod.lock", "MongoDB"),
        ("ibdata1", "MySQL"),
        ("CURRENT", "RocksDB"),
        ("holiday.jpg", "empty or a new folder"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(file), "x").unwrap();
        let data = folder.path().to_str().unwrap();
        let backup = tempfile::tempdir().unwrap();
        for arguments in [
            &["serve", "--data", data, "--listen", "127.0.0.1:0"][..],
            &["import", lines.path().to_str().unwrap(), "--data", data, "--collection", "c"],
        ] {
            let said = refusal(arguments);
            assert!(said.contains(&format!("'{file}'")) && said.contains(owner), "{said}");
        }
        let said = refusal(&["restore", backup.path().to_str().unwrap(), "--to", data]);
        assert!(said.contains(&format!("'{file}'")), "{said}");
        assert_eq!(names(folder.path()), [file], "and no file is added");
    }
}

#[test]
fn a_data_file_that_is_gone_is_said_and_its_log_stays() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::over(folder.path());
    assert!(server.welcome.contains("(a new store)"), "{}", server.welcome);
    server.signal(rustix::process::Signal::TERM);
    assert!(server.ended().0.success());
    std::fs::remove_file(folder.path().join("data.0000")).unwrap();
    let before = names(folder.path());
    let data = folder.path().to_str().unwrap();
    for arguments in [&["serve", "--data", data, "--listen", "127.0.0.1:0"][..], &["verify", data]] {
        let said = refusal(arguments);
        assert!(said.contains("'data.0000'") && said.contains("'wal'"), "{said}");
    }
    assert_eq!(names(folder.path()), before);
}

#[test]
fn a_store_that_is_there_is_opened_and_not_called_new() {
    let folder = tempfile::tempdir().unwrap();
    for is_new in [true, false] {
        let server = Server::over(folder.path());
        assert_eq!(server.welcome.contains("(a new store)"), is_new, "{}", server.welcome);
        server.signal(rustix::process::Signal::TERM);
        assert!(server.ended().0.success());
    }
}
