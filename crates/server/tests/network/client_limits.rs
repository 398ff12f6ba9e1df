//! Limits of clients: slow readers, clients that are not logged in, connections and requests of an address.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use pando_server::network::{AddressLimits, Limits, Patiences};
use pando_wire::MsgFlags;

use crate::client::{Client, message};
use crate::scripted_handler::{LIMITS, document, document_of_length, start, wait_until};

#[test]
fn a_client_that_reads_nothing_is_closed_after_its_time_and_a_slow_one_is_not() {
    let limits =
        Limits { patiences: Patiences { opening: None, reading: Some(Duration::from_secs(2)) }, ..LIMITS };
    let server = start(limits);
    let mut deaf = Client::connect(server.address);
    let mut slow = Client::connect(server.address);
    deaf.send(&message(1, MsgFlags::NONE, &document("large", 40_000_000)));
    slow.send(&message(1, MsgFlags::NONE, &document("large", 16_000_000)));
    // It reads 4 MB a second.
    let mut left = 16_000_000 + 16 + 5;
    let mut piece = vec![0; 400_000];
    while left > 0 {
        let read = std::io::Read::read(&mut slow.stream, &mut piece).unwrap();
        assert!(read > 0, "a slow client is not closed");
        left -= read;
        thread::sleep(Duration::from_millis(100));
    }
    wait_until("the other is closed", || server.network.connections() == 1);
    slow.ask(2, &document("echo", 1));
    server.network.stop(Duration::from_secs(1), || {});
}

#[test]
fn a_client_that_is_not_logged_in_sends_short_messages_in_time() {
    let limits =
        Limits { patiences: Patiences { opening: Some(Duration::from_secs(2)), reading: None }, ..LIMITS };
    let server = start(limits);
    server.handler.untrusted.store(true, Ordering::SeqCst);
    let mut client = Client::connect(server.address);
    client.ask(1, &document("echo", 1));
    client.ask(2, &document_of_length(16_000));
    let mut long = Client::connect(server.address);
    long.ask(1, &document("echo", 1));
    // The header alone is enough.
    let message_of_20_kb = message(2, MsgFlags::NONE, &document_of_length(20_000));
    long.send(&message_of_20_kb[..16]);
    long.expect_closed();
    let mut in_pieces = Client::connect(server.address);
    in_pieces.send(&message_of_20_kb[..2]);
    thread::sleep(Duration::from_millis(50));
    in_pieces.send(&message_of_20_kb[2..20]);
    in_pieces.expect_closed();
    // A byte a second does not keep a connection.
    let dripped = message(3, MsgFlags::NONE, &document("echo", 1));
    let begun = Instant::now();
    let ended = dripped.iter().any(|byte| {
        thread::sleep(Duration::from_millis(200));
        client.stream.write_all(&[*byte]).is_err()
    });
    assert!(ended || begun.elapsed() > Duration::from_secs(4));
    wait_until("all are closed", || server.network.connections() == 0);
    server.network.stop(Duration::from_secs(1), || {});
}

#[test]
fn a_logged_in_client_may_take_its_time() {
    let limits =
        Limits { patiences: Patiences { opening: Some(Duration::from_secs(1)), reading: None }, ..LIMITS };
    let server = start(limits);
    let mut client = Client::connect(server.address);
    client.ask(1, &document("echo", 1));
    let whole = message(2, MsgFlags::NONE, &document_of_length(100_000));
    client.send(&whole[..50_000]);
    thread::sleep(Duration::from_millis(3500));
    client.send(&whole[50_000..]);
    assert_eq!(client.reply().response_to, 2);
    server.network.stop(Duration::from_secs(1), || {});
}

#[test]
fn an_address_has_as_many_connections_as_it_may() {
    let of_address = AddressLimits { connections: Some(3), requests_per_second: None };
    let server = start(Limits { of_address, ..LIMITS });
    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(server.address)).collect();
    for client in &mut clients {
        client.ask(1, &document("echo", 1));
    }
    Client::connect(server.address).expect_closed();
    clients.pop();
    wait_until("one has left", || server.network.connections() == 2);
    Client::connect(server.address).ask(1, &document("echo", 1));
    server.network.stop(Duration::from_secs(1), || {});
}

#[test]
fn requests_beyond_the_rate_of_an_address_wait_and_are_answered() {
    let of_address = AddressLimits { connections: None, requests_per_second: Some(20) };
    let server = start(Limits { of_address, ..LIMITS });
    let mut clients = [Client::connect(server.address), Client::connect(server.address)];
    let begun = Instant::now();
    for client in &mut clients {
        let burst: Vec<u8> =
            (0..25).flat_map(|id| message(id, MsgFlags::NONE, &document("echo", 1))).collect();
        client.send(&burst);
    }
    for client in &mut clients {
        for id in 0..25 {
            assert_eq!(client.reply().response_to, id);
        }
    }
    // The first second's worth comes at once, and 30 more take a second and a half.
    let taken = begun.elapsed();
    assert!(taken > Duration::from_millis(1300), "{taken:?}");
    server.network.stop(Duration::from_secs(1), || {});
}
