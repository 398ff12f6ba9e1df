//! The responder of one thread: a frame comes in, the handler is asked, a reply is appended to an output
//! buffer.
//!
//! 1. Decode the frame. Decompress it first if it is compressed.
//! 2. Begin the reply in the output buffer, in the form of the request: OP_MSG or OP_REPLY, with or without
//!    checksum.
//! 3. The handler appends its document, or for an older operation its documents. A panic in it is caught
//!    here.
//! 4. Finish the reply, and compress it if the request was compressed. Where no reply is due, take it back.
//! 5. Where the client allows a stream of replies and the handler has a further one, the reply says so, and
//!    the caller has the same frame answered again.
//!
//! I/O threads and threads of the blocking pool run the same code. Each has a [`Responder`] of its own with
//! the working memory of the compressors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pando_commands::{BlockingMode, Handled, LegacyProtocol, MessageTraffic, Priority, ReplyWait};
use pando_environment::MissedRead;
use pando_wire::{
    Body, Codec, Compressor, Header, LegacyRequest, Message, MsgFlags, OpCode, OpMsg, OpMsgWriter,
    OpReplyWriter, Recovery, ReplyFields, WireError, may_be_compressed,
};
use tracing::{error, warn};

use super::connection::UNTRUSTED_MESSAGE_BYTES_MAX;
use super::error_document::{Refusal, command_name};
use super::handler::{Handler, LegacyAnswer, WireRequest};
use super::refusal_log::RefusalLog;
use super::stream::Peer;
use crate::error_text::{error_text, panic_text};

/// The commands that drivers of today send by OP_QUERY, and that MongoDB still answers.
const FIRST_COMMANDS: [&str; 5] = ["hello", "isMaster", "ismaster", "buildInfo", "buildinfo"];

/// Larger buffers go back to the allocator after use.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// The parties of one exchange: the handler with its session, the peer, and the output for the reply.
pub(crate) struct Exchange<'a, H: Handler> {
    pub(crate) handler: &'a H,
    pub(crate) session: &'a mut H::Session,
    pub(crate) peer: &'a Peer,
    pub(crate) blocking: BlockingMode,
    pub(crate) out: &'a mut Vec<u8>,
}

/// The response to a frame.
pub(crate) enum Response {
    /// The reply, if one is due, stands at the end of the output.
    Done(Sequel),
    /// The request has changed nothing and appended nothing. Handle it again on a thread of this priority
    /// that may wait, or after this read.
    WouldBlock(Option<Arc<dyn MissedRead>>, Priority),
    /// The request has changed nothing and appended nothing. Handle it again after the wait.
    Again(Box<dyn ReplyWait>),
    /// The reply has to wait.
    Later(LateReply, Box<dyn ReplyWait>),
    /// The connection gets the bytes that stand in the output, and is closed.
    Close,
}

/// The rest of an exchange after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequel {
    /// The exchange is over.
    None,
    /// The reply has announced a further one. The frame is handled again, as if its client had sent it as a
    /// response to this reply.
    FurtherReply { request_id: i32 },
}

impl Sequel {
    /// The frame to handle next.
    pub(crate) fn next_frame(self, mut frame: Vec<u8>) -> Option<Vec<u8>> {
        let Sequel::FurtherReply { request_id } = self else { return None };
        MsgFlags::renumber(&mut frame, request_id);
        Some(frame)
    }
}

/// A reply that is ready and must not go out yet: its whole frame, or no bytes if the client wants none.
#[derive(Debug)]
pub(crate) struct LateReply {
    pub(crate) frame: Vec<u8>,
    pub(crate) sequel: Sequel,
}

/// A frame that is not compressed any more, and the part of it that could be decoded.
struct Decoded<'f> {
    frame: &'f [u8],
    header: Header,
    body: Result<Body<'f>, WireError>,
    /// The compressor of the frame that this one came in.
    compressor: Option<Compressor>,
}

