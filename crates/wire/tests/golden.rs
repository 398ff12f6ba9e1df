//! Messages byte by byte, as clients and servers send them.
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use pando_wire::{
    Body, Header, LegacyRequest, Message, MsgFlags, OpMsgWriter, OpReplyWriter, Recovery, ReplyFields,
    WireError, append_op_query, frame_length,
};

/// `{ping: 1}` with an int32.
const PING: &[u8] = b"\x0f\0\0\0\x10ping\0\x01\0\0\0\0";
/// `{a: true}`.
const SMALL: &[u8] = b"\x09\0\0\0\x08a\0\x01\0";

fn frame(op_code: i32, content: &[u8]) -> Vec<u8> {
    let length = i32::try_from(16 + content.len()).unwrap();
    let mut frame = Vec::new();
    for field in [length, 7, 0, op_code] {
        frame.extend_from_slice(&field.to_le_bytes());
    }
    frame.extend_from_slice(content);
    frame
}

fn op_msg(flags: u32, sections: &[&[u8]]) -> Vec<u8> {
    frame(2013, &[&flags.to_le_bytes(), sections.concat().as_slice()].concat())
}

fn sequence(identifier: &str, documents: &[u8]) -> Vec<u8> {
    let length = i32::try_from(4 + identifier.len() + 1 + documents.len()).unwrap();
    [b"\x01", length.to_le_bytes().as_slice(), identifier.as_bytes(), b"\0", documents].concat()
}

fn error_of(frame: &[u8]) -> WireError {
    Message::decode(frame).expect_err("this frame is wrong")
}

#[test]
fn a_ping_is_written_as_its_golden_bytes() {
    let mut out = b"before".to_vec();
    let writer = OpMsgWriter::begin(&mut out, 0x0102_0304, 0x0506_0708, MsgFlags::NONE);
    writer.body(&mut out, PING);
    writer.finish(&mut out).unwrap();
    let golden = [b"before\x24\0\0\0\x04\x03\x02\x01\x08\x07\x06\x05\xdd\x07\0\0\0\0\0\0\0", PING].concat();
    assert_eq!(out, golden);
}

#[test]
fn a_checksummed_ping_ends_with_its_crc32c() {
    let mut out = Vec::new();
    let writer = OpMsgWriter::begin(&mut out, 1, 0, MsgFlags::CHECKSUM_PRESENT);
    writer.body(&mut out, PING);
    writer.finish(&mut out).unwrap();
    // From an independent table-driven CRC-32C (polynomial 0x82f63b78) over the first 36 bytes.
    assert_eq!(out[36..], slow_crc32c(&out[..36]).to_le_bytes());
    assert!(Message::decode(&out).is_ok());
    out[30] ^= 1;
    let error = error_of(&out);
    assert!(matches!(error, WireError::ChecksumMismatch { .. }));
    assert_eq!(error.recovery(), Recovery::Close);
}

/// Bit by bit, from the definition; its check value is the published one.
fn slow_crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82F6_3B78 } else { crc >> 1 };
        }
    }
    !crc
}

#[test]
fn the_reference_crc32c_has_the_published_check_value() {
    assert_eq!(slow_crc32c(b"123456789"), 0xE306_9283);
}

#[test]
fn sequences_may_stand_before_and_after_the_body() {
    let two = [SMALL, PING].concat();
    let frame = op_msg(0, &[&sequence("ops", &two), b"\0", PING, &sequence("nsInfo", SMALL)]);
    let message = Message::decode(&frame).unwrap();
    let Body::Msg(msg) = message.body else { panic!("an OP_MSG") };
    assert_eq!(msg.body(), PING);
    let names: Vec<&str> = msg.sequences().iter().map(|sequence| sequence.identifier()).collect();
    assert_eq!(names, ["ops", "nsInfo"]);
    assert_eq!(msg.sequences()[0].documents().collect::<Vec<_>>(), [SMALL, PING]);
    assert_eq!(msg.sequences()[1].bytes(), SMALL);
    assert_eq!(message.header, Header { length: frame.len(), request_id: 7, response_to: 0, op_code: 2013 });
}

#[test]
fn an_empty_sequence_has_no_documents() {
    let frame = op_msg(0, &[b"\0", PING, &sequence("documents", b"")]);
    let Body::Msg(msg) = Message::decode(&frame).unwrap().body else { panic!("an OP_MSG") };
    assert_eq!(msg.sequences()[0].documents().count(), 0);
}

#[test]
fn a_required_flag_that_is_not_known_closes_and_an_optional_one_is_ignored() {
    for bit in 2..16 {
        let error = error_of(&op_msg(1 << bit, &[b"\0", PING]));
        assert!(matches!(error, WireError::UnknownFlags { .. }), "bit {bit}");
        assert_eq!(error.recovery(), Recovery::Close);
    }
    for bit in 16..32 {
        let frame = op_msg(1 << bit, &[b"\0", PING]);
        let Body::Msg(msg) = Message::decode(&frame).unwrap().body else { panic!("an OP_MSG") };
        assert_eq!(msg.flags().contains(MsgFlags::EXHAUST_ALLOWED), bit == 16);
        assert_eq!(msg.flags().bits(), 1 << bit);
    }
}

