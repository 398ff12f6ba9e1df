//! Requests and replies: every path that a reply can take, and their order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pando_server::network::Limits;
use pando_wire::{Body, Codec, Compressor, Message, MsgFlags, append_op_query};

use crate::client::{Client, message};
use crate::scripted_handler::{LIMITS, document, document_of_length, start, wait_until};

#[test]
fn a_request_is_answered_with_its_own_id() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    for id in 0..100 {
        assert_eq!(client.ask(id, &document("echo", id)), document("echo", id));
    }
    assert_eq!(server.network.blocking_threads(), 0);
}

#[test]
fn a_request_that_would_block_is_answered_from_a_thread_of_the_pool() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    for id in 0..20 {
        assert_eq!(client.ask(id, &document("block", 0)), document("block", 0));
        assert_eq!(client.ask(1000 + id, &document("echo", id)), document("echo", id));
    }
    assert_eq!(server.handler.retried.load(Ordering::SeqCst), 20);
    assert_eq!(server.handler.handled.load(Ordering::SeqCst), 40);
    assert!(server.network.blocking_threads() >= 1);
}

#[test]
fn pipelined_requests_are_answered_in_their_order_whatever_path_each_takes() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    let names =
        ["echo", "block", "later", "again", "echo", "return", "later", "block", "again", "block", "echo"];
    let mut pipelined = Vec::new();
    for id in 0..200_i32 {
        let name = names[usize::try_from(id).unwrap() % names.len()];
        pipelined.extend(message(id, MsgFlags::NONE, &document(name, id % 2)));
    }
    client.send(&pipelined);
    for id in 0..200 {
        assert_eq!(client.reply().response_to, id);
    }
}

#[test]
fn a_request_in_the_pool_delays_no_other_connection() {
    let server = start(Limits { io_threads: 1, ..LIMITS });
    let mut slow = Client::connect(server.address);
    let mut quick = Client::connect(server.address);
    slow.send(&message(1, MsgFlags::NONE, &document("block", 800)));
    let begun = Instant::now();
    for id in 0..50 {
        quick.ask(id, &document("echo", id));
    }
    assert!(begun.elapsed() < Duration::from_millis(600), "the quick client waited {:?}", begun.elapsed());
    assert_eq!(slow.reply().response_to, 1);
}

#[test]
fn a_request_in_the_pool_is_told_when_its_peer_closes_the_connection() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    client.send(&message(1, MsgFlags::NONE, &document("linger", 60_000)));
    wait_until("the request is in the pool", || server.handler.handled.load(Ordering::SeqCst) == 1);
    assert!(!server.handler.is_peer_gone.load(Ordering::SeqCst));
    drop(client);
    wait_until("the session ends", || server.handler.sessions.load(Ordering::SeqCst) == 0);
    assert!(server.handler.is_peer_gone.load(Ordering::SeqCst));
}

#[test]
fn a_panic_of_the_network_side_in_the_pool_closes_its_connection_only() {
    let server = start(LIMITS);
    let mut other = Client::connect(server.address);
    for _ in 0..3 {
        let mut client = Client::connect(server.address);
        client.send(&message(1, MsgFlags::NONE, &document("decline", 1)));
        client.expect_closed();
    }
    other.ask(1, &document("block", 0));
    other.ask(2, &document("echo", 0));
    wait_until("the sessions end", || server.handler.sessions.load(Ordering::SeqCst) == 1);
}

#[test]
fn a_reply_that_waits_is_sent_when_the_wait_is_over() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    let begun = Instant::now();
    assert_eq!(client.ask(1, &document("later", 50)), document("later", 50));
    assert!(begun.elapsed() >= Duration::from_millis(50));
    assert_eq!(
        client.ask(2, &document("later", 0)),
        document("later", 0),
        "a wait may be over before it begins"
    );
    assert_eq!(server.network.blocking_threads(), 0, "nobody slept for it");
}

#[test]
fn a_reply_that_will_never_be_true_is_not_sent_and_its_connection_closes() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    client.ask(1, &document("echo", 0));
    client.send(&message(2, MsgFlags::NONE, &document("never", 0)));
    client.expect_closed();
}

