//! Copies between servers and folders.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bson::{Document, doc};
use rustix::process::Signal;

use crate::connection::Connection;
use crate::running_server::{Server, pando, run};

fn uri(server: &Server) -> String {
    format!("mongodb://{}", server.address)
}

fn count(server: &Server) -> i32 {
    Connection::tcp(server).ask("shop", doc! { "count": "orders" }).get_i32("n").unwrap()
}

/// Orders with an index, and an empty collection beside them.
fn fill(server: &Server, documents: i32) {
    let mut connection = Connection::tcp(server);
    for from in (0..documents).step_by(1000) {
        let orders: Vec<Document> =
            (from..documents.min(from + 1000)).map(|id| doc! { "_id": id, "total": id % 7 }).collect();
        connection.ask("shop", doc! { "insert": "orders", "documents": orders });
    }
    let index = doc! { "key": { "total": 1 }, "name": "total_1" };
    connection.ask("shop", doc! { "createIndexes": "orders", "indexes": [index] });
    connection.ask("shop", doc! { "create": "empty" });
}

#[test]
fn a_server_goes_into_a_folder_and_the_folder_into_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let source = Server::in_memory();
    fill(&source, 2500);
    let (status, out, said) = run(&["copy", "--from", &uri(&source), "--to", data]);
    assert!(status.success(), "{out}{said}");
    assert!(out.starts_with("2500 documents copied") && out.contains("1 index built"), "{out}");
    assert!(out.contains("2 collections, 2,500 documents at the source, all there"), "{out}");

    let target = Server::in_memory();
    let (status, out, said) = run(&["copy", "--from", data, "--to", &uri(&target), "--db", "shop", "--json"]);
    assert!(status.success(), "{out}{said}");
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&result["complete"], &result["inserted"]), (&true.into(), &2500.into()), "{out}");
    assert_eq!(result["collections"][1]["target"], 2500, "{out}");
    assert_eq!(count(&target), 2500);
    let indexes = Connection::tcp(&target).ask("shop", doc! { "listIndexes": "orders" });
    assert!(indexes.to_string().contains("total_1"), "{indexes}");

    // A second time: refused, then replaced, then added to.
    let again = |more: &[&str]| {
        run(&[&["copy", "--from", data, "--to", &uri(&target), "-d", "shop", "-c", "orders"], more].concat())
    };
    let (status, _, said) = again(&[]);
    assert!(!status.success() && said.contains("documents in shop.orders already"), "{said}");
    assert!(said.contains("already; --resume goes on with an interrupted copy, --drop"), "{said}");
    let (status, out, said) = again(&["--drop"]);
    assert!(status.success() && out.starts_with("2500 documents copied"), "{out}{said}");
    let (status, out, said) = again(&["--mode", "upsert"]);
    assert!(status.success() && out.contains("(0 new, 0 changed, 2500 as before)"), "{out}{said}");
}

#[test]
fn documents_of_others_are_not_taken_for_an_interrupted_copy() {
    let (source, target) = (Server::in_memory(), Server::in_memory());
    fill(&source, 10);
    Connection::tcp(&target).ok("shop", doc! { "insert": "orders", "documents": [{ "_id": "other" }] });
    let (status, _, said) = run(&["copy", "--from", &uri(&source), "--to", &uri(&target)]);
    assert!(!status.success() && said.contains("already; --drop") && !said.contains("--resume"), "{said}");
}

#[test]
fn an_index_that_was_built_in_the_background_is_copied_as_such() {
    let (source, target) = (Server::in_memory(), Server::in_memory());
    let index = doc! { "key": { "x": 1 }, "name": "x_1", "background": true };
    Connection::tcp(&source).ok("shop", doc! { "createIndexes": "orders", "indexes": [index] });
    let (status, _, said) = run(&["copy", "--from", &uri(&source), "--to", &uri(&target)]);
    assert!(status.success(), "{said}");
    let indexes = Connection::tcp(&target).ok("shop", doc! { "listIndexes": "orders" });
    assert!(indexes.to_string().contains("\"background\": true"), "{indexes}");
}

