//! A reader of borrowed bytes that never reads past their end.

use crate::WireError;

/// The smallest document: its length and its final zero.
const DOCUMENT_BYTES_MIN: usize = 5;

/// The unread rest of some bytes.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { left: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn remaining(&self) -> usize {
        self.left.len()
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, what: &'static str, count: usize) -> Result<&'a [u8], WireError> {
        match self.left.split_at_checked(count) {
            Some((taken, left)) => {
                self.left = left;
                Ok(taken)
            }
            None => Err(WireError::Truncated { what, needed: count, available: self.left.len() }),
        }
    }

    /// Everything that is left.
    pub(crate) fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
    }

    pub(crate) fn byte(&mut self, what: &'static str) -> Result<u8, WireError> {
        Ok(self.take(what, 1)?[0])
    }

    pub(crate) fn i32(&mut self, what: &'static str) -> Result<i32, WireError> {
        let bytes = self.take(what, 4)?;
        Ok(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, WireError> {
        Ok(self.i32(what)?.cast_unsigned())
    }

    pub(crate) fn i64(&mut self, what: &'static str) -> Result<i64, WireError> {
        let low = self.u32(what)?;
        let high = self.i32(what)?;
        Ok((i64::from(high) << 32) | i64::from(low))
    }

    /// A name up to its zero byte, which is taken too.
    pub(crate) fn cstring(&mut self, what: &'static str) -> Result<&'a str, WireError> {
        let end = self.left.iter().position(|byte| *byte == 0).ok_or(WireError::Unterminated { what })?;
        let name =
            std::str::from_utf8(&self.left[..end]).map_err(|source| WireError::NotUtf8 { what, source })?;
        self.left = &self.left[end + 1..];
        Ok(name)
    }

    /// One document, its length and final zero included. The bytes between are not looked at.
    pub(crate) fn document(&mut self) -> Result<&'a [u8], WireError> {
        let available = self.left.len();
        let length = Reader::new(self.left).i32("document length")?;
        let fits =
            usize::try_from(length).is_ok_and(|length| (DOCUMENT_BYTES_MIN..=available).contains(&length));
        if !fits {
            return Err(WireError::DocumentLength { length, available });
        }
        let document = self.take("document", length.cast_unsigned() as usize)?;
        if document[document.len() - 1] != 0 {
            return Err(WireError::DocumentUnterminated);
        }
        Ok(document)
    }
}
