//! OP_QUERY and OP_REPLY: the older pair of messages, which clients use only for their first hello.

use crate::header::{HEADER_BYTES, Header, OpCode, patch_length};
use crate::reader::Reader;
use crate::{Documents, WireError};

/// A decoded OP_QUERY.
#[derive(Clone, Copy, Debug)]
pub struct OpQuery<'a> {
    /// The namespace that is queried: `admin.$cmd` for a command.
    pub namespace: &'a str,
    /// The query, which for a command is the command: one document's bytes.
    pub query: &'a [u8],
}

impl<'a> OpQuery<'a> {
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<OpQuery<'a>, WireError> {
        let mut reader = Reader::new(bytes);
        reader.i32("OP_QUERY flags")?;
        let namespace = reader.cstring("OP_QUERY namespace")?;
        reader.i32("OP_QUERY numberToSkip")?;
        reader.i32("OP_QUERY numberToReturn")?;
        let query = reader.document()?;
        // A projection may follow; a command has none, and a query is refused whatever its projection.
        if !reader.is_empty() {
            reader.document()?;
        }
        if reader.is_empty() {
            Ok(OpQuery { namespace, query })
        } else {
            Err(WireError::TrailingBytes { count: reader.remaining() })
        }
    }
}

/// Appends an OP_QUERY that carries a command.
///
/// # Errors
/// [`WireError::TooLargeToSend`]; the buffer then ends as before.
pub fn append_op_query(
    out: &mut Vec<u8>,
    request_id: i32,
    namespace: &str,
    query: &[u8],
) -> Result<(), WireError> {
    let start = out.len();
    Header::append_open(out, request_id, 0, OpCode::Query);
    out.extend_from_slice(&0_u32.to_le_bytes());
    out.extend_from_slice(namespace.as_bytes());
    out.push(0);
    out.extend_from_slice(&0_i32.to_le_bytes());
    out.extend_from_slice(&(-1_i32).to_le_bytes());
    out.extend_from_slice(query);
    patch_length(out, start).inspect_err(|_| out.truncate(start))
}

/// A decoded OP_REPLY.
#[derive(Clone, Copy, Debug)]
pub struct OpReply<'a> {
    /// The flag bits: 2 is "query failure".
    pub flags: u32,
    /// The cursor; 0 for a command.
    pub cursor_id: i64,
    documents: &'a [u8],
}

impl<'a> OpReply<'a> {
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<OpReply<'a>, WireError> {
        let mut reader = Reader::new(bytes);
        let flags = reader.u32("OP_REPLY flags")?;
        let cursor_id = reader.i64("OP_REPLY cursor")?;
        reader.i32("OP_REPLY startingFrom")?;
        reader.i32("OP_REPLY numberReturned")?;
        let documents = reader.take_rest();
        Documents::check(documents)?;
        Ok(OpReply { flags, cursor_id, documents })
    }

    /// The documents; a command's reply has one.
    pub fn documents(&self) -> Documents<'a> {
        Documents::of_checked(self.documents)
    }
}

/// An OP_REPLY with one document, written in place as [`OpMsgWriter`](crate::OpMsgWriter) does.
#[derive(Debug)]
#[must_use = "a message that is begun must be finished or abandoned"]
pub struct OpReplyWriter {
    start: usize,
}

impl OpReplyWriter {
    /// Appends header and fields. The one document that follows is the caller's to append.
    pub fn begin(out: &mut Vec<u8>, request_id: i32, response_to: i32) -> OpReplyWriter {
        /// "AwaitCapable": every server since 1.6 sets it.
        const FLAGS: u32 = 8;
        let start = out.len();
        Header::append_open(out, request_id, response_to, OpCode::Reply);
        out.extend_from_slice(&FLAGS.to_le_bytes());
        out.extend_from_slice(&0_i64.to_le_bytes());
        out.extend_from_slice(&0_i32.to_le_bytes());
        out.extend_from_slice(&1_i32.to_le_bytes());
        OpReplyWriter { start }
    }

    /// Patches the length.
    ///
    /// # Errors
    /// [`WireError::TooLargeToSend`]; the buffer then ends before this message again.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), WireError> {
        assert!(
            out.len() > self.start + HEADER_BYTES,
            "the buffer must still hold the message that was begun in it"
        );
        patch_length(out, self.start).inspect_err(|_| out.truncate(self.start))
    }

    /// Takes back everything since `begin`.
    pub fn abandon(self, out: &mut Vec<u8>) {
        out.truncate(self.start);
    }
}
