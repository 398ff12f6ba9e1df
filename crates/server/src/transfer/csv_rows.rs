//! Rows of text: CSV, or TSV. The first line names the columns unless the command line does; each further
//! line is a document.
//!
//! A name with dots makes documents within the document. The type of each value follows from its column
//! ([`ColumnType`]).

use std::io::{self, BufRead, Read};
use std::path::PathBuf;

use bson::{Bson, Document};

use super::column_type::{ColumnType, TypedColumn};
use super::error::{ColumnNames, TransferError};
use super::format::FormatError;
use super::record::{Record, RecordError, RecordReader, encoded};

/// How a file of rows is read.
#[derive(Clone, Debug, Default)]
pub struct RowOptions {
    /// The columns, for a file without a first line that names them.
    pub names: Option<Vec<String>>,
    /// The types of columns by name.
    pub types: Vec<TypedColumn>,
    /// Whether names of columns end in their type, as in `zip.string()`.
    pub typed_names: TypedNames,
    /// Fields by which documents are found at the target. Each must come from a column.
    pub key_fields: Vec<String>,
    /// The document's field for an empty text.
    pub blanks: Blanks,
    /// The step for a value that is not of its column's type.
    pub mismatch: TypeMismatch,
}

/// Whether names of columns end in their type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TypedNames {
    /// They are names alone.
    #[default]
    No,
    /// `zip.string()`.
    Yes,
}

/// The document's field for an empty text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blanks {
    /// An empty text.
    #[default]
    Kept,
    /// No field.
    LeftOut,
}

/// The step for a value that is not of its column's type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TypeMismatch {
    /// Report the row and leave it out.
    #[default]
    SkipRow,
    /// Leave the field out.
    SkipField,
    /// Take the type that the text looks like.
    Detect,
    /// End the import.
    Stop,
}

/// Reads rows.
pub(super) struct CsvRows<R> {
    rows: csv::Reader<Ending<R>>,
    path: PathBuf,
    options: RowOptions,
    columns: Vec<Column>,
}

/// A column, with what was found in it.
struct Column {
    path: Vec<String>,
    column_type: ColumnType,
    /// The first row with a text and with a number, for a column without a type.
    text_at: Option<u64>,
    number_at: Option<u64>,
}

/// The character between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    /// And values may stand in quotes.
    Comma,
    /// And quotes are characters like others.
    Tab,
}

impl<R: BufRead> CsvRows<R> {
    pub(super) fn new(content: R, path: PathBuf, delimiter: Delimiter, options: RowOptions) -> CsvRows<R> {
        let mut builder = csv::ReaderBuilder::new();
        builder.has_headers(options.names.is_none()).flexible(true);
        if delimiter == Delimiter::Tab {
            builder.delimiter(b'\t').quoting(false);
        }
        let content = Ending { content, last: 0, is_reached: false, break_of_lines: None };
        CsvRows { rows: builder.from_reader(content), path, options, columns: Vec::new() }
    }

    /// The fault of a row that ends with the input and within quotes: its last value is the rest of the
    /// input.
    fn open_quote(&self, line: u64, row: &csv::StringRecord) -> Option<RecordError> {
        let Ending { last, is_reached, .. } = *self.rows.get_ref();
        let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count() as u64;
        let value = row.iter().next_back()?;
        // Only a value in quotes has a line break. The quote that ends one is the last byte of the input,
        // since a row that ends with its line ends before the input is known to.
        if !is_reached || lines(value) == 0 || last == b'"' {
            return None;
        }
        let opened = line + row.iter().map(lines).sum::<u64>() - lines(value);
        let last_line = u64::from(!value.ends_with('\n'));
        Some(RecordError::OpenQuote { line: opened, lines: lines(value) + last_line })
    }

    /// The line of a row. The parser takes the second byte of a CR LF for the first of the next row, and
    /// gives the line in front of it.
    fn line_at(&self, position: &csv::Position) -> u64 {
        let is_behind_cr = position.byte() > 0 && self.rows.get_ref().break_of_lines == Some(LineBreak::CrLf);
        position.line() + u64::from(is_behind_cr)
    }