#[test]
fn a_wrong_source_or_target_is_told_and_makes_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let server = Server::in_memory();
    fill(&server, 10);
    let (status, _, said) = run(&["copy", "--from", &place("no"), "--to", &place("new")]);
    assert!(!status.success() && said.contains("source") && said.contains(&place("no")), "{said}");
    let (status, _, said) = run(&["copy", "--from", "mongodb://127.0.0.1:1", "--to", &place("new")]);
    assert!(!status.success() && said.contains("127.0.0.1:1"), "{said}");
    let (status, _, said) = run(&["copy", "--from", &uri(&server), "--to", &place("new"), "--db", "shpo"]);
    assert!(!status.success() && said.contains("no database shpo; it has shop"), "{said}");
    assert!(!Path::new(&place("no")).exists() && !Path::new(&place("new")).exists());

    // One server under two names: with --drop the copy would delete its own source.
    let other_name = uri(&server).replace("127.0.0.1", "localhost");
    let (status, _, said) = run(&["copy", "--from", &uri(&server), "--to", &other_name, "--drop"]);
    assert!(!status.success() && said.contains("the same store"), "{said}");
    assert_eq!(count(&server), 10);
    let (status, _, said) = run(&["copy", "--from", "localhost:27017", "--to", &place("new")]);
    assert!(status.code() == Some(2) && said.contains("mongodb://localhost:27017"), "{said}");
}

#[test]
fn a_copy_that_is_interrupted_goes_on_without_doubles() {
    let (source, target) = (Server::in_memory(), Server::in_memory());
    fill(&source, 60_000);
    let (from, to) = (uri(&source), uri(&target));
    let mut copy = pando(&["copy", "--from", &from, "--to", &to]).spawn().unwrap();
    let begun = Instant::now();
    while count(&target) < 2000 {
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing arrives");
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&copy), rustix::process::Signal::INT)
        .unwrap();
    let mut said = String::new();
    copy.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(copy.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("stopped at document") && said.contains("of shop.orders"), "{said}");
    let point = said.rsplit("--resume ").next().unwrap().trim().to_owned();
    let before = count(&target);
    assert!(before < 60_000);
    let (status, out, said) = run(&["copy", "--from", &from, "--to", &to, "--resume", &point]);
    assert!(status.success(), "{out}{said}");
    assert!(out.starts_with(&format!("{} documents copied", 60_000 - before)), "{out}");
    assert_eq!(count(&target), 60_000);
}

/// Collections of every layout, with indexes and options.
fn fill_layouts(server: &Server) {
    let mut connection = Connection::tcp(server);
    connection.ask("shop", doc! { "create": "heap", "layout": "heap" });
    connection.ask("shop", doc! { "create": "keyed", "primaryKey": { "at": 1, "_id": 1 } });
    connection.ask(
        "shop",
        doc! { "create": "clustered", "clusteredIndex": { "key": { "_id": 1 }, "unique": true } },
    );
    connection.ask("shop", doc! { "create": "plain", "validationAction": "warn" });
    for collection in ["heap", "keyed", "clustered", "plain"] {
        // Their order is not that of their `_id`.
        let documents: Vec<Document> =
            (0..1500).map(|n| doc! { "_id": n * 7 % 1500, "at": n / 3, "text": "x".repeat(20) }).collect();
        connection.ask("shop", doc! { "insert": collection, "documents": documents });
        let indexes = [
            doc! { "key": { "at": 1 }, "name": "at_1", "clustering": true },
            doc! { "key": { "text": 1, "at": -1 }, "name": "text_1_at_-1", "sparse": true },
        ];
        connection.ask("shop", doc! { "createIndexes": collection, "indexes": indexes.to_vec() });
    }
}

/// The digests, options and indexes of a database.
fn content(server: &Server) -> (Document, String) {
    let mut connection = Connection::tcp(server);
    let digests = connection.ask("shop", doc! { "dbHash": 1 }).get_document("collections").unwrap().clone();
    let mut said = String::new();
    for collection in digests.keys() {
        let filter = doc! { "name": collection };
        let listed = connection.ask("shop", doc! { "listCollections": 1, "filter": filter });
        let listed = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
        said += &listed[0].as_document().unwrap().get_document("options").unwrap().to_string();
        let indexes = connection.ask("shop", doc! { "listIndexes": collection });
        said += &indexes.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len().to_string();
        said += &format!("{:?}", indexes.get_document("cursor").unwrap().get_array("firstBatch").unwrap());
    }
    (digests, said)
}

