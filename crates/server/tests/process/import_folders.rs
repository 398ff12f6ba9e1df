//! Imports of folders: damaged files, points to go on from, names that meet, and files that are passed over.

use std::path::{Path, PathBuf};

use bson::{Document, doc};

use crate::connection::Connection;
use crate::running_server::{Server, pando, run};

fn uri(server: &Server) -> String {
    format!("mongodb://{}", server.address)
}

fn count(server: &Server, database: &str, collection: &str) -> i32 {
    Connection::tcp(server).ask(database, doc! { "count": collection }).get_i32("n").unwrap()
}

fn place(path: &Path, documents: &[Document]) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let bytes: Vec<u8> = documents.iter().flat_map(|one| one.to_vec().unwrap()).collect();
    std::fs::write(path, bytes).unwrap();
    path.to_owned()
}

fn numbered(count: i32) -> Vec<Document> {
    (0..count).map(|n| doc! { "n": n }).collect()
}

/// A file that ends within its last document; the whole bytes mend it.
fn cut(path: &Path, documents: &[Document]) -> Vec<u8> {
    let whole = std::fs::read(place(path, documents)).unwrap();
    std::fs::write(path, &whole[..whole.len() - 3]).unwrap();
    whole
}

/// Runs a command line that the program has named.
fn run_named(line: &str) -> (bool, String) {
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let output = pando(&words).output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

/// The command lines in what an import says.
fn named_commands(said: &str) -> Vec<&str> {
    said.lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.contains(" import "))
        .collect()
}

#[test]
fn a_damaged_file_of_a_folder_stops_no_other_and_its_rest_comes_in_once_it_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::over(&folder.path().join("data"));
    let dump = folder.path().join("dump");
    place(&dump.join("shop/a.bson"), &numbered(5));
    let broken = dump.join("shop/b.bson");
    let whole = cut(&broken, &numbered(3));
    let description = r#"{"options":{},"indexes":[{"key":{"n":1},"name":"n_1"}]}"#;
    std::fs::write(dump.join("shop/b.metadata.json"), description).unwrap();
    place(&dump.join("shop/c.bson"), &numbered(7));
    let (status, out, said) = run(&["import", dump.to_str().unwrap(), "--uri", &uri(&server)]);
    assert_eq!(status.code(), Some(1), "{out}{said}");
    assert!(out.contains("14 documents imported") && out.contains("1 index built"), "{out}");
    assert_eq!((count(&server, "shop", "b"), count(&server, "shop", "c")), (2, 7), "{said}");
    assert!(said.contains("b.bson: document 3, at byte") && said.contains("once it is mended"), "{said}");
    let [command] = named_commands(&said)[..] else { panic!("one file is damaged: {said}") };
    assert!(command.contains("--db shop --collection b --resume 2:"), "{command}");

    // Before it is mended, the same command says the same. The documents have no _id of their own.
    let (succeeded, said) = run_named(command);
    assert!(!succeeded && !said.contains("folder"), "{said}");
    assert_eq!(count(&server, "shop", "b"), 2);
    std::fs::write(&broken, whole).unwrap();
    let (succeeded, said) = run_named(command);
    assert!(succeeded, "{said}");
    assert_eq!(count(&server, "shop", "b"), 3);
}

#[test]
fn an_import_of_a_folder_goes_on_only_with_the_files_that_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::over(&folder.path().join("data"));
    let dump = folder.path().join("dump");
    let first = place(&dump.join("a.bson"), &numbered(5));
    let broken = dump.join("b.bson");
    let whole = cut(&broken, &numbered(3));
    place(&dump.join("c.bson"), &numbered(7));
    let uri = uri(&server);
    let import = |more: &[&str]| {
        let common = ["import", dump.to_str().unwrap(), "--db", "shop", "--uri", &uri];
        run(&[&common[..], more].concat())
    };
    let (status, _, said) = import(&["--stop-on-error"]);
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("stopped at document 3") && !said.contains("move this one away"), "{said}");
    let point = said.rsplit("--resume ").next().unwrap().trim().to_owned();
    assert!(point.starts_with("2:") && point.contains(":1-"), "{point}");

    // The hidden loss: without the damaged file, the point counted records of the one behind it.
    let aside = folder.path().join("aside");
    for moved in [&broken, &first] {
        std::fs::rename(moved, &aside).unwrap();
        let (status, _, said) = import(&["--resume", &point]);
        assert!(status.code() == Some(1) && said.contains("put the files back"), "{said}");
        assert_eq!(count(&server, "shop", "c"), 0);
        std::fs::rename(&aside, moved).unwrap();
    }
    let id = point.split(':').nth(1).unwrap();
    let (status, _, said) = import(&["--resume", &format!("7:{id}")]);
    assert!(status.code() == Some(1) && said.contains("counts the records of one file"), "{said}");
    let (_, _, said) = run(&["import", first.to_str().unwrap(), "--uri", &uri, "--resume", &point]);
    assert!(said.contains("is one of a folder of mongodump"), "{said}");

    std::fs::write(&broken, whole).unwrap();
    let (status, out, said) = import(&["--resume", &point]);
    assert!(status.success() && out.contains("8 documents imported"), "{out}{said}");
    let counts = ["a", "b", "c"].map(|name| count(&server, "shop", name));
    assert_eq!(counts, [5, 3, 7]);
}

