//! A run of documents, back to back, as in a sequence or in a legacy reply.

use crate::WireError;
use crate::reader::Reader;

/// Iterates over documents that were checked to fill their bytes exactly; each item is one document's bytes.
#[derive(Clone, Copy)]
pub struct Documents<'a> {
    reader: Reader<'a>,
}

impl<'a> Documents<'a> {
    /// Checks that `bytes` are whole documents, without a rest.
    ///
    /// # Errors
    /// [`WireError::DocumentLength`], [`WireError::DocumentUnterminated`] or [`WireError::Truncated`] for the
    /// first that is not whole.
    pub fn check(bytes: &'a [u8]) -> Result<Documents<'a>, WireError> {
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            reader.document()?;
        }
        Ok(Documents { reader: Reader::new(bytes) })
    }

    /// Documents that were checked before, when their message was decoded.
    pub(crate) fn of_checked(bytes: &'a [u8]) -> Documents<'a> {
        Documents { reader: Reader::new(bytes) }
    }
}

impl<'a> Iterator for Documents<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        // `check` has walked the same bytes, so an error here means the end.
        if self.reader.is_empty() { None } else { self.reader.document().ok() }
    }
}

impl std::fmt::Debug for Documents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Documents({} bytes left)", self.reader.remaining())
    }
}
