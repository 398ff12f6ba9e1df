//! The wire protocol: bytes to messages and back, with headers, sections, checksums and compression. Pure
//! functions, no sockets.
//!
//! # Terms
//! - *Frame*: the bytes of one message as they go over a connection, header first. Its first four bytes are
//!   its length.
//! - *Header*: 16 bytes, little-endian: length, request id, response to (the request id that is answered), op
//!   code.
//! - *OP_MSG*: the message of every modern client: flags, one *body* (section kind 0, one document), any
//!   *sequences* (section kind 1, a named run of documents), and a CRC-32C at the end if its flag says so.
//! - *Older operations*: OP_QUERY, OP_INSERT and the others of clients from before OP_MSG. Today's clients
//!   use OP_QUERY, answered by OP_REPLY, for their first hello.
//! - *OP_COMPRESSED*: an envelope around another message.
//!
//! # The life of a request
//! 1. [`frame_length`] looks at the bytes that have come so far and says how long the frame will be.
//! 2. Once they are all there, [`Message::decode`] borrows from them, without a copy.
//! 3. A [`Body::Compressed`] is unpacked by [`Codec::decompress`] into a buffer of the caller's, and decoded
//!    from there.
//! 4. The reply is built at the end of the connection's output buffer: [`OpMsgWriter`] writes the header, the
//!    caller appends its document, and [`OpMsgWriter::finish`] patches the length and adds the checksum.
//!    [`Codec::compress`] wraps it afterwards where the request was compressed.
//!
//! # Invariants
//! - No input makes a function here panic, and none makes it allocate more than [`MESSAGE_BYTES_MAX`].
//! - A message that [`Message::decode`] accepts is framed soundly. Every document lies within its section,
//!   has a plausible length and ends with its zero byte. The documents of a sequence fill it exactly.
//!
//! # Not here
//! The content of documents (elements, types, nesting), which their reader checks. The commands that exist:
//! crate `commands`.
//!
//! The facts about the protocol come from the drivers' sources and from observing servers.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod codec;
mod documents;
mod error;
mod frame_buffer;
mod header;
mod legacy;
mod message;
mod op_msg;
mod op_msg_writer;
mod reader;
mod template;

pub use codec::{Codec, Compressor, may_be_compressed};
pub use documents::Documents;
pub use error::{Recovery, WireError};
pub use frame_buffer::FrameBuffer;
pub use header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, OpCode, frame_length};
pub use legacy::{
    LegacyRequest, OpDelete, OpGetMore, OpInsert, OpKillCursors, OpQuery, OpReply, OpReplyWriter, OpUpdate,
    QueryFlags, ReplyFields, append_op_query,
};
pub use message::{Body, Compressed, Message};
pub use op_msg::{DocumentSequence, MsgFlags, OpMsg, SEQUENCES_MAX};
pub use op_msg_writer::OpMsgWriter;
pub use template::{RequestTemplate, TemplateError};