#[test]
fn a_request_with_more_to_come_gets_no_reply_on_any_path() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    for (id, name) in [(1, "echo"), (2, "block"), (3, "later"), (4, "echo")] {
        client.send(&message(id, MsgFlags::MORE_TO_COME, &document(name, 0)));
    }
    client.ask(5, &document("echo", 5));
    assert_eq!(server.handler.handled.load(Ordering::SeqCst), 5);
}

#[test]
fn a_stream_of_replies_ends_with_the_one_that_announces_no_other_on_any_path() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    for flags in [MsgFlags::NONE, MsgFlags::CHECKSUM_PRESENT] {
        for name in ["echo", "block", "later", "lack"] {
            server.handler.further_replies.store(20, Ordering::SeqCst);
            let mut both = message(7, flags.with(MsgFlags::EXHAUST_ALLOWED), &document(name, 1));
            both.extend(message(8, MsgFlags::NONE, &document("echo", 0)));
            client.send(&both);
            let mut expected = 7;
            for left in (0..=20).rev() {
                let reply = client.reply();
                assert_eq!((reply.response_to, &reply.document), (expected, &document(name, 1)), "{name}");
                assert_eq!(reply.flags.contains(MsgFlags::MORE_TO_COME), left > 0, "{name}");
                expected = reply.request_id;
            }
            // The request that was sent meanwhile has its turn after the stream.
            assert_eq!(client.reply().response_to, 8, "{name}");
        }
    }
    server.handler.further_replies.store(1, Ordering::SeqCst);
    client.send(&message(9, MsgFlags::NONE, &document("echo", 0)));
    assert_eq!(client.reply().flags, MsgFlags::NONE, "a client that does not allow a stream gets none");
}

#[test]
fn a_stream_of_replies_waits_for_its_client_and_ends_with_it() {
    const REPLY_BYTES: i32 = 1 << 20;
    let server = start(Limits { io_threads: 1, ..LIMITS });
    let (mut slow, mut other) = (Client::connect(server.address), Client::connect(server.address));
    server.handler.further_replies.store(usize::MAX, Ordering::SeqCst);
    slow.send(&message(1, MsgFlags::EXHAUST_ALLOWED, &document("large", REPLY_BYTES)));
    slow.reply();
    let handled = wait_until_constant(&server.handler.handled);
    assert!(handled < 100, "{handled} replies were made for a client that reads none");
    other.ask(1, &document("echo", 0));
    for _ in 0..50 {
        assert!(slow.reply().flags.contains(MsgFlags::MORE_TO_COME));
    }
    drop(slow);
    wait_until("the stream ends", || server.handler.sessions.load(Ordering::SeqCst) == 1);
    other.ask(2, &document("echo", 0));
}

#[test]
fn a_client_that_goes_away_within_a_stream_has_abandoned_it_on_any_path() {
    let server = start(LIMITS);
    for (streams, name) in ["echo", "block", "later", "large"].into_iter().enumerate() {
        server.handler.further_replies.store(usize::MAX, Ordering::SeqCst);
        let mut client = Client::connect(server.address);
        client.send(&message(1, MsgFlags::EXHAUST_ALLOWED, &document(name, 20)));
        client.reply();
        drop(client);
        wait_until(name, || server.handler.sessions.load(Ordering::SeqCst) == 0);
        assert_eq!(server.handler.abandoned.load(Ordering::SeqCst), streams + 1, "{name}");
    }
}

/// The count, once it has not changed for some time.
fn wait_until_constant(count: &AtomicUsize) -> usize {
    loop {
        let before = count.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(100));
        if count.load(Ordering::SeqCst) == before {
            return before;
        }
    }
}

#[test]
fn a_checksummed_request_gets_a_checksummed_reply() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    for name in ["echo", "block", "later"] {
        client.send(&message(1, MsgFlags::CHECKSUM_PRESENT, &document(name, 0)));
        // Decoding the reply checks its checksum.
        assert!(client.reply().flags.contains(MsgFlags::CHECKSUM_PRESENT), "{name}");
    }
}

