//! Import and export, into a server and into a folder.

use std::io::Write;
use std::path::{Path, PathBuf};

use bson::doc;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::connection::Connection;
use crate::running_server::{Server, run};

fn write(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn arguments<'a>(command: &'a str, target: [&'a str; 2]) -> Vec<&'a str> {
    vec![command, "--db", "test", "--collection", "things", target[0], target[1]]
}

fn import(file: &Path, target: [&str; 2]) -> (bool, String, String) {
    let mut all = arguments("import", target);
    all.push(file.to_str().unwrap());
    let (status, out, err) = run(&all);
    (status.success(), out, err)
}

fn export(target: [&str; 2]) -> Vec<String> {
    let (status, out, err) = run(&arguments("export", target));
    assert!(status.success(), "{err}");
    let mut lines: Vec<String> = out.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// More than two batches, with every kind of value that relaxed Extended JSON writes in its own way.
fn many_lines() -> Vec<String> {
    let mut lines: Vec<String> = (1000..3500)
        .map(|id| {
            format!(
                r#"{{"_id":{id},"z":{},"half":0.5,"when":{{"$date":"2020-01-02T03:04:05Z"}},"list":[1,"ü",null,{{}}]}}"#,
                i64::from(id) << 33
            )
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn gzipped_json_lines_go_into_a_server_and_come_out_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let lines = many_lines();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(lines.join("\n").as_bytes()).unwrap();
    let file = write(folder.path(), "no-telling-name", &packed.finish().unwrap());
    let server = Server::in_memory();
    let uri = format!("mongodb://{}", server.address);
    let (complete, said, complaints) = import(&file, ["--uri", &uri]);
    assert!(complete, "{complaints}");
    assert!(said.contains("2500 documents imported, 0 lines unreadable, 0 documents refused"), "{said}");
    assert_eq!(export(["--uri", &uri]), lines);

    let (complete, said, complaints) = import(&file, ["--uri", &uri]);
    assert!(!complete, "every _id is there already");
    assert!(said.contains("0 documents imported, 0 lines unreadable, 2500 documents refused"), "{said}");
    assert!(
        complaints.contains("no-telling-name:20: ") && complaints.contains("only counted"),
        "{complaints}"
    );
    assert!(!complaints.contains("no-telling-name:21: "), "{complaints}");
}

#[test]
fn bad_lines_are_named_and_counted_and_the_rest_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "x.jsonl", b"{\"_id\":1}\nnonsense\n{\"_id\":2}\n[]\n{\"_id\":1}\n");
    let server = Server::in_memory();
    let (complete, said, complaints) = import(&file, ["--uri", &format!("mongodb://{}", server.address)]);
    assert!(!complete);
    assert!(said.contains("2 documents imported, 2 lines unreadable, 1 document refused"), "{said}");
    for line in ["x.jsonl:2: not valid JSON", "x.jsonl:4: not an object", "x.jsonl:5: E11000"] {
        assert!(complaints.contains(line), "{complaints}");
    }
}

#[test]
fn arrays_and_csv_are_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_memory();
    let uri = format!("mongodb://{}", server.address);
    let array = write(folder.path(), "a.json", b"[\n {\"_id\": 1},\n {\"_id\": 2}\n]\n");
    assert!(import(&array, ["--uri", &uri]).0);
    let csv = write(folder.path(), "b.csv", b"_id,name,place.lat\n3,Vila,42.5\n4,\"a,b\",-1\n");
    assert!(import(&csv, ["--uri", &uri]).0);
    let found =
        Connection::tcp(&server).ask("test", doc! { "find": "things", "filter": { "place.lat": 42.5 } });
    let batch = found.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    assert_eq!(batch[0].as_document().unwrap(), &doc! { "_id": 3, "name": "Vila", "place": { "lat": 42.5 } });
    assert_eq!(export(["--uri", &uri]).len(), 4);
}

#[test]
fn a_folder_without_a_server_takes_and_gives_documents() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data_text = data.to_str().unwrap();
    let lines = many_lines();
    let file = write(folder.path(), "x.jsonl", lines.join("\n").as_bytes());
    let (complete, said, complaints) = import(&file, ["--data", data_text]);
    assert!(complete, "{said}{complaints}");
    assert_eq!(export(["--data", data_text]), lines);
    let server = Server::over(&data);
    assert_eq!(export(["--uri", &format!("mongodb://{}", server.address)]), lines);
    let (complete, _, complaints) = import(&file, ["--data", data_text]);
    assert!(!complete && complaints.contains("in use"), "{complaints}");
    assert!(complaints.contains("--uri mongodb://"), "a server is reached otherwise: {complaints}");
}

#[test]
fn a_server_that_is_not_there_and_a_file_that_is_not_there_are_named() {
    let (complete, _, complaints) = import(Path::new("/nowhere/x.jsonl"), ["--uri", "mongodb://127.0.0.1:1"]);
    assert!(!complete && complaints.contains("/nowhere/x.jsonl"), "{complaints}");
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "x.jsonl", b"{}");
    let (complete, _, complaints) = import(&file, ["--uri", "mongodb://127.0.0.1:1"]);
    assert!(!complete && complaints.contains("127.0.0.1:1"), "{complaints}");
}

