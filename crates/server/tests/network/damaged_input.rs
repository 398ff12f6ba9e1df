//! Bytes that are no request: an error reply or a closed connection, and no other connection notices.

use pando_wire::MsgFlags;

use crate::client::{Client, message};
use crate::scripted_handler::{LIMITS, document, start};

fn code_of(document: &[u8]) -> i32 {
    let at = document.windows(6).position(|window| window == b"\x10code\0").expect("an error has a code");
    i32::from_le_bytes(document[at + 6..at + 10].try_into().unwrap())
}

/// `message` with its length made right for other content behind flags and header.
fn with_sections(sections: &[u8]) -> Vec<u8> {
    let mut frame = message(3, MsgFlags::NONE, &document("echo", 1));
    frame.truncate(20);
    frame.extend_from_slice(sections);
    let length = i32::try_from(frame.len()).unwrap();
    frame[0..4].copy_from_slice(&length.to_le_bytes());
    frame
}

#[test]
fn malformed_sections_are_answered_with_the_codes_of_mongodb_and_the_connection_goes_on() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    let body = document("echo", 1);
    let two_bodies = [b"\0".as_slice(), &body, b"\0", &body].concat();
    let long_document = [b"\0\xff\0\0\0".as_slice(), &body[4..]].concat();
    let long_sequence = [b"\0".as_slice(), &body, b"\x01\xff\xff\0\0documents\0"].concat();
    let cases = [(b"".to_vec(), 40_587), (two_bodies, 40_430), (long_document, 22), (long_sequence, 15)];
    for (sections, code) in cases {
        client.send(&with_sections(&sections));
        let reply = client.reply();
        assert_eq!((reply.response_to, code_of(&reply.document)), (3, code));
    }
    assert_eq!(client.ask(4, &body), body);
}

#[test]
fn a_connection_that_loses_the_rhythm_is_closed_and_no_other_notices() {
    let server = start(LIMITS);
    let mut bystander = Client::connect(server.address);
    let whole = message(1, MsgFlags::NONE, &document("echo", 1));
    let with_field = |at: usize, value: i32| {
        let mut frame = whole.clone();
        frame[at..at + 4].copy_from_slice(&value.to_le_bytes());
        frame
    };
    let mut wrong_checksum = message(1, MsgFlags::CHECKSUM_PRESENT, &document("echo", 1));
    *wrong_checksum.last_mut().unwrap() ^= 1;
    let cases = [
        ("length under a header", with_field(0, 15)),
        ("negative length", with_field(0, -1)),
        ("length over the limit", with_field(0, 48_000_001)),
        ("old op code", with_field(12, 2002)),
        ("unknown op code", with_field(12, 77)),
        ("unknown required flag", with_field(16, 4)),
        ("wrong checksum", wrong_checksum),
        ("a web browser", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
    ];
    for (what, bytes) in cases {
        let mut client = Client::connect(server.address);
        client.ask(1, &document("echo", 1));
        client.send(&bytes);
        assert_eq!(client.frame(), None, "{what}");
        bystander.ask(2, &document("echo", 2));
    }
}

#[test]
fn a_request_that_comes_byte_by_byte_is_answered() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    client.stream.set_nodelay(true).unwrap();
    for byte in message(1, MsgFlags::NONE, &document("echo", 1)) {
        client.send(&[byte]);
    }
    assert_eq!(client.reply().response_to, 1);
}

#[test]
fn a_truncated_request_waits_for_its_rest_and_ends_with_its_connection() {
    let server = start(LIMITS);
    let whole = message(1, MsgFlags::NONE, &document("echo", 1));
    for cut in [1, 4, 16, 20, whole.len() - 1] {
        let mut client = Client::connect(server.address);
        client.send(&whole[..cut]);
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        client.expect_closed();
    }
}

#[test]
fn replies_before_a_damaged_frame_are_sent_before_the_connection_closes() {
    let server = start(LIMITS);
    let mut client = Client::connect(server.address);
    let mut bytes = message(1, MsgFlags::NONE, &document("echo", 1));
    bytes.extend_from_slice(&[0xFF; 64]);
    client.send(&bytes);
    assert_eq!(client.reply().response_to, 1);
    client.expect_closed();
}

#[test]
fn a_panic_costs_its_own_connection_and_no_other() {
    let server = start(LIMITS);
    let mut bystanders: Vec<Client> = (0..4).map(|_| Client::connect(server.address)).collect();
    for _ in 0..3 {
        let mut client = Client::connect(server.address);
        let reply = client.ask(1, &document("panic", 1));
        assert_eq!(code_of(&reply), 1);
        client.expect_closed();
        for bystander in &mut bystanders {
            bystander.ask(2, &document("echo", 2));
        }
    }
}

#[test]
fn random_bytes_end_at_most_their_own_connection() {
    let server = start(LIMITS);
    let mut bystander = Client::connect(server.address);
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..300 {
        let mut bytes = message(1, MsgFlags::NONE, &document("echo", 1));
        if round % 3 == 0 {
            bytes = (0..random() % 200).map(|_| random().to_le_bytes()[0]).collect();
        } else {
            // A place behind the name of the command, so that the scripted handler can still read its part.
            for at in [0_usize, 16, 20, 21] {
                if random() % 4 == 0 {
                    bytes[at] = random().to_le_bytes()[0];
                }
            }
        }
        let mut client = Client::connect(server.address);
        client.send(&bytes);
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        while client.frame().is_some() {}
        if round % 50 == 0 {
            bystander.ask(2, &document("echo", 2));
        }
    }
    bystander.ask(2, &document("echo", 2));
}
