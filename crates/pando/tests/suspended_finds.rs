//! Finds that wait for a read of the device. Handled again after the read, they answer as if the page had
//! been cached, and other requests meanwhile get their own answers.

use std::path::Path;

use pando_commands::{BlockingMode, ConnectionState, Handled, Request};
use pando_document::RawDocumentBuf;
use pando_environment::{AlignedBuffer, Environment};
use pandodb::bson::{self, Document};
use pandodb::{Commands, CommandsOptions, EngineOptions, Options, Pando, doc, open_commands};

const DOCUMENTS: i32 = 3_000;

/// The commands over a store of documents that are all on disk, none of them in memory.
fn cold(folder: &Path) -> Commands {
    let pando = Pando::open_with(folder, &Options::default()).unwrap();
    let documents = |n: i32| doc! { "_id": n, "text": format!("the text of {n}"), "pad": "x".repeat(200) };
    pando
        .database("d")
        .collection::<Document>("c")
        .insert_many((0..DOCUMENTS).map(documents).collect::<Vec<_>>())
        .run()
        .unwrap();
    pando.close().unwrap();
    let options = Options::default();
    let environment = Environment::real();
    open_commands(
        options.engine,
        folder,
        &EngineOptions::default(),
        environment,
        CommandsOptions::default(),
        None,
    )
    .unwrap()
}

fn find(id: i32) -> RawDocumentBuf {
    let command =
        doc! { "find": "c", "filter": { "_id": id }, "limit": 1, "projection": { "text": 1 }, "$db": "d" };
    RawDocumentBuf::from_vec(bson::serialize_to_vec(&command).unwrap()).unwrap()
}

/// Handles a request that must not block, again after each missed read that the engine can name. Returns the
/// number of these reads, and the reply, if it did not end with a `WouldBlock`.
fn ask(
    commands: &Commands,
    connection: &mut ConnectionState,
    request: &RawDocumentBuf,
) -> (u32, Option<Document>) {
    let mut reply = Vec::new();
    for reads in 0..10 {
        match commands.handle(connection, &Request::of(request), BlockingMode::CachedOnly, &mut reply) {
            Handled::Reply | Handled::ReplyLater(_) => {
                return (reads, Some(bson::deserialize_from_slice(&reply).unwrap()));
            }
            Handled::WouldBlock(None) | Handled::Again(_) => return (reads, None),
            Handled::WouldBlock(Some(missed)) => {
                assert!(reply.is_empty(), "nothing of a reply that waits is left");
                let mut buffer = AlignedBuffer::zeroed(missed.length());
                missed.file().read_exact_at(&mut buffer, missed.offset()).unwrap();
                missed.fulfil(&buffer);
            }
        }
    }
    panic!("not answered after ten reads");
}

fn run_blocking(commands: &Commands, connection: &mut ConnectionState, request: &RawDocumentBuf) -> Document {
    let mut reply = Vec::new();
    assert!(matches!(
        commands.handle(connection, &Request::of(request), BlockingMode::MayBlock, &mut reply),
        Handled::Reply | Handled::ReplyLater(_)
    ));
    bson::deserialize_from_slice(&reply).unwrap()
}

fn text(reply: &Document) -> &str {
    assert_eq!(reply.get_f64("ok").unwrap(), 1.0);
    let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    batch[0].as_document().unwrap().get_str("text").unwrap()
}

#[test]
fn a_find_that_waited_is_answered_and_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let commands = cold(folder.path());
    let connection = &mut ConnectionState::new(1, "test");
    let mut waited = 0;
    for id in (0..DOCUMENTS).step_by(7) {
        let (reads, reply) = ask(&commands, connection, &find(id));
        waited += u32::from(reads > 0);
        let reply = reply.unwrap_or_else(|| run_blocking(&commands, connection, &find(id)));
        assert_eq!(text(&reply), format!("the text of {id}"));
    }
    assert!(waited > 5, "some pages were not in memory: {waited}");
    let status = RawDocumentBuf::from_vec(
        bson::serialize_to_vec(&doc! { "serverStatus": 1, "$db": "admin" }).unwrap(),
    )
    .unwrap();
    let status = run_blocking(&commands, connection, &status);
    let counted = status.get_document("opcounters").unwrap().get("query").unwrap();
    let counted = counted.as_i64().or(counted.as_i32().map(i64::from));
    assert_eq!(counted, Some(i64::from((DOCUMENTS + 6) / 7)));
}

#[test]
fn another_request_in_between_is_answered_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let commands = cold(folder.path());
    let connection = &mut ConnectionState::new(1, "test");
    let mut waiting = 0;
    for id in (0..DOCUMENTS).step_by(90) {
        let mut reply = Vec::new();
        let first =
            commands.handle(connection, &Request::of(&find(id)), BlockingMode::CachedOnly, &mut reply);
        waiting += u32::from(matches!(first, Handled::WouldBlock(Some(_))));
        // Whether or not the first one waits: the second is another one, and so is the first when it is asked
        // again.
        let other = (id + 1_501) % DOCUMENTS;
        assert_eq!(text(&run_blocking(&commands, connection, &find(other))), format!("the text of {other}"));
        assert_eq!(text(&run_blocking(&commands, connection, &find(id))), format!("the text of {id}"));
    }
    assert!(waiting > 2, "some of them had to wait: {waiting}");
}

#[test]
fn a_find_that_waits_reads_what_was_there_when_it_began() {
    let folder = tempfile::tempdir().unwrap();
    let commands = cold(folder.path());
    let (reader, writer) = (&mut ConnectionState::new(1, "reader"), &mut ConnectionState::new(2, "writer"));
    // Loads the nodes, which only requests that may block do.
    run_blocking(&commands, reader, &find(0));
    let id = DOCUMENTS - 1;
    let mut reply = Vec::new();
    let first = commands.handle(reader, &Request::of(&find(id)), BlockingMode::CachedOnly, &mut reply);
    assert!(matches!(first, Handled::WouldBlock(Some(_))));
    let update = doc! { "update": "c", "updates": [{ "q": { "_id": id }, "u": { "$set": { "text": "new" } } }], "$db": "d" };
    let update = RawDocumentBuf::from_vec(bson::serialize_to_vec(&update).unwrap()).unwrap();
    assert_eq!(run_blocking(&commands, writer, &update).get_i32("n").unwrap(), 1);
    assert_eq!(text(&run_blocking(&commands, reader, &find(id))), format!("the text of {id}"));
    assert_eq!(text(&run_blocking(&commands, reader, &find(id))), "new");
}
