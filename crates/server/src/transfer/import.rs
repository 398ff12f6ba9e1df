//! `pando import`: a file into a collection.

use std::path::PathBuf;

use super::batch::Batch;
use super::csv_rows::CsvRows;
use super::error::TransferError;
use super::format::InputFormat;
use super::input::Input;
use super::json_array::JsonArray;
use super::json_lines::JsonLines;
use super::record::{Record, RecordReader};
use super::target::{Target, TargetChoice};

/// Complaints that are printed one by one; the rest is only counted.
const COMPLAINTS_SHOWN: u64 = 20;

/// The parameters of an import.
#[derive(Clone, Debug)]
pub struct Import {
    /// The file.
    pub file: PathBuf,
    /// Its format; detected if not given.
    pub format: Option<InputFormat>,
    /// The store to write to.
    pub target: TargetChoice,
    /// The database.
    pub database: String,
    /// The collection.
    pub collection: String,
}

/// The result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Documents that are in the collection now.
    pub inserted: u64,
    /// Lines that are no documents.
    pub unreadable: u64,
    /// Documents that the store refused, for example for an `_id` that is there already.
    pub refused: u64,
}

/// Imports a file. Lines that cannot be read and documents that are refused are printed to standard error,
/// and counted.
///
/// # Errors
/// [`TransferError`], if the file or the store cannot be used, or the file cannot be read on.
pub fn import(import: &Import) -> Result<Imported, TransferError> {
    let mut input = Input::open(&import.file)?;
    let format = match import.format {
        Some(format) => format,
        None => InputFormat::detect(&import.file, &mut *input.content)
            .map_err(|source| TransferError::File { path: import.file.clone(), source })?,
    };
    let mut reader: Box<dyn RecordReader> = match format {
        InputFormat::JsonLines => Box::new(JsonLines::new(input.content, import.file.clone())),
        InputFormat::JsonArray => Box::new(JsonArray::new(input.content)),
        InputFormat::Csv => Box::new(CsvRows::new(input.content)),
    };
    let mut run = Run {
        import,
        target: import.target.open()?,
        batch: Batch::default(),
        imported: Imported::default(),
        progress: input.progress,
    };
    let read = reader.read_all(&mut |record| run.take(record));
    // The documents before the fault of the input are imported.
    run.send()?;
    run.progress.finish_and_clear();
    run.target.close()?;
    read.map(|()| run.imported)
}

/// An import under way.
struct Run<'i> {
    import: &'i Import,
    target: Box<dyn Target>,
    batch: Batch,
    imported: Imported,
    progress: indicatif::ProgressBar,
}

impl Run<'_> {
    fn take(&mut self, record: Record) -> Result<(), TransferError> {
        match record.content {
            Ok(document) => self.batch.push(record.line, document, record.text_bytes),
            Err(error) => {
                self.imported.unreadable += 1;
                self.complain(record.line, &error.to_string());
            }
        }
        if self.batch.is_full() { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Result<(), TransferError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let (documents, lines) = self.batch.take();
        let sent = documents.len() as u64;
        let refused = self.target.insert(&self.import.database, &self.import.collection, documents)?;
        for (index, message) in &refused {
            self.imported.refused += 1;
            self.complain(lines.get(*index).copied().unwrap_or(0), message);
        }
        self.imported.inserted += sent - refused.len() as u64;
        self.progress.set_message(format!("{} documents", self.imported.inserted));
        Ok(())
    }

    fn complain(&self, line: u64, message: &str) {
        let number = self.imported.unreadable + self.imported.refused;
        self.progress.suspend(|| match number {
            ..=COMPLAINTS_SHOWN => eprintln!("{}:{line}: {message}", self.import.file.display()),
            _ if number == COMPLAINTS_SHOWN + 1 => eprintln!("further complaints are only counted"),
            _ => {}
        });
    }
}
