//! `pando export`: a collection into JSON or CSV.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};
use flate2::Compression;
use flate2::write::GzEncoder;
use pandodb::MissingStore;

use super::error::TransferError;
use super::export_format::{DocumentWriter, ExportFormat};
use super::import::Talk;
use super::interrupt::Interrupt;
use super::progress::{Progress, Shown};
use super::target::{Target, TargetChoice};

/// Documents that are asked for at a time.
const BATCH_SIZE: i32 = 1000;

/// The parameters of an export.
#[derive(Clone, Debug)]
pub struct Export {
    /// The file; standard output if none. A name that ends in `.gz` is packed.
    pub file: Option<PathBuf>,
    /// The form of each document.
    pub format: ExportFormat,
    /// The store to read from.
    pub target: TargetChoice,
    /// The database.
    pub database: String,
    /// The collection.
    pub collection: String,
    /// The filter of the documents.
    pub filter: Document,
    /// Further fields of the `find` command: `sort`, `skip`, `limit`, `allowDiskUse`.
    pub find_fields: Document,
    /// How much is printed on the way.
    pub talk: Talk,
}

/// The end of an export.
#[derive(Debug)]
pub enum ExportEnd {
    /// Every document that matches is in the output.
    Complete,
    /// The reader of standard output has seen enough, as `head` has.
    ReaderGone,
    /// The user has asked to stop.
    Interrupted,
    /// An error.
    Failed(TransferError),
}

/// The result of an export.
#[derive(Debug)]
pub struct Exported {
    /// Documents in the output.
    pub documents: u64,
    /// Bytes of the output, before packing.
    pub bytes: u64,
    /// The time that it took.
    pub elapsed: Duration,
    /// How it ended.
    pub end: ExportEnd,
    /// Whether the collection is there. One that is not there has no documents, and is no error.
    pub collection_exists: bool,
}

/// Exports a collection.
///
/// # Errors
/// The store or the output cannot be opened, the query is refused, or the collection is not there while the
/// output is a file with content, so that nothing was written. An error after that is part of the result.
pub fn export(export: &Export) -> Result<Exported, TransferError> {
    let begun = Instant::now();
    let interrupt = Interrupt::watch().map_err(TransferError::System)?;
    let mut target = export.target.open(MissingStore::Refuse, &interrupt)?;
    let mut find =
        doc! { "find": &export.collection, "filter": export.filter.clone(), "batchSize": BATCH_SIZE };
    find.extend(export.find_fields.clone());
    // Before the file is made, so that a query that is refused leaves no empty one.
    let reply = target.run(&export.database, find, None)?;
    let collection_exists = exists(target.as_mut(), export)?;
    if !collection_exists && let Some(file) = export.file.as_ref().filter(|file| has_content(file)) {
        let namespace = format!("{}.{}", export.database, export.collection);
        return Err(TransferError::KeptFile { path: file.clone(), namespace });
    }
    let path = export.file.clone().unwrap_or_else(|| PathBuf::from("standard output"));
    let sink = open_sink(export).map_err(|source| TransferError::Write { path: path.clone(), source })?;
    let total = export.file.as_ref().and_then(|_| count(target.as_mut(), export));
    let mut run = Run {
        export,
        path,
        out: DocumentWriter::new(sink, export.format.clone()),
        documents: 0,
        documents_total: total,
        begun,
        progress: match (&export.file, export.talk) {
            (Some(_), Talk::All) => Progress::new(),
            // The documents themselves go to the terminal, or to another program.
            _ => Progress::hidden(),
        },
        interrupt,
    };
    let written = run.write_all(target.as_mut(), reply);
    run.progress.clear();
    let (documents, bytes) = (run.documents, run.out.bytes());
    let end = match (written, target.close()) {
        (Ok(end), Ok(())) => end,
        (Err(TransferError::Write { source, .. }), _)
            if export.file.is_none() && source.kind() == io::ErrorKind::BrokenPipe =>
        {
            ExportEnd::ReaderGone
        }
        (Err(error), _) | (Ok(_), Err(error)) => ExportEnd::Failed(error),
    };
    Ok(Exported { documents, bytes, elapsed: begun.elapsed(), end, collection_exists })
}

