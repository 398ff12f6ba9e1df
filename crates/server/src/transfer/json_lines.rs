//! JSON objects: one a line as a rule; an object may also be spread over lines, and a line may hold several.
//! Empty lines mean nothing.
//!
//! 1. A line is parsed by itself.
//! 2. Where it ends within an object, further lines are added until its braces are balanced, and the whole is
//!    parsed.
//! 3. A line that begins with a brace in its first column, and is a whole object, ends the collecting: the
//!    object before it was cut. So one broken line makes no other line unreadable.

use std::io::{BufRead, Read};
use std::path::PathBuf;

use super::error::TransferError;
use super::record::{Record, RecordError, RecordReader, document_of};

/// A document has at most 16 MB; the text of its Extended JSON can be some times longer.
const LINE_BYTES_MAX: usize = 128 * 1024 * 1024;
/// A byte-order mark, which some editors put at the beginning.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads JSON objects.
pub(super) struct JsonLines<R> {
    content: R,
    path: PathBuf,
    /// The object whose end has not come.
    unfinished: Unfinished,
}

/// The text of an object whose end has not come; empty if there is none.
#[derive(Default)]
struct Unfinished {
    text: Vec<u8>,
    /// The line on which it begins.
    line: u64,
    nesting: Nesting,
}

/// How deep a text is within braces and brackets.
#[derive(Default)]
struct Nesting {
    depth: i64,
    within: Within,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Json,
    Text,
    /// After a backslash in a text.
    Escape,
}

impl Nesting {
    fn read(&mut self, text: &[u8]) {
        for byte in text {
            self.within = match (self.within, byte) {
                (Within::Json, b'{' | b'[') => {
                    self.depth += 1;
                    Within::Json
                }
                (Within::Json, b'}' | b']') => {
                    self.depth -= 1;
                    Within::Json
                }
                (Within::Json, b'"') => Within::Text,
                (Within::Text, b'\\') => Within::Escape,
                (Within::Text, b'"') => Within::Json,
                (Within::Escape, _) => Within::Text,
                (within, _) => within,
            };
        }
    }
}

impl<R: BufRead> JsonLines<R> {
    pub(super) fn new(content: R, path: PathBuf) -> JsonLines<R> {
        JsonLines { content, path, unfinished: Unfinished::default() }
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

    /// Takes a line that fits: its records, as far as their ends have come.
    fn take_line(&mut self, number: u64, text: &[u8]) -> Vec<Record> {
        let mut records = Vec::new();
        if !self.unfinished.text.is_empty() {
            if is_whole_object(text) {
                records.extend(self.end_unfinished(RecordError::Cut));
            } else {
                let unfinished = &mut self.unfinished;
                unfinished.text.extend_from_slice(text);
                unfinished.nesting.read(text);
                if unfinished.text.len() > LINE_BYTES_MAX {
                    records.extend(self.end_unfinished(RecordError::TooLong { max: LINE_BYTES_MAX }));
                } else if unfinished.nesting.depth <= 0 {
                    let whole = std::mem::take(unfinished);
                    self.parse(whole.line, &whole.text, &mut records);
                }
                return records;
            }
        }
        self.parse(number, text, &mut records);
        records
    }

    /// Parses the objects of a text; an object whose end has not come is kept.
    fn parse(&mut self, line: u64, text: &[u8], records: &mut Vec<Record>) {
        let mut values = serde_json::Deserializer::from_slice(text).into_iter::<serde_json::Value>();
        let mut begin = 0;
        loop {
            let content = match values.next() {
                None => return,
                Some(Ok(value)) => document_of(value),
                Some(Err(error)) if error.is_eof() && text[begin..].trim_ascii_start().starts_with(b"{") => {
                    let mut nesting = Nesting::default();
                    nesting.read(&text[begin..]);
                    self.unfinished = Unfinished { text: text[begin..].to_vec(), line, nesting };
                    return;
                }
                Some(Err(error)) => {
                    records.push(Record { line, content: Err(error.into()) });
                    return;
                }
            };
            begin = values.byte_offset();
            records.push(Record { line, content });
        }
    }

    fn end_unfinished(&mut self, fault: RecordError) -> Option<Record> {
        let unfinished = std::mem::take(&mut self.unfinished);
        (!unfinished.text.is_empty()).then_some(Record { line: unfinished.line, content: Err(fault) })
    }
}

/// Whether a line is an object by itself, from its first column on.
fn is_whole_object(line: &[u8]) -> bool {
    line.starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
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
            let length = read.map_err(|source| TransferError::Read { path: self.path.clone(), source })?;
            let Some(length) = length else { break };
            number += 1;
            let text = line.as_slice();
            let text = if number == 1 { text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text) } else { text };
            if length == LineLength::TooLong {
                self.end_unfinished(RecordError::Cut).map_or(Ok(()), &mut *take)?;
                take(Record { line: number, content: Err(RecordError::TooLong { max: LINE_BYTES_MAX }) })?;
            } else if !text.trim_ascii().is_empty() {
                self.take_line(number, text).into_iter().try_for_each(&mut *take)?;
            }
        }
        self.end_unfinished(RecordError::Cut).map_or(Ok(()), take)
    }
}
