//! An input buffer that cuts the bytes of a connection into frames.
//!
//! For clients and tools that read from a blocking connection: fill, take frames, fill again. The server does
//! not use it: its connections share one read buffer for each thread.

use crate::{WireError, frame_length};

/// Room for one read. A longer frame gets twice the bytes that have come so far, so that a claimed length
/// alone costs no memory.
const READ_BYTES: usize = 64 * 1024;

/// Input of one connection.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    /// Bytes before this belong to frames that were handed out.
    start: usize,
    /// Bytes from `start` up to here have been read.
    end: usize,
}

impl FrameBuffer {
    /// An empty buffer.
    pub fn new() -> FrameBuffer {
        FrameBuffer::default()
    }

    /// Reads once from `source`. Gives the number of bytes that came; 0 is the end of the connection.
    ///
    /// # Errors
    /// Those of `source`.
    pub fn fill_from(&mut self, source: &mut impl std::io::Read) -> std::io::Result<usize> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let room = READ_BYTES.max(self.end);
        if self.bytes.len() < self.end + READ_BYTES {
            self.bytes.resize(self.end + room, 0);
        }
        let count = source.read(&mut self.bytes[self.end..])?;
        self.end += count;
        Ok(count)
    }

    /// The next whole frame, if it has come. It is gone from the buffer with the next call.
    ///
    /// # Errors
    /// [`WireError::FrameLength`].
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, WireError> {
        let have = &self.bytes[self.start..self.end];
        match frame_length(have)? {
            Some(length) if length <= have.len() => {
                let start = self.start;
                self.start += length;
                Ok(Some(&self.bytes[start..start + length]))
            }
            _ => Ok(None),
        }
    }
}