#[test]
fn an_import_of_a_folder_that_drops_goes_on_dropping() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::over(&folder.path().join("data"));
    let dump = folder.path().join("dump");
    let first = place(&dump.join("shop/a.bson"), &numbered(5));
    let broken = dump.join("shop/b.bson");
    let whole = cut(&broken, &numbered(3));
    place(&dump.join("shop/c.bson"), &numbered(7));
    let mut connection = Connection::tcp(&server);
    for collection in ["a", "b", "c"] {
        connection.ask("shop", doc! { "insert": collection, "documents": [{ "old": true }] });
    }
    let uri = uri(&server);
    let (status, _, said) =
        run(&["import", dump.to_str().unwrap(), "--uri", &uri, "--drop", "--stop-on-error"]);
    assert_eq!(status.code(), Some(1), "{said}");
    let command = said.lines().find(|line| line.contains("--resume")).expect("the way on");
    assert!(command.contains("--drop"), "{said}");
    let counts = || ["a", "b", "c"].map(|name| count(&server, "shop", name));
    assert_eq!(counts(), [5, 2, 1]);
    std::fs::write(&broken, whole).unwrap();
    let (succeeded, said) = run_named(command.trim());
    assert!(succeeded, "{said}");
    assert_eq!(counts(), [5, 3, 7]);

    // Of one file the documents before the point would go.
    let point = "2:65f0c3a8e4b0f2a1c3d4e5f6";
    let (status, _, said) =
        run(&["import", first.to_str().unwrap(), "--uri", &uri, "--db", "shop", "--drop", "--resume", point]);
    assert!(status.code() == Some(2) && said.contains("leave it out"), "{said}");
    assert_eq!(counts(), [5, 3, 7]);
}

#[test]
fn options_of_a_dump_that_a_collection_does_not_get_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::over(&folder.path().join("data"));
    let dump = folder.path().join("dump");
    place(&dump.join("shop/a.bson"), &numbered(2));
    let description = r#"{"options":{"capped":true,"size":8192,"validationLevel":"strict"},"indexes":[]}"#;
    std::fs::write(dump.join("shop/a.metadata.json"), description).unwrap();
    Connection::tcp(&server).ask("shop", doc! { "create": "a" });
    let import = |more: &[&str]| {
        run(&[&["import", dump.to_str().unwrap(), "--uri", &uri(&server)][..], more].concat())
    };
    let (status, _, said) = import(&[]);
    assert!(status.success() && said.contains("without these of the dump: capped, size; --drop"), "{said}");
    let (status, _, said) = import(&["--drop"]);
    assert!(status.success() && !said.contains("of the dump"), "{said}");
    let (status, _, said) = import(&[]);
    assert!(status.success() && !said.contains("of the dump"), "{said}");
    assert_eq!(count(&server, "shop", "a"), 4);
}

#[test]
fn a_point_behind_the_end_of_the_input_is_one_of_another_input() {
    let server = Server::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("things.jsonl");
    std::fs::write(&file, "{\"n\":1}\n{\"n\":2}\n").unwrap();
    let import =
        |point: &str| run(&["import", file.to_str().unwrap(), "--uri", &uri(&server), "--resume", point]);
    let (status, _, said) = import("3:65f0c3a8e4b0f2a1c3d4e5f6");
    assert!(status.code() == Some(1) && said.contains("behind record 3, and"), "{said}");
    assert!(said.contains("has 2") && !said.contains("to go on"), "{said}");
    let (status, out, said) = import("2:65f0c3a8e4b0f2a1c3d4e5f6");
    assert!(status.success() && out.contains("2 passed over"), "{out}{said}");
}

#[test]
fn collections_of_two_databases_do_not_become_one() {
    let server = Server::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump");
    place(&dump.join("one/things.bson"), &[doc! { "_id": 1 }]);
    place(&dump.join("two/things.bson"), &[doc! { "_id": 2 }]);
    place(&dump.join("two/others.bson"), &[doc! { "_id": 3 }]);
    let uri = uri(&server);
    for more in [&["--drop"][..], &[]] {
        let command = ["import", dump.to_str().unwrap(), "--db", "x", "--uri", &uri];
        let (status, out, said) = run(&[&command[..], more].concat());
        assert_eq!(status.code(), Some(1), "{out}{said}");
        assert!(said.contains("would become x.things") && said.contains("leave out --db"), "{said}");
        assert_eq!(count(&server, "x", "things"), 0);
    }
    let (status, _, said) = run(&["import", dump.to_str().unwrap(), "--uri", &uri]);
    assert!(status.success(), "{said}");
    assert_eq!((count(&server, "one", "things"), count(&server, "two", "things")), (1, 1));
}

#[test]
fn files_of_a_folder_that_are_passed_over_are_named() {
    let server = Server::in_memory();
    let folder = tempfile::tempdir().unwrap();
    place(&folder.path().join("things.bson"), &[doc! { "_id": 1 }]);
    place(&folder.path().join("things.bson.gz"), &[]);
    std::fs::write(folder.path().join("lost.metadata.json"), r#"{"options":{},"indexes":[]}"#).unwrap();
    for name in ["more.json", "rows.csv", "prelude.json", ".hidden"] {
        std::fs::write(folder.path().join(name), "{}").unwrap();
    }
    let command = ["import", folder.path().to_str().unwrap(), "--db", "x", "--uri", &uri(&server)];
    let (status, _, said) = run(&command);
    assert!(status.success() && said.contains("more.json, rows.csv, things.bson.gz;"), "{said}");
    assert!(said.contains("there is no lost.bson beside its description"), "{said}");
}