#[test]
fn a_running_server_is_backed_up_and_the_backups_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let file = write(folder.path(), "lines.jsonl", many_lines().join("\n").as_bytes());
    let server = Server::over(&folder.path().join("store"));
    let uri = format!("mongodb://{}", server.address);
    assert!(import(&file, ["--uri", &uri]).0);
    let backup = |to: &str, since: Option<&str>| {
        let mut arguments = vec!["backup", "--uri", &uri, "--to", to];
        arguments.extend(since.into_iter().flat_map(|since| ["--since", since]));
        run(&arguments)
    };
    let (full, more) = (place("full"), place("more"));
    let (status, said, complaints) = backup(&full, None);
    assert!(status.success() && said.starts_with("full backup"), "{said}{complaints}");
    let (status, _, complaints) = backup(&full, None);
    assert!(!status.success() && complaints.contains("MANIFEST"), "{complaints}");
    let extra = write(folder.path(), "more.jsonl", b"{\"_id\":1}\n{\"_id\":2}\n");
    assert!(import(&extra, ["--uri", &uri]).0);
    let (status, said, complaints) = backup(&more, Some(&full));
    assert!(status.success() && said.starts_with("incremental backup"), "{said}{complaints}");

    let (one, two) = (place("one"), place("two"));
    assert!(run(&["restore", &full, "--to", &one]).0.success());
    assert_eq!(export(["--data", &one]), many_lines());
    let (status, _, complaints) = run(&["restore", &full, &more, "--to", &two]);
    assert!(status.success(), "{complaints}");
    assert_eq!(export(["--data", &two]).len(), many_lines().len() + 2);
    assert!(run(&["verify", &two, "--collections"]).0.success());
    let (_, out, _) = run(&["verify", "--data", &two, "--collections", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    // The server keeps a collection of its own there, once its clock has been saved.
    let collections = report["collections"].as_array().unwrap();
    let things = collections.iter().find(|one| one["namespace"] == "test.things").unwrap();
    assert_eq!((&report["sound"], &things["documents"]), (&true.into(), &2502.into()), "{out}");
    let inside = format!("{full}/store");
    let (status, _, complaints) = run(&["restore", &full, "--to", &inside]);
    assert!(!status.success() && complaints.contains("lies in the backup"), "{complaints}");
    assert!(!std::path::Path::new(&inside).exists());
    let (status, _, complaints) = run(&["restore", &more, "--to", &place("three")]);
    assert!(!status.success() && complaints.contains("incremental"), "{complaints}");
}

#[test]
fn an_export_of_a_collection_that_is_not_there_leaves_an_earlier_file_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_memory();
    let uri = format!("mongodb://{}", server.address);
    let file = write(folder.path(), "orders.jsonl", b"{\"a\":1}\n");
    let name = file.to_str().unwrap();
    let export = |file: &str| run(&["export", "--uri", &uri, "-d", "shop", "-c", "nosuch", "--out", file]);
    let (status, _, said) = export(name);
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("no collection shop.nosuch") && said.contains("stays as it is"), "{said}");
    assert_eq!(std::fs::read(&file).unwrap(), b"{\"a\":1}\n");
    let new = folder.path().join("new.jsonl");
    assert!(export(new.to_str().unwrap()).0.success() && new.exists());
}
