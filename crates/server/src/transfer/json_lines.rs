//! JSON lines: each line one object; empty lines mean nothing.

use std::io::{BufRead, Read};
use std::path::PathBuf;

use super::error::TransferError;
use super::record::{Record, RecordError, RecordReader, document_of};

/// A document has at most 16 MB; the text of its Extended JSON can be some times longer.
const LINE_BYTES_MAX: usize = 128 * 1024 * 1024;
/// A byte-order mark, which some editors put at the beginning.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads JSON lines.
pub(super) struct JsonLines<R> {
    content: R,
    path: PathBuf,
}

impl<R: BufRead> JsonLines<R> {
    pub(super) fn new(content: R, path: PathBuf) -> JsonLines<R> {
        JsonLines { content, path }
    }

    /// Reads one line without its end; `None` at the end of the input. A line over the limit is read to its
    /// end and not kept.
    fn next_line(&mut self, line: &mut Vec<u8>) -> std::io::Result<Option<LineLength>> {
        line.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        let count = self.content.by_ref().take(limit).read_until(b'\n', line)?;
        if count == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') && line.len() > LINE_BYTES_MAX {
            line.clear();
            self.content.skip_until(b'\n')?;
            return Ok(Some(LineLength::TooLong));
        }
        Ok(Some(LineLength::Fits))
    }
}

/// Whether a line was kept.
#[derive(PartialEq, Eq)]
enum LineLength {
    Fits,
    TooLong,
}

impl<R: BufRead> RecordReader for JsonLines<R> {
    fn read_all(
        &mut self,
        take: &mut dyn FnMut(Record) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        let mut line = Vec::new();
        let mut number = 0;
        loop {
            let read = self.next_line(&mut line);
            let length = read.map_err(|source| TransferError::File { path: self.path.clone(), source })?;
            let Some(length) = length else { return Ok(()) };
            number += 1;
            let text = line.trim_ascii();
            let text = if number == 1 { text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text) } else { text };
            let content = match length {
                LineLength::TooLong => Err(RecordError::TooLong { max: LINE_BYTES_MAX }),
                LineLength::Fits if text.is_empty() => continue,
                LineLength::Fits => {
                    serde_json::from_slice(text).map_err(RecordError::from).and_then(document_of)
                }
            };
            take(Record { line: number, content, text_bytes: text.len() })?;
        }
    }
}
