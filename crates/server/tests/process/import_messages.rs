//! Imports and exports that say what they cannot do, or what they have dropped.

use std::io::Write;
use std::path::{Path, PathBuf};

use bson::doc;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::connection::Connection;
use crate::running_server::{Server, run};

fn uri(server: &Server) -> String {
    format!("mongodb://{}", server.address)
}

fn write(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

#[test]
fn columns_that_cannot_be_used_are_told_with_the_reason() {
    let server = Server::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&server);
    let import = |file: &Path, more: &[&str]| {
        let (status, _, said) = run(&[&["import", file.to_str().unwrap(), "--uri", &uri], more].concat());
        assert!(!status.success(), "{said}");
        (status.code(), said)
    };
    let latin = write(folder.path(), "latin.csv", b"n\xE9,b\n1,2\n");
    let (_, said) = import(&latin, &[]);
    assert!(said.contains("not in UTF-8") && said.contains("iconv -f latin1 -t utf-8"), "{said}");
    let plain = write(folder.path(), "plain.csv", b"1,2\n");
    let (_, said) = import(&plain, &["--field-file", latin.to_str().unwrap()]);
    assert!(said.contains("latin.csv is text that is not in UTF-8"), "{said}");
    let (_, said) = import(&plain, &["--fields", "a,a"]);
    assert!(said.contains("--fields must name the columns, each once: 'a' is there twice"), "{said}");
    let (_, said) = import(&plain, &["--fields", "a,a.b"]);
    assert!(said.contains("rename one in --fields") && !said.contains("first line"), "{said}");
    let twice = write(folder.path(), "twice.csv", b"a,a\n1,2\n");
    let (_, said) = import(&twice, &[]);
    assert!(said.contains("the first line of the file must name the columns"), "{said}");
    let lines = write(folder.path(), "lines.jsonl", b"{\"a\":1}\n");
    for flag in [["--types", "a=string"], ["--fields", "a"]] {
        let (code, said) = import(&lines, &flag);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(&format!("{} is for CSV and TSV", flag[0])) && said.contains("JSON"), "{said}");
    }
}

#[test]
fn bytes_behind_gzip_data_are_told_and_zeros_there_are_padding() {
    let server = Server::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    // The last line has no end, and is read nevertheless.
    packed.write_all(b"{\"n\":1}\n{\"n\":2}").unwrap();
    let packed = packed.finish().unwrap();
    let import = |name: &str, tail: &[u8]| {
        let file = write(folder.path(), name, &[&packed[..], tail].concat());
        run(&["import", file.to_str().unwrap(), "--uri", &uri(&server)])
    };
    let (status, out, said) = import("padded.jsonl.gz", &[0; 512]);
    assert!(status.success() && out.contains("2 documents imported"), "{out}{said}");
    for (name, tail) in [("short.jsonl.gz", &b"x"[..]), ("long.jsonl.gz", b"{\"n\":3}\n{\"n\":4}\n")] {
        let (status, out, said) = import(name, tail);
        assert!(status.code() == Some(1) && out.contains("2 documents imported"), "{out}{said}");
        let told = format!("behind it, from byte {} on, there is something else", packed.len());
        assert!(said.contains(&told), "{said}");
        assert!(!said.contains("cut off") && !said.contains("--resume"), "{said}");
    }
}

#[test]
fn a_drop_tells_the_indexes_and_options_that_are_gone_with_the_collection() {
    let server = Server::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "things.jsonl", b"{\"_id\":1}\n");
    let mut connection = Connection::tcp(&server);
    let import = || {
        let (status, _, said) = run(&["import", file.to_str().unwrap(), "--uri", &uri(&server), "--drop"]);
        assert!(status.success(), "{said}");
        said
    };
    assert_eq!(import(), "");
    assert_eq!(import(), "", "a plain collection loses nothing but its documents");
    let index = doc! { "key": { "a": 1 }, "name": "a_1" };
    connection.ask("test", doc! { "createIndexes": "things", "indexes": [index] });
    connection.ask("test", doc! { "collMod": "things", "validator": { "a": { "$ne": 7 } } });
    let said = import();
    let told = "dropped with test.things: its index a_1 and its ";
    assert!(said.contains(told) && said.contains("validator"), "{said}");
    connection.ask("test", doc! { "drop": "things" });
    connection.ask("test", doc! { "create": "things", "viewOn": "others", "pipeline": [] });
    assert!(import().contains("dropped: test.things, which was a view"));
    connection.ask("test", doc! { "drop": "things" });
    connection.ask("test", doc! { "create": "things", "timeseries": { "timeField": "t" } });
    let said = import();
    assert!(said.contains("dropped: test.things, which was a time series"), "{said}");

    // A dump makes again what it describes, so only the rest is told.
    let dump = write(folder.path(), "dumped.bson", &doc! { "_id": 1 }.to_vec().unwrap());
    let description = br#"{"options":{},"indexes":[{"v":2,"key":{"a":1},"name":"a_1"}]}"#;
    write(folder.path(), "dumped.metadata.json", description);
    let import = || run(&["import", dump.to_str().unwrap(), "--uri", &uri(&server), "--drop"]).2;
    assert_eq!((import(), import()), (String::new(), String::new()));
    let index = doc! { "key": { "b": 1 }, "name": "b_1" };
    connection.ask("test", doc! { "createIndexes": "dumped", "indexes": [index] });
    assert_eq!(import(), "dropped with test.dumped: its index b_1, which this import does not make again\n");
}

#[test]
fn columns_of_an_export_may_lie_within_each_other_and_within_arrays() {
    let server = Server::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "things.jsonl", b"{\"arr\":[7,[0,{\"x\":5}]],\"e\":{\"x\":\"y\"}}\n");
    let uri = uri(&server);
    assert!(run(&["import", file.to_str().unwrap(), "--uri", &uri]).0.success());
    let export = |fields: &str| {
        let (status, out, said) =
            run(&["export", "-c", "things", "--uri", &uri, "--format", "csv", "--fields", fields]);
        assert!(status.success(), "{said}");
        out
    };
    assert_eq!(export("arr.0,arr.1.1.x"), "arr.0,arr.1.1.x\n7,5\n");
    assert_eq!(export("arr.1.1.x"), "arr.1.1.x\n5\n");
    assert_eq!(export("e.x,e"), "e.x,e\ny,\"{\"\"x\"\":\"\"y\"\"}\"\n");
}
