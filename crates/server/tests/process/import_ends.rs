//! Imports that do not come to their end, and those that go on.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use bson::doc;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::connection::Connection;
use crate::running_server::{Server, pando, run};

fn count(server: &Server) -> i32 {
    Connection::tcp(server).ask("test", doc! { "count": "things" }).get_i32("n").unwrap()
}

fn uri(server: &Server) -> String {
    format!("mongodb://{}", server.address)
}

/// The words after `--resume` in what an import says.
fn resume_point(said: &str) -> String {
    let point = said.rsplit("--resume ").next().unwrap();
    point.split_whitespace().next().unwrap().to_owned()
}

fn lines(range: std::ops::Range<usize>) -> String {
    range.map(|n| format!("{{\"n\":{n}}}\n")).collect()
}

/// An import of standard input.
fn import_of_pipe(server: &Server) -> Child {
    let uri = uri(server);
    let mut command = pando(&["import", "-", "--collection", "things", "--uri", &uri]);
    command.stdin(Stdio::piped()).spawn().unwrap()
}

fn wait_for(server: &Server, documents: i32) {
    let begun = Instant::now();
    while count(server) < documents {
        assert!(begun.elapsed() < Duration::from_secs(20), "{} documents", count(server));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The output and the messages of a process, once it has ended.
fn ended(mut process: Child) -> (Option<i32>, String, String) {
    let (mut out, mut said) = (String::new(), String::new());
    process.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (process.wait().unwrap().code(), out, said)
}

#[test]
fn an_import_that_is_interrupted_says_where_it_was_and_goes_on_without_doubles() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::over(folder.path());
    let mut import = import_of_pipe(&server);
    import.stdin.as_mut().unwrap().write_all(lines(0..2500).as_bytes()).unwrap();
    wait_for(&server, 2000);
    rustix::process::kill_process(rustix::process::Pid::from_child(&import), rustix::process::Signal::INT)
        .unwrap();
    let (code, out, said) = ended(import);
    assert_eq!(code, Some(130), "{said}");
    assert!(out.contains("2000 documents imported"), "{out}");
    assert!(said.contains("interrupted") && said.contains("line 2001 of standard input"), "{said}");

    let file = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
    std::fs::write(file.path(), lines(0..2500)).unwrap();
    let (path, uri, point) = (file.path().to_str().unwrap(), uri(&server), resume_point(&said));
    let (status, out, said) = run(&["import", path, "-c", "things", "--uri", &uri, "--resume", &point]);
    assert!(status.success() && out.contains("500 documents imported"), "{out}{said}");
    assert_eq!(count(&server), 2500);
}

#[test]
fn a_server_that_dies_leaves_a_point_from_which_no_document_comes_twice() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::over(folder.path());
    let mut import = import_of_pipe(&server);
    let mut pipe = import.stdin.take().unwrap();
    pipe.write_all(lines(0..3000).as_bytes()).unwrap();
    wait_for(&server, 2000);
    server.signal(rustix::process::Signal::KILL);
    drop(server);
    // The import may have noticed already, and then nobody reads.
    let _ = pipe.write_all(lines(3000..5000).as_bytes());
    drop(pipe);
    let (code, out, said) = ended(import);
    assert_eq!(code, Some(1), "{out}{said}");
    assert!(out.contains("000 documents imported") && said.contains("may be in or not"), "{out}{said}");

    let server = Server::over(folder.path());
    let before = count(&server);
    let point = resume_point(&said);
    let uri = uri(&server);
    let mut again = pando(&["import", "-", "-c", "things", "--uri", &uri, "--resume", &point]);
    let mut again = again.stdin(Stdio::piped()).spawn().unwrap();
    again.stdin.take().unwrap().write_all(lines(0..5000).as_bytes()).unwrap();
    let (code, out, said) = ended(again);
    assert_eq!(code, Some(0), "{before} documents before: {out}{said}");
    assert_eq!(count(&server), 5000);
}

