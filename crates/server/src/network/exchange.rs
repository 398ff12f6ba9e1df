//! One exchange: a frame comes in, the handler is asked, a reply is appended to an output buffer.
//!
//! 1. Decode the frame; unpack it first if it is compressed.
//! 2. Begin the reply in the output buffer, in the form of the request: OP_MSG or OP_REPLY, with or without checksum.
//! 3. The handler appends its document. A panic in it is caught here.
//! 4. Finish the reply, and compress it if the request was compressed; or take it back where there is none to send.
//!
//! The same code runs on I/O threads and on threads of the blocking pool; each has an [`Exchange`] of its own with the
//! compressors' working memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pando_environment::MissedRead;
use pando_wire::{
    Body, Codec, Compressor, Header, Message, MsgFlags, OpMsg, OpMsgWriter, OpQuery, OpReplyWriter, Recovery,
    WireError, may_be_compressed,
};
use tracing::{error, warn};

use super::error_document::{Refusal, command_name};
use super::handler::{Attempt, Form, Handled, Handler, Request, Wait};
use super::stream::Peer;

/// Larger buffers go back to the allocator after use.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// What came of a frame.
pub(crate) enum Exchanged {
    /// The reply, if one is due, stands at the end of the output.
    Done,
    /// Nothing was changed and nothing appended: again, on a thread that may wait, or after this read was made.
    WouldBlock(Option<Arc<dyn MissedRead>>),
    /// The reply waits for something.
    Later(LateReply, Wait),
    /// What stands in the output is the last that this connection gets.
    Close,
}

/// A reply that is ready and must not go out yet: its whole frame, or nothing if the client wants none.
#[derive(Debug)]
pub(crate) struct LateReply {
    pub(crate) frame: Vec<u8>,
}

/// How the answer to a request has to look.
#[derive(Clone, Copy, Debug)]
struct ReplyForm {
    response_to: i32,
    kind: ReplyKind,
    compressor: Option<Compressor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyKind {
    /// OP_MSG with these flags.
    Message(MsgFlags),
    /// OP_REPLY.
    Legacy,
    /// The client does not want to know.
    Silent,
}

/// A reply that is being written.
enum Open {
    Message(OpMsgWriter),
    Legacy(OpReplyWriter),
}

/// The working memory of one thread.
#[derive(Default)]
pub(crate) struct Exchange {
    codec: Codec,
    unpacked: Vec<u8>,
    last_request_id: i32,
}

impl Exchange {
    pub(crate) fn new() -> Exchange {
        Exchange::default()
    }

    /// Handles one whole frame.
    pub(crate) fn run<H: Handler>(
        &mut self,
        handler: &H,
        session: &mut H::Session,
        peer: &Peer,
        frame: &[u8],
        attempt: Attempt,
        out: &mut Vec<u8>,
    ) -> Exchanged {
        let (response_to, decoded) = match Message::decode(frame) {
            Ok(Message { header, body: Body::Compressed(compressed) }) => {
                let mut unpacked = std::mem::take(&mut self.unpacked);
                let result = match self.codec.decompress(&header, &compressed, &mut unpacked) {
                    Ok(()) => {
                        let decoded = Message::decode(&unpacked).map(|message| message.body);
                        let wrap = Some(compressed.compressor);
                        self.answer(handler, session, peer, &unpacked, &header, decoded, wrap, attempt, out)
                    }
                    Err(error) => self.refuse(peer, frame, header.request_id, &error, out),
                };
                if unpacked.capacity() <= BUFFER_KEPT_BYTES {
                    self.unpacked = unpacked;
                }
                return result;
            }
            Ok(Message { header, body }) => (header, Ok(body)),
            Err(error) => match Header::decode(frame) {
                Ok(header) => (header, Err(error)),
                Err(_) => return self.refuse(peer, frame, 0, &error, out),
            },
        };
        self.answer(handler, session, peer, frame, &response_to, decoded, None, attempt, out)
    }

    /// Answers what was decoded from `frame`, which is no longer compressed.
    fn answer<H: Handler>(
        &mut self,
        handler: &H,
        session: &mut H::Session,
        peer: &Peer,
        frame: &[u8],
        header: &Header,
        decoded: Result<Body<'_>, WireError>,
        compressor: Option<Compressor>,
        attempt: Attempt,
        out: &mut Vec<u8>,
    ) -> Exchanged {
        match decoded {
            Ok(Body::Msg(message)) => {
                let compressor = compressor.filter(|_| may_be_compressed(command_name(message.body())));
                let kind = reply_kind(message.flags());
                let form = ReplyForm { response_to: header.request_id, kind, compressor };
                self.ask(handler, session, peer, form, &request_of(&message), attempt, out)
            }
            Ok(Body::Query(query)) => {
                let form =
                    ReplyForm { response_to: header.request_id, kind: ReplyKind::Legacy, compressor: None };
                self.answer_query(handler, session, peer, form, &query, attempt, out)
            }
            Ok(Body::Reply(_) | Body::Compressed(_)) => {
                warn!(%peer, op_code = header.op_code, "closing a connection: its message is not a request");
                Exchanged::Close
            }
            Err(error) => self.refuse(peer, frame, header.request_id, &error, out),
        }
    }

