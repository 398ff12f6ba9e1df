//! Error replies that the network side writes itself: to damaged messages, to old protocols, after a panic.
//!
//! They have the shape of every MongoDB error: `{ok: 0.0, errmsg: …, code: …, codeName: …}`. The codes are
//! those that MongoDB 6.0.27 was observed to send.

use pando_wire::WireError;

/// The reason of a refusal.
#[derive(Debug)]
pub(crate) enum Refusal<'a> {
    /// The frame is not a message.
    Malformed(&'a WireError),
    /// An OP_QUERY with a command that is not answered by it any more.
    LegacyCommand(&'a str),
    /// An older operation, which is refused.
    LegacyOperation(&'a str),
    /// The handler panicked.
    Panicked,
    /// The reply became longer than a message may be.
    ReplyTooLarge,
}

impl Refusal<'_> {
    fn code(&self) -> (i32, &'static str) {
        match self {
            Refusal::Malformed(error) => malformed_code(error),
            Refusal::LegacyCommand(_) => (352, "UnsupportedOpQueryCommand"),
            Refusal::LegacyOperation(_) => (5_739_101, "Location5739101"),
            Refusal::Panicked => (1, "InternalError"),
            Refusal::ReplyTooLarge => (10_334, "BSONObjectTooLarge"),
        }
    }

    fn message(&self) -> String {
        match self {
            Refusal::Malformed(error) => error.to_string(),
            Refusal::LegacyCommand(name) => {
                format!("Unsupported OP_QUERY command: {name}. The client driver may require an upgrade.")
            }
            Refusal::LegacyOperation(name) => {
                format!("{name} is no longer supported. The client driver may require an upgrade.")
            }
            Refusal::Panicked => "the server met an error of its own; its log has the details".to_owned(),
            Refusal::ReplyTooLarge => "the reply is larger than a message may be".to_owned(),
        }
    }

    /// Appends the document in the form for a query of an older operation: `{$err: …, code: …, ok: 0.0}`.
    pub(crate) fn append_query_failure(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        append_string(out, "$err", &self.message());
        out.extend_from_slice(b"\x10code\0");
        out.extend_from_slice(&self.code().0.to_le_bytes());
        out.extend_from_slice(b"\x01ok\0");
        out.extend_from_slice(&0_f64.to_le_bytes());
        finish_document(out, start);
    }

    /// Appends the document.
    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        let (code, code_name) = self.code();
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(b"\x01ok\0");
        out.extend_from_slice(&0_f64.to_le_bytes());
        append_string(out, "errmsg", &self.message());
        out.extend_from_slice(b"\x10code\0");
        out.extend_from_slice(&code.to_le_bytes());
        append_string(out, "codeName", code_name);
        finish_document(out, start);
    }
}

fn finish_document(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = u32::try_from(out.len() - start).expect("a few short fields");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn malformed_code(error: &WireError) -> (i32, &'static str) {
    match error {
        WireError::MissingBody => (40_587, "Location40587"),
        WireError::SecondBody => (40_430, "Location40430"),
        WireError::DuplicateSequence => (40_431, "Location40431"),
        WireError::UnknownSectionKind { .. } => (40_432, "Location40432"),
        WireError::DocumentLength { .. } | WireError::DocumentUnterminated => (22, "InvalidBSON"),
        WireError::Truncated { what: "checksum", .. } => (51_252, "Location51252"),
        WireError::Truncated { .. } | WireError::Unterminated { .. } | WireError::SequenceLength { .. } => {
            (15, "Overflow")
        }
        // The rest closes the connection, or comes from writing a reply.
        _ => (17, "ProtocolError"),
    }
}

fn append_string(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(2);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    let length = u32::try_from(value.len() + 1).expect("messages are short");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// The name of the first element of a document: the name of a command. Empty if there is none.
pub(crate) fn command_name(document: &[u8]) -> &str {
    let name = document.get(5..).unwrap_or_default();
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    std::str::from_utf8(&name[..end]).unwrap_or("")
}
