//! OP_QUERY: a query of a collection, or a command.

use super::check_end;
use crate::WireError;
use crate::header::{Header, OpCode, patch_length};
use crate::reader::Reader;

/// The flag bits of an OP_QUERY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryFlags(u32);

impl QueryFlags {
    /// No flag.
    pub const NONE: QueryFlags = QueryFlags(0);
    /// The cursor stays open at the end of its collection.
    pub const TAILABLE: QueryFlags = QueryFlags(1 << 1);
    /// A secondary may answer.
    pub const SECONDARY_OK: QueryFlags = QueryFlags(1 << 2);
    /// The cursor does not time out.
    pub const NO_CURSOR_TIMEOUT: QueryFlags = QueryFlags(1 << 4);
    /// A tailable cursor waits for documents.
    pub const AWAIT_DATA: QueryFlags = QueryFlags(1 << 5);
    /// The client wants all batches without asking for them.
    pub const EXHAUST: QueryFlags = QueryFlags(1 << 6);

    /// The flags of these bits.
    pub const fn from_bits(bits: u32) -> QueryFlags {
        QueryFlags(bits)
    }

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: QueryFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A decoded OP_QUERY.
#[derive(Clone, Copy, Debug)]
pub struct OpQuery<'a> {
    /// The flags as sent.
    pub flags: QueryFlags,
    /// The namespace that is queried: `admin.$cmd` for a command.
    pub namespace: &'a str,
    /// The documents to skip.
    pub skip: i32,
    /// The size of the first batch. A negative number closes the cursor behind the batch, and so does 1.
    pub number_to_return: i32,
    /// The query, which for a command is the command: one document's bytes.
    pub query: &'a [u8],
    /// The projection, if there is one.
    pub projection: Option<&'a [u8]>,
}

impl<'a> OpQuery<'a> {
    /// Decodes the bytes behind the header.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<OpQuery<'a>, WireError> {
        let mut reader = Reader::new(bytes);
        let flags = QueryFlags(reader.u32("OP_QUERY flags")?);
        let namespace = reader.cstring("OP_QUERY namespace")?;
        let skip = reader.i32("OP_QUERY numberToSkip")?;
        let number_to_return = reader.i32("OP_QUERY numberToReturn")?;
        let query = reader.document()?;
        let projection = if reader.is_empty() { None } else { Some(reader.document()?) };
        check_end(reader)?;
        Ok(OpQuery { flags, namespace, skip, number_to_return, query, projection })
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
