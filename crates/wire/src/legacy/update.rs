//! OP_UPDATE: a change of one document or of several. It has no reply.

use super::check_end;
use crate::WireError;
use crate::reader::Reader;

const UPSERT: u32 = 1;
const MULTI: u32 = 1 << 1;

/// A decoded OP_UPDATE.
#[derive(Clone, Copy, Debug)]
pub struct OpUpdate<'a> {
    /// The collection, with its database.
    pub namespace: &'a str,
    /// Whether a document is inserted where none is found.
    pub is_upsert: bool,
    /// Whether all documents that are found are changed.
    pub is_multi: bool,
    /// The filter: one document's bytes.
    pub selector: &'a [u8],
    /// The operators, or the replacement: one document's bytes.
    pub update: &'a [u8],
}

impl<'a> OpUpdate<'a> {
    /// Decodes the bytes behind the header.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<OpUpdate<'a>, WireError> {
        let mut reader = Reader::new(bytes);
        reader.i32("OP_UPDATE zero")?;
        let namespace = reader.cstring("OP_UPDATE namespace")?;
        let flags = reader.u32("OP_UPDATE flags")?;
        let selector = reader.document()?;
        let update = reader.document()?;
        check_end(reader)?;
        let (is_upsert, is_multi) = (flags & UPSERT != 0, flags & MULTI != 0);
        Ok(OpUpdate { namespace, is_upsert, is_multi, selector, update })
    }
}
