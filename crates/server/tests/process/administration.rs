//! Settings, figures, layouts and checks of a running server.

use bson::{Bson, Document, doc};

use crate::connection::Connection;
use crate::running_server::{Server, run};

/// A server with a collection `test.c` of this many documents.
fn filled(folder: &std::path::Path, documents: i32) -> (Server, Connection) {
    let server = Server::over(folder);
    let mut connection = Connection::tcp(&server);
    let batch: Vec<Bson> =
        (0..documents).map(|id| doc! { "_id": id, "text": "x".repeat(200), "n": id % 97 }.into()).collect();
    connection.ok("test", doc! { "insert": "c", "documents": batch });
    let index = doc! { "key": { "n": 1 }, "name": "n", "storageEngine": { "betree": { "pageSize": "4KB" } } };
    connection.ok("test", doc! { "createIndexes": "c", "indexes": [index] });
    (server, connection)
}

#[test]
fn options_of_the_engine_are_set_from_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["logBudget=64MB", "checkpointPeriod=7", "logCompression=none"];
    let flags = options.iter().flat_map(|option| ["--engine-option", option]);
    let start = ["--data", folder.path().to_str().unwrap(), "--unix-socket", "none"];
    let server = Server::start(&start.into_iter().chain(flags).collect::<Vec<_>>());
    let mut connection = Connection::tcp(&server);
    let shown = connection.ok("admin", doc! { "getParameter": "*" });
    assert_eq!(shown.get_i64("betreeLogBudget").unwrap(), 64 << 20, "{shown}");
    assert_eq!(shown.get_i64("betreeCheckpointPeriod").unwrap(), 7, "{shown}");
}

#[test]
fn the_log_of_the_start_tells_the_cache_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let start = ["--data", folder.path().to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let server = Server::start(&[&start[..], &["--set-parameter", "betreeCache=32MB"]].concat());
    server.signal(rustix::process::Signal::TERM);
    let (_, log) = server.ended();
    let serving = log.lines().find(|line| line.contains("serving")).expect("it serves");
    assert!(serving.contains("cache=32MB"), "{serving}");
}

fn document<'d>(of: &'d Document, path: &[&str]) -> &'d Document {
    path.iter().fold(of, |of, name| of.get_document(name).unwrap_or_else(|_| panic!("no {name} in {of}")))
}

/// A figure of the engine.
fn figure(connection: &mut Connection, section: &str, name: &str) -> i64 {
    let status = connection.ok("admin", doc! { "serverStatus": 1 });
    document(&status, &["betree", section]).get_i64(name).expect("it is counted")
}

#[test]
fn settings_are_changed_and_shown_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, mut connection) = filled(folder.path(), 500);
    let shown = connection.ok("admin", doc! { "getParameter": "*" });
    assert!(shown.get_i64("betreeCache").unwrap() > 1 << 20, "{shown}");
    assert_eq!(shown.get_str("betreeDirectIo").unwrap(), "auto");
    for (name, value, told) in [
        ("betreeCache", Bson::from("32MB"), Bson::Int64(32 << 20)),
        ("betreeBufferBudget", "4MB".into(), Bson::Int64(4 << 20)),
        ("betreeLogBudget", "64MB".into(), Bson::Int64(64 << 20)),
        ("betreeCheckpointPeriod", 7.into(), Bson::Int64(7)),
        ("betreeDirectIo", "off".into(), "off".into()),
    ] {
        connection.ok("admin", doc! { "setParameter": 1, name: value });
        assert_eq!(connection.ok("admin", doc! { "getParameter": 1, name: 1 }).get(name), Some(&told));
    }
    let status = connection.ok("admin", doc! { "serverStatus": 1 });
    let cache = document(&status, &["betree", "cache"]);
    assert_eq!(cache.get_i64("limit_bytes").unwrap(), 32 << 20, "{cache}");
    let refused = connection.ask("admin", doc! { "setParameter": 1, "betreeCache": "1MB" });
    let message = refused.get_str("errmsg").unwrap();
    assert_eq!(message, "betreeCache: a cache of 1MB is too small: choose at least 16MB");
    for (name, value) in
        [("betreeCache", Bson::from("1KB")), ("betreeCheckpointPeriod", 0.into()), ("betreeColour", 1.into())]
    {
        let refused = connection.ask("admin", doc! { "setParameter": 1, name: value });
        assert_eq!(refused.get_f64("ok").unwrap(), 0.0, "{name}: {refused}");
    }
    let refused = connection.ask("admin", doc! { "setParameter": 1, "betreeCache": "lots" });
    assert!(
        refused.get_str("errmsg").unwrap().starts_with("betreeCache: option cache cannot be \"lots\""),
        "{refused}"
    );
    for command in ["setParameter", "getParameter"] {
        let help = connection.ok("admin", doc! { command: 1, "help": true });
        let help = help.get_str("help").unwrap();
        assert!(help.contains("\n  betreeCache\n") && help.contains("\n  queryMemory\n"), "{help}");
    }
    assert_eq!(connection.ok("test", doc! { "count": "c" }).get_i32("n").unwrap(), 500);
}

