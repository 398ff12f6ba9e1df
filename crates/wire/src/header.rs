//! The header of every message, 16 bytes, and the length of a frame.

use crate::WireError;
use crate::reader::Reader;

/// The length of a header.
pub const HEADER_BYTES: usize = 16;

/// The longest message, header included; servers announce it as `maxMessageSizeBytes`.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpCode {
    /// The answer to [`OpCode::Query`] and [`OpCode::GetMore`].
    Reply,
    /// An older request: a change of documents.
    Update,
    /// An older request: new documents.
    Insert,
    /// An older request: a query, or a command, today only a first hello.
    Query,
    /// An older request: the next batch of a cursor.
    GetMore,
    /// An older request: a removal of documents.
    Delete,
    /// An older request: cursors to close.
    KillCursors,
    /// Another message, compressed.
    Compressed,
    /// The message of both directions since 2017.
    Msg,
}

impl OpCode {
    /// The number in the header.
    pub const fn code(self) -> i32 {
        match self {
            OpCode::Reply => 1,
            OpCode::Update => 2001,
            OpCode::Insert => 2002,
            OpCode::Query => 2004,
            OpCode::GetMore => 2005,
            OpCode::Delete => 2006,
            OpCode::KillCursors => 2007,
            OpCode::Compressed => 2012,
            OpCode::Msg => 2013,
        }
    }

    /// The op code of a number.
    ///
    /// # Errors
    /// [`WireError::UnknownOpCode`].
    pub const fn from_code(code: i32) -> Result<OpCode, WireError> {
        match code {
            1 => Ok(OpCode::Reply),
            2001 => Ok(OpCode::Update),
            2002 => Ok(OpCode::Insert),
            2004 => Ok(OpCode::Query),
            2005 => Ok(OpCode::GetMore),
            2006 => Ok(OpCode::Delete),
            2007 => Ok(OpCode::KillCursors),
            2012 => Ok(OpCode::Compressed),
            2013 => Ok(OpCode::Msg),
            _ => Err(WireError::UnknownOpCode { code }),
        }
    }
}

/// A message's header. The op code stays a number here, so that a frame of an unknown kind still has a
/// header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The whole frame, header included, in bytes.
    pub length: usize,
    /// Chosen by the sender.
    pub request_id: i32,
    /// The request id that this message answers; 0 in a request.
    pub response_to: i32,
    /// See [`OpCode::from_code`].
    pub op_code: i32,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// [`WireError::Truncated`] for fewer than 16 bytes, [`WireError::FrameLength`] for an impossible length.
    pub fn decode(bytes: &[u8]) -> Result<Header, WireError> {
        let mut reader = Reader::new(bytes);
        let length = checked_length(reader.i32("message header")?)?;
        let request_id = reader.i32("message header")?;
        let response_to = reader.i32("message header")?;
        let op_code = reader.i32("message header")?;
        Ok(Header { length, request_id, response_to, op_code })
    }

    /// Appends a header whose length is patched later by [`patch_length`].
    pub(crate) fn append_open(out: &mut Vec<u8>, request_id: i32, response_to: i32, op_code: OpCode) {
        Header::append(out, 0, request_id, response_to, op_code.code());
    }

    /// Appends a header. Lengths over the limit are refused where messages are finished.
    pub(crate) fn append(out: &mut Vec<u8>, length: u32, request_id: i32, response_to: i32, op_code: i32) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&length.to_le_bytes());
        bytes[4..8].copy_from_slice(&request_id.to_le_bytes());
        bytes[8..12].copy_from_slice(&response_to.to_le_bytes());
        bytes[12..16].copy_from_slice(&op_code.to_le_bytes());
        out.extend_from_slice(&bytes);
    }
}

/// Writes the length of the message that began at `start` and ends with `out` into its header.
pub(crate) fn patch_length(out: &mut [u8], start: usize) -> Result<(), WireError> {
    let bytes = out.len() - start;
    match u32::try_from(bytes) {
        Ok(length) if bytes <= MESSAGE_BYTES_MAX => {
            out[start..start + 4].copy_from_slice(&length.to_le_bytes());
            Ok(())
        }
        _ => Err(WireError::TooLargeToSend { bytes }),
    }
}

/// The length of the frame whose first bytes these are; `None` while fewer than four have come.
///
/// # Errors
/// [`WireError::FrameLength`]: the beginning of the next frame is not known, so the connection has to be
/// closed.
pub fn frame_length(bytes: &[u8]) -> Result<Option<usize>, WireError> {
    match bytes.first_chunk::<4>() {
        Some(length) => checked_length(i32::from_le_bytes(*length)).map(Some),
        None => Ok(None),
    }
}

fn checked_length(length: i32) -> Result<usize, WireError> {
    match usize::try_from(length) {
        Ok(bytes) if (HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(WireError::FrameLength { length }),
    }
}
