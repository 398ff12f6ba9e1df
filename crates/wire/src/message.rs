//! A decoded frame, whose parts borrow from its bytes.

use crate::header::HEADER_BYTES;
use crate::reader::Reader;
use crate::{
    Compressor, Header, LegacyRequest, OpCode, OpDelete, OpGetMore, OpInsert, OpKillCursors, OpMsg, OpQuery,
    OpReply, OpUpdate, WireError,
};

/// A decoded frame; borrows from it.
#[derive(Debug)]
pub struct Message<'a> {
    /// Its header.
    pub header: Header,
    /// The content behind the header.
    pub body: Body<'a>,
}

/// The content behind the header.
#[derive(Debug)]
pub enum Body<'a> {
    /// OP_MSG.
    Msg(OpMsg<'a>),
    /// A request of an older operation.
    Legacy(LegacyRequest<'a>),
    /// OP_REPLY.
    Reply(OpReply<'a>),
    /// OP_COMPRESSED, still compressed.
    Compressed(Compressed<'a>),
}

/// The envelope of a compressed message.
#[derive(Clone, Copy, Debug)]
pub struct Compressed<'a> {
    /// The op code of the content once it is decompressed.
    pub original_op_code: OpCode,
    /// The length that it claims to have then, without a header.
    pub uncompressed_bytes: i32,
    /// The compressor.
    pub compressor: Compressor,
    /// The compressed bytes.
    pub content: &'a [u8],
}

impl<'a> Message<'a> {
    /// Decodes one frame. Checks the checksum if there is one.
    ///
    /// # Errors
    /// Any [`WireError`] but those of compression and of writing; `recovery` says whether the connection can
    /// go on. A frame that is shorter or longer than its header says is [`WireError::Truncated`] or
    /// [`WireError::TrailingBytes`].
    pub fn decode(frame: &'a [u8]) -> Result<Message<'a>, WireError> {
        let header = Header::decode(frame)?;
        let mut reader = Reader::new(frame);
        reader.take("message", header.length)?;
        if !reader.is_empty() {
            return Err(WireError::TrailingBytes { count: reader.remaining() });
        }
        let content = &frame[HEADER_BYTES..];
        let body = match OpCode::from_code(header.op_code)? {
            OpCode::Msg => Body::Msg(OpMsg::decode(frame)?),
            OpCode::Reply => Body::Reply(OpReply::decode(content)?),
            OpCode::Compressed => Body::Compressed(Compressed::decode(content)?),
            OpCode::Query => Body::Legacy(LegacyRequest::Query(OpQuery::decode(content)?)),
            OpCode::GetMore => Body::Legacy(LegacyRequest::GetMore(OpGetMore::decode(content)?)),
            OpCode::KillCursors => Body::Legacy(LegacyRequest::KillCursors(OpKillCursors::decode(content)?)),
            OpCode::Insert => Body::Legacy(LegacyRequest::Insert(OpInsert::decode(content)?)),
            OpCode::Update => Body::Legacy(LegacyRequest::Update(OpUpdate::decode(content)?)),
            OpCode::Delete => Body::Legacy(LegacyRequest::Delete(OpDelete::decode(content)?)),
        };
        Ok(Message { header, body })
    }
}

impl<'a> Compressed<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Compressed<'a>, WireError> {
        let mut reader = Reader::new(bytes);
        let original_op_code = OpCode::from_code(reader.i32("original op code")?)?;
        if original_op_code == OpCode::Compressed {
            return Err(WireError::NestedCompression);
        }
        let uncompressed_bytes = reader.i32("uncompressed length")?;
        let compressor = Compressor::from_id(reader.byte("compressor")?)?;
        Ok(Compressed { original_op_code, uncompressed_bytes, compressor, content: reader.take_rest() })
    }
}