/// The engines that keep a folder, in this build.
const ENGINES: &[&str] = &[
    "betree",
    #[cfg(feature = "engine-lmdb")]
    "lmdb",
    #[cfg(feature = "engine-rocksdb")]
    "rocksdb",
    #[cfg(feature = "engine-wiredtiger")]
    "wiredtiger",
];

#[test]
fn a_store_goes_from_engine_to_engine_with_its_layouts_and_the_same_hash() {
    let folder = tempfile::tempdir().unwrap();
    let source = Server::in_memory();
    fill_layouts(&source);
    let expected = content(&source);
    let mut from = uri(&source);
    // From the memory engine through all others, and back into the first of them.
    for (number, engine) in ENGINES.iter().chain([&ENGINES[0]]).enumerate() {
        let place = folder.path().join(number.to_string());
        let to = place.to_str().unwrap();
        let (status, out, said) = run(&["copy", "--from", &from, "--to", to, "--engine", engine]);
        assert!(status.success(), "{engine}: {out}{said}");
        assert!(out.contains("counted and hashed on both sides: 4 collections, 6,000 documents"), "{out}");
        let server = Server::start(&["--data", to, "--listen", "127.0.0.1:0", "--engine", engine]);
        assert_eq!(content(&server), expected, "{engine}");
        from = to.to_owned();
    }

    let (status, _, said) = run(&["copy", "--from", &from, "--to", &uri(&source), "--engine", "betree"]);
    assert!(status.code() == Some(2) && said.contains("are for a folder"), "{said}");
    let new = folder.path().join("new");
    let new = new.to_str().unwrap();
    for (engine, words) in [("memory", "keeps nothing in a folder"), ("btree", "there is no engine 'btree'")]
    {
        let (status, _, said) = run(&["copy", "--from", &from, "--to", new, "--engine", engine]);
        assert!(status.code() == Some(2) && said.contains(words), "{said}");
    }
    assert!(!Path::new(new).exists());
}

#[test]
fn a_folder_that_a_server_has_open_is_copied_while_the_server_serves() {
    let folder = tempfile::tempdir().unwrap();
    let [data, copy] = ["data", "copy"].map(|name| folder.path().join(name));
    let source = Server::over(&data);
    fill(&source, 300);
    let from = data.to_str().unwrap();
    let (status, out, said) = run(&["copy", "--from", from, "--to", copy.to_str().unwrap()]);
    assert!(status.success() && out.starts_with("300 documents copied"), "{out}{said}");
    assert_eq!(count(&source), 300);
    let (status, _, said) = run(&["copy", "--from", from, "--to", &uri(&source), "--drop"]);
    assert!(!status.success() && said.contains("the same store"), "{said}");
    assert_eq!(count(&source), 300);
}

#[test]
fn a_copy_that_is_killed_goes_on_without_a_point() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let to = to.to_str().unwrap();
    let source = Server::in_memory();
    fill(&source, 60_000);
    let from = uri(&source);
    let mut copy = pando(&["copy", "--from", &from, "--to", to]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(150));
    copy.kill().unwrap();
    copy.wait().unwrap();
    let (status, out, said) = run(&["copy", "--from", &from, "--to", to, "--resume", "--json"]);
    assert!(status.success(), "{out}{said}");
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    let orders = &result["collections"][1];
    assert_eq!((&orders["namespace"], &orders["target"]), (&"shop.orders".into(), &60_000.into()), "{out}");
    assert_eq!((&orders["sourceHash"], &result["complete"]), (&orders["targetHash"], &true.into()), "{out}");
    let again = run(&["copy", "--from", &from, "--to", to, "--resume"]);
    assert!(again.0.success() && again.1.contains("60000 passed over"), "{}{}", again.1, again.2);
}

