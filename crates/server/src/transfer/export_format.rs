//! The forms in which documents are exported.

use std::io::{self, Write};

use bson::{Bson, Document};

/// The form of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// JSON.
    Json {
        /// How documents stand beside each other.
        layout: JsonLayout,
        /// How values are written.
        dialect: JsonDialect,
    },
    /// Rows of text.
    Csv {
        /// The columns: names of fields, with dots for fields of inner documents.
        fields: Vec<String>,
        /// Whether the first line names them.
        header: CsvHeader,
    },
}

/// How JSON documents stand beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonLayout {
    /// One a line, or all in an array.
    pub frame: JsonFrame,
    /// Compact, or indented.
    pub style: JsonStyle,
}

/// Whether JSON documents are one array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFrame {
    /// They are one after the other.
    Lines,
    /// They are an array.
    Array,
}

/// Whether a JSON document is on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonStyle {
    /// On one line.
    Compact,
    /// On several, indented.
    Pretty,
}

/// The form of Extended JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonDialect {
    /// Numbers as JSON has them.
    Relaxed,
    /// The type of each number is written.
    Canonical,
}

/// Whether the first line of CSV names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsvHeader {
    /// It does.
    Written,
    /// It is the first document.
    LeftOut,
}

/// Writes documents, and counts the bytes.
pub(super) struct DocumentWriter {
    out: Counted,
    format: ExportFormat,
    documents: u64,
}

struct Counted {
    sink: Box<dyn Write>,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.sink.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

impl DocumentWriter {
    pub(super) fn new(sink: Box<dyn Write>, format: ExportFormat) -> DocumentWriter {
        DocumentWriter { out: Counted { sink, bytes: 0 }, format, documents: 0 }
    }

    /// Bytes that were written so far.
    pub(super) fn bytes(&self) -> u64 {
        self.out.bytes
    }

    /// Writes a document.
    pub(super) fn write(&mut self, document: Bson) -> io::Result<()> {
        let first = self.documents == 0;
        self.documents += 1;
        match &self.format {
            ExportFormat::Json { layout, dialect } => {
                if layout.frame == JsonFrame::Array {
                    self.out.write_all(if first { b"[\n" } else { b",\n" })?;
                }
                let value = match dialect {
                    JsonDialect::Relaxed => relaxed(document),
                    JsonDialect::Canonical => document.into_canonical_extjson(),
                };
                match layout.style {
                    JsonStyle::Compact => serde_json::to_writer(&mut self.out, &value)?,
                    JsonStyle::Pretty => serde_json::to_writer_pretty(&mut self.out, &value)?,
                }
                if layout.frame == JsonFrame::Lines { self.out.write_all(b"\n") } else { Ok(()) }
            }
            ExportFormat::Csv { fields, header } => {
                if first && *header == CsvHeader::Written {
                    row(&mut self.out, fields)?;
                }
                let empty = Document::new();
                let document = document.as_document().unwrap_or(&empty);
                let texts: Vec<String> = fields.iter().map(|field| text_at(document, field)).collect();
                row(&mut self.out, &texts)
            }
        }
    }

    /// Ends the output.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match &self.format {
            ExportFormat::Json { layout, .. } if layout.frame == JsonFrame::Array => {
                self.out.write_all(if self.documents == 0 { b"[]\n" } else { b"\n]\n" })?;
            }
            ExportFormat::Csv { fields, header: CsvHeader::Written } if self.documents == 0 => {
                row(&mut self.out, fields)?;
            }
            _ => {}
        }
        self.out.flush()
    }
}

/// The last millisecond of the year 9999. Text of a date ends there.
const LAST_DATE_AS_TEXT: i64 = 253_402_300_799_999;

/// Relaxed Extended JSON. A date that has no text is its number of milliseconds there.
fn relaxed(value: Bson) -> serde_json::Value {
    match value {
        Bson::Document(document) => {
            let fields = document.into_iter().map(|(name, inner)| (name, relaxed(inner)));
            serde_json::Value::Object(fields.collect())
        }
        Bson::Array(items) => serde_json::Value::Array(items.into_iter().map(relaxed).collect()),
        Bson::DateTime(date) if date.timestamp_millis() > LAST_DATE_AS_TEXT => value.into_canonical_extjson(),
        other => other.into_relaxed_extjson(),
    }
}

fn row(out: &mut impl Write, texts: &[String]) -> io::Result<()> {
    let mut bytes = Vec::new();
    csv::Writer::from_writer(&mut bytes).write_record(texts)?;
    out.write_all(&bytes)
}

/// The text of a field; empty if the document has none. An array's elements are reached by their numbers.
fn text_at(document: &Document, path: &str) -> String {
    let mut steps = path.split('.');
    let mut value = steps.next().and_then(|first| document.get(first));
    for step in steps {
        value = match value {
            Some(Bson::Document(inner)) => inner.get(step),
            Some(Bson::Array(items)) => step.parse::<usize>().ok().and_then(|at| items.get(at)),
            _ => None,
        };
    }
    value.map(text_of).unwrap_or_default()
}

fn text_of(value: &Bson) -> String {
    match value {
        Bson::Null | Bson::Undefined => String::new(),
        Bson::String(text) | Bson::Symbol(text) => text.clone(),
        Bson::ObjectId(id) => id.to_hex(),
        Bson::DateTime(date) if date.timestamp_millis() <= LAST_DATE_AS_TEXT => {
            date.try_to_rfc3339_string().unwrap_or_else(|_| date.to_string())
        }
        Bson::Decimal128(number) => number.to_string(),
        other => match relaxed(other.clone()) {
            serde_json::Value::String(text) => text,
            value => value.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    #[test]
    fn fields_of_csv_are_reached_through_documents_and_arrays() {
        let document = doc! { "a": { "b": [1, "x,y"] }, "n": 1.5, "none": null };
        let texts = ["a.b.1", "a.b", "n", "none", "missing.x"].map(|path| text_at(&document, path));
        assert_eq!(texts, ["x,y", "[1,\"x,y\"]", "1.5", "", ""]);
    }

    #[test]
    fn a_date_beyond_the_year_9999_keeps_its_milliseconds() {
        for millis in [LAST_DATE_AS_TEXT, LAST_DATE_AS_TEXT + 1, i64::MAX, -1, i64::MIN] {
            let date = Bson::DateTime(bson::DateTime::from_millis(millis));
            let document = Bson::Document(doc! { "a": [{ "d": date.clone() }] });
            let read: Bson = relaxed(document.clone()).try_into().unwrap();
            assert_eq!(read, document, "{millis}");
            let is_text = !text_of(&date).starts_with('{');
            assert_eq!(is_text, millis <= LAST_DATE_AS_TEXT, "{}", text_of(&date));
        }
    }
}
