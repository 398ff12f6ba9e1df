//! The sockets on which a server listens.

use bson::doc;
use pando_wire::append_op_query;
use std::io::Write;

use crate::connection::{Connection, message};
use crate::running_server::Server;

#[test]
fn a_server_says_where_it_listens_and_answers_there() {
    let server = Server::in_memory();
    assert!(server.welcome.contains("Try next:"), "{}", server.welcome);
    let mut connection = Connection::tcp(&server);
    connection.ping();
    let hello = connection.ask("admin", doc! { "hello": 1 });
    assert_eq!(hello.get_i32("maxMessageSizeBytes").unwrap(), 48_000_000);
}

#[test]
fn a_legacy_hello_opens_a_connection_that_goes_on_with_messages() {
    let server = Server::in_memory();
    let mut connection = Connection::tcp(&server);
    let mut query = Vec::new();
    let hello = doc! { "isMaster": 1, "helloOk": true, "client": { "driver": { "name": "test" } } };
    append_op_query(&mut query, 9, "admin.$cmd", &hello.to_vec().unwrap()).unwrap();
    connection.socket.write_all(&query).unwrap();
    let (id, reply) = connection.reply().unwrap();
    assert_eq!(id, 9);
    assert_eq!(reply.get_f64("ok").unwrap(), 1.0);
    assert!(reply.get_bool("ismaster").unwrap());
    connection.ping();
}

#[test]
fn pipelined_commands_are_answered_in_their_order() {
    let server = Server::in_memory();
    let mut connection = Connection::tcp(&server);
    let mut pipelined = Vec::new();
    for id in 0..100 {
        pipelined.extend(message(id, "test", doc! { "insert": "numbers", "documents": [{ "_id": id }] }));
    }
    connection.socket.write_all(&pipelined).unwrap();
    for id in 0..100 {
        let (response_to, reply) = connection.reply().unwrap();
        assert_eq!((response_to, reply.get_i32("n").unwrap()), (id, 1));
    }
    assert_eq!(connection.ask("test", doc! { "count": "numbers" }).get_i32("n").unwrap(), 100);
}

#[test]
fn a_unix_socket_is_served_removed_at_the_end_and_a_stale_one_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let arguments =
        ["--engine", "memory", "--listen", "127.0.0.1:0", "--unix-socket", path.to_str().unwrap()];
    for _ in 0..2 {
        let server = Server::start(&arguments);
        Connection::unix(&path).ping();
        server.signal(rustix::process::Signal::TERM);
        server.ended();
        assert!(!path.exists());
    }
    let server = Server::start(&arguments);
    server.signal(rustix::process::Signal::KILL);
    server.ended();
    assert!(path.exists(), "nobody could remove it");
    let _server = Server::start(&arguments);
    Connection::unix(&path).ping();
    let other = crate::running_server::run(&[&["serve"], arguments.as_slice()].concat());
    assert!(
        !other.0.success() && other.2.contains("is in use") && other.2.contains("--unix-socket"),
        "{}",
        other.2
    );
    Connection::unix(&path).ping();
}

#[test]
fn ipv6_is_listened_on_where_the_machine_has_it() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    let server = Server::start(&["--engine", "memory", "--listen", "[::1]:0"]);
    Connection::tcp(&server).ping();
}

#[test]
fn a_client_that_speaks_http_or_tls_is_told_at_once_and_so_is_the_log() {
    use std::io::{Read, Write};
    let server = Server::in_memory();
    let ask = |pieces: &[&[u8]]| {
        let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
        for piece in pieces {
            stream.write_all(piece).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    };
    let answer = String::from_utf8(ask(&[b"GET /status HTTP/1.1\r\nHost: x\r\n\r\n"])).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("mongosh mongodb://"), "{answer}");
    let mut hello = vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xFC, 0x03, 0x03];
    hello.extend([0xAB; 506]);
    let alert = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28];
    assert_eq!(ask(&[&hello]), alert);
    assert_eq!(ask(&[&hello[..7], &hello[7..]]), alert, "in two pieces");
    Connection::tcp(&server).ping();
    server.signal(rustix::process::Signal::TERM);
    let (_, log) = server.ended();
    assert!(log.contains("it speaks HTTP") && log.contains("TLS handshake"), "{log}");
}