#[test]
fn a_compressed_request_gets_a_reply_from_the_same_compressor() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    let mut codec = Codec::new();
    for compressor in Compressor::ALL {
        for name in ["echo", "block", "later"] {
            let mut request = message(9, MsgFlags::NONE, &document(name, 1));
            codec.compress(&mut request, 0, compressor).unwrap();
            client.send(&request);
            let frame = client.frame().unwrap();
            let reply = Message::decode(&frame).unwrap();
            let Body::Compressed(compressed) = reply.body else { panic!("a compressed reply") };
            assert_eq!(compressed.compressor, compressor);
            let mut unpacked = Vec::new();
            codec.decompress(&reply.header, &compressed, &mut unpacked).unwrap();
            let Body::Msg(msg) = Message::decode(&unpacked).unwrap().body else { panic!("an OP_MSG") };
            assert_eq!(msg.body(), document(name, 1));
        }
    }
}

#[test]
fn a_compressed_hello_is_answered_uncompressed() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    let mut request = message(9, MsgFlags::NONE, &document("hello", 1));
    Codec::new().compress(&mut request, 0, Compressor::Zstd).unwrap();
    client.send(&request);
    assert_eq!(client.reply().document, document("hello", 1));
}

#[test]
fn a_legacy_hello_is_answered_and_every_other_legacy_command_refused() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    for name in ["isMaster", "ismaster", "hello"] {
        let mut query = Vec::new();
        append_op_query(&mut query, 5, "admin.$cmd", &document(name, 1)).unwrap();
        client.send(&query);
        assert_eq!(legacy_reply(&mut client), document(name, 1));
    }
    for (namespace, code) in [("admin.$cmd", 352_i32), ("some.collection", 5_739_101)] {
        let mut query = Vec::new();
        append_op_query(&mut query, 5, namespace, &document("find", 1)).unwrap();
        client.send(&query);
        let reply = legacy_reply(&mut client);
        let field = [b"\x10code\0", code.to_le_bytes().as_slice()].concat();
        assert!(reply.windows(field.len()).any(|window| window == field), "{namespace}");
    }
    client.ask(6, &document("echo", 1));
}

fn legacy_reply(client: &mut Client) -> Vec<u8> {
    let frame = client.frame().unwrap();
    let Body::Reply(reply) = Message::decode(&frame).unwrap().body else { panic!("an OP_REPLY") };
    reply.documents().next().unwrap().to_vec()
}

#[test]
fn large_requests_and_replies_pass_whole() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    for length in [60_000, 70_000, 1_000_000, 17_000_000] {
        assert_eq!(client.ask(1, &document("large", length)).len(), usize::try_from(length).unwrap());
        let body = document_of_length(usize::try_from(length).unwrap());
        assert!(client.ask(2, &body) == body, "{length}");
    }
}

#[test]
fn a_client_that_does_not_read_stops_being_read_and_gets_everything_once_it_reads() {
    let server = start(LIMITS);
    let mut lazy = Client::connect(server.address);
    let mut requests = Vec::new();
    for id in 0..60 {
        requests.extend(message(id, MsgFlags::NONE, &document("large", 2_000_000)));
    }
    lazy.send(&requests);
    let mut other = Client::connect(server.address);
    wait_until("the first replies are made", || server.handler.handled.load(Ordering::SeqCst) > 0);
    std::thread::sleep(Duration::from_millis(200));
    let handled = server.handler.handled.load(Ordering::SeqCst);
    assert!(handled < 20, "{handled} replies of 2 MB were made for a client that reads none");
    other.ask(1, &document("echo", 1));
    for id in 0..60 {
        let reply = lazy.reply();
        assert_eq!((reply.response_to, reply.document.len()), (id, 2_000_000));
    }
}

