//! The server's log and what a client learns of the server: recovery, identity, logins.

use bson::doc;
use rustix::process::Signal;

use crate::connection::Connection;
use crate::running_server::Server;

#[test]
fn a_server_that_was_killed_tells_of_its_recovery_and_one_that_was_stopped_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::over(folder.path());
    Connection::tcp(&server).ask("test", doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }] });
    server.signal(Signal::KILL);
    drop(server);
    let recovered = Server::over(folder.path());
    recovered.signal(Signal::TERM);
    let (_, log) = recovered.ended();
    assert!(log.contains("recovered the store: replayed") && log.contains("opening the store in"), "{log}");
    let stopped = Server::over(folder.path());
    stopped.signal(Signal::TERM);
    let (_, log) = stopped.ended();
    assert!(!log.contains("replayed"), "{log}");
}

#[test]
fn a_server_says_who_it_is_beside_the_version_that_it_speaks() {
    let server = Server::in_memory();
    assert!(server.welcome.contains(concat!("Pando ", env!("CARGO_PKG_VERSION"))), "{}", server.welcome);
    assert!(server.welcome.contains("MongoDB 8.0.0"), "{}", server.welcome);
    let mut connection = Connection::tcp(&server);
    let build = connection.ask("admin", doc! { "buildInfo": 1 });
    assert_eq!(build.get_document("pando").unwrap().get_str("version").unwrap(), env!("CARGO_PKG_VERSION"));
    let parameter = connection.ask("admin", doc! { "getParameter": 1, "featureCompatibilityVersion": 1 });
    let compatibility = parameter.get_document("featureCompatibilityVersion").unwrap();
    let compatibility = compatibility.get_str("version").unwrap();
    assert!(build.get_str("version").unwrap().starts_with(&format!("{compatibility}.")));

    let host = connection.ask("admin", doc! { "hostInfo": 1 });
    let system = host.get_document("system").unwrap();
    let port = server.address.rsplit(':').next().unwrap();
    let name = system.get_str("hostname").unwrap();
    assert!(name.ends_with(&format!(":{port}")) && !name.starts_with("127."), "{name}");
    assert!(system.get_i64("memSizeMB").unwrap() > 0 && system.get_i32("numCores").unwrap() > 0);
    assert!(!host.get_document("os").unwrap().get_str("version").unwrap().is_empty());
}

#[test]
fn a_login_before_there_are_users_is_refused_and_logged() {
    let server = Server::in_memory();
    let mut connection = Connection::tcp(&server);
    let start = doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": "bm90aGluZw==" };
    let reply = connection.ask("admin", start);
    assert_eq!(reply.get_i32("code").unwrap(), 18);
    assert_eq!(reply.get_str("errmsg").unwrap(), "Authentication failed.");
    connection.ping();
    server.signal(Signal::TERM);
    let (_, log) = server.ended();
    assert!(log.contains("refused a login from 127.0.0.1"), "{log}");
}
