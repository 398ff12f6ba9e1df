//! Bytes that are no message: decoding answers with a value or an error, and accepted values are sound.
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use std::io::Read;

use pando_wire::{Body, Codec, FrameBuffer, LegacyRequest, Message, MsgFlags, OpMsgWriter, frame_length};
use proptest::prelude::*;

fn document() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..60).prop_map(|content| {
        let length = i32::try_from(5 + content.len()).unwrap();
        [length.to_le_bytes().as_slice(), &content, b"\0"].concat()
    })
}

fn whole_message() -> impl Strategy<Value = Vec<u8>> {
    let sequences = prop::collection::vec(prop::collection::vec(document(), 0..5), 0..3);
    (any::<i32>(), document(), sequences, prop::bool::ANY).prop_map(|(id, body, sequences, checksummed)| {
        let flags = if checksummed { MsgFlags::CHECKSUM_PRESENT } else { MsgFlags::NONE };
        let mut out = Vec::new();
        let writer = OpMsgWriter::begin(&mut out, id, 0, flags);
        writer.body(&mut out, &body);
        for (name, documents) in ["documents", "nsInfo"].iter().zip(&sequences) {
            writer.sequence(&mut out, name, documents.iter().map(Vec::as_slice));
        }
        writer.finish(&mut out).unwrap();
        out
    })
}

/// Decodes and looks at everything that was decoded.
fn visit(frame: &[u8]) {
    let Ok(message) = Message::decode(frame) else { return };
    assert_eq!(message.header.length, frame.len());
    match message.body {
        Body::Msg(msg) => {
            assert!(msg.body().len() >= 5);
            for sequence in msg.sequences() {
                let bytes: usize = sequence.documents().map(<[u8]>::len).sum();
                assert_eq!(bytes, sequence.bytes().len());
            }
        }
        Body::Legacy(request) => visit_legacy(&request),
        Body::Reply(reply) => assert!(reply.documents().all(|document| document.len() >= 5)),
        Body::Compressed(compressed) => {
            let mut out = Vec::new();
            if Codec::new().decompress(&message.header, &compressed, &mut out).is_ok() {
                assert!(out.len() <= 48_000_000);
                visit(&out);
            }
        }
    }
}

fn visit_legacy(request: &LegacyRequest<'_>) {
    let is_framed = |document: &[u8]| document.len() >= 5;
    match request {
        LegacyRequest::Query(query) => {
            assert!(is_framed(query.query) && query.projection.is_none_or(is_framed));
        }
        LegacyRequest::GetMore(_) => {}
        LegacyRequest::KillCursors(kill) => assert_eq!(kill.cursors().count(), kill.cursors().len()),
        LegacyRequest::Insert(insert) => {
            assert_eq!(insert.documents().map(<[u8]>::len).sum::<usize>(), insert.bytes().len());
        }
        LegacyRequest::Update(update) => assert!(is_framed(update.selector) && is_framed(update.update)),
        LegacyRequest::Delete(delete) => assert!(is_framed(delete.selector)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = frame_length(&bytes);
        visit(&bytes);
    }

    #[test]
    fn random_content_behind_a_right_header_never_panics(
        op_code in prop::sample::select(vec![1, 2001, 2002, 2004, 2005, 2006, 2007, 2012, 2013]),
        content in prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(5), any::<u8>()], 0..200),
    ) {
        let mut frame = Vec::new();
        for field in [i32::try_from(16 + content.len()).unwrap(), 1, 0, op_code] {
            frame.extend_from_slice(&field.to_le_bytes());
        }
        frame.extend_from_slice(&content);
        visit(&frame);
    }

    #[test]
    fn a_message_with_changed_bytes_never_panics(
        message in whole_message(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut message = message;
        for (at, byte) in changes {
            let at = at.index(message.len());
            message[at] = byte;
        }
        visit(&message);
    }

    #[test]
    fn every_prefix_of_a_message_is_refused(message in whole_message(), cut in any::<prop::sample::Index>()) {
        prop_assert!(Message::decode(&message).is_ok());
        prop_assert!(Message::decode(&message[..cut.index(message.len())]).is_err());
    }

    #[test]
    fn frames_come_out_whole_however_the_bytes_come_in(
        messages in prop::collection::vec(whole_message(), 1..6),
        step in 1_usize..100,
    ) {
        struct Trickle<'a> { left: &'a [u8], step: usize }
        impl Read for Trickle<'_> {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                let step = self.step.min(into.len());
                self.left.read(&mut into[..step])
            }
        }
        let bytes = messages.concat();
        let mut source = Trickle { left: &bytes, step };
        let mut buffer = FrameBuffer::new();
        let mut found = Vec::new();
        while buffer.fill_from(&mut source).unwrap() > 0 {
            while let Some(frame) = buffer.next_frame().unwrap() {
                found.push(frame.to_vec());
            }
        }
        prop_assert_eq!(found, messages);
    }
}
