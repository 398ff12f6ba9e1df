//! OP_MSG: flags, one body, document sequences in any order, and a checksum where the flags say so.

use crate::header::HEADER_BYTES;
use crate::reader::Reader;
use crate::{Documents, Header, OpCode, WireError};

/// The most sequences of one message. `bulkWrite` has two (`ops`, `nsInfo`), every other command one at most,
/// and MongoDB 6.0 refuses a third.
pub const SEQUENCES_MAX: usize = 2;

/// The flag bits of an OP_MSG. Of the lower 16, one that is not known is an error; the upper 16 may be
/// ignored.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct MsgFlags(u32);

impl MsgFlags {
    /// No flag.
    pub const NONE: MsgFlags = MsgFlags(0);
    /// A CRC-32C of all bytes before it ends the message.
    pub const CHECKSUM_PRESENT: MsgFlags = MsgFlags(1);
    /// In a request: no answer is expected (`w: 0`). In a reply: another one follows.
    pub const MORE_TO_COME: MsgFlags = MsgFlags(1 << 1);
    /// The client can take several replies to this request.
    pub const EXHAUST_ALLOWED: MsgFlags = MsgFlags(1 << 16);

    const REQUIRED: u32 = 0xFFFF;
    const KNOWN_REQUIRED: u32 = MsgFlags::CHECKSUM_PRESENT.0 | MsgFlags::MORE_TO_COME.0;

    /// The flags of these bits.
    ///
    /// # Errors
    /// [`WireError::UnknownFlags`] if one of the lower 16 bits is set and not known.
    pub const fn from_bits(bits: u32) -> Result<MsgFlags, WireError> {
        if bits & MsgFlags::REQUIRED & !MsgFlags::KNOWN_REQUIRED == 0 {
            Ok(MsgFlags(bits))
        } else {
            Err(WireError::UnknownFlags { flags: bits })
        }
    }

    /// The flags of a frame that may be damaged further on, for the answer to it. No flag if they cannot be
    /// read.
    pub fn peek(frame: &[u8]) -> MsgFlags {
        let op_code = Header::decode(frame).ok().and_then(|header| OpCode::from_code(header.op_code).ok());
        match (op_code, frame.get(HEADER_BYTES..).and_then(|rest| rest.first_chunk::<4>())) {
            (Some(OpCode::Msg), Some(bits)) => {
                MsgFlags::from_bits(u32::from_le_bytes(*bits)).unwrap_or_default()
            }
            _ => MsgFlags::NONE,
        }
    }

    /// Gives a whole frame another request number, with the checksum that it then has.
    ///
    /// # Panics
    /// If the frame is shorter than a header.
    pub fn renumber(frame: &mut [u8], request_id: i32) {
        frame[4..8].copy_from_slice(&request_id.to_le_bytes());
        if MsgFlags::peek(frame).contains(MsgFlags::CHECKSUM_PRESENT) {
            let at = frame.len() - 4;
            let checksum = crc32c::crc32c(&frame[..at]);
            frame[at..].copy_from_slice(&checksum.to_le_bytes());
        }
    }

    /// The bits, unknown upper ones included.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: MsgFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of flags.
    #[must_use]
    pub const fn with(self, other: MsgFlags) -> MsgFlags {
        MsgFlags(self.0 | other.0)
    }
}

impl std::fmt::Debug for MsgFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MsgFlags({:#x})", self.0)
    }
}

/// A named run of documents beside the body: the `documents` of an insert, the `updates` of an update.
#[derive(Clone, Copy, Debug, Default)]
pub struct DocumentSequence<'a> {
    identifier: &'a str,
    documents: &'a [u8],
}

