//! `pando export`: a collection into JSON lines (relaxed Extended JSON).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use bson::{Bson, Document, doc};

use super::error::TransferError;
use super::target::{Target, TargetChoice};

/// Documents that are asked for at a time.
const BATCH_SIZE: i32 = 1000;

/// The parameters of an export.
#[derive(Clone, Debug)]
pub struct Export {
    /// The file; standard output if none.
    pub file: Option<PathBuf>,
    /// The store to read from.
    pub target: TargetChoice,
    /// The database.
    pub database: String,
    /// The collection.
    pub collection: String,
    /// The filter of the documents.
    pub filter: Document,
}

/// Exports a collection; gives the number of documents.
///
/// # Errors
/// [`TransferError`].
pub fn export(export: &Export) -> Result<u64, TransferError> {
    let mut target = export.target.open()?;
    let path = export.file.clone().unwrap_or_else(|| PathBuf::from("standard output"));
    let failed = |source| TransferError::File { path: path.clone(), source };
    let sink: Box<dyn Write> = match &export.file {
        Some(path) => Box::new(File::create(path).map_err(failed)?),
        None => Box::new(io::stdout().lock()),
    };
    let mut out = BufWriter::with_capacity(256 * 1024, sink);
    let mut count = 0;
    let find = doc! { "find": &export.collection, "filter": export.filter.clone(), "batchSize": BATCH_SIZE };
    let mut reply = target.run(&export.database, find)?;
    loop {
        let (cursor, documents) = take_batch(&mut reply);
        for document in documents {
            write_line(&mut out, document).map_err(failed)?;
            count += 1;
        }
        if cursor == 0 {
            break;
        }
        reply = next_batch(target.as_mut(), export, cursor)?;
    }
    out.flush().map_err(failed)?;
    target.close()?;
    Ok(count)
}

fn next_batch(target: &mut dyn Target, export: &Export, cursor: i64) -> Result<Document, TransferError> {
    let command = doc! { "getMore": cursor, "collection": &export.collection, "batchSize": BATCH_SIZE };
    target.run(&export.database, command)
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

fn write_line(out: &mut impl Write, document: Bson) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &document.into_relaxed_extjson())?;
    out.write_all(b"\n")
}