/// The options of a collection as its server lists them.
fn options_of(server: &Server, collection: &str) -> Document {
    let listing = doc! { "listCollections": 1, "filter": { "name": collection } };
    let listed = Connection::tcp(server).ok("shop", listing);
    let first = &listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap()[0];
    first.as_document().unwrap().get_document("options").unwrap().clone()
}

/// A capped collection, one of a language and one with a validator, of a document each.
fn fill_with_options(server: &Server) {
    let mut connection = Connection::tcp(server);
    connection.ok("shop", doc! { "create": "c", "capped": true, "size": 1 << 20 });
    connection.ok("shop", doc! { "create": "d", "collation": { "locale": "de", "strength": 1 } });
    connection.ok("shop", doc! { "create": "v", "validator": { "n": { "$gt": 0 } } });
    for collection in ["c", "d", "v"] {
        connection.ok("shop", doc! { "insert": collection, "documents": [{ "_id": 1, "n": 1 }] });
    }
}

#[test]
fn options_that_a_collection_of_the_target_lacks_are_named() {
    let (source, target) = (Server::in_memory(), Server::in_memory());
    fill_with_options(&source);
    let mut connection = Connection::tcp(&target);
    for collection in ["c", "d", "v"] {
        connection.ok("shop", doc! { "create": collection });
    }
    let (from, to) = (uri(&source), uri(&target));
    for mode in ["insert", "upsert"] {
        let (status, out, said) = run(&["copy", "--from", &from, "--to", &to, "--mode", mode]);
        assert_eq!(status.code(), Some(1), "{mode}: {out}{said}");
        assert!(said.contains("capped (true at the source, not set at the target), size"), "{said}");
        assert!(said.contains("shop.d: the collection at the target keeps its own options"), "{said}");
        assert!(said.contains("validator ({\"n\":{\"$gt\":0}} at the source"), "{said}");
        assert!(said.contains("shop.c, shop.d, shop.v") && said.contains("--drop"), "{said}");
        assert!(out.contains("3 documents at the source, all these documents are there"), "{out}");
    }
    assert_eq!(options_of(&target, "c"), Document::new());
    let (status, out, _) = run(&["copy", "--from", &from, "--to", &to, "--mode", "upsert", "--json"]);
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status.code(), &result["complete"]), (Some(1), &false.into()), "{out}");
    assert_eq!(
        result["otherOptions"][1],
        serde_json::json!({ "namespace": "shop.d", "options": ["collation"] })
    );

    let (status, out, said) = run(&["copy", "--from", &from, "--to", &to, "--drop"]);
    assert!(status.success() && out.contains("all there"), "{out}{said}");
    for collection in ["c", "d", "v"] {
        assert_eq!(options_of(&target, collection), options_of(&source, collection));
    }
    let (status, _, said) = run(&["copy", "--from", &from, "--to", &to, "--mode", "upsert"]);
    assert!(status.success() && !said.contains("own options"), "the same options are no difference: {said}");
}

#[test]
fn options_of_every_layout_are_the_same_in_a_second_copy_and_a_layout_of_the_target_is_its_own() {
    let (source, target) = (Server::in_memory(), Server::in_memory());
    fill_layouts(&source);
    let mut connection = Connection::tcp(&source);
    connection
        .ok("shop", doc! { "create": "view", "viewOn": "plain", "pipeline": [{ "$match": { "at": 1 } }] });
    connection.ok("shop", doc! { "create": "series", "timeseries": { "timeField": "at", "metaField": "m" } });
    Connection::tcp(&target)
        .ok("shop", doc! { "create": "plain", "layout": "heap", "validationAction": "warn" });
    let (from, to) = (uri(&source), uri(&target));
    for arguments in [&[][..], &["--mode", "upsert"]] {
        let (status, out, said) = run(&[&["copy", "--from", &from, "--to", &to], arguments].concat());
        assert!(status.success() && out.contains("all there"), "{out}{said}");
        assert!(!said.contains("own options"), "{said}");
    }
    assert_eq!(options_of(&target, "plain").get_str("layout").ok(), Some("heap"));
}

