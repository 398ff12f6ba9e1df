//! The collections that an import writes, each with its input.

use std::path::{Path, PathBuf};

use bson::Document;

use super::address::database_of;
use super::bson_file::BsonFile;
use super::csv_rows::{CsvRows, Delimiter, RowOptions};
use super::dump::{self, Description, Renamed};
use super::error::TransferError;
use super::format::InputFormat;
use super::import_options::{FormatChoice, Import};
use super::input::{Input, InputBytes, Source};
use super::json_array::JsonArray;
use super::json_lines::JsonLines;
use super::record::RecordReader;
use super::stored_collections::StoredCollection;
use super::target::TargetChoice;

/// The database of an import that names none.
const DATABASE_DEFAULT: &str = "test";
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The collections of an import, in order.
#[derive(Debug, Default)]
pub(super) struct ImportPlan {
    pub(super) origin: PlanOrigin,
    pub(super) units: Vec<Unit>,
    /// Parts of the input that are left out, and are not missed.
    pub(super) remarks: Vec<String>,
    /// Collections of the input that cannot be brought in: each with the reason. With one of them the import
    /// is not complete.
    pub(super) refused: Vec<(String, String)>,
}

/// The place of the documents of all units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum PlanOrigin {
    /// Another store, in a copy.
    #[default]
    Store,
    /// One file, or standard input.
    File,
    /// A folder of mongodump. A damaged file of it stops no other.
    Folder(PathBuf),
}

/// One collection.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    /// Its documents; `None` for a view.
    pub(super) content: Option<Content>,
    pub(super) database: String,
    pub(super) collection: String,
    pub(super) description: Description,
    pub(super) creation: Creation,
    pub(super) arrived: Arrived,
    /// Further fields of the commands that write its documents.
    pub(super) command_fields: Document,
}

/// The documents of a collection that an earlier, interrupted copy has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Arrived {
    /// The copy is the first one.
    #[default]
    NotAsked,
    /// The target has so many, and they are the first ones of the source.
    Front(u64),
    /// The target has as many as the source.
    All(u64),
    /// The target has others than these of the source, or it is not known which, and no key tells them
    /// apart: nothing is written.
    Unclear {
        /// Documents of the source.
        of_source: u64,
    },
}

/// The documents of a collection.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// A text or a BSON file.
    Bytes(BytesContent),
    /// A collection of another store.
    Stored(StoredCollection),
}

/// Documents in a file or in standard input.
#[derive(Clone, Debug)]
pub(super) struct BytesContent {
    pub(super) source: Source,
    pub(super) format: Option<FormatChoice>,
    /// How rows of text become documents.
    pub(super) rows: RowOptions,
}

/// The moment at which a collection without options comes into being.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Creation {
    /// With its first document.
    #[default]
    Lazy,
    /// Before that, so that an empty collection is there as well.
    First,
}

/// An input that is open.
pub(super) struct OpenContent {
    pub(super) reader: Box<dyn RecordReader + Send>,
    /// Lines or documents are counted.
    pub(super) counted: &'static str,
    pub(super) bytes: InputBytes,
}

impl ImportPlan {
    /// The plan of an import: one collection, or those of a dump.
    pub(super) fn of(import: &Import) -> Result<ImportPlan, TransferError> {
        let from_uri = match &import.target {
            TargetChoice::Uri(uri) => database_of(uri),
            TargetChoice::Data(_) | TargetChoice::Cluster(_) => None,
        };
        let database = import.database.clone().or(from_uri);
        let path = match &import.source {
            Source::File(path) => Some(path.as_path()),
            Source::Standard => None,
        };
        if let Some(folder) = path.filter(|path| path.is_dir()) {
            refuse_rows(&import.rows, folder, "a folder of mongodump, whose files are BSON")?;
            let renamed = Renamed { database: database.as_deref(), collection: import.collection.as_deref() };
            return dump::plan_of(folder, renamed);
        }
        path.map_or(Ok(()), dump::refuse_description)?;
        path.map_or(Ok(()), dump::refuse_buckets)?;
        let collection = import.collection.clone().or_else(|| collection_of(path?));
        let unit = Unit {
            content: Some(Content::Bytes(BytesContent {
                source: import.source.clone(),
                format: import.format,
                rows: import.rows.clone(),
            })),
            database: database.unwrap_or_else(|| DATABASE_DEFAULT.to_owned()),
            collection: collection.ok_or(TransferError::NoCollection)?,
            description: path.map_or(Ok(Description::default()), dump::description_beside)?,
            creation: Creation::Lazy,
            ..Unit::default()
        };
        Ok(ImportPlan { origin: PlanOrigin::File, units: vec![unit], ..ImportPlan::default() })
    }

