//! One JSON array of objects, read element by element, so that its length does not matter.
//!
//! An element that is valid JSON but no document is reported and skipped. A syntax error ends the reading,
//! because the next element cannot be found.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::path::PathBuf;
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer as _, SeqAccess, Visitor};

use super::error::TransferError;
use super::record::{Record, RecordReader, document_of};

/// Reads one JSON array.
pub(super) struct JsonArray<R> {
    content: Option<R>,
    path: PathBuf,
}

impl<R: BufRead> JsonArray<R> {
    pub(super) fn new(content: R, path: PathBuf) -> JsonArray<R> {
        JsonArray { content: Some(content), path }
    }
}

/// Where in the input the parser is. It reads byte by byte, so this is its place exactly.
#[derive(Default)]
struct Place {
    line: Cell<u64>,
}

struct Counted<R> {
    content: R,
    place: Rc<Place>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(into)?;
        let lines = into[..count].iter().filter(|byte| **byte == b'\n').count();
        self.place.line.set(self.place.line.get() + lines as u64);
        Ok(count)
    }
}

impl<R: BufRead> RecordReader for JsonArray<R> {
    fn read_all(
        &mut self,
        take: &mut dyn FnMut(Record) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        let Some(content) = self.content.take() else { return Ok(()) };
        let place = Rc::new(Place::default());
        place.line.set(1);
        let counted = Counted { content, place: Rc::clone(&place) };
        let mut parser = serde_json::Deserializer::from_reader(counted);
        let mut failed = None;
        let elements = Elements { take, place, failed: &mut failed };
        let read = parser.deserialize_seq(elements).and_then(|()| parser.end());
        match (failed, read) {
            (Some(error), _) => Err(error),
            (None, Ok(())) => Ok(()),
            // The content of gzip that is cut, for one.
            (None, Err(source)) if source.is_io() => {
                Err(TransferError::Read { path: self.path.clone(), source: source.into() })
            }
            (None, Err(source)) => {
                Err(TransferError::Array { line: source.line(), column: source.column(), source })
            }
        }
    }
}

/// Takes the elements of the array as they are parsed.
struct Elements<'t> {
    take: &'t mut dyn FnMut(Record) -> Result<(), TransferError>,
    place: Rc<Place>,
    /// The error of `take`, which ended the parsing. The parser's own error says nothing then.
    failed: &'t mut Option<TransferError>,
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        loop {
            let element = elements.next_element_seed(LinedValue { place: &self.place })?;
            let Some((line, value)) = element else { return Ok(()) };
            let record = Record { line, content: document_of(value) };
            if let Err(error) = (self.take)(record) {
                *self.failed = Some(error);
                return Err(serde::de::Error::custom("stopped"));
            }
        }
    }
}

/// One element, with the line on which it begins.
struct LinedValue<'p> {
    place: &'p Place,
}

impl<'de> DeserializeSeed<'de> for LinedValue<'_> {
    type Value = (u64, serde_json::Value);

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let line = self.place.line.get();
        let value = serde::Deserialize::deserialize(deserializer)?;
        Ok((line, value))
    }
}