/// Whether a file has something to lose.
fn has_content(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.is_file() && found.len() > 0)
}

fn open_sink(export: &Export) -> io::Result<Box<dyn Write>> {
    const BUFFER_BYTES: usize = 256 * 1024;
    Ok(match &export.file {
        Some(path) if path.extension().is_some_and(|extension| extension == "gz") => Box::new(
            BufWriter::with_capacity(BUFFER_BYTES, GzEncoder::new(File::create(path)?, Compression::fast())),
        ),
        Some(path) => Box::new(BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?)),
        None => Box::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock())),
    })
}

/// Whether the collection is there: a name with a typing error has no documents either.
fn exists(target: &mut dyn Target, export: &Export) -> Result<bool, TransferError> {
    let command = doc! { "listCollections": 1, "filter": { "name": &export.collection }, "nameOnly": true };
    let mut reply = target.run(&export.database, command, None)?;
    Ok(!take_batch(&mut reply).1.is_empty())
}

/// The documents of the whole collection, for the progress of an export without a filter.
fn count(target: &mut dyn Target, export: &Export) -> Option<u64> {
    if !export.filter.is_empty() || export.find_fields.contains_key("limit") {
        return None;
    }
    let reply = target.run(&export.database, doc! { "count": &export.collection }, None).ok()?;
    u64::try_from(reply.get_i32("n").map(i64::from).or_else(|_| reply.get_i64("n")).ok()?).ok()
}

/// An export under way.
struct Run<'e> {
    export: &'e Export,
    path: PathBuf,
    out: DocumentWriter,
    documents: u64,
    documents_total: Option<u64>,
    begun: Instant,
    progress: Progress,
    interrupt: Interrupt,
}

impl Run<'_> {
    fn write_all(&mut self, target: &mut dyn Target, first: Document) -> Result<ExportEnd, TransferError> {
        let mut reply = first;
        loop {
            let (cursor, documents) = take_batch(&mut reply);
            for document in documents {
                let path = &self.path;
                self.out
                    .write(document)
                    .map_err(|source| TransferError::Write { path: path.clone(), source })
                    .inspect_err(|_| kill(target, self.export, cursor))?;
                self.documents += 1;
            }
            self.show();
            let end = match (cursor, self.interrupt.is_asked()) {
                (_, true) => {
                    kill(target, self.export, cursor);
                    Some(ExportEnd::Interrupted)
                }
                (0, false) => Some(ExportEnd::Complete),
                (_, false) => None,
            };
            if let Some(end) = end {
                let finished = self.out.finish();
                finished.map_err(|source| TransferError::Write { path: self.path.clone(), source })?;
                return Ok(end);
            }
            let command =
                doc! { "getMore": cursor, "collection": &self.export.collection, "batchSize": BATCH_SIZE };
            reply = target.run(&self.export.database, command, None)?;
        }
    }

    fn show(&mut self) {
        let bytes = self.out.bytes();
        // The bytes of the whole are not known; the share of the documents stands for them.
        let part = |total: u64| (bytes as f64 * total as f64 / self.documents.max(1) as f64) as u64;
        let bytes_total = self.documents_total.map(part);
        let (documents, elapsed) = (self.documents, self.begun.elapsed());
        self.progress.show(Shown { documents, bytes, bytes_total, elapsed });
    }
}

/// Gives the cursor back. It would time out by itself, so that an error here has no effect.
fn kill(target: &mut dyn Target, export: &Export, cursor: i64) {
    if cursor != 0 {
        let command = doc! { "killCursors": &export.collection, "cursors": [cursor] };
        let _ = target.run(&export.database, command, None);
    }
}

/// The cursor of a reply (0: it is at its end) and the documents that came with it.
fn take_batch(reply: &mut Document) -> (i64, Vec<Bson>) {
    let Ok(cursor) = reply.get_document_mut("cursor") else { return (0, Vec::new()) };
    let id = cursor.get_i64("id").unwrap_or(0);
    let batch = cursor.remove("firstBatch").or_else(|| cursor.remove("nextBatch"));
    match batch {
        Some(Bson::Array(documents)) => (id, documents),
        _ => (id, Vec::new()),
    }
}