#[test]
fn wrong_sections_can_be_answered() {
    let long: &[u8] = b"\x00\x03\0\0\0\x08a\0\x01\0";
    let cases: [(&str, Vec<u8>); 13] = [
        ("no section", op_msg(0, &[])),
        ("only a sequence", op_msg(0, &[&sequence("documents", SMALL)])),
        ("two bodies", op_msg(0, &[b"\0", PING, b"\0", PING])),
        ("kind 2", op_msg(0, &[b"\0", PING, b"\x02", PING])),
        ("document length 3", op_msg(0, &[long])),
        ("document too long", op_msg(0, &[b"\0\x10", &PING[1..]])),
        ("document of negative length", op_msg(0, &[b"\0\xff\xff\xff\xff", &PING[4..]])),
        ("document without its zero", op_msg(0, &[b"\0", &PING[..PING.len() - 1], b"\x01"])),
        ("negative sequence", op_msg(0, &[b"\0", PING, b"\x01\xfd\xff\xff\xffdocuments\0"])),
        ("sequence too long", op_msg(0, &[b"\0", PING, b"\x01\xff\xff\0\0documents\0"])),
        ("identifier without zero", op_msg(0, &[b"\0", PING, b"\x01\x0d\0\0\0documents"])),
        (
            "a byte after the last document",
            op_msg(0, &[b"\0", PING, &sequence("documents", b"\x09\0\0\0\x08a\0\x01\0\x05")]),
        ),
        ("one name twice", op_msg(0, &[b"\0", PING, &sequence("a", SMALL), &sequence("a", SMALL)])),
    ];
    for (name, frame) in cases {
        assert_eq!(error_of(&frame).recovery(), Recovery::Answer, "{name}");
    }
}

#[test]
fn a_third_sequence_closes() {
    let frame = op_msg(0, &[b"\0", PING, &sequence("a", b""), &sequence("b", b""), &sequence("c", b"")]);
    let error = error_of(&frame);
    assert!(matches!(error, WireError::TooManySequences));
    assert_eq!(error.recovery(), Recovery::Close);
}

#[test]
fn a_sequence_name_that_is_not_utf8_is_refused() {
    let mut frame = op_msg(0, &[b"\0", PING, &sequence("ab", SMALL)]);
    let at = frame.windows(2).rposition(|two| two == b"ab").unwrap();
    frame[at] = 0xFF;
    assert!(matches!(error_of(&frame), WireError::NotUtf8 { .. }));
}

#[test]
fn a_frame_length_is_told_from_four_bytes() {
    assert_eq!(frame_length(b"\x24\0\0").unwrap(), None);
    assert_eq!(frame_length(b"\x24\0\0\0").unwrap(), Some(36));
    assert_eq!(frame_length(b"\0\x6c\xdc\x02").unwrap(), Some(48_000_000));
    for wrong in [i32::MIN, -1, 0, 15, 48_000_001, i32::MAX] {
        let error = frame_length(&wrong.to_le_bytes()).expect_err("an impossible length");
        assert!(matches!(error, WireError::FrameLength { length } if length == wrong));
        assert_eq!(error.recovery(), Recovery::Close);
    }
}

#[test]
fn op_codes_that_servers_no_longer_take_are_refused() {
    for code in [0, 2, 1000, 2000, 2003, 2008, 2010, 2011, -1] {
        let error = error_of(&frame(code, b"\0\0\0\0"));
        assert!(matches!(error, WireError::UnknownOpCode { code: found } if found == code));
    }
}

#[test]
fn a_legacy_hello_and_its_reply_read_back() {
    let mut out = Vec::new();
    append_op_query(&mut out, 3, "admin.$cmd", PING).unwrap();
    let golden =
        [b"\x36\0\0\0\x03\0\0\0\0\0\0\0\xd4\x07\0\0\0\0\0\0admin.$cmd\0\0\0\0\0\xff\xff\xff\xff", PING]
            .concat();
    assert_eq!(out, golden);
    let Body::Legacy(LegacyRequest::Query(query)) = Message::decode(&out).unwrap().body else {
        panic!("an OP_QUERY")
    };
    assert_eq!((query.namespace, query.query), ("admin.$cmd", PING));

    out.clear();
    let writer = OpReplyWriter::begin(&mut out, 4, 3);
    out.extend_from_slice(SMALL);
    writer.finish(&mut out, &ReplyFields::ONE_DOCUMENT).unwrap();
    let message = Message::decode(&out).unwrap();
    let Body::Reply(reply) = message.body else { panic!("an OP_REPLY") };
    assert_eq!(message.header.response_to, 3);
    assert_eq!((reply.fields.flags, reply.fields.cursor_id), (8, 0));
    assert_eq!(reply.documents().collect::<Vec<_>>(), [SMALL]);
}

#[test]
fn an_abandoned_message_leaves_the_buffer_as_it_was() {
    let mut out = b"earlier".to_vec();
    let writer = OpMsgWriter::begin(&mut out, 1, 0, MsgFlags::NONE);
    writer.body(&mut out, PING);
    writer.abandon(&mut out);
    assert_eq!(out, b"earlier");
}

#[test]
fn a_message_beyond_the_limit_is_not_sent() {
    let mut out = b"earlier".to_vec();
    let writer = OpMsgWriter::begin(&mut out, 1, 0, MsgFlags::NONE);
    writer.begin_body(&mut out);
    out.resize(48_000_100, 0);
    assert!(matches!(writer.finish(&mut out), Err(WireError::TooLargeToSend { bytes: 48_000_093 })));
    assert_eq!(out, b"earlier");
}
