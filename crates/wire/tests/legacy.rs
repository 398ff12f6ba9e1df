//! The older operations byte by byte, as clients from before OP_MSG send them.
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use pando_wire::{Body, LegacyRequest, Message, OpReplyWriter, QueryFlags, Recovery, ReplyFields, WireError};

/// `{a: true}`.
const SMALL: &[u8] = b"\x09\0\0\0\x08a\0\x01\0";
const EMPTY: &[u8] = b"\x05\0\0\0\0";

fn frame(op_code: i32, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = i32::try_from(16 + content.len()).unwrap();
    let mut frame = Vec::new();
    for field in [length, 7, 0, op_code] {
        frame.extend_from_slice(&field.to_le_bytes());
    }
    frame.extend_from_slice(&content);
    frame
}

/// One sound message of each operation, by its op code.
fn sound() -> Vec<(i32, Vec<u8>)> {
    vec![
        (2001, [b"\0\0\0\0d.c\0\x03\0\0\0", EMPTY, SMALL].concat()),
        (2002, [b"\x01\0\0\0d.c\0".as_slice(), SMALL, EMPTY].concat()),
        (2004, [b"\x12\0\0\0d.c\0\x05\0\0\0\xfe\xff\xff\xff", SMALL, EMPTY].concat()),
        (2005, b"\0\0\0\0d.c\0\x02\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01".to_vec()),
        (2006, [b"\0\0\0\0d.c\0\x01\0\0\0".as_slice(), SMALL].concat()),
        (2007, b"\0\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff".to_vec()),
    ]
}

fn request(frame: &[u8]) -> LegacyRequest<'_> {
    match Message::decode(frame).unwrap().body {
        Body::Legacy(request) => request,
        other => panic!("no older operation: {other:?}"),
    }
}

#[test]
fn each_operation_is_read_as_it_was_sent() {
    let frames: Vec<Vec<u8>> = sound().iter().map(|(op_code, content)| frame(*op_code, &[content])).collect();
    let LegacyRequest::Update(update) = request(&frames[0]) else { panic!("an OP_UPDATE") };
    assert_eq!((update.namespace, update.is_upsert, update.is_multi), ("d.c", true, true));
    assert_eq!((update.selector, update.update), (EMPTY, SMALL));
    let LegacyRequest::Insert(insert) = request(&frames[1]) else { panic!("an OP_INSERT") };
    assert_eq!((insert.namespace, insert.continues_on_error), ("d.c", true));
    assert_eq!(insert.documents().collect::<Vec<_>>(), [SMALL, EMPTY]);
    assert_eq!(insert.bytes(), [SMALL, EMPTY].concat());
    let LegacyRequest::Query(query) = request(&frames[2]) else { panic!("an OP_QUERY") };
    assert_eq!((query.namespace, query.skip, query.number_to_return), ("d.c", 5, -2));
    assert_eq!((query.query, query.projection), (SMALL, Some(EMPTY)));
    assert!(
        query.flags.contains(QueryFlags::TAILABLE) && query.flags.contains(QueryFlags::NO_CURSOR_TIMEOUT)
    );
    assert!(!query.flags.contains(QueryFlags::EXHAUST));
    let LegacyRequest::GetMore(more) = request(&frames[3]) else { panic!("an OP_GET_MORE") };
    assert_eq!((more.namespace, more.number_to_return, more.cursor_id), ("d.c", 2, 0x0102_0304_0506_0708));
    let LegacyRequest::Delete(delete) = request(&frames[4]) else { panic!("an OP_DELETE") };
    assert_eq!((delete.namespace, delete.is_single, delete.selector), ("d.c", true, SMALL));
    let LegacyRequest::KillCursors(kill) = request(&frames[5]) else { panic!("an OP_KILL_CURSORS") };
    assert_eq!(kill.cursors().collect::<Vec<_>>(), [1, -1]);
}

#[test]
fn a_message_that_is_cut_or_has_a_rest_is_refused() {
    for (op_code, content) in sound() {
        for cut in 0..content.len() {
            let short = frame(op_code, &[&content[..cut]]);
            let Err(error) = Message::decode(&short) else {
                // A query may end before its projection, an insert behind any of its documents.
                assert!(matches!(op_code, 2002 | 2004), "op code {op_code} cut to {cut} bytes");
                continue;
            };
            assert_eq!(error.recovery(), Recovery::Answer, "op code {op_code} cut to {cut} bytes");
        }
        assert!(Message::decode(&frame(op_code, &[&content, b"\x01"])).is_err(), "a rest behind {op_code}");
    }
}

#[test]
fn names_that_are_not_utf8_are_refused() {
    for (op_code, mut content) in sound() {
        if let Some(at) = content.windows(4).position(|window| window == b"d.c\0") {
            content[at] = 0xFF;
            let bad = frame(op_code, &[&content]);
            assert!(matches!(Message::decode(&bad), Err(WireError::NotUtf8 { .. })), "{op_code}");
        }
    }
}

#[test]
fn a_wrong_count_of_cursors_is_refused() {
    for count in [-1_i32, 0, 1, 3, i32::MAX, i32::MIN] {
        let bad = frame(2007, &[b"\0\0\0\0", &count.to_le_bytes(), &[0; 16]]);
        assert!(Message::decode(&bad).is_err(), "{count}");
    }
}

#[test]
fn a_reply_has_the_fields_that_it_is_finished_with() {
    let mut out = b"before".to_vec();
    let writer = OpReplyWriter::begin(&mut out, 4, 3);
    out.extend_from_slice(SMALL);
    out.extend_from_slice(EMPTY);
    let fields =
        ReplyFields { flags: ReplyFields::AWAIT_CAPABLE, cursor_id: -9, starting_from: 101, returned: 2 };
    writer.finish(&mut out, &fields).unwrap();
    let message = Message::decode(&out[6..]).unwrap();
    let Body::Reply(reply) = message.body else { panic!("an OP_REPLY") };
    assert_eq!((message.header.request_id, message.header.response_to), (4, 3));
    assert_eq!(reply.fields, fields);
    assert_eq!(reply.documents().collect::<Vec<_>>(), [SMALL, EMPTY]);
}

#[test]
fn a_reply_may_have_no_document() {
    let mut out = Vec::new();
    let writer = OpReplyWriter::begin(&mut out, 4, 3);
    let fields =
        ReplyFields { flags: ReplyFields::CURSOR_NOT_FOUND, cursor_id: 0, starting_from: 0, returned: 0 };
    writer.finish(&mut out, &fields).unwrap();
    assert_eq!(out.len(), 36);
    let Body::Reply(reply) = Message::decode(&out).unwrap().body else { panic!("an OP_REPLY") };
    assert_eq!((reply.fields, reply.documents().count()), (fields, 0));
}
