//! Templates: one encoding, many requests.
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use pando_wire::{Body, Message, RequestTemplate, TemplateError};

/// A document's bytes with eight marker bytes in it.
const BODY: &[u8] = b"\x11\0\0\0\x12k\0MARKER__\0\0";

#[test]
fn a_template_puts_id_and_value_into_each_request() {
    let template = RequestTemplate::new(BODY, b"MARKER__").unwrap();
    let mut out = Vec::new();
    template.append(&mut out, 41, &7_i64.to_le_bytes());
    template.append(&mut out, 42, &8_i64.to_le_bytes());
    for (frame, id, value) in
        [(&out[..template.request_bytes()], 41, 7_i64), (&out[template.request_bytes()..], 42, 8)]
    {
        let message = Message::decode(frame).unwrap();
        assert_eq!(message.header.request_id, id);
        let Body::Msg(msg) = message.body else { panic!("an OP_MSG") };
        assert_eq!(msg.body()[7..15], value.to_le_bytes());
    }
}

#[test]
fn a_placeholder_must_stand_exactly_once() {
    assert!(matches!(RequestTemplate::new(BODY, b"ABSENT"), Err(TemplateError::Placeholder { count: 0 })));
    assert!(matches!(RequestTemplate::new(BODY, b"\0\0"), Err(TemplateError::Placeholder { count: 3 })));
}
