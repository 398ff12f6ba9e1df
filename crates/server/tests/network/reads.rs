//! Requests that lack blocks of a file: the event loop has them read, and handles the request again.

use std::sync::atomic::Ordering;

use pando_environment::ReadQueue;
use pando_server::network::Limits;
use pando_wire::MsgFlags;

use crate::client::{Client, message};
use crate::scripted_handler::{LIMITS, document, start, wait_until};

/// Whether this kernel has a queue; without one the same requests are answered from the pool.
fn is_queued() -> bool {
    ReadQueue::<()>::open(1).is_ok()
}

#[test]
fn a_request_that_lacks_blocks_is_answered_once_they_were_read_and_no_thread_waits() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    for blocks in [1, 2, 4] {
        assert_eq!(client.ask(blocks, &document("lack", blocks)), document("lack", blocks));
    }
    assert_eq!(server.handler.handled.load(Ordering::SeqCst), 3);
    if is_queued() {
        assert_eq!(server.handler.retried.load(Ordering::SeqCst), 7);
        assert_eq!(server.network.blocking_threads(), 0);
    }
}

#[test]
fn a_request_that_lacks_many_blocks_one_after_the_other_goes_to_the_pool() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    for id in 0..5 {
        assert_eq!(client.ask(id, &document("lack", 6)), document("lack", 6));
        assert_eq!(client.ask(id + 100, &document("lack", 1)), document("lack", 1), "the next begins anew");
    }
    assert!(server.network.blocking_threads() >= 1);
}

#[test]
fn a_read_that_fails_is_left_to_the_pool() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    for id in 0..5 {
        assert_eq!(client.ask(id, &document("lose", 1)), document("lose", 1));
    }
    assert!(server.network.blocking_threads() >= 1);
}

#[test]
fn without_a_queue_all_that_lack_something_go_to_the_pool() {
    let server = start(Limits { queued_reads: 0, ..LIMITS });
    let mut client = Client::connect(server.address);
    assert_eq!(client.ask(1, &document("lack", 2)), document("lack", 2));
    assert_eq!(server.handler.retried.load(Ordering::SeqCst), 1);
    assert!(server.network.blocking_threads() >= 1);
}

#[test]
fn pipelined_requests_with_and_without_reads_are_answered_in_their_order() {
    let server = start(Limits { io_threads: 1, queued_reads: 3, ..LIMITS });
    let mut clients: Vec<Client> = (0..10).map(|_| Client::connect(server.address)).collect();
    let names = ["lack", "echo", "lose", "lack", "block", "later", "lack"];
    for client in &mut clients {
        let mut pipelined = Vec::new();
        for id in 0..100_i32 {
            let name = names[usize::try_from(id).unwrap() % names.len()];
            pipelined.extend(message(id, MsgFlags::NONE, &document(name, id % 3)));
        }
        client.send(&pipelined);
    }
    for client in &mut clients {
        for id in 0..100 {
            assert_eq!(client.reply().response_to, id);
        }
    }
}

#[test]
fn a_client_that_leaves_during_its_read_harms_nobody() {
    let server = start(Limits { io_threads: 1, ..LIMITS });
    for _ in 0..50 {
        let mut client = Client::connect(server.address);
        client.send(&message(1, MsgFlags::NONE, &document("lack", 3)));
        drop(client);
    }
    let mut client = Client::connect(server.address);
    assert_eq!(client.ask(7, &document("lack", 2)), document("lack", 2));
    drop(client);
    wait_until("all sessions have ended", || server.handler.sessions.load(Ordering::SeqCst) == 0);
}

#[test]
fn reads_that_end_together_while_the_thread_is_busy_are_all_noticed() {
    let server = start(Limits { io_threads: 1, queued_reads: 100, connections: 200, ..LIMITS });
    let mut clients: Vec<Client> = (0..100).map(|_| Client::connect(server.address)).collect();
    let mut busy = Client::connect(server.address);
    for round in 0..5 {
        for client in &mut clients {
            client.send(&message(round, MsgFlags::NONE, &document("lack", 1)));
        }
        // The kernel hands over a part of what has ended meanwhile, and reports nothing of the rest.
        busy.send(&message(round, MsgFlags::NONE, &document("stall", 60)));
        for client in clients.iter_mut().chain([&mut busy]) {
            assert_eq!(client.reply().response_to, round);
        }
    }
}

#[test]
fn a_panic_over_a_read_leaves_the_thread_and_its_connections_alone() {
    let server = start(Limits { io_threads: 1, ..LIMITS });
    let mut client = Client::connect(server.address);
    let mut other = Client::connect(server.address);
    for id in 0..3 {
        assert_eq!(client.ask(id, &document("burst", 1)), document("burst", 1), "the pool answers");
        assert_eq!(other.ask(id, &document("lack", 1)), document("lack", 1));
    }
}