#[test]
fn gzip_and_arrays_that_are_cut_bring_in_what_is_before_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_memory();
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(lines(0..1000).as_bytes()).unwrap();
    let mut bytes = packed.finish().unwrap();
    bytes.truncate(bytes.len() / 2);
    let elements: Vec<String> = (0..1000).map(|n| format!("{{\"n\":{n}}}")).collect();
    let cut_array = format!("[{},\n{{\"n\"", elements.join(",\n"));
    let cut = [("cut.jsonl.gz", "line", bytes), ("cut.json", "document", cut_array.into_bytes())];
    for (name, unit, content) in cut {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        let before = count(&server);
        let uri = uri(&server);
        let (status, out, said) = run(&["import", file.to_str().unwrap(), "-c", "things", "--uri", &uri]);
        assert_eq!(status.code(), Some(1));
        let imported: i32 = out.split(' ').next().unwrap().parse().unwrap();
        assert!(imported > 300, "{out}");
        assert_eq!(count(&server) - before, imported);
        assert!(said.contains(&format!("stopped at {unit} {}", imported + 1)), "{said}");
        assert!(said.contains(&format!("--resume {imported}:")), "{said}");
    }
}

#[test]
fn modes_insert_replace_merge_and_delete() {
    let server = Server::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let import = |text: &str, arguments: &[&str]| {
        let file = folder.path().join("things.jsonl");
        std::fs::write(&file, text).unwrap();
        let uri = uri(&server);
        let (status, out, said) =
            run(&[&["import", file.to_str().unwrap(), "--uri", &uri], arguments].concat());
        assert!(status.success(), "{out}{said}");
        out
    };
    let stored = || {
        let reply = Connection::tcp(&server).ask("test", doc! { "find": "things", "sort": { "_id": 1 } });
        reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone()
    };
    // The collection has the name of the file.
    import("{\"_id\":1,\"a\":1,\"k\":\"x\"}\n{\"_id\":2,\"a\":2,\"k\":\"y\"}\n", &[]);
    let out = import("{\"_id\":1,\"b\":1}\n{\"_id\":3,\"b\":3}\n", &["--mode", "upsert"]);
    assert!(out.contains("2 documents imported (1 new, 1 changed, 0 as before)"), "{out}");
    let out = import("{\"k\":\"y\",\"c\":2}\n", &["--mode", "merge", "--upsert-fields", "k"]);
    assert!(out.contains("1 changed"), "{out}");
    let expected =
        [doc! { "_id": 1, "b": 1 }, doc! { "_id": 2, "a": 2, "k": "y", "c": 2 }, doc! { "_id": 3, "b": 3 }];
    assert_eq!(stored(), expected.map(bson::Bson::from));
    let out = import("{\"_id\":3}\n{\"_id\":9}\n", &["--mode", "delete"]);
    assert!(out.contains("1 document deleted, 1 not there"), "{out}");
    let out = import("{\"_id\":7}\n", &["--drop"]);
    assert!(out.contains("1 document imported"), "{out}");
    assert_eq!(stored(), [bson::Bson::from(doc! { "_id": 7 })]);
}

#[test]
fn an_input_that_cannot_be_read_drops_nothing_and_names_no_point_to_go_on_from() {
    let server = Server::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let uri = uri(&server);
    let import = |name: &str, text: &str, arguments: &[&str]| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        run(&[&["import", file, "-c", "things", "--uri", &uri], arguments].concat())
    };
    import("good.jsonl", "{\"_id\":1}\n", &[]);
    let header = import("x.csv", "a,b\n1,2\n", &["--types", "c=string", "--drop"]);
    let twice = import("y.csv", "a,a\n1,2\n", &["--drop"]);
    for (status, _, said) in [header, twice] {
        assert_eq!(status.code(), Some(1));
        assert!(said.contains("no document was written") && !said.contains("--resume"), "{said}");
        assert_eq!(count(&server), 1);
    }
    let (status, _, said) = import("z.jsonl", "nonsense\n", &["--drop"]);
    assert!(status.code() == Some(1) && said.contains("test.things was not dropped"), "{said}");
    assert_eq!(count(&server), 1);
    let (_, _, said) = import("again.jsonl", "{\"_id\":1}\n", &[]);
    assert!(said.contains("1 document with an _id that is there already: --mode upsert"), "{said}");
    let (status, _, _) = import("empty.jsonl", "", &["--drop"]);
    assert!(status.success());
    assert_eq!(count(&server), 0);
}

