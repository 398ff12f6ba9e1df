//! Stopping: requests under way are answered, and all other connections close.

use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pando_wire::MsgFlags;

use crate::client::{Client, message};
use crate::scripted_handler::{LIMITS, document, start, wait_until};

#[test]
fn requests_under_way_are_answered_and_idle_connections_close() {
    let server = start(LIMITS);
    let mut idle = Client::connect(server.address);
    idle.ask(1, &document("echo", 1));
    let mut busy: Vec<Client> = ["block", "later", "again", "return"]
        .into_iter()
        .map(|name| {
            let mut client = Client::connect(server.address);
            client.send(&message(7, MsgFlags::NONE, &document(name, 300)));
            client
        })
        .collect();
    wait_until("all are under way", || server.handler.handled.load(Ordering::SeqCst) == 5);
    let begun = Instant::now();
    server.network.stop(Duration::from_secs(5), || {});
    assert!(begun.elapsed() < Duration::from_secs(2), "stopping took {:?}", begun.elapsed());
    idle.expect_closed();
    for client in &mut busy {
        assert_eq!(client.reply().response_to, 7);
        client.expect_closed();
    }
    assert_eq!(server.handler.sessions.load(Ordering::SeqCst), 0);
    assert!(TcpStream::connect(server.address).is_err(), "the listener is closed");
}

#[test]
fn stopping_does_not_wait_longer_than_it_may() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    client.send(&message(1, MsgFlags::NONE, &document("block", 2_000)));
    wait_until("it is under way", || server.handler.handled.load(Ordering::SeqCst) == 1);
    let begun = Instant::now();
    server.network.stop(Duration::from_millis(200), || {});
    assert!(begun.elapsed() < Duration::from_secs(1), "stopping took {:?}", begun.elapsed());
}