/// The command of a request.
#[derive(Clone, Copy)]
struct Asked<'r> {
    /// That of the operation, where it is no command.
    name: &'r str,
    /// Its document.
    command: Option<&'r [u8]>,
}

impl<'r> Asked<'r> {
    fn command(document: &'r [u8]) -> Asked<'r> {
        Asked { name: command_name(document), command: Some(document) }
    }
}

/// The form that the reply to a request has.
#[derive(Clone, Copy, Debug)]
struct ReplyForm {
    response_to: i32,
    kind: ReplyKind,
    compressor: Option<Compressor>,
    replies: Replies,
}

/// The number of replies that a client takes for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replies {
    One,
    Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyKind {
    /// OP_MSG with these flags.
    Message(MsgFlags),
    /// OP_REPLY to a command.
    LegacyCommand,
    /// OP_REPLY to a query or to OP_GET_MORE. A flag tells of a failure.
    LegacyQuery,
    /// The client wants no reply.
    Silent,
}

impl ReplyForm {
    /// The form of an uncompressed reply with nothing behind it.
    fn of_one(response_to: i32, kind: ReplyKind) -> ReplyForm {
        ReplyForm { response_to, kind, compressor: None, replies: Replies::One }
    }
}

/// A reply that is being written.
enum Open {
    Message(OpMsgWriter),
    Legacy(OpReplyWriter),
}

impl Open {
    /// The same reply, in which the client is told of a further one. Older replies cannot say so.
    fn announcing_more(self, out: &mut [u8]) -> Open {
        match self {
            Open::Message(mut writer) => {
                writer.announce_more(out);
                Open::Message(writer)
            }
            Open::Legacy(writer) => Open::Legacy(writer),
        }
    }
}

/// Answers frames; keeps the working memory of one thread.
#[derive(Default)]
pub(crate) struct Responder {
    codec: Codec,
    decompressed: Vec<u8>,
    last_request_id: i32,
    /// The bytes of the message under way.
    traffic: MessageTraffic,
    /// The log lines of its thread about clients that are refused.
    pub(crate) refusals: RefusalLog,
}

impl Responder {
    /// Answers one whole frame, and has the handler count it.
    pub(crate) fn respond<H: Handler>(&mut self, exchange: &mut Exchange<'_, H>, frame: &[u8]) -> Response {
        let length = frame.len();
        self.traffic =
            MessageTraffic { bytes_in: length, physical_bytes_in: length, ..MessageTraffic::default() };
        let start = exchange.out.len();
        let response = self.respond_uncounted(exchange, frame);
        let sent = match &response {
            Response::WouldBlock(..) | Response::Again(_) => return response,
            Response::Done(_) | Response::Close => exchange.out.len() - start,
            Response::Later(reply, _) => reply.frame.len(),
        };
        self.traffic.physical_bytes_out = sent;
        if self.traffic.bytes_out == 0 {
            self.traffic.bytes_out = sent;
        }
        exchange.handler.exchanged(exchange.session, self.traffic);
        response
    }

