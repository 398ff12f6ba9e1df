//! Writing an OP_MSG in place, at the end of a buffer that may hold other messages already.
//!
//! 1. [`OpMsgWriter::begin`] appends header and flags.
//! 2. [`OpMsgWriter::begin_body`], then the caller appends exactly one document; or [`OpMsgWriter::body`]
//!    does both.
//! 3. [`OpMsgWriter::sequence`] as often as needed.
//! 4. [`OpMsgWriter::finish`] adds the checksum and patches the length; or [`OpMsgWriter::abandon`] takes all
//!    of it back.
//!
//! The writer does not borrow the buffer, so that the caller can append to it between the steps. Every step
//! takes the same buffer, and asserts that the message still begins where it began.

use crate::header::{HEADER_BYTES, Header, OpCode, patch_length};
use crate::{MsgFlags, WireError};

/// A message that is being written: where it began, and its flags.
#[derive(Debug)]
#[must_use = "a message that is begun must be finished or abandoned"]
pub struct OpMsgWriter {
    start: usize,
    flags: MsgFlags,
}

impl OpMsgWriter {
    /// Appends header and flags.
    pub fn begin(out: &mut Vec<u8>, request_id: i32, response_to: i32, flags: MsgFlags) -> OpMsgWriter {
        let start = out.len();
        Header::append_open(out, request_id, response_to, OpCode::Msg);
        out.extend_from_slice(&flags.bits().to_le_bytes());
        OpMsgWriter { start, flags }
    }

    /// Appends the kind byte of the body. The document that follows is the caller's to append.
    pub fn begin_body(&self, out: &mut Vec<u8>) {
        out.push(0);
    }

    /// Appends a body.
    pub fn body(&self, out: &mut Vec<u8>, document: &[u8]) {
        self.begin_body(out);
        out.extend_from_slice(document);
    }

    /// Appends a document sequence. An identifier with a zero byte would end there for the reader.
    pub fn sequence<'d>(
        &self,
        out: &mut Vec<u8>,
        identifier: &str,
        documents: impl IntoIterator<Item = &'d [u8]>,
    ) {
        out.push(1);
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(identifier.as_bytes());
        out.push(0);
        for document in documents {
            out.extend_from_slice(document);
        }
        // A sequence that is longer than its field can say is longer than a message may be: `finish` refuses
        // it.
        let length = u32::try_from(out.len() - length_at).unwrap_or(u32::MAX);
        out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Announces that a further message follows to which the receiver says nothing.
    pub fn announce_more(&mut self, out: &mut [u8]) {
        self.flags = self.flags.with(MsgFlags::MORE_TO_COME);
        let at = self.start + HEADER_BYTES;
        out[at..at + 4].copy_from_slice(&self.flags.bits().to_le_bytes());
    }

    /// Whether it announces a further message.
    pub fn announces_more(&self) -> bool {
        self.flags.contains(MsgFlags::MORE_TO_COME)
    }

    /// Where the message begins in its buffer.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Adds the checksum if the flags announce one, and patches the length.
    ///
    /// # Errors
    /// [`WireError::TooLargeToSend`]; the buffer then ends before this message again.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), WireError> {
        assert!(
            out.len() > self.start + HEADER_BYTES,
            "the buffer must still hold the message that was begun in it"
        );
        let checksummed = self.flags.contains(MsgFlags::CHECKSUM_PRESENT);
        if checksummed {
            out.extend_from_slice(&[0; 4]);
        }
        if let Err(error) = patch_length(out, self.start) {
            self.abandon(out);
            return Err(error);
        }
        if checksummed {
            let checksum_at = out.len() - 4;
            let checksum = crc32c::crc32c(&out[self.start..checksum_at]);
            out[checksum_at..].copy_from_slice(&checksum.to_le_bytes());
        }
        Ok(())
    }

    /// Takes back everything since `begin`.
    pub fn abandon(self, out: &mut Vec<u8>) {
        out.truncate(self.start);
    }
}
