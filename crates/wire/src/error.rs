//! Errors of a message, and whether the connection that brought it can go on.

use crate::{Compressor, HEADER_BYTES, MESSAGE_BYTES_MAX, SEQUENCES_MAX};

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The length in the header is smaller than a header or larger than a message may be.
    #[error("{}", frame_length_text(*length))]
    FrameLength {
        /// The length as it stands in the header.
        length: i32,
    },
    /// A part reaches beyond the end of its container.
    #[error("{what} needs {needed} bytes, {available} are left")]
    Truncated {
        /// The part that was being read.
        what: &'static str,
        /// The bytes it needs.
        needed: usize,
        /// The bytes that are left.
        available: usize,
    },
    /// Bytes are left where the message should have ended.
    #[error("{count} bytes are left after the end of the message's content")]
    TrailingBytes {
        /// How many.
        count: usize,
    },
    /// An op code that no longer exists or never did.
    #[error("op code {code} is not supported")]
    UnknownOpCode {
        /// The op code of the header.
        code: i32,
    },
    /// An unknown flag among the lower 16, so that the expectation of the client is not known.
    #[error("OP_MSG flags {flags:#010x} have a required bit that is not known")]
    UnknownFlags {
        /// All 32 flag bits.
        flags: u32,
    },
    /// The checksum at the end of the message is not that of its bytes.
    #[error("checksum of the message is {found:#010x}, its bytes give {computed:#010x}")]
    ChecksumMismatch {
        /// The checksum in the message.
        found: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// A section that is neither a body nor a sequence.
    #[error("OP_MSG section of kind {kind} is not known")]
    UnknownSectionKind {
        /// The kind byte.
        kind: u8,
    },
    /// An OP_MSG without a section of kind 0.
    #[error("OP_MSG has no body section")]
    MissingBody,
    /// An OP_MSG with two sections of kind 0.
    #[error("OP_MSG has more than one body section")]
    SecondBody,
    /// More sections of kind 1 than any command has.
    #[error("OP_MSG has more than {SEQUENCES_MAX} document sequences")]
    TooManySequences,
    /// Two sections of kind 1 with one name.
    #[error("OP_MSG has two document sequences of the same name")]
    DuplicateSequence,
    /// The length of a sequence is smaller than its least content.
    #[error("document sequence of length {length} is too short")]
    SequenceLength {
        /// The length as it stands in the section.
        length: i32,
    },
    /// A name runs to the end of what contains it without its zero byte.
    #[error("{what} has no terminating zero byte")]
    Unterminated {
        /// The part that was being read.
        what: &'static str,
    },
    /// A name that is not UTF-8.
    #[error("{what} is not valid UTF-8")]
    NotUtf8 {
        /// The part that was being read.
        what: &'static str,
        /// Where in it, and why.
        source: std::str::Utf8Error,
    },
    /// The length of a document is under 5 or reaches beyond what contains it.
    #[error("document length {length} is not within 5..={available}")]
    DocumentLength {
        /// The length as it stands in the document.
        length: i32,
        /// The bytes that are left in what contains it.
        available: usize,
    },
    /// The last byte of a document is not zero.
    #[error("document does not end with a zero byte")]
    DocumentUnterminated,
    /// A compressed message contains another one.
    #[error("a compressed message contains another compressed message")]
    NestedCompression,
    /// A compressor that is not known.
    #[error("compressor {id} is not known")]
    UnknownCompressor {
        /// The compressor byte.
        id: u8,
    },
    /// The length that a compressed message claims for its content is negative, too large, or not what came
    /// out.
    #[error("uncompressed length {claimed} is impossible for this message")]
    UncompressedLength {
        /// The length as it stands in the message.
        claimed: i32,
    },
    /// The compressed bytes are damaged.
    #[error("{compressor} cannot decompress the message")]
    Decompress {
        /// Which compressor.
        compressor: Compressor,
        /// Its message.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The compressor refused to compress.
    #[error("{compressor} cannot compress the message")]
    Compress {
        /// Which compressor.
        compressor: Compressor,
        /// Its message.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A message that was being written has grown beyond what may be sent.
    #[error("a message of {bytes} bytes is larger than {MESSAGE_BYTES_MAX}")]
    TooLargeToSend {
        /// Its length.
        bytes: usize,
    },
}

/// The way on for a connection after a [`WireError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The frame's bounds are known, and so is who asks: answer with an error and read the next frame.
    Answer,
    /// Close the connection: the begin of the next frame, or the client's expectation, is not known.
    Close,
}

impl WireError {
    /// Whether the connection can go on. Some errors within a frame close it: an unknown required flag, a
    /// wrong checksum, and errors about an op code or compression. It is then unsure in which form the client
    /// wants an answer.
    pub fn recovery(&self) -> Recovery {
        match self {
            // The beginning of the next frame is not known.
            WireError::FrameLength { .. } => Recovery::Close,
            // The client asks for something that this side would silently leave out.
            WireError::UnknownFlags { .. } => Recovery::Close,
            // No byte of the message can be believed, its request id included.
            WireError::ChecksumMismatch { .. } => Recovery::Close,
            // There is no form in which to answer.
            WireError::UnknownOpCode { .. } => Recovery::Close,
            // Whether the client wanted an answer at all stands inside what cannot be read.
            WireError::NestedCompression
            | WireError::UnknownCompressor { .. }
            | WireError::UncompressedLength { .. }
            | WireError::Decompress { .. } => Recovery::Close,
            // As MongoDB does. No driver sends this.
            WireError::TooManySequences => Recovery::Close,
            // The frame is whole, and its header says whom to answer.
            WireError::Truncated { .. }
            | WireError::TrailingBytes { .. }
            | WireError::UnknownSectionKind { .. }
            | WireError::MissingBody
            | WireError::SecondBody
            | WireError::DuplicateSequence
            | WireError::SequenceLength { .. }
            | WireError::Unterminated { .. }
            | WireError::NotUtf8 { .. }
            | WireError::DocumentLength { .. }
            | WireError::DocumentUnterminated => Recovery::Answer,
            // Errors of this side's own writing.
            WireError::Compress { .. } | WireError::TooLargeToSend { .. } => Recovery::Answer,
        }
    }
}

fn frame_length_text(length: i32) -> String {
    if usize::try_from(length).is_ok_and(|length| length > MESSAGE_BYTES_MAX) {
        format!("length {length} is above the {MESSAGE_BYTES_MAX} bytes of the longest message")
    } else {
        format!("length {length} is below the {HEADER_BYTES}-byte header")
    }
}
