//! Replies: the request that one answers, and whether the command succeeded.

use crate::error::BenchError;
use pando_document::RawDocument;
use pando_wire::{Body, Message};

/// The body of a frame that must be the reply to this request.
pub fn body_of_reply(frame: &[u8], request_id: i32) -> Result<&RawDocument, BenchError> {
    let message = Message::decode(frame)?;
    let found = message.header.response_to;
    if found != request_id {
        return Err(BenchError::ReplyTo { expected: request_id, found });
    }
    match message.body {
        Body::Msg(message) => Ok(RawDocument::from_bytes(message.body())?),
        _ => Err(BenchError::ReplyKind { op_code: message.header.op_code }),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `ok: 1`, and no write was refused.
    Succeeded,
    /// Refused, with the server's code and message.
    Refused {
        /// The code, 0 if there is none.
        code: i64,
        /// The message, empty if there is none.
        message: String,
    },
}

/// Reads `ok`, and what explains a refusal; a refused write explains itself in `writeErrors` or
/// `writeConcernError`.
pub fn outcome_of(body: &RawDocument) -> Result<Outcome, BenchError> {
    let succeeded = body.get("ok")?.is_some_and(|ok| ok.as_i64_exact() == Some(1));
    if succeeded && body.get("writeErrors")?.is_none() && body.get("writeConcernError")?.is_none() {
        return Ok(Outcome::Succeeded);
    }
    let write_errors = body.get("writeErrors")?.and_then(|errors| errors.as_array());
    let first = write_errors
        .and_then(|errors| errors.iter().next())
        .transpose()?
        .and_then(|error| error.as_document());
    let concern = body.get("writeConcernError")?.and_then(|error| error.as_document());
    let explained = first.or(concern).unwrap_or(body);
    let code = explained.get("code")?.and_then(|code| code.as_i64_exact()).unwrap_or(0);
    let message =
        explained.get("errmsg")?.and_then(|message| message.as_str()).unwrap_or_default().to_owned();
    Ok(Outcome::Refused { code, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_document::{Document, doc};

    fn outcome(document: &Document) -> Outcome {
        outcome_of(&document.to_raw()).expect("a sound document")
    }

    #[test]
    fn ok_of_any_number_type_succeeds() {
        assert_eq!(outcome(&doc! { "n": 1, "ok": 1.0 }), Outcome::Succeeded);
        assert_eq!(outcome(&doc! { "ok": 1 }), Outcome::Succeeded);
    }

    #[test]
    fn a_refusal_comes_with_its_reason() {
        let refused = Outcome::Refused { code: 26, message: "ns not found".into() };
        assert_eq!(outcome(&doc! { "ok": 0.0, "errmsg": "ns not found", "code": 26 }), refused);
        assert_eq!(outcome(&doc! {}), Outcome::Refused { code: 0, message: String::new() });
    }

    #[test]
    fn a_refused_write_is_no_success_although_ok_is_one() {
        let reply =
            doc! { "n": 0, "writeErrors": [{ "index": 0, "code": 11000, "errmsg": "duplicate" }], "ok": 1.0 };
        assert_eq!(outcome(&reply), Outcome::Refused { code: 11000, message: "duplicate".into() });
    }

    #[test]
    fn a_reply_to_another_request_is_refused() {
        let mut frame = Vec::new();
        let writer = pando_wire::OpMsgWriter::begin(&mut frame, 1, 7, pando_wire::MsgFlags::NONE);
        writer.body(&mut frame, doc! { "ok": 1.0 }.to_raw().as_bytes());
        writer.finish(&mut frame).expect("it is small");
        assert!(body_of_reply(&frame, 7).is_ok());
        assert!(matches!(body_of_reply(&frame, 8), Err(BenchError::ReplyTo { expected: 8, found: 7 })));
    }
}
