//! Idle connections: their memory and threads.

use crate::connection::Connection;
use crate::running_server::Server;

#[test]
fn two_thousand_idle_connections_cost_at_most_64_mb_and_no_thread() {
    // Both ends are this process's or its child's: the limit on open files has to allow for the 2,000 here.
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let server = Server::in_memory();
    Connection::tcp(&server).ping();
    let (before, threads) = (server.resident_bytes(), server.threads());
    let mut idle: Vec<Connection> = (0..2000).map(|_| Connection::tcp(&server)).collect();
    for connection in &mut idle {
        connection.ping();
    }
    let grown = server.resident_bytes().saturating_sub(before);
    println!("2,000 idle connections cost {} KB", grown / 1024);
    assert!(grown <= 64 << 20, "{grown} bytes");
    assert_eq!(server.threads(), threads);
    for connection in &mut idle {
        connection.ping();
    }
}
