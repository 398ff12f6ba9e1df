//! OP_KILL_CURSORS: closes cursors. It has no reply.

use super::check_end;
use crate::WireError;
use crate::reader::Reader;

/// The bytes of one cursor number.
const CURSOR_BYTES: usize = 8;

/// A decoded OP_KILL_CURSORS.
#[derive(Clone, Copy, Debug)]
pub struct OpKillCursors<'a> {
    cursors: &'a [u8],
}

impl<'a> OpKillCursors<'a> {
    /// Decodes the bytes behind the header. The count must be that of the numbers that follow.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<OpKillCursors<'a>, WireError> {
        let mut reader = Reader::new(bytes);
        reader.i32("OP_KILL_CURSORS zero")?;
        let count = reader.i32("OP_KILL_CURSORS count")?;
        // A negative count needs more bytes than any message has.
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let cursors = reader.take("OP_KILL_CURSORS cursors", count.saturating_mul(CURSOR_BYTES))?;
        check_end(reader)?;
        Ok(OpKillCursors { cursors })
    }

    /// The cursors.
    pub fn cursors(&self) -> impl ExactSizeIterator<Item = i64> + use<'a> {
        let numbers = self.cursors.chunks_exact(CURSOR_BYTES);
        numbers.map(|bytes| i64::from_le_bytes(bytes.try_into().expect("the chunks have eight bytes")))
    }
}
