//! OP_DELETE: removes one document or several. It has no reply.

use super::check_end;
use crate::WireError;
use crate::reader::Reader;

const SINGLE_REMOVE: u32 = 1;

/// A decoded OP_DELETE.
#[derive(Clone, Copy, Debug)]
pub struct OpDelete<'a> {
    /// The collection, with its database.
    pub namespace: &'a str,
    /// Whether one document at most is removed.
    pub is_single: bool,
    /// The filter: one document's bytes.
    pub selector: &'a [u8],
}

impl<'a> OpDelete<'a> {
    /// Decodes the bytes behind the header.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<OpDelete<'a>, WireError> {
        let mut reader = Reader::new(bytes);
        reader.i32("OP_DELETE zero")?;
        let namespace = reader.cstring("OP_DELETE namespace")?;
        let flags = reader.u32("OP_DELETE flags")?;
        let selector = reader.document()?;
        check_end(reader)?;
        Ok(OpDelete { namespace, is_single: flags & SINGLE_REMOVE != 0, selector })
    }
}