    fn read_columns(&mut self) -> Result<(), TransferError> {
        let names: Vec<String> = match &self.options.names {
            Some(names) => names.clone(),
            None => self.header()?,
        };
        let origin = match self.options.names {
            Some(_) => ColumnNames::Flag,
            None => ColumnNames::FirstLine,
        };
        for name in &names {
            let unusable = |fault| TransferError::CsvHeader { origin, column: name.clone(), fault };
            let column = self.column(name)?;
            if column.path.iter().any(String::is_empty) {
                let fault = if name.is_empty() { "is an empty name" } else { "has an empty part" };
                return Err(unusable(fault));
            }
            if self.columns.iter().any(|other| other.path == column.path) {
                return Err(unusable("is there twice"));
            }
            let lies_within = |inner: &Column, outer: &Column| inner.path.starts_with(&outer.path);
            let crossed =
                self.columns.iter().find(|other| lies_within(other, &column) || lies_within(&column, other));
            if let Some(other) = crossed {
                let (first, second) = (other.path.join("."), name.clone());
                return Err(TransferError::CsvColumns { origin, first, second });
            }
            self.columns.push(column);
        }
        let unknown = self
            .options
            .types
            .iter()
            .find(|typed| !self.columns.iter().any(|column| column.path.join(".") == typed.name));
        if let Some(typed) = unknown {
            let (flag, column) = ("--types", typed.name.clone());
            return Err(TransferError::NoColumn { flag, column, columns: names.join(", ") });
        }
        let lacking = self.options.key_fields.iter().find(|field| !self.has_field(field));
        match lacking {
            Some(field) => {
                let (flag, column) = ("--upsert-fields", field.clone());
                Err(TransferError::NoColumn { flag, column, columns: names.join(", ") })
            }
            None => Ok(()),
        }
    }

    /// Whether documents have the field: it is a column, or a document of several columns.
    fn has_field(&self, field: &str) -> bool {
        let path: Vec<&str> = field.split('.').collect();
        self.columns.iter().any(|column| {
            column.path.len() >= path.len()
                && column.path.iter().zip(&path).all(|(step, wanted)| step == wanted)
        })
    }

    fn header(&mut self) -> Result<Vec<String>, TransferError> {
        let path = &self.path;
        let header = self.rows.headers().map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(source) => TransferError::Read { path: path.clone(), source },
            _ => TransferError::Format { path: path.clone(), reason: FormatError::NotUtf8 },
        })?;
        let header = header.clone();
        if let Some(reason) = self.open_quote(1, &header) {
            return Err(TransferError::CsvQuote { path: self.path.clone(), reason: reason.to_string() });
        }
        Ok(header.iter().map(|name| name.trim_start_matches('\u{FEFF}').to_owned()).collect())
    }

    fn column(&self, name: &str) -> Result<Column, TransferError> {
        let (plain, named) = match self.options.typed_names {
            TypedNames::No => (name, None),
            TypedNames::Yes => {
                let untyped = || TransferError::ColumnType {
                    column: name.to_owned(),
                    reason: format!("it has no type, such as {name}.string()"),
                };
                let (plain, of_type) = name.rsplit_once('.').ok_or_else(untyped)?;
                let named = ColumnType::of_name(of_type)
                    .map_err(|reason| TransferError::ColumnType { column: name.to_owned(), reason })?;
                (plain, Some(named))
            }
        };
        let given =
            self.options.types.iter().find(|typed| typed.name == plain).map(|typed| typed.column_type);
        Ok(Column {
            path: plain.split('.').map(str::to_owned).collect(),
            column_type: given.or(named).unwrap_or(ColumnType::Detected),
            text_at: None,
            number_at: None,
        })
    }

    /// The document of a row, or its fault.
    fn document(&mut self, line: u64, row: &csv::StringRecord) -> Result<Document, RecordError> {
        if row.len() != self.columns.len() {
            return Err(RecordError::Columns { found: row.len(), columns: self.columns.len() });
        }
        let mut document = Document::new();
        for (column, text) in self.columns.iter_mut().zip(row) {
            if text.is_empty() && self.options.blanks == Blanks::LeftOut {
                continue;
            }
            let value = match (column.column_type.value_of(text), self.options.mismatch) {
                (Ok(value), _) => value,
                (Err(_), TypeMismatch::SkipField) => None,
                (Err(_), TypeMismatch::Detect) => ColumnType::Detected.value_of(text).unwrap_or_default(),
                (Err(_), TypeMismatch::SkipRow | TypeMismatch::Stop) => {
                    return Err(RecordError::ColumnType {
                        column: column.path.join("."),
                        text: text.to_owned(),
                        expected: column.column_type.label(),
                    });
                }
            };
            let Some(value) = value else { continue };
            column.note(line, text, &value);
            place(&mut document, &column.path, value);
        }
        Ok(document)
    }
}

