//! The Rust driver against a real `pando serve` process.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mongodb::IndexModel;
use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::{IndexOptions, WriteConcern};
use mongodb::sync::{Client, Collection};
use serde::{Deserialize, Serialize};

/// A server process over a folder of its own; ended when dropped.
struct Server {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start() -> Server {
        let program = std::env::var("PANDO").expect("PANDO names the server's binary");
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new(program)
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"])
            .arg(folder.path().join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(process.try_wait().unwrap().is_none(), "the server ended");
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Server { process, port, _folder: folder }
    }

    fn client(&self, options: &str) -> Client {
        let uri = format!("mongodb://127.0.0.1:{}/?directConnection=true{options}", self.port);
        Client::with_uri_str(uri).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Book {
    #[serde(rename = "_id")]
    id: i32,
    title: String,
    tags: Vec<String>,
}

fn book(id: i32) -> Book {
    Book { id, title: format!("Volume {id}"), tags: vec![format!("t{}", id % 3), "all".to_owned()] }
}

#[test]
fn typed_documents_are_inserted_found_updated_and_deleted() {
    let server = Server::start();
    let books: Collection<Book> = server.client("").database("library").collection("books");
    books.insert_many((0..1000).map(book)).run().unwrap();
    assert_eq!(books.find_one(doc! { "_id": 7 }).run().unwrap(), Some(book(7)));
    let found: Vec<Book> =
        books.find(doc! { "tags": "t1" }).sort(doc! { "_id": -1 }).batch_size(50).run().unwrap().map(Result::unwrap).collect();
    assert_eq!(found.iter().map(|book| book.id).collect::<Vec<_>>(), (0..1000).rev().filter(|id| id % 3 == 1).collect::<Vec<_>>());
    let updated = books.update_many(doc! { "_id": { "$lt": 10 } }, doc! { "$push": { "tags": "early" } }).run().unwrap();
    assert_eq!((updated.matched_count, updated.modified_count), (10, 10));
    assert_eq!(books.count_documents(doc! { "tags": "early" }).run().unwrap(), 10);
    assert_eq!(books.delete_many(doc! { "_id": { "$gte": 500 } }).run().unwrap().deleted_count, 500);
}

#[test]
fn unique_indexes_and_aggregates_work_through_compressed_connections() {
    let server = Server::start();
    let client = server.client("&compressors=zstd");
    let people: Collection<Document> = client.database("d").collection("people");
    let unique = IndexOptions::builder().unique(true).build();
    people.create_index(IndexModel::builder().keys(doc! { "email": 1 }).options(unique).build()).run().unwrap();
    people.insert_one(doc! { "email": "a", "n": 1 }).run().unwrap();
    let refused = people.insert_one(doc! { "email": "a", "n": 2 }).run().unwrap_err();
    assert!(matches!(*refused.kind, ErrorKind::Write(mongodb::error::WriteFailure::WriteError(ref error)) if error.code == 11000));
    people.insert_one(doc! { "email": "b", "n": 5 }).run().unwrap();
    let sums: Vec<Document> = people
        .aggregate([doc! { "$group": { "_id": null, "n": { "$sum": "$n" } } }])
        .run()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(sums, vec![doc! { "_id": null, "n": 6 }]);
}

#[test]
fn every_write_concern_is_acknowledged_and_errors_have_names() {
    let server = Server::start();
    let database = server.client("").database("d");
    let things: Collection<Document> = database.collection("things");
    for concern in [WriteConcern::majority(), WriteConcern::builder().w(mongodb::options::Acknowledgment::Nodes(1)).journal(true).build()] {
        things.insert_one(doc! {}).write_concern(concern).run().unwrap();
    }
    let refused = database.run_command(doc! { "nonsense": 1 }).run().unwrap_err();
    assert!(matches!(*refused.kind, ErrorKind::Command(ref error) if error.code == 59 && error.code_name == "CommandNotFound"));
    assert_eq!(database.list_collection_names().run().unwrap(), vec!["things".to_owned()]);
}