#[test]
fn the_memory_of_queries_follows_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, mut connection) = filled(folder.path(), 1);
    let limit = |connection: &mut Connection| {
        let shown = connection.ok("admin", doc! { "getParameter": 1, "queryMemory": 1 });
        shown.get_i64("queryMemory").unwrap() >> 20
    };
    let cache = |connection: &mut Connection, size: &str| {
        connection.ok("admin", doc! { "setParameter": 1, "betreeCache": size });
        limit(connection)
    };
    assert_eq!(cache(&mut connection, "64MB"), 16);
    assert_eq!(cache(&mut connection, "256MB"), 64);
    connection.ok("admin", doc! { "setParameter": 1, "queryMemory": "200MiB" });
    assert_eq!(cache(&mut connection, "512MB"), 200);
    assert_eq!(cache(&mut connection, "128MB"), 128);
    // What was asked for comes back with the cache.
    assert_eq!(cache(&mut connection, "512MB"), 200);
    assert_eq!(cache(&mut connection, "128MB"), 128);
    let refused = connection.ask("admin", doc! { "setParameter": 1, "queryMemory": "129MiB" });
    assert!(
        refused.get_str("errmsg").unwrap().ends_with("from 1MB to 128MB, the size of the cache"),
        "{refused}"
    );
}

#[test]
fn of_several_settings_none_is_changed_where_one_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, mut connection) = filled(folder.path(), 1);
    let period = |connection: &mut Connection| {
        let shown = connection.ok("admin", doc! { "getParameter": 1, "betreeCheckpointPeriod": 1 });
        shown.get_i64("betreeCheckpointPeriod").unwrap()
    };
    let before = period(&mut connection);
    for second in [doc! { "betreeCache": "1KB" }, doc! { "betreeColour": 1 }, doc! { "betreeCache": true }] {
        let mut both = doc! { "setParameter": 1, "betreeCheckpointPeriod": before + 1 };
        both.extend(second);
        let refused = connection.ask("admin", both);
        assert_eq!(refused.get_f64("ok").unwrap(), 0.0, "{refused}");
        assert_eq!(period(&mut connection), before);
    }
    let both = doc! { "setParameter": 1, "betreeCheckpointPeriod": before + 1, "betreeCache": "32MB" };
    let cache = connection.ok("admin", doc! { "getParameter": 1, "betreeCache": 1 });
    // As in MongoDB: that of the first by its name.
    let was = connection.ok("admin", both).get_i64("was").unwrap();
    assert_eq!(was, cache.get_i64("betreeCache").unwrap());
    assert_eq!(period(&mut connection), before + 1);
}

#[test]
fn cursors_that_wait_count_against_the_limit_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, mut connection) = filled(folder.path(), 500);
    let lent = |connection: &mut Connection| figure(connection, "cache", "lent_bytes");
    assert_eq!(lent(&mut connection), 0);
    let mut open = || {
        let reply = connection.ok("test", doc! { "find": "c", "batchSize": 2 });
        document(&reply, &["cursor"]).get_i64("id").unwrap()
    };
    let cursors: Vec<i64> = (0..20).map(|_| open()).collect();
    let waiting = lent(&mut connection);
    assert!((20 * (16 << 10)..20 * (64 << 10)).contains(&waiting), "{waiting} bytes of 20 cursors");
    connection.ok("test", doc! { "getMore": cursors[0], "collection": "c" });
    connection.ok("test", doc! { "killCursors": "c", "cursors": cursors[1..].to_vec() });
    assert_eq!(lent(&mut connection), 0, "one is exhausted, the others are gone");
}