    fn respond_uncounted<H: Handler>(&mut self, exchange: &mut Exchange<'_, H>, frame: &[u8]) -> Response {
        let (header, body) = match Message::decode(frame) {
            Ok(Message { header, body: Body::Compressed(compressed) }) => {
                let claimed = usize::try_from(compressed.uncompressed_bytes).unwrap_or(0);
                if claimed > UNTRUSTED_MESSAGE_BYTES_MAX && !exchange.handler.is_trusted(exchange.session) {
                    self.refusals.warn(format_args!(
                        "closing connection {}: a message of {claimed} bytes under its compression, and a client that is not logged in \
                         may send {UNTRUSTED_MESSAGE_BYTES_MAX}; look at its client",
                        exchange.peer
                    ));
                    return Response::Close;
                }
                let mut decompressed = std::mem::take(&mut self.decompressed);
                let response = match self.codec.decompress(&header, &compressed, &mut decompressed) {
                    Ok(()) => {
                        self.traffic.bytes_in = decompressed.len();
                        let body = Message::decode(&decompressed).map(|message| message.body);
                        let compressor = Some(compressed.compressor);
                        self.answer(exchange, Decoded { frame: &decompressed, header, body, compressor })
                    }
                    Err(error) => self.refuse(exchange, frame, header.request_id, &error),
                };
                if decompressed.capacity() <= BUFFER_KEPT_BYTES {
                    self.decompressed = decompressed;
                }
                return response;
            }
            Ok(Message { header, body }) => (header, Ok(body)),
            Err(error) => match Header::decode(frame) {
                Ok(header) => (header, Err(error)),
                Err(_) => return self.refuse(exchange, frame, 0, &error),
            },
        };
        self.answer(exchange, Decoded { frame, header, body, compressor: None })
    }

    fn answer<H: Handler>(&mut self, exchange: &mut Exchange<'_, H>, decoded: Decoded<'_>) -> Response {
        let response_to = decoded.header.request_id;
        match decoded.body {
            Ok(Body::Msg(message)) => {
                let may_compress = may_be_compressed(command_name(message.body()));
                let compressor = decoded.compressor.filter(|_| may_compress);
                let streams = message.flags().contains(MsgFlags::EXHAUST_ALLOWED);
                let replies = if streams { Replies::Stream } else { Replies::One };
                let form = ReplyForm { response_to, kind: reply_kind(message.flags()), compressor, replies };
                let request = request_of(&message);
                self.ask(exchange, form, Asked::command(request.body), |exchange| {
                    let Exchange { handler, session, blocking, out, .. } = exchange;
                    let handled = handler.handle(session, &request, *blocking, out);
                    LegacyAnswer { handled, fields: ReplyFields::ONE_DOCUMENT }
                })
            }
            Ok(Body::Legacy(request)) => {
                let form = ReplyForm::of_one(response_to, legacy_kind(&request));
                self.answer_legacy(exchange, form, &request)
            }
            Ok(Body::Reply(_) | Body::Compressed(_)) => {
                let (peer, code) = (exchange.peer, decoded.header.op_code);
                self.refusals.warn(format_args!(
                    "closing connection {peer}: its message is no request (op code {code}); look at its client"
                ));
                Response::Close
            }
            Err(error) => self.refuse(exchange, decoded.frame, response_to, &error),
        }
    }

    /// Answers a request of an older operation. Where those are refused, the first commands of today's
    /// drivers are handled all the same.
    fn answer_legacy<H: Handler>(
        &mut self,
        exchange: &mut Exchange<'_, H>,
        form: ReplyForm,
        request: &LegacyRequest<'_>,
    ) -> Response {
        let asked = match request {
            LegacyRequest::Query(query) if form.kind == ReplyKind::LegacyCommand => {
                Asked::command(query.query)
            }
            _ => Asked { name: operation_name(request), command: None },
        };
        let name = asked.name;
        if exchange.handler.legacy_protocol() == LegacyProtocol::Refused {
            match form.kind {
                ReplyKind::LegacyCommand if FIRST_COMMANDS.contains(&name) => {}
                ReplyKind::LegacyCommand => {
                    let sequel = self.reply_with(form, &Refusal::LegacyCommand(name), exchange.out);
                    return Response::Done(sequel);
                }
                ReplyKind::LegacyQuery => {
                    let sequel = self.reply_with(form, &Refusal::LegacyOperation(name), exchange.out);
                    return Response::Done(sequel);
                }
                // The client would take a connection that stays open for a success.
                ReplyKind::Message(_) | ReplyKind::Silent => {
                    self.refusals.warn(format_args!(
                        "closing connection {}: its client uses {name}; upgrade the client's driver, or set \
                         --legacy-protocol on",
                        exchange.peer
                    ));
                    return Response::Close;
                }
            }
        }
        self.ask(exchange, form, asked, |exchange| {
            let Exchange { handler, session, blocking, out, .. } = exchange;
            handler.handle_legacy(session, request, *blocking, out)
        })
    }

