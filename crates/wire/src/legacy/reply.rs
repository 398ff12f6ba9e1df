//! OP_REPLY: the answer to OP_QUERY and OP_GET_MORE.

use crate::header::{HEADER_BYTES, Header, OpCode, patch_length};
use crate::reader::Reader;
use crate::{Documents, WireError};

/// The fields between the header and the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyFields {
    /// The flag bits.
    pub flags: u32,
    /// The cursor; 0 where there is none, or none any more.
    pub cursor_id: i64,
    /// The documents of the cursor that came in earlier replies.
    pub starting_from: i32,
    /// The documents of this reply.
    pub returned: i32,
}

impl ReplyFields {
    /// The flag "there is no such cursor".
    pub const CURSOR_NOT_FOUND: u32 = 1;
    /// The flag "the query failed": the one document says why.
    pub const QUERY_FAILURE: u32 = 1 << 1;
    /// The flag "the server can wait for data", which every server since 1.6 sets.
    pub const AWAIT_CAPABLE: u32 = 1 << 3;
    /// The fields of one document without a cursor: the reply of a command.
    pub const ONE_DOCUMENT: ReplyFields =
        ReplyFields { flags: ReplyFields::AWAIT_CAPABLE, cursor_id: 0, starting_from: 0, returned: 1 };
    /// The fields of one document that tells a failure.
    pub const FAILURE: ReplyFields = ReplyFields {
        flags: ReplyFields::AWAIT_CAPABLE | ReplyFields::QUERY_FAILURE,
        ..ReplyFields::ONE_DOCUMENT
    };

    const BYTES: usize = 20;

    fn decode(reader: &mut Reader<'_>) -> Result<ReplyFields, WireError> {
        Ok(ReplyFields {
            flags: reader.u32("OP_REPLY flags")?,
            cursor_id: reader.i64("OP_REPLY cursor")?,
            starting_from: reader.i32("OP_REPLY startingFrom")?,
            returned: reader.i32("OP_REPLY numberReturned")?,
        })
    }

    fn bytes(&self) -> [u8; ReplyFields::BYTES] {
        let mut bytes = [0; ReplyFields::BYTES];
        bytes[0..4].copy_from_slice(&self.flags.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.cursor_id.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.starting_from.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.returned.to_le_bytes());
        bytes
    }
}

/// A decoded OP_REPLY.
#[derive(Clone, Copy, Debug)]
pub struct OpReply<'a> {
    /// The fields in front of the documents.
    pub fields: ReplyFields,
    documents: &'a [u8],
}

impl<'a> OpReply<'a> {
    /// Decodes the bytes behind the header.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<OpReply<'a>, WireError> {
        let mut reader = Reader::new(bytes);
        let fields = ReplyFields::decode(&mut reader)?;
        let documents = reader.take_rest();
        Documents::check(documents)?;
        Ok(OpReply { fields, documents })
    }

    /// The documents; a command's reply has one.
    pub fn documents(&self) -> Documents<'a> {
        Documents::of_checked(self.documents)
    }
}

/// An OP_REPLY that is written in place as [`OpMsgWriter`](crate::OpMsgWriter) does.
#[derive(Debug)]
#[must_use = "a message that is begun must be finished or abandoned"]
pub struct OpReplyWriter {
    start: usize,
}

impl OpReplyWriter {
    /// Appends a header and room for the fields. The documents that follow are the caller's to append.
    pub fn begin(out: &mut Vec<u8>, request_id: i32, response_to: i32) -> OpReplyWriter {
        let start = out.len();
        Header::append_open(out, request_id, response_to, OpCode::Reply);
        out.extend_from_slice(&[0; ReplyFields::BYTES]);
        OpReplyWriter { start }
    }

    /// Where the message begins in its buffer.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Sets the fields and patches the length.
    ///
    /// # Errors
    /// [`WireError::TooLargeToSend`]; the buffer then ends before this message again.
    pub fn finish(self, out: &mut Vec<u8>, fields: &ReplyFields) -> Result<(), WireError> {
        let fields_at = self.start + HEADER_BYTES;
        let documents_at = fields_at + ReplyFields::BYTES;
        assert!(out.len() >= documents_at, "the buffer must still hold the message that was begun in it");
        out[fields_at..documents_at].copy_from_slice(&fields.bytes());
        patch_length(out, self.start).inspect_err(|_| out.truncate(self.start))
    }

    /// Takes back everything since `begin`.
    pub fn abandon(self, out: &mut Vec<u8>) {
        out.truncate(self.start);
    }
}