#[test]
fn a_client_that_leaves_while_its_request_is_under_way_leaves_nothing_behind() {
    let server = start(LIMITS);
    for name in ["block", "later", "again", "return"] {
        let mut client = Client::connect(server.address);
        client.send(&message(1, MsgFlags::NONE, &document(name, 100)));
        wait_until("the session is there", || server.handler.sessions.load(Ordering::SeqCst) == 1);
        std::thread::sleep(Duration::from_millis(20));
        drop(client);
        wait_until("the session is gone", || server.handler.sessions.load(Ordering::SeqCst) == 0);
        assert_eq!(server.network.connections(), 0);
    }
}

#[test]
fn a_client_that_ends_its_side_still_gets_its_answers() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    client.send(&message(0, MsgFlags::NONE, &document("again", 50)));
    client.send(&message(1, MsgFlags::NONE, &document("block", 50)));
    client.send(&message(2, MsgFlags::NONE, &document("echo", 1)));
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    for id in 0..3 {
        assert_eq!(client.reply().response_to, id);
    }
    client.expect_closed();
}

#[test]
fn a_request_that_waits_for_another_one_holds_no_thread_and_hears_that_its_peer_is_gone() {
    let server = start(Limits { blocking_threads: 1, io_threads: 1, ..LIMITS });
    for name in ["again", "return"] {
        let waiting: Vec<Client> = (0..20)
            .map(|_| {
                let mut client = Client::connect(server.address);
                client.send(&message(1, MsgFlags::NONE, &document(name, 600)));
                client
            })
            .collect();
        let mut other = Client::connect(server.address);
        let begun = Instant::now();
        other.ask(1, &document("block", 1));
        other.ask(2, &document("echo", 1));
        assert!(begun.elapsed() < Duration::from_millis(500), "it took {:?}", begun.elapsed());
        drop(waiting);
        wait_until("it is told", || server.handler.is_peer_gone.swap(false, Ordering::SeqCst));
        wait_until("all are gone", || server.handler.sessions.load(Ordering::SeqCst) == 1);
        drop(other);
        wait_until("the other is gone", || server.handler.sessions.load(Ordering::SeqCst) == 0);
        server.handler.is_peer_gone.store(false, Ordering::SeqCst);
    }
}

#[test]
fn an_urgent_request_does_not_queue_behind_those_that_have_taken_every_thread() {
    let server = start(Limits { blocking_threads: 1, ..LIMITS });
    let waiting: Vec<Client> = (0..4)
        .map(|_| {
            let mut client = Client::connect(server.address);
            client.send(&message(1, MsgFlags::NONE, &document("linger", 600_000)));
            client
        })
        .collect();
    wait_until("they have come", || server.handler.retried.load(Ordering::SeqCst) == 4);
    // Behind the others it would not be answered within the time that the client waits.
    Client::connect(server.address).ask(1, &document("urgent", 1));
    drop(waiting);
    wait_until("all are gone", || server.handler.sessions.load(Ordering::SeqCst) == 0);
}

#[test]
fn connections_beyond_the_limit_are_closed_and_a_place_that_is_given_back_is_used_again() {
    let server = start(Limits { connections: 3, ..LIMITS });
    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(server.address)).collect();
    for client in &mut clients {
        client.ask(1, &document("echo", 1));
    }
    Client::connect(server.address).expect_closed();
    clients.pop();
    wait_until("a place is free", || server.network.connections() == 2);
    Client::connect(server.address).ask(1, &document("echo", 1));
}

#[test]
fn many_connections_that_mix_all_paths_lose_no_reply() {
    let server = start(LIMITS);
    let address = server.address;
    let clients: Vec<_> = (0..32_i32)
        .map(|number| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                for id in 0..150 {
                    let name = ["echo", "block", "later", "again", "return"]
                        [usize::try_from((id + number) % 5).unwrap()];
                    // One at a time, two at a time: the session is asked for before and after it has come
                    // back.
                    client.send(&message(2 * id, MsgFlags::NONE, &document(name, 0)));
                    if (id * 7 + number) % 2 == 0 {
                        client.send(&message(2 * id + 1, MsgFlags::NONE, &document("block", 0)));
                        assert_eq!(client.reply().response_to, 2 * id);
                        assert_eq!(client.reply().response_to, 2 * id + 1);
                    } else {
                        assert_eq!(client.reply().response_to, 2 * id);
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
}