#[test]
fn flags_of_mongoimport_and_mongoexport_are_taken() {
    let server = Server::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let port = server.address.rsplit(':').next().unwrap();
    let file = folder.path().join("x.tsv");
    std::fs::write(&file, "7\t00123\n").unwrap();
    let (status, out, said) = run(&[
        "import",
        "--host",
        "127.0.0.1",
        "--port",
        port,
        "-d",
        "test",
        "-c",
        "things",
        "--type",
        "tsv",
        "--file",
        file.to_str().unwrap(),
        "--fields",
        "_id.int64(),zip.string()",
        "--columnsHaveTypes",
        "--drop",
        "-j",
        "2",
        "--maintainInsertionOrder",
        "--stopOnError",
        "--writeConcern",
        "{w: 1}",
        "-v",
    ]);
    // The write concern is JSON here, with quoted names, and the message says so.
    assert!(!status.success() && said.contains("--write-concern"), "{out}{said}");
    let import = |arguments: &[&str]| {
        let common =
            ["import", "--host", "127.0.0.1", "--port", port, "-d", "test", "-c", "things", "--type", "tsv"];
        run(&[&common[..], &["--file", file.to_str().unwrap()], arguments].concat())
    };
    let fields = ["--fields", "_id.int64(),zip.string()", "--columnsHaveTypes", "--writeConcern", "majority"];
    let (status, out, said) = import(&fields);
    assert!(status.success(), "{out}{said}");
    let common = ["export", "--host", &format!("127.0.0.1:{port}"), "--db", "test", "--collection", "things"];
    let export = |arguments: &[&str]| run(&[&common[..], arguments].concat()).1;
    assert_eq!(export(&["--type=csv", "-f", "zip,_id"]), "zip,_id\n00123,7\n");
    assert_eq!(export(&["--csv", "-f", "zip", "--noHeaderLine", "--assertExists"]), "00123\n");
    let canonical = "[\n{\"_id\":{\"$numberLong\":\"7\"},\"zip\":\"00123\"}\n]\n";
    assert_eq!(
        export(&["--jsonArray", "--jsonFormat", "canonical", "-k", "-q", "{\"zip\":\"00123\"}"]),
        canonical
    );
    let (status, _, said) = import(&["--username", "ada", "--password", "x"]);
    assert!(!status.success() && said.contains("--password-file"), "{said}");
}

#[test]
fn an_export_ends_quietly_when_its_reader_has_seen_enough() {
    let server = Server::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("things.jsonl");
    std::fs::write(&file, lines(0..50_000)).unwrap();
    assert!(run(&["import", file.to_str().unwrap(), "--uri", &uri(&server)]).0.success());
    let mut export = pando(&["export", "-c", "things", "--uri", &uri(&server)]).spawn().unwrap();
    let mut first = [0; 100];
    let mut out = export.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    let mut said = String::new();
    export.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((export.wait().unwrap().code(), said.as_str()), (Some(0), ""));

    let (_, _, said) = run(&["export", "-c", "thinsg", "--uri", &uri(&server)]);
    assert!(said.contains("there is no collection test.thinsg"), "{said}");
    let out = folder.path().join("out.jsonl.gz");
    let arguments =
        ["export", "-c", "things", "--uri", &uri(&server), "--out", out.to_str().unwrap(), "--json"];
    let (status, _, said) = run(&arguments);
    assert!(status.success());
    let result: serde_json::Value = serde_json::from_str(said.trim()).unwrap();
    assert_eq!((&result["documents"], &result["complete"]), (&50_000.into(), &true.into()));
    let arguments = ["import", out.to_str().unwrap(), "-c", "again", "--uri", &uri(&server), "--json"];
    let (status, out, said) = run(&arguments);
    assert!(status.success(), "{said}");
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&result["inserted"], &result["namespaces"][0]), (&50_000.into(), &"test.again".into()));
}

