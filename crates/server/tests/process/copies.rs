//! Copies between servers and folders.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use bson::{Document, doc};

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
    assert!(out.starts_with("2500 documents copied") && out.contains("1 indexes built"), "{out}");
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
    let (status, out, said) = again(&["--drop"]);
    assert!(status.success() && out.starts_with("2500 documents copied"), "{out}{said}");
    let (status, out, said) = again(&["--mode", "upsert"]);
    assert!(status.success() && out.contains("(0 new, 0 changed, 2500 as before)"), "{out}{said}");
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
