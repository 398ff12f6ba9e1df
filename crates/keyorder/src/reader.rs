//! Reading key bytes from the front, through the mask of a descending part.

use crate::{DecodeError, Direction, lead_byte};

pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
    mask: u8,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0, mask: 0 }
    }

    /// Starts a part of that direction.
    pub fn set_direction(&mut self, direction: Direction) {
        self.mask = direction.mask();
    }

    /// From here on bytes are inverted once more: the payload of a negative number, and back.
    pub fn invert(&mut self) {
        self.mask = !self.mask;
    }

    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    fn truncated(&self) -> DecodeError {
        DecodeError::Truncated { offset: self.bytes.len() }
    }

    pub fn impossible(&self) -> DecodeError {
        DecodeError::ImpossiblePayload { offset: self.offset }
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        let byte = *self.bytes.get(self.offset).ok_or_else(|| self.truncated())?;
        self.offset += 1;
        Ok(byte ^ self.mask)
    }

    /// Bytes as they stand, not yet unmasked.
    #[inline]
    fn masked(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let rest = &self.bytes[self.offset..];
        let taken = rest.get(..count).ok_or_else(|| self.truncated())?;
        self.offset += count;
        Ok(taken)
    }

    pub fn skip(&mut self, count: usize) -> Result<(), DecodeError> {
        self.masked(count).map(|_| ())
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let masked = self.masked(N)?;
        let mut array = *masked.first_chunk().expect("as many bytes were taken");
        array.iter_mut().for_each(|byte| *byte ^= self.mask);
        Ok(array)
    }

    pub fn vec(&mut self, count: usize) -> Result<Vec<u8>, DecodeError> {
        let masked = self.masked(count)?;
        Ok(masked.iter().map(|byte| byte ^ self.mask).collect())
    }

    pub fn length(&mut self) -> Result<usize, DecodeError> {
        match self.byte()? {
            lead_byte::LONG => match u32::from_be_bytes(self.array()?) {
                long if long < u32::from(lead_byte::LONG) => Err(self.impossible()),
                long => Ok(long as usize),
            },
            short => Ok(usize::from(short)),
        }
    }

    /// Bytes up to END, which is taken too, unmasked.
    fn until_end(&mut self) -> Result<Vec<u8>, DecodeError> {
        let length = self.length_until_end()?;
        let bytes = self.vec(length)?;
        self.offset += 1;
        Ok(bytes)
    }

    fn length_until_end(&self) -> Result<usize, DecodeError> {
        let end = lead_byte::END ^ self.mask;
        self.bytes[self.offset..].iter().position(|byte| *byte == end).ok_or_else(|| self.truncated())
    }

    pub fn skip_until_end(&mut self) -> Result<(), DecodeError> {
        self.offset += self.length_until_end()? + 1;
        Ok(())
    }

    /// A field's name, which has no escapes.
    pub fn name(&mut self) -> Result<String, DecodeError> {
        let bytes = self.until_end()?;
        String::from_utf8(bytes).map_err(|_| DecodeError::InvalidUtf8 { offset: self.offset })
    }

    pub fn text(&mut self) -> Result<String, DecodeError> {
        let bytes = self.text_bytes()?;
        String::from_utf8(bytes).map_err(|_| DecodeError::InvalidUtf8 { offset: self.offset })
    }

    /// The bytes that stand for a string.
    pub fn text_bytes(&mut self) -> Result<Vec<u8>, DecodeError> {
        let mut bytes = self.until_end()?;
        if bytes.contains(&lead_byte::ESCAPE) {
            bytes = unescaped(&bytes).ok_or_else(|| self.impossible())?;
        }
        Ok(bytes)
    }
}

fn unescaped(escaped: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            &lead_byte::ESCAPE => match rest.next()? {
                escaped @ 1..=2 => escaped - 1,
                _ => return None,
            },
            byte => *byte,
        });
    }
    Some(bytes)
}