impl<'a> DocumentSequence<'a> {
    /// The name of the field of the body that it stands for.
    pub fn identifier(&self) -> &'a str {
        self.identifier
    }

    /// The documents' bytes, one after another; checked to be whole.
    pub fn bytes(&self) -> &'a [u8] {
        self.documents
    }

    /// The documents one by one.
    pub fn documents(&self) -> Documents<'a> {
        Documents::of_checked(self.documents)
    }

    fn decode(reader: &mut Reader<'a>) -> Result<DocumentSequence<'a>, WireError> {
        let length = reader.i32("document sequence")?;
        // The length counts itself.
        let content = usize::try_from(length).ok().and_then(|length| length.checked_sub(4));
        let content = content.ok_or(WireError::SequenceLength { length })?;
        let mut inner = Reader::new(reader.take("document sequence", content)?);
        let identifier = inner.cstring("document sequence identifier")?;
        let documents = inner.take_rest();
        Documents::check(documents)?;
        Ok(DocumentSequence { identifier, documents })
    }
}

/// A decoded OP_MSG.
#[derive(Clone, Copy, Debug)]
pub struct OpMsg<'a> {
    flags: MsgFlags,
    body: &'a [u8],
    sequences: [DocumentSequence<'a>; SEQUENCES_MAX],
    sequence_count: usize,
}

impl<'a> OpMsg<'a> {
    /// The flags as sent.
    pub fn flags(&self) -> MsgFlags {
        self.flags
    }

    /// The body: one document's bytes.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The sequences, in the order in which they were sent.
    pub fn sequences(&self) -> &[DocumentSequence<'a>] {
        &self.sequences[..self.sequence_count]
    }

    /// Decodes a whole frame, whose length was checked to be its header's.
    pub(crate) fn decode(frame: &'a [u8]) -> Result<OpMsg<'a>, WireError> {
        let mut reader = Reader::new(&frame[HEADER_BYTES..]);
        let flags = MsgFlags::from_bits(reader.u32("OP_MSG flags")?)?;
        let mut sections = reader;
        if flags.contains(MsgFlags::CHECKSUM_PRESENT) {
            sections = Reader::new(without_checksum(frame, reader)?);
        }
        let mut message = OpMsg {
            flags,
            body: &[],
            sequences: [DocumentSequence::default(); SEQUENCES_MAX],
            sequence_count: 0,
        };
        while !sections.is_empty() {
            message.read_section(&mut sections)?;
        }
        // A document has at least five bytes, so an empty body is none.
        if message.body.is_empty() { Err(WireError::MissingBody) } else { Ok(message) }
    }

    fn read_section(&mut self, reader: &mut Reader<'a>) -> Result<(), WireError> {
        match reader.byte("section kind")? {
            0 if !self.body.is_empty() => Err(WireError::SecondBody),
            0 => {
                self.body = reader.document()?;
                Ok(())
            }
            1 => {
                if self.sequence_count == SEQUENCES_MAX {
                    return Err(WireError::TooManySequences);
                }
                let sequence = DocumentSequence::decode(reader)?;
                if self.sequences().iter().any(|other| other.identifier == sequence.identifier) {
                    return Err(WireError::DuplicateSequence);
                }
                self.sequences[self.sequence_count] = sequence;
                self.sequence_count += 1;
                Ok(())
            }
            kind => Err(WireError::UnknownSectionKind { kind }),
        }
    }
}

/// Checks the checksum of a frame; gives back the sections, which stand between the flags and it.
fn without_checksum<'a>(frame: &'a [u8], mut after_flags: Reader<'a>) -> Result<&'a [u8], WireError> {
    let Some(sections_bytes) = after_flags.remaining().checked_sub(4) else {
        return Err(WireError::Truncated { what: "checksum", needed: 4, available: after_flags.remaining() });
    };
    let sections = after_flags.take("sections", sections_bytes)?;
    let found = after_flags.u32("checksum")?;
    let computed = crc32c::crc32c(&frame[..frame.len() - 4]);
    if found == computed { Ok(sections) } else { Err(WireError::ChecksumMismatch { found, computed }) }
}