/// An input that knows whether its end was reached, and its last byte.
struct Ending<R> {
    content: R,
    last: u8,
    is_reached: bool,
    /// How the first line ends, once it was read.
    break_of_lines: Option<LineBreak>,
}

/// The end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineBreak {
    Lf,
    CrLf,
}

impl<R: BufRead> Read for Ending<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(into)?;
        if self.break_of_lines.is_none()
            && let Some(at) = into[..count].iter().position(|byte| *byte == b'\n')
        {
            let before = if at == 0 { self.last } else { into[at - 1] };
            self.break_of_lines = Some(if before == b'\r' { LineBreak::CrLf } else { LineBreak::Lf });
        }
        match into[..count].last() {
            Some(last) => self.last = *last,
            None => self.is_reached = !into.is_empty(),
        }
        Ok(count)
    }
}

impl Column {
    fn note(&mut self, line: u64, text: &str, value: &Bson) {
        if self.column_type == ColumnType::Detected && !text.is_empty() {
            let seen = if matches!(value, Bson::String(_)) { &mut self.text_at } else { &mut self.number_at };
            seen.get_or_insert(line);
        }
    }
}

/// Puts a value at a path of a document.
fn place(document: &mut Document, path: &[String], value: Bson) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut place = document;
    for parent in parents {
        let inner = place.entry(parent.clone()).or_insert_with(|| Bson::Document(Document::new()));
        let Bson::Document(inner) = inner else {
            unreachable!("no name of a column is the beginning of another's: see read_columns")
        };
        place = inner;
    }
    place.insert(last.clone(), value);
}

impl<R: BufRead> RecordReader for CsvRows<R> {
    fn read_all(
        &mut self,
        take: &mut dyn FnMut(Record) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        self.read_columns()?;
        let mut row = csv::StringRecord::new();
        loop {
            let read = self.rows.read_record(&mut row);
            let line = self.line_at(row.position().unwrap_or_else(|| self.rows.position()));
            let (line, content) = match read {
                Ok(false) => return Ok(()),
                Ok(true) => {
                    let document = match self.open_quote(line, &row) {
                        Some(fault) => Err(fault),
                        None => self.document(line, &row),
                    };
                    (line, document.and_then(|document| encoded(&document)))
                }
                Err(error) if error.is_io_error() => {
                    let csv::ErrorKind::Io(source) = error.into_kind() else { return Ok(()) };
                    return Err(TransferError::Read { path: self.path.clone(), source });
                }
                Err(error) => {
                    (error.position().map_or(line, |position| self.line_at(position)), Err(error.into()))
                }
            };
            let stops = self.options.mismatch == TypeMismatch::Stop
                && matches!(content, Err(RecordError::ColumnType { .. }));
            take(Record { line, content })?;
            if stops {
                return Err(TransferError::TypeMismatch { line });
            }
        }
    }

    fn remarks(&self) -> Vec<String> {
        let mixed = self.columns.iter().filter_map(|column| {
            let (text_at, number_at, name) = (column.text_at?, column.number_at?, column.path.join("."));
            Some(format!(
                "column {name} has text (first on line {text_at}) and numbers (first on line {number_at}), which do not \
                 compare with each other; give it one type with --types {name}=string"
            ))
        });
        mixed.collect()
    }
}