    /// Refuses an input that cannot be read, before a store is opened, or made. Of a folder, one file has to
    /// be readable.
    pub(super) fn refuse_unreadable(&self) -> Result<(), TransferError> {
        let mut refused = Ok(());
        for content in self.units.iter().filter_map(|unit| unit.content.as_ref()) {
            let Content::Bytes(BytesContent { source: Source::File(path), .. }) = content else {
                return Ok(());
            };
            if is_pipe(path) {
                return Ok(());
            }
            match content.open() {
                Ok(_) => return Ok(()),
                Err(error) => refused = refused.and(Err(error)),
            }
        }
        refused
    }
}

/// Whether a file can be read once only, as a pipe of a shell (`<(zstdcat a.json.zst)`). One that is not
/// there is none: opening it says so.
fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

impl Unit {
    pub(super) fn namespace(&self) -> String {
        format!("{}.{}", self.database, self.collection)
    }

    pub(super) fn is_view(&self) -> bool {
        self.description.options.contains_key("viewOn")
    }

    /// Whether it is a time series of another store or of a dump. Its documents have no unique `_id`, so that
    /// one that is sent twice is in twice, and an update cannot replace one.
    pub(super) fn is_time_series(&self) -> bool {
        self.content.is_some() && self.description.options.contains_key("timeseries")
    }

    /// The name of its input, for people.
    pub(super) fn input_name(&self) -> String {
        match &self.content {
            Some(Content::Bytes(bytes)) => bytes.source.name().display().to_string(),
            Some(Content::Stored(_)) | None => self.namespace(),
        }
    }
}

impl Content {
    /// Opens it.
    pub(super) fn open(&self) -> Result<OpenContent, TransferError> {
        match self {
            Content::Bytes(bytes) => bytes.open(),
            Content::Stored(collection) => {
                let bytes = collection.bytes();
                let reader = collection.reader(&bytes);
                Ok(OpenContent { reader: Box::new(reader), counted: "document", bytes })
            }
        }
    }
}

impl BytesContent {
    fn open(&self) -> Result<OpenContent, TransferError> {
        let path = self.source.name();
        let Input { mut content, head, bytes } = Input::open(&self.source)?;
        let format = match self.format {
            Some(FormatChoice::Exact(InputFormat::Bson)) => Ok(InputFormat::Bson),
            Some(FormatChoice::Exact(format)) => InputFormat::check_text(&head).map(|()| format),
            Some(FormatChoice::Json) => InputFormat::check_text(&head).map(|()| InputFormat::of_json(&head)),
            None => InputFormat::detect(&path, &head),
        };
        let format = format.map_err(|reason| TransferError::Format { path: path.clone(), reason })?;
        match format {
            InputFormat::JsonLines | InputFormat::JsonArray => refuse_rows(&self.rows, &path, "JSON")?,
            InputFormat::Bson => refuse_rows(&self.rows, &path, "BSON")?,
            InputFormat::Csv | InputFormat::Tsv => {}
        }
        let reader: Box<dyn RecordReader + Send> = match format {
            InputFormat::JsonLines => Box::new(JsonLines::new(content, path)),
            InputFormat::JsonArray => {
                if head.starts_with(BYTE_ORDER_MARK) {
                    content.consume(BYTE_ORDER_MARK.len());
                }
                Box::new(JsonArray::new(content, path))
            }
            InputFormat::Csv => Box::new(CsvRows::new(content, path, Delimiter::Comma, self.rows.clone())),
            InputFormat::Tsv => Box::new(CsvRows::new(content, path, Delimiter::Tab, self.rows.clone())),
            InputFormat::Bson => Box::new(BsonFile::new(content, path)),
        };
        // Several elements of an array may stand in one line.
        let counted = match format {
            InputFormat::Bson | InputFormat::JsonArray => "document",
            InputFormat::JsonLines | InputFormat::Csv | InputFormat::Tsv => "line",
        };
        Ok(OpenContent { reader, counted, bytes })
    }
}

/// Refuses flags of columns for an input that has none.
fn refuse_rows(rows: &RowOptions, path: &Path, input: &'static str) -> Result<(), TransferError> {
    let flag = match rows {
        RowOptions { types, .. } if !types.is_empty() => "--types",
        RowOptions { names: Some(_), .. } => "--fields",
        _ => return Ok(()),
    };
    Err(TransferError::NoRows { flag, path: path.to_owned(), input })
}

/// The collection's name out of the file's: without the suffixes.
fn collection_of(path: &Path) -> Option<String> {
    const SUFFIXES: [&str; 8] = [".gz", ".bson", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".tab"];
    let mut name = path.file_name()?.to_str()?;
    while let Some(rest) = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)) {
        name = rest;
    }
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_has_the_name_of_its_file() {
        let named = |path: &str| collection_of(Path::new(path));
        assert_eq!(named("/a/cities.jsonl.gz").as_deref(), Some("cities"));
        assert_eq!(named("cities.2024.csv").as_deref(), Some("cities.2024"));
        assert_eq!(named(".json"), None);
    }
}
