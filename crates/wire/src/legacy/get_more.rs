//! OP_GET_MORE: the next batch of a cursor.

use super::check_end;
use crate::WireError;
use crate::reader::Reader;

/// A decoded OP_GET_MORE.
#[derive(Clone, Copy, Debug)]
pub struct OpGetMore<'a> {
    /// The namespace of the cursor.
    pub namespace: &'a str,
    /// The size of the batch; 0 leaves it to the server.
    pub number_to_return: i32,
    /// The cursor.
    pub cursor_id: i64,
}

impl<'a> OpGetMore<'a> {
    /// Decodes the bytes behind the header.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<OpGetMore<'a>, WireError> {
        let mut reader = Reader::new(bytes);
        reader.i32("OP_GET_MORE zero")?;
        let namespace = reader.cstring("OP_GET_MORE namespace")?;
        let number_to_return = reader.i32("OP_GET_MORE numberToReturn")?;
        let cursor_id = reader.i64("OP_GET_MORE cursor")?;
        check_end(reader)?;
        Ok(OpGetMore { namespace, number_to_return, cursor_id })
    }
}