    /// Asks the handler and finishes the reply that it appended.
    fn ask<H: Handler>(
        &mut self,
        exchange: &mut Exchange<'_, H>,
        form: ReplyForm,
        asked: Asked<'_>,
        handle: impl FnOnce(&mut Exchange<'_, H>) -> LegacyAnswer,
    ) -> Response {
        let start = exchange.out.len();
        let open = self.begin(form, exchange.out);
        let answer = catch_unwind(AssertUnwindSafe(|| handle(exchange)));
        let further = form.replies == Replies::Stream
            && matches!(&answer, Ok(answer) if !matches!(answer.handled, Handled::WouldBlock(_)))
            && exchange.handler.has_further_replies(exchange.session);
        let Exchange { handler, peer, blocking, out, .. } = exchange;
        match answer {
            Ok(LegacyAnswer { handled: Handled::Reply, fields }) => {
                let open = if further { open.announcing_more(out) } else { open };
                Response::Done(self.finish(form, open, &fields, out))
            }
            Ok(LegacyAnswer { handled: Handled::WouldBlock(missed), .. }) => {
                assert!(
                    *blocking == BlockingMode::CachedOnly,
                    "a handler that may block must not say that it would"
                );
                out.truncate(start);
                let priority = asked.command.map_or(Priority::Normal, |command| handler.priority(command));
                Response::WouldBlock(missed, priority)
            }
            Ok(LegacyAnswer { handled: Handled::Again(wait), .. }) => {
                out.truncate(start);
                Response::Again(wait)
            }
            Ok(LegacyAnswer { handled: Handled::ReplyLater(wait), fields }) => {
                let open = if further { open.announcing_more(out) } else { open };
                let sequel = self.finish(form, open, &fields, out);
                Response::Later(LateReply { frame: out.split_off(start), sequel }, wait)
            }
            Err(panic) => {
                let (name, text) = (asked.name, panic_text(panic.as_ref()));
                error!(
                    "closing connection {peer}: its command '{name}' panicked ({text}); report this defect with the \
                     log line of the panic"
                );
                out.truncate(start);
                let _over = self.reply_with(form, &Refusal::Panicked, out);
                Response::Close
            }
        }
    }

    fn begin(&mut self, form: ReplyForm, out: &mut Vec<u8>) -> Open {
        self.last_request_id = self.last_request_id.wrapping_add(1);
        match form.kind {
            ReplyKind::LegacyCommand | ReplyKind::LegacyQuery => {
                Open::Legacy(OpReplyWriter::begin(out, self.last_request_id, form.response_to))
            }
            ReplyKind::Message(flags) => self.begin_message(form, flags, out),
            // Written all the same, so that a handler has one way to answer, and taken back at the end.
            ReplyKind::Silent => self.begin_message(form, MsgFlags::NONE, out),
        }
    }

    fn begin_message(&self, form: ReplyForm, flags: MsgFlags, out: &mut Vec<u8>) -> Open {
        let writer = OpMsgWriter::begin(out, self.last_request_id, form.response_to, flags);
        writer.begin_body(out);
        Open::Message(writer)
    }

    fn finish(&mut self, form: ReplyForm, open: Open, fields: &ReplyFields, out: &mut Vec<u8>) -> Sequel {
        let (finished, start, sequel) = match open {
            Open::Message(writer) if form.kind == ReplyKind::Silent => {
                writer.abandon(out);
                return Sequel::None;
            }
            Open::Message(writer) => {
                let sequel = match writer.announces_more() {
                    true => Sequel::FurtherReply { request_id: self.last_request_id },
                    false => Sequel::None,
                };
                let start = writer.start();
                (writer.finish(out), start, sequel)
            }
            Open::Legacy(writer) => {
                let start = writer.start();
                (writer.finish(out, fields), start, Sequel::None)
            }
        };
        if finished.is_err() {
            return self.reply_with(form, &Refusal::ReplyTooLarge, out);
        }
        self.traffic.bytes_out = out.len() - start;
        if let Some(compressor) = form.compressor
            && let Err(error) = self.codec.compress(out, start, compressor)
        {
            // The message stands there uncompressed, which every client takes.
            warn!("sending a reply uncompressed: {}; report this defect", error_text(&error));
        }
        sequel
    }

    /// Answers a malformed frame where that is possible. The log has a line either way, unless it has many.
    fn refuse<H: Handler>(
        &mut self,
        exchange: &mut Exchange<'_, H>,
        frame: &[u8],
        response_to: i32,
        error: &WireError,
    ) -> Response {
        let (peer, text) = (exchange.peer, error_text(error));
        match error.recovery() {
            Recovery::Close => {
                self.refusals.warn(format_args!("closing connection {peer}: malformed message ({text})"));
                Response::Close
            }
            Recovery::Answer => {
                let op_code =
                    Header::decode(frame).ok().and_then(|header| OpCode::from_code(header.op_code).ok());
                let kind = match op_code {
                    Some(OpCode::Query) => ReplyKind::LegacyCommand,
                    Some(OpCode::GetMore) => ReplyKind::LegacyQuery,
                    Some(OpCode::Insert | OpCode::Update | OpCode::Delete | OpCode::KillCursors) => {
                        // There is no reply by which the client would hear of it.
                        self.refusals
                            .warn(format_args!("closing connection {peer}: malformed message ({text})"));
                        return Response::Close;
                    }
                    _ => reply_kind(MsgFlags::peek(frame)),
                };
                self.refusals.warn(format_args!(
                    "refused a malformed message of connection {peer} ({text}); look at its client"
                ));
                let form = ReplyForm::of_one(response_to, kind);
                Response::Done(self.reply_with(form, &Refusal::Malformed(error), exchange.out))
            }
        }
    }

    fn reply_with(&mut self, form: ReplyForm, refusal: &Refusal<'_>, out: &mut Vec<u8>) -> Sequel {
        let open = self.begin(form, out);
        let fields = match form.kind {
            ReplyKind::LegacyQuery => {
                refusal.append_query_failure(out);
                ReplyFields::FAILURE
            }
            _ => {
                refusal.append(out);
                ReplyFields::ONE_DOCUMENT
            }
        };
        self.finish(form, open, &fields, out)
    }
}

/// The form of the reply to an older operation.
fn legacy_kind(request: &LegacyRequest<'_>) -> ReplyKind {
    match request {
        LegacyRequest::Query(query) if query.namespace.ends_with(".$cmd") => ReplyKind::LegacyCommand,
        LegacyRequest::Query(_) | LegacyRequest::GetMore(_) => ReplyKind::LegacyQuery,
        LegacyRequest::KillCursors(_)
        | LegacyRequest::Insert(_)
        | LegacyRequest::Update(_)
        | LegacyRequest::Delete(_) => ReplyKind::Silent,
    }
}

/// The name of an older operation, for people.
fn operation_name(request: &LegacyRequest<'_>) -> &'static str {
    match request {
        LegacyRequest::Query(_) => "OP_QUERY",
        LegacyRequest::GetMore(_) => "OP_GET_MORE",
        LegacyRequest::KillCursors(_) => "OP_KILL_CURSORS",
        LegacyRequest::Insert(_) => "OP_INSERT",
        LegacyRequest::Update(_) => "OP_UPDATE",
        LegacyRequest::Delete(_) => "OP_DELETE",
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

fn request_of<'a>(message: &'a OpMsg<'a>) -> WireRequest<'a> {
    WireRequest { body: message.body(), sequences: message.sequences() }
}
