//! OP_INSERT: documents for a collection. It has no reply.

use crate::reader::Reader;
use crate::{Documents, WireError};

/// The flag bit "go on with the next document after one that failed".
const CONTINUE_ON_ERROR: u32 = 1;

/// A decoded OP_INSERT.
#[derive(Clone, Copy, Debug)]
pub struct OpInsert<'a> {
    /// The collection, with its database.
    pub namespace: &'a str,
    /// Whether the documents behind one that fails are inserted.
    pub continues_on_error: bool,
    documents: &'a [u8],
}

impl<'a> OpInsert<'a> {
    /// Decodes the bytes behind the header.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<OpInsert<'a>, WireError> {
        let mut reader = Reader::new(bytes);
        let flags = reader.u32("OP_INSERT flags")?;
        let namespace = reader.cstring("OP_INSERT namespace")?;
        let documents = reader.take_rest();
        Documents::check(documents)?;
        Ok(OpInsert { namespace, continues_on_error: flags & CONTINUE_ON_ERROR != 0, documents })
    }

    /// The documents, one by one.
    pub fn documents(&self) -> Documents<'a> {
        Documents::of_checked(self.documents)
    }

    /// The documents' bytes, one after another.
    pub fn bytes(&self) -> &'a [u8] {
        self.documents
    }
}
