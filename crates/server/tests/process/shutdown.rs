//! Signals.

use bson::doc;
use rustix::process::Signal;

use crate::connection::Connection;
use crate::running_server::Server;

#[test]
fn sigterm_and_sigint_end_the_server_cleanly_with_clients_connected() {
    for signal in [Signal::TERM, Signal::INT] {
        let server = Server::in_memory();
        let mut connection = Connection::tcp(&server);
        connection.ping();
        server.signal(signal);
        let (status, log) = server.ended();
        assert!(status.success(), "{log}");
        assert!(log.contains("stopping") && log.contains("stopped"), "{log}");
        assert_eq!(connection.reply(), None);
    }
}

#[test]
fn a_reload_of_a_server_without_certificates_does_not_end_it() {
    let server = Server::in_memory();
    let mut connection = Connection::tcp(&server);
    connection.ping();
    server.signal(Signal::HUP);
    std::thread::sleep(std::time::Duration::from_millis(200));
    connection.ping();
    server.signal(Signal::TERM);
    let (status, log) = server.ended();
    assert!(status.success() && log.contains("SIGHUP: there are no certificates"), "{log}");
}

#[test]
fn signals_by_which_other_servers_rotate_their_logs_do_not_end_it() {
    let server = Server::in_memory();
    for signal in [Signal::USR1, Signal::USR2] {
        server.signal(signal);
        std::thread::sleep(std::time::Duration::from_millis(200));
        Connection::tcp(&server).ping();
    }
    server.signal(Signal::TERM);
    let (status, log) = server.ended();
    assert!(status.success() && log.contains("SIGUSR1: nothing to do") && log.contains("SIGUSR2"), "{log}");
}

#[test]
fn inserted_documents_are_there_after_sigterm_and_after_sigkill() {
    let folder = tempfile::tempdir().unwrap();
    for (round, signal) in [(1, Signal::TERM), (2, Signal::KILL), (3, Signal::KILL)] {
        let server = Server::over(folder.path());
        let mut connection = Connection::tcp(&server);
        assert_eq!(connection.ask("test", doc! { "count": "rounds" }).get_i32("n").unwrap(), round - 1);
        let insert = doc! { "insert": "rounds", "documents": [{ "_id": round }], "writeConcern": { "w": 1, "j": true } };
        assert_eq!(connection.ask("test", insert).get_i32("n").unwrap(), 1);
        server.signal(signal);
        server.ended();
    }
}

#[test]
fn a_reader_of_the_log_that_has_stalled_stops_neither_requests_nor_the_end() {
    let server = Server::start(&["--engine", "memory", "--slow-ms", "-1", "--listen", "127.0.0.1:0"]);
    let mut connection = Connection::tcp(&server);
    let text = "x".repeat(1_000);
    // A line for each: more than the pipe has room for.
    for _ in 0..400 {
        connection.ok("shop", doc! { "insert": "c", "documents": [{ "text": &text }], "comment": &text });
    }
    server.signal(Signal::TERM);
    // The log is not read until the server has ended.
    let (status, log) = server.ended();
    let last = log.lines().last().unwrap_or_default();
    assert!(status.success() && log.contains("slow query") && !log.contains("stopped"), "{last}");
}
