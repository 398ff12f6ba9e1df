//! CSV: the first line names the columns, each further line is a document.
//!
//! A name with dots makes documents within the document. Text that looks like a number becomes one (int32,
//! int64 or double). Numbers in another notation (`007`, `+5`) stay text, because they are postal codes or
//! telephone numbers. Everything else is text, the empty one included.

use std::io::BufRead;

use bson::{Bson, Document};

use super::error::TransferError;
use super::record::{Record, RecordError, RecordReader};

/// Reads CSV.
pub(super) struct CsvRows<R> {
    rows: csv::Reader<R>,
}

impl<R: BufRead> CsvRows<R> {
    pub(super) fn new(content: R) -> CsvRows<R> {
        CsvRows { rows: csv::ReaderBuilder::new().has_headers(true).from_reader(content) }
    }

    fn header(&mut self) -> Result<Vec<Vec<String>>, TransferError> {
        let unreadable = |_| TransferError::CsvHeader { column: "a name that is not UTF-8".to_owned() };
        let header = self.rows.headers().map_err(unreadable)?.clone();
        let mut names: Vec<&str> = Vec::new();
        for (at, name) in header.iter().enumerate() {
            let name = if at == 0 { name.trim_start_matches('\u{FEFF}') } else { name };
            if name.split('.').any(str::is_empty) || names.contains(&name) {
                return Err(TransferError::CsvHeader { column: name.to_owned() });
            }
            names.push(name);
        }
        Ok(names.iter().map(|name| name.split('.').map(str::to_owned).collect()).collect())
    }
}

impl<R: BufRead> RecordReader for CsvRows<R> {
    fn read_all(
        &mut self,
        take: &mut dyn FnMut(Record) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        let header = self.header()?;
        let mut row = csv::StringRecord::new();
        loop {
            let begin = self.rows.position().byte();
            let read = self.rows.read_record(&mut row);
            let line = row.position().map_or_else(|| self.rows.position().line(), csv::Position::line);
            let content = match read {
                Ok(false) => return Ok(()),
                Ok(true) => Ok(document(&header, &row)),
                Err(error) => {
                    let line = error.position().map_or(line, csv::Position::line);
                    take(Record { line, content: Err(RecordError::Csv(error)), text_bytes: 0 })?;
                    continue;
                }
            };
            let text_bytes = usize::try_from(self.rows.position().byte() - begin).unwrap_or(usize::MAX);
            take(Record { line, content, text_bytes })?;
        }
    }
}

fn document(header: &[Vec<String>], row: &csv::StringRecord) -> Document {
    let mut document = Document::new();
    for (path, text) in header.iter().zip(row) {
        let Some((last, parents)) = path.split_last() else { continue };
        let mut place = &mut document;
        for parent in parents {
            let inner = place.entry(parent.clone()).or_insert_with(|| Bson::Document(Document::new()));
            if !matches!(inner, Bson::Document(_)) {
                // The header has both `a` and `a.b`: the more precise name wins.
                *inner = Bson::Document(Document::new());
            }
            let Bson::Document(inner) = inner else { return document };
            place = inner;
        }
        place.insert(last.clone(), value_of(text));
    }
    document
}

/// The value that a text stands for.
fn value_of(text: &str) -> Bson {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let begins_as_number = digits.starts_with(|first: char| first.is_ascii_digit());
    let leading_zero = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if !begins_as_number || leading_zero {
        return Bson::String(text.to_owned());
    }
    if let Ok(number) = text.parse::<i32>() {
        Bson::Int32(number)
    } else if let Ok(number) = text.parse::<i64>() {
        Bson::Int64(number)
    } else {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Bson::Double(number),
            _ => Bson::String(text.to_owned()),
        }
    }
}