    /// Answers an OP_QUERY: a hello is handled, everything else refused.
    fn answer_query<H: Handler>(
        &mut self,
        handler: &H,
        session: &mut H::Session,
        peer: &Peer,
        form: ReplyForm,
        query: &OpQuery<'_>,
        attempt: Attempt,
        out: &mut Vec<u8>,
    ) -> Exchanged {
        if !query.namespace.ends_with(".$cmd") {
            return self.reply_with(form, &Refusal::LegacyQuery, out);
        }
        let name = command_name(query.query);
        if !(name.eq_ignore_ascii_case("ismaster") || name == "hello") {
            return self.reply_with(form, &Refusal::LegacyCommand(name), out);
        }
        let request = Request { body: query.query, sequences: &[], form: Form::LegacyHello };
        self.ask(handler, session, peer, form, &request, attempt, out)
    }

    /// Asks the handler and finishes what it appended.
    fn ask<H: Handler>(
        &mut self,
        handler: &H,
        session: &mut H::Session,
        peer: &Peer,
        form: ReplyForm,
        request: &Request<'_>,
        attempt: Attempt,
        out: &mut Vec<u8>,
    ) -> Exchanged {
        let start = out.len();
        let open = self.begin(form, out);
        let handled = catch_unwind(AssertUnwindSafe(|| handler.handle(session, request, attempt, out)));
        match handled {
            Ok(Handled::Reply) => self.finish(form, open, start, out),
            Ok(Handled::WouldBlock(missed)) => {
                assert!(
                    attempt == Attempt::CachedOnly,
                    "a handler that may block must not say that it would"
                );
                out.truncate(start);
                Exchanged::WouldBlock(missed)
            }
            Ok(Handled::ReplyLater(wait)) => {
                self.finish(form, open, start, out);
                Exchanged::Later(LateReply { frame: out.split_off(start) }, wait)
            }
            Err(panic) => {
                let command = command_name(request.body);
                error!(%peer, command, panic = panic_text(panic.as_ref()), "a request panicked; its connection is closed");
                out.truncate(start);
                self.reply_with(form, &Refusal::Panicked, out);
                Exchanged::Close
            }
        }
    }

    fn begin(&mut self, form: ReplyForm, out: &mut Vec<u8>) -> Open {
        self.last_request_id = self.last_request_id.wrapping_add(1);
        match form.kind {
            ReplyKind::Legacy => {
                Open::Legacy(OpReplyWriter::begin(out, self.last_request_id, form.response_to))
            }
            ReplyKind::Message(flags) => self.begin_message(form, flags, out),
            // Written nevertheless, so that a handler has one way to answer, and taken back at the end.
            ReplyKind::Silent => self.begin_message(form, MsgFlags::NONE, out),
        }
    }

    fn begin_message(&self, form: ReplyForm, flags: MsgFlags, out: &mut Vec<u8>) -> Open {
        let writer = OpMsgWriter::begin(out, self.last_request_id, form.response_to, flags);
        writer.begin_body(out);
        Open::Message(writer)
    }

    fn finish(&mut self, form: ReplyForm, open: Open, start: usize, out: &mut Vec<u8>) -> Exchanged {
        let finished = match open {
            Open::Message(writer) if form.kind == ReplyKind::Silent => {
                writer.abandon(out);
                return Exchanged::Done;
            }
            Open::Message(writer) => writer.finish(out),
            Open::Legacy(writer) => writer.finish(out),
        };
        if finished.is_err() {
            return self.reply_with(form, &Refusal::ReplyTooLarge, out);
        }
        if let Some(compressor) = form.compressor
            && let Err(error) = self.codec.compress(out, start, compressor)
        {
            // The message stands there uncompressed, which every client takes.
            warn!(%error, "a reply is sent uncompressed");
        }
        Exchanged::Done
    }

    /// Answers a frame that is no message where it can be answered; the log has a line either way.
    fn refuse(
        &mut self,
        peer: &Peer,
        frame: &[u8],
        response_to: i32,
        error: &WireError,
        out: &mut Vec<u8>,
    ) -> Exchanged {
        match error.recovery() {
            Recovery::Close => {
                warn!(%peer, error = error as &dyn std::error::Error, "closing a connection: it sent no message");
                Exchanged::Close
            }
            Recovery::Answer => {
                warn!(%peer, error = error as &dyn std::error::Error, "refused a malformed message");
                let kind = match Header::decode(frame) {
                    Ok(header) if header.op_code == pando_wire::OpCode::Query.code() => ReplyKind::Legacy,
                    _ => reply_kind(MsgFlags::peek(frame)),
                };
                let form = ReplyForm { response_to, kind, compressor: None };
                self.reply_with(form, &Refusal::Malformed(error), out)
            }
        }
    }

    fn reply_with(&mut self, form: ReplyForm, refusal: &Refusal<'_>, out: &mut Vec<u8>) -> Exchanged {
        let start = out.len();
        let open = self.begin(form, out);
        refusal.append(out);
        self.finish(form, open, start, out)
    }
}

/// A reply has a checksum if its request had one; a request with moreToCome has no reply.
fn reply_kind(flags: MsgFlags) -> ReplyKind {
    if flags.contains(MsgFlags::MORE_TO_COME) {
        ReplyKind::Silent
    } else if flags.contains(MsgFlags::CHECKSUM_PRESENT) {
        ReplyKind::Message(MsgFlags::CHECKSUM_PRESENT)
    } else {
        ReplyKind::Message(MsgFlags::NONE)
    }
}

fn request_of<'a>(message: &'a OpMsg<'a>) -> Request<'a> {
    Request { body: message.body(), sequences: message.sequences(), form: Form::Message }
}

/// What a panic says, where it says it in one of the two usual ways.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "no message",
    }
}
