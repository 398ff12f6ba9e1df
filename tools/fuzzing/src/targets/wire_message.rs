//! Frames of strangers: any bytes are framed, decoded and decompressed without a panic. A decoded message can
//! be written again and decodes to the same message.
//!
//! The bytes are tried twice: as they are, and with a length that fits, without which hardly any gets past
//! the header.

use pando_document::doc;
use pando_wire::{
    Body, Codec, Compressor, HEADER_BYTES, Header, LegacyRequest, Message, MsgFlags, OpCode, OpMsg,
    OpMsgWriter, OpQuery, append_op_query, frame_length,
};

/// Inputs that are sound: messages of every kind, compressed in every way.
pub fn examples() -> Vec<Vec<u8>> {
    let (ping, row) = (doc! { "ping": 1, "$db": "admin" }.to_raw(), doc! { "_id": 1, "a": "text" }.to_raw());
    let mut messages = Vec::new();
    for flags in [MsgFlags::EXHAUST_ALLOWED, MsgFlags::CHECKSUM_PRESENT] {
        let mut frame = Vec::new();
        let writer = OpMsgWriter::begin(&mut frame, 1, 2, flags);
        writer.body(&mut frame, ping.as_bytes());
        writer.sequence(&mut frame, "documents", [row.as_bytes(), row.as_bytes()]);
        writer.finish(&mut frame).expect("it is short");
        for compressor in Compressor::ALL {
            let mut packed = frame.clone();
            Codec::new().compress(&mut packed, 0, compressor).expect("short messages can be compressed");
            messages.push(packed);
        }
        messages.push(frame);
    }
    let mut query = Vec::new();
    append_op_query(&mut query, 1, "admin.$cmd", ping.as_bytes()).expect("it is short");
    messages.push(query);
    messages.extend(legacy_examples(row.as_bytes()));
    messages
}

/// One message of each older operation about a document.
fn legacy_examples(row: &[u8]) -> Vec<Vec<u8>> {
    let (zero, namespace, two) = ([0; 4].as_slice(), b"d.c\0".as_slice(), [2, 0, 0, 0].as_slice());
    let cursor = [1_u8; 8].as_slice();
    let contents: [(OpCode, &[&[u8]]); 6] = [
        (OpCode::Update, &[zero, namespace, two, row, row]),
        (OpCode::Insert, &[zero, namespace, row, row]),
        (OpCode::Query, &[zero, namespace, two, two, row, row]),
        (OpCode::GetMore, &[zero, namespace, two, cursor]),
        (OpCode::Delete, &[zero, namespace, two, row]),
        (OpCode::KillCursors, &[zero, two, cursor, cursor]),
    ];
    let frame_of = |(op_code, parts): &(OpCode, &[&[u8]])| {
        let content = parts.concat();
        let length = i32::try_from(HEADER_BYTES + content.len()).expect("it is short");
        let header = [length, 1, 0, op_code.code()].map(i32::to_le_bytes).concat();
        [header, content].concat()
    };
    contents.iter().map(frame_of).collect()
}

/// See the module.
pub fn run(bytes: &[u8]) {
    let mut codec = Codec::new();
    check(bytes, &mut codec);
    if bytes.len() >= HEADER_BYTES {
        let mut frame = bytes.to_vec();
        let length = u32::try_from(frame.len()).expect("the fuzzer's inputs are short");
        frame[..4].copy_from_slice(&length.to_le_bytes());
        check(&frame, &mut codec);
    }
}

fn check(frame: &[u8], codec: &mut Codec) {
    let length = frame_length(frame);
    let flags = MsgFlags::peek(frame);
    let Ok(message) = Message::decode(frame) else { return };
    assert_eq!(length.expect("a decoded frame has a length"), Some(frame.len()));
    match &message.body {
        Body::Msg(body) => {
            assert_eq!(flags, body.flags());
            check_rewritten(&message.header, body, codec);
        }
        Body::Legacy(LegacyRequest::Query(query)) => check_query(&message.header, query),
        Body::Legacy(request) => check_legacy(request),
        Body::Reply(reply) => {
            for document in reply.documents() {
                assert!(document.len() >= 5);
            }
        }
        Body::Compressed(compressed) => {
            let mut inner = Vec::new();
            if codec.decompress(&message.header, compressed, &mut inner).is_ok() {
                assert_eq!(frame_length(&inner).expect("the length was checked"), Some(inner.len()));
                check(&inner, codec);
            }
        }
    }
}

/// Writes the message with and without checksum, compressed in every way, and reads it back.
fn check_rewritten(header: &Header, body: &OpMsg<'_>, codec: &mut Codec) {
    let checksum = MsgFlags::CHECKSUM_PRESENT.bits();
    for bits in [body.flags().bits() | checksum, body.flags().bits() & !checksum] {
        let flags = MsgFlags::from_bits(bits).expect("they were known before");
        let mut frame = Vec::new();
        let writer = OpMsgWriter::begin(&mut frame, header.request_id, header.response_to, flags);
        writer.body(&mut frame, body.body());
        for sequence in body.sequences() {
            writer.sequence(&mut frame, sequence.identifier(), sequence.documents());
        }
        writer.finish(&mut frame).expect("as long as the one that came, but for a checksum");
        assert_same(&frame, body, flags);
        for compressor in Compressor::ALL {
            let mut packed = frame.clone();
            codec.compress(&mut packed, 0, compressor).expect("short messages can be compressed");
            let envelope = Message::decode(&packed).expect("an envelope was written");
            let Body::Compressed(compressed) = &envelope.body else { panic!("no envelope: {envelope:?}") };
            let mut unpacked = Vec::new();
            codec.decompress(&envelope.header, compressed, &mut unpacked).expect("it was compressed here");
            assert_eq!(unpacked, frame, "{compressor}");
        }
    }
}

fn assert_same(frame: &[u8], before: &OpMsg<'_>, flags: MsgFlags) {
    let message = Message::decode(frame).expect("what was written can be read");
    let Body::Msg(after) = &message.body else { panic!("no OP_MSG: {message:?}") };
    assert_eq!(after.flags(), flags);
    assert_eq!(after.body(), before.body());
    assert_eq!(after.sequences().len(), before.sequences().len());
    for (after, before) in after.sequences().iter().zip(before.sequences()) {
        assert_eq!(after.identifier(), before.identifier());
        assert_eq!(after.bytes(), before.bytes());
    }
}

fn check_legacy(request: &LegacyRequest<'_>) {
    let is_framed = |document: &[u8]| document.len() >= 5;
    match request {
        LegacyRequest::Insert(insert) => assert!(insert.documents().all(is_framed)),
        LegacyRequest::Update(update) => assert!(is_framed(update.selector) && is_framed(update.update)),
        LegacyRequest::Delete(delete) => assert!(is_framed(delete.selector)),
        LegacyRequest::KillCursors(kill) => assert_eq!(kill.cursors().count(), kill.cursors().len()),
        LegacyRequest::Query(_) | LegacyRequest::GetMore(_) => {}
    }
}

fn check_query(header: &Header, query: &OpQuery<'_>) {
    let mut frame = Vec::new();
    append_op_query(&mut frame, header.request_id, query.namespace, query.query)
        .expect("no longer than the one that came");
    let message = Message::decode(&frame).expect("what was written can be read");
    let Body::Legacy(LegacyRequest::Query(after)) = &message.body else { panic!("no OP_QUERY: {message:?}") };
    assert_eq!((after.namespace, after.query), (query.namespace, query.query));
}