#[test]
fn a_time_series_is_not_copied_into_a_plain_collection() {
    let (source, target) = (Server::in_memory(), Server::in_memory());
    let mut connection = Connection::tcp(&source);
    connection.ok("shop", doc! { "create": "series", "timeseries": { "timeField": "at" } });
    let measured = doc! { "at": bson::DateTime::from_millis(0), "n": 1 };
    connection.ok("shop", doc! { "insert": "series", "documents": [measured] });
    connection.ok("shop", doc! { "insert": "other", "documents": [{ "_id": 1 }] });
    Connection::tcp(&target).ok("shop", doc! { "create": "series" });
    for mode in ["insert", "upsert"] {
        let copy = ["copy", "--from", &uri(&source), "--to", &uri(&target), "--mode", mode];
        let (status, _, said) = run(&copy);
        assert_eq!(status.code(), Some(1), "{said}");
        let reason = "shop.series is a time series at the source and a plain collection at the target";
        assert!(said.contains(reason) && said.contains("--drop"), "{said}");
    }
    let listed = Connection::tcp(&target).ok("shop", doc! { "listCollections": 1, "nameOnly": true });
    assert!(!listed.to_string().contains("other"), "nothing was copied: {listed}");
    let (status, out, said) = run(&["copy", "--from", &uri(&source), "--to", &uri(&target), "--drop"]);
    assert!(status.success(), "{out}{said}");
}

#[test]
fn documents_that_are_older_than_the_validator_of_their_collection_are_copied() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let (source, target) = (Server::in_memory(), Server::in_memory());
    let mut connection = Connection::tcp(&source);
    connection.ok("shop", doc! { "insert": "v", "documents": [{ "_id": 1, "n": -1 }, { "_id": 2, "n": 2 }] });
    connection.ok("shop", doc! { "collMod": "v", "validator": { "n": { "$gt": 0 } } });
    let from = uri(&source);
    for (to, more) in [
        (data, &[][..]),
        (&uri(&target), &[]),
        (&uri(&target), &["--drop"]),
        (&uri(&target), &["--mode", "upsert"]),
        (&uri(&target), &["--mode", "merge"]),
    ] {
        let (status, out, said) = run(&[&["copy", "--from", &from, "--to", to], more].concat());
        assert!(
            status.success() && out.contains("2 documents at the source, all there"),
            "{more:?}: {out}{said}"
        );
        // Of the first copy, too, which has made the collection.
        if to != data {
            let refused =
                Connection::tcp(&target).ask("shop", doc! { "insert": "v", "documents": [{ "n": -2 }] });
            assert!(refused.to_string().contains("failed validation"), "{more:?}: {refused}");
        }
    }
    let mut connection = Connection::tcp(&target);
    let refused = connection.ask("shop", doc! { "insert": "v", "documents": [{ "n": -2 }] });
    assert!(refused.to_string().contains("failed validation"), "the rule is in force: {refused}");

    // A rule that the target has of its own stays in force.
    connection.ok("shop", doc! { "drop": "v" });
    connection.ok("shop", doc! { "create": "v", "validator": { "n": { "$lt": 0 } } });
    let (status, out, said) = run(&["copy", "--from", &from, "--to", &uri(&target)]);
    assert_eq!(status.code(), Some(1), "{out}{said}");
    assert!(
        said.contains("failed validation") && said.contains("shop.v: the collection at the target"),
        "{said}"
    );
    assert_eq!(connection.ok("shop", doc! { "count": "v" }).get_i32("n").ok(), Some(1));
}

/// A user of a folder that no server has open, with the password `secret`.
fn add_user(data: &str, name: &str, roles: &[&str]) {
    let roles = roles.iter().flat_map(|role| ["--role", role]);
    let arguments: Vec<&str> = ["user", "add", name, "--data", data].into_iter().chain(roles).collect();
    let mut adding = pando(&arguments).stdin(Stdio::piped()).spawn().unwrap();
    adding.stdin.take().unwrap().write_all(b"secret\n").unwrap();
    assert!(adding.wait().unwrap().success());
}