#[test]
fn a_checkpoint_can_be_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, mut connection) = filled(folder.path(), 500);
    let figures = |connection: &mut Connection| {
        let written = ["leaves", "runs"].map(|cause| figure(connection, cause, "bytes_written"));
        (figure(connection, "checkpoints", "count"), written.iter().sum::<i64>())
    };
    let (count, written) = figures(&mut connection);
    assert_eq!(connection.ok("admin", doc! { "fsync": 1 }).get_i32("numFiles").unwrap(), 1);
    let after = figures(&mut connection);
    assert!(after.0 > count && after.1 > written, "{count} {written} {after:?}: what waited is written");
    connection.ok("test", doc! { "insert": "c", "documents": [{ "_id": -1 }] });
    connection.ok("admin", doc! { "checkpoint": 1 });
    assert!(figures(&mut connection).0 > after.0);
    let locked = connection.ok("admin", doc! { "fsync": 1, "lock": true });
    assert_eq!(locked.get_i64("lockCount").unwrap(), 1, "{locked}");
    let refused =
        connection.ask("test", doc! { "insert": "c", "documents": [{ "_id": -2 }], "maxTimeMS": 20 });
    assert_eq!(refused.get_i32("code").unwrap(), 50, "{refused}");
    connection.ok("admin", doc! { "fsyncUnlock": 1 });
    connection.ok("test", doc! { "insert": "c", "documents": [{ "_id": -2 }] });
}

#[test]
fn figures_waits_and_checks_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut connection) = filled(folder.path(), 500);
    connection
        .ok("test", doc! { "insert": "c", "documents": [{ "_id": -1 }], "writeConcern": { "j": true } });
    let status = connection.ok("admin", doc! { "serverStatus": 1 });
    assert!(document(&status, &["betree", "commits"]).get_i64("count").unwrap() > 0);
    assert!(document(&status, &["betree", "leaves"]).get_i64("bytes_written").is_ok());
    for wait in status.get_array("waits").unwrap() {
        let wait = wait.as_document().unwrap();
        assert!(
            wait.get_str("name").is_ok()
                && wait.get_i64("count").unwrap() > 0
                && wait.get_i64("micros").is_ok()
        );
    }
    let sizes = connection.ok("test", doc! { "collStats": "c" });
    assert!(document(&sizes, &["betree"]).get_i64("entries").unwrap() >= 400, "{sizes}");
    assert!(document(&sizes, &["indexDetails", "n"]).get_i64("buffered_bytes").is_ok(), "{sizes}");
    let validated = connection.ok("test", doc! { "validate": "c", "full": true });
    assert!(
        validated.get_bool("valid").unwrap() && validated.get_i32("nrecords").unwrap() == 501,
        "{validated}"
    );
    let uri = format!("mongodb://{}", server.address);
    let (status, said, complaints) = run(&["verify", "--uri", &uri, "--bytes-per-second", "100000000"]);
    assert!(status.success() && said.contains("sound"), "{said}{complaints}");
}

#[test]
fn the_layout_of_collections_and_indexes_is_given_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, mut connection) = filled(folder.path(), 500);
    let engine = |settings: Document| doc! { "storageEngine": { "betree": settings } };
    let with = |mut command: Document, more: Document| {
        command.extend(more);
        command
    };
    connection.ok("test", with(doc! { "create": "d" }, engine(doc! { "compression": "lz4", "fanout": 16 })));
    for settings in [
        doc! { "compression": "gzip" },
        doc! { "colour": "blue" },
        doc! { "fanout": 1 },
        doc! { "fanout": [] },
    ] {
        let refused = connection.ask("test", with(doc! { "create": "e" }, engine(settings.clone())));
        assert_eq!(refused.get_f64("ok").unwrap(), 0.0, "{refused}");
        let refused = connection.ask("test", with(doc! { "collMod": "d" }, engine(settings)));
        assert_eq!(refused.get_f64("ok").unwrap(), 0.0, "{refused}");
    }
    connection
        .ok("test", with(doc! { "collMod": "d" }, engine(doc! { "pageSize": "8KB", "fanout": Bson::Null })));
    let listed = connection.ok("test", doc! { "listCollections": 1, "filter": { "name": "d" } });
    let first =
        document(&listed, &["cursor"]).get_array("firstBatch").unwrap()[0].as_document().unwrap().clone();
    let kept = document(&first, &["options", "storageEngine", "betree"]);
    assert_eq!(kept, &doc! { "compression": "lz4", "pageSize": "8KB" });
    let change = doc! { "name": "n", "storageEngine": { "betree": { "compression": "none" } } };
    connection.ok("test", doc! { "collMod": "c", "index": change });
    let listed = connection.ok("test", doc! { "listIndexes": "c" });
    let index =
        document(&listed, &["cursor"]).get_array("firstBatch").unwrap()[1].as_document().unwrap().clone();
    assert_eq!(
        document(&index, &["storageEngine", "betree"]),
        &doc! { "pageSize": "4KB", "compression": "none" }
    );
    let of_id = doc! { "name": "_id_", "storageEngine": { "betree": { "compression": "none" } } };
    assert_eq!(connection.ask("test", doc! { "collMod": "c", "index": of_id }).get_f64("ok").unwrap(), 0.0);
    assert_eq!(connection.ok("test", doc! { "count": "c" }).get_i32("n").unwrap(), 500);
}