#[test]
fn a_result_that_nobody_reads_is_no_panic() {
    let server = Server::in_memory();
    let file = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
    std::fs::write(file.path(), "{\"a\":1}\n").unwrap();
    let path = file.path().to_str().unwrap();
    let mut import = pando(&["import", path, "-c", "things", "--uri", &uri(&server)]);
    let mut import = import.spawn().unwrap();
    drop(import.stdout.take());
    let mut said = String::new();
    import.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((import.wait().unwrap().code(), said.as_str()), (Some(0), ""));
    // As `2>&1 | head` does, while the complaints are still coming.
    std::fs::write(file.path(), "nonsense\n".repeat(100) + "{\"a\":2}\n").unwrap();
    let mut import = pando(&["import", path, "-c", "things", "--uri", &uri(&server)]).spawn().unwrap();
    drop((import.stdout.take(), import.stderr.take()));
    assert_eq!((import.wait().unwrap().code(), count(&server)), (Some(1), 2));
}

#[test]
fn a_command_line_that_says_too_little_ends_with_the_code_of_wrong_command_lines() {
    for (arguments, part) in [
        (&["import"][..], "--collection"),
        (&["export"], "--collection"),
        (&["export", "-c", "things", "--format", "csv"], "--fields"),
        (&["export", "-c", "things", "--query", "{a: 1}"], "quoted names"),
        (&["export", "-c", "things", "--sort", "a"], "quoted names"),
    ] {
        let (status, _, said) = run(&[arguments, &["--uri", "mongodb://127.0.0.1:1"]].concat());
        assert!(status.code() == Some(2) && said.contains(part), "{arguments:?}: {said}");
    }
}

#[test]
fn a_dump_of_mongodump_comes_in_with_its_indexes() {
    let server = Server::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let place = |path: &str, content: &[u8]| {
        let path: std::path::PathBuf = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(content).unwrap();
        std::fs::write(path, packed.finish().unwrap()).unwrap();
    };
    let documents: Vec<u8> =
        (0..3000).flat_map(|n| doc! { "_id": n, "n": n % 7 }.to_vec().unwrap()).collect();
    place("dump/test/things.bson.gz", &documents);
    let indexes = r#"[{"v":{"$numberInt":"2"},"key":{"_id":{"$numberInt":"1"}},"name":"_id_"},
        {"v":{"$numberInt":"2"},"key":{"n":{"$numberInt":"-1"}},"name":"n_-1"}]"#;
    let description =
        format!(r#"{{"indexes":{indexes},"collectionName":"things","type":"collection","options":{{}}}}"#);
    place("dump/test/things.metadata.json.gz", description.as_bytes());
    let dump = folder.path().join("dump");
    let (status, out, said) = run(&["import", dump.to_str().unwrap(), "--uri", &uri(&server)]);
    assert!(status.success(), "{said}");
    assert!(out.contains("3000 documents imported") && out.contains("1 index built"), "{out}");
    let reply = Connection::tcp(&server).ask("test", doc! { "listIndexes": "things" });
    let listed = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len();
    assert_eq!((count(&server), listed), (3000, 2));
}

#[test]
fn a_damaged_file_of_a_dump_is_told_apart_from_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::over(&folder.path().join("data"));
    let dump = folder.path().join("dump/test");
    std::fs::create_dir_all(&dump).unwrap();
    let documents: Vec<u8> = (1..=3).flat_map(|id| doc! { "_id": id }.to_vec().unwrap()).collect();
    std::fs::write(dump.join("cut.bson"), &documents[..documents.len() - 3]).unwrap();
    std::fs::write(dump.join("things.bson"), &documents).unwrap();
    let import = |path: &Path| run(&["import", path.to_str().unwrap(), "--uri", &uri(&server)]);
    let (status, _, said) = import(&folder.path().join("dump"));
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("document 3, at byte") && said.contains("once it is mended"), "{said}");
    assert_eq!(count(&server), 3, "{said}");
    let (status, _, said) = import(&dump.join("cut.bson"));
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("until it is mended") && !said.contains("folder"), "{said}");
}