#[test]
fn a_folder_that_a_server_with_users_has_open_is_copied_with_the_login_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let [data, copy, password] = ["data", "copy", "password"].map(|name| folder.path().join(name));
    let [data, copy, file] = [&data, &copy, &password].map(|path| path.to_str().unwrap());
    let source = Server::over(Path::new(data));
    fill(&source, 300);
    source.signal(Signal::TERM);
    assert!(source.ended().0.success());
    add_user(data, "ada", &["root"]);
    std::fs::write(&password, "secret\n").unwrap();
    let login = ["--from-username", "ada", "--from-password-file", file];

    let copy_it = |more: &[&str]| run(&[&["copy", "--from", data, "--to", copy], more].concat());
    let (status, _, said) = copy_it(&login);
    assert!(!status.success() && said.contains("takes no login"), "{said}");
    let server = Server::start(&["--data", data, "--auth", "--listen", "127.0.0.1:0"]);
    let (status, _, said) = copy_it(&[]);
    assert!(!status.success() && said.contains("--from-username"), "{said}");
    let (status, out, said) = copy_it(&login);
    assert!(status.success() && out.starts_with("300 documents copied"), "{out}{said}");
    drop(server);
}

#[test]
fn a_wrong_key_of_a_folder_that_a_server_has_open_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [data, copy] = ["data", "copy"].map(|name| folder.path().join(name));
    let [right, wrong] = ["right", "wrong"].map(|name| folder.path().join(name));
    for (key, digit) in [(&right, "1"), (&wrong, "2")] {
        std::fs::write(key, digit.repeat(64)).unwrap();
        std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let [data, copy, right, wrong] = [&data, &copy, &right, &wrong].map(|path| path.to_str().unwrap());
    let options = ["--data", data, "--encryption-key-file", right, "--listen", "127.0.0.1:0"];
    let server = Server::start(&options);
    fill(&server, 3);
    let copy_with =
        |key: &str| run(&["copy", "--from", data, "--to", copy, "--from-encryption-key-file", key]);
    let (status, _, said) = copy_with(wrong);
    assert!(!status.success() && said.contains("does not have the master key of the store"), "{said}");
    let (status, out, said) = copy_with(right);
    assert!(status.success(), "{out}{said}");
    let plain = folder.path().join("plain");
    let plain_server = Server::over(&plain);
    let from = plain.to_str().unwrap();
    let (status, _, said) = run(&["copy", "--from", from, "--to", copy, "--from-encryption-key-file", right]);
    assert!(!status.success() && said.contains("is not encrypted"), "{said}");
    drop((server, plain_server));
}

#[test]
fn a_user_who_may_restore_copies_documents_that_are_older_than_the_validator() {
    let folder = tempfile::tempdir().unwrap();
    let [data, password] = ["data", "password"].map(|name| folder.path().join(name));
    let [data, file] = [&data, &password].map(|path| path.to_str().unwrap());
    let source = Server::in_memory();
    let mut connection = Connection::tcp(&source);
    connection.ok("shop", doc! { "insert": "v", "documents": [{ "_id": 1, "n": -1 }] });
    connection.ok("shop", doc! { "collMod": "v", "validator": { "n": { "$gt": 0 } } });
    let made = Server::over(Path::new(data));
    made.signal(Signal::TERM);
    assert!(made.ended().0.success());
    add_user(data, "ada", &["restore", "readAnyDatabase"]);
    add_user(data, "bob", &["readWriteAnyDatabase"]);
    std::fs::write(&password, "secret\n").unwrap();
    let target = Server::start(&["--data", data, "--auth", "--listen", "127.0.0.1:0"]);
    let copy_as = |user: &str| {
        let (from, to) = (uri(&source), uri(&target));
        run(&["copy", "--from", &from, "--to", &to, "-u", user, "--password-file", file, "-d", "shop"])
    };
    let (status, _, said) = copy_as("bob");
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("the roles dbAdmin and restore have it"), "{said}");
    let (status, out, said) = copy_as("ada");
    assert!(status.success() && out.contains("1 document at the source, all there"), "{out}{said}");
    target.signal(Signal::TERM);
    assert!(target.ended().0.success());
    let target = Server::over(Path::new(data));
    let options = options_of(&target, "v");
    assert!(options.to_string().contains("validator"), "{options}");
}
