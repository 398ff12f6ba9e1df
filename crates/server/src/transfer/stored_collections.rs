//! The collections of a store as the input of a copy: their descriptions, and a reader of their documents.
//!
//! # Invariants
//! - Documents go on as the bytes that came. A value in between would lose a field whose name is there twice.
//! - Documents come in their natural order, so that a copy which goes on meets them in the order of the first
//!   run.
//!
//! # Not here
//! The databases of a server itself (`admin`, `config`, `local`) and `system.…` are left out, with a remark,
//! as they are with a dump.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};

use super::batch::RECORDS_MAX;
use super::bson_file::check;
use super::dump::{Description, SERVER_DATABASES, forget_rules_version, index};
use super::error::TransferError;
use super::import_plan::{Content, Creation, ImportPlan, Unit};
use super::input::InputBytes;
use super::record::{Record, RecordReader};
use super::shared_store::SharedStore;
use super::target::{Target, checked};

/// The part of a store that is copied.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Selection<'s> {
    /// One database; all if not given.
    pub(super) database: Option<&'s str>,
    /// One collection of it.
    pub(super) collection: Option<&'s str>,
}

/// A collection of a store.
#[derive(Clone, Debug)]
pub(super) struct StoredCollection {
    store: SharedStore,
    database: String,
    collection: String,
}

/// The plan that copies a part of a store.
pub(super) fn plan_of(store: &SharedStore, selection: Selection<'_>) -> Result<ImportPlan, TransferError> {
    let mut plan = ImportPlan::default();
    let mut names = database_names(store)?;
    names.sort();
    let (own, others): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| SERVER_DATABASES.contains(&name.as_str()));
    match selection.database {
        Some(one) => {
            if !others.iter().any(|name| name == one) {
                let missing = if SERVER_DATABASES.contains(&one) {
                    format!("the database {one} belongs to a server, and is not copied")
                } else {
                    format!("the source has no database {one}")
                };
                return Err(not_there(missing, &others));
            }
            add_database(&mut plan, store, one, selection.collection)?;
        }
        None => {
            if !own.is_empty() {
                plan.remarks.push(format!("left out: {} (of the server itself)", own.join(", ")));
            }
            for name in &others {
                add_database(&mut plan, store, name, None)?;
            }
        }
    }
    if plan.units.is_empty() {
        return Err(not_there("the source has no collections to copy".to_owned(), &others));
    }
    // A view may be over a collection that comes later in the alphabet.
    plan.units.sort_by_key(|unit| unit.content.is_none());
    Ok(plan)
}

fn not_there(missing: String, names: &[String]) -> TransferError {
    let found = match names {
        [] => "it has none".to_owned(),
        some => format!("it has {}", some.join(", ")),
    };
    TransferError::NotThere { missing, found }
}

fn database_names(store: &SharedStore) -> Result<Vec<String>, TransferError> {
    let reply = ask(store, "admin", doc! { "listDatabases": 1, "nameOnly": true })?;
    let databases = reply.get_array("databases").map(Vec::as_slice).unwrap_or_default();
    let names = databases.iter().filter_map(|one| one.as_document()?.get_str("name").ok().map(str::to_owned));
    Ok(names.collect())
}

fn add_database(
    plan: &mut ImportPlan,
    store: &SharedStore,
    database: &str,
    only: Option<&str>,
) -> Result<(), TransferError> {
    let mut listed = all_of(store, database, doc! { "listCollections": 1 })?;
    let name_of = |one: &Document| one.get_str("name").unwrap_or_default().to_owned();
    listed.sort_by_key(name_of);
    let mut names = Vec::new();
    for one in listed {
        let name = name_of(&one);
        if name.starts_with("system.") {
            if only.is_none() {
                plan.remarks.push(format!("left out: {database}.{name}, which the server makes itself"));
            }
            continue;
        }
        if only.is_none_or(|only| only == name) {
            plan.units.push(unit(store, database, &name, one)?);
        }
        names.push(name);
    }
    match only {
        Some(only) if !names.iter().any(|name| name == only) => {
            Err(not_there(format!("the source has no collection {database}.{only}"), &names))
        }
        _ => Ok(()),
    }
}

fn unit(
    store: &SharedStore,
    database: &str,
    collection: &str,
    listed: Document,
) -> Result<Unit, TransferError> {
    let is_view = listed.get_str("type").is_ok_and(|kind| kind == "view");
    let mut options = listed.get_document("options").cloned().unwrap_or_default();
    forget_rules_version(&mut options);
    let indexes = if is_view { Vec::new() } else { indexes(store, database, collection, &options)? };
    let stored = || {
        Content::Stored(StoredCollection {
            store: store.clone(),
            database: database.to_owned(),
            collection: collection.to_owned(),
        })
    };
    Ok(Unit {
        content: (!is_view).then(stored),
        database: database.to_owned(),
        collection: collection.to_owned(),
        description: Description { options, indexes, name: None },
        creation: Creation::First,
        ..Unit::default()
    })
}

fn indexes(
    store: &SharedStore,
    database: &str,
    collection: &str,
    options: &Document,
) -> Result<Vec<Document>, TransferError> {
    let listed = all_of(store, database, doc! { "listIndexes": collection })?;
    let mut indexes: Vec<Document> = listed
        .into_iter()
        // The index of a clustered collection is the collection itself, and one of its options.
        .filter(|one| !one.contains_key("clustered"))
        .filter_map(|one| index(Bson::Document(one)))
        .collect();
    if options.contains_key("collation") {
        // Without a word an index would take over the collation of its collection.
        for index in indexes.iter_mut().filter(|index| !index.contains_key("collation")) {
            index.insert("collation", doc! { "locale": "simple" });
        }
    }
    Ok(indexes)
}

/// One question to the source.
fn ask(store: &SharedStore, database: &str, command: Document) -> Result<Document, TransferError> {
    checked(Document::try_from(&ask_raw(store, database, command)?)?).map_err(|error| of_source(store, error))
}

fn ask_raw(
    store: &SharedStore,
    database: &str,
    mut command: Document,
) -> Result<RawDocumentBuf, TransferError> {
    // A secondary of a replica set answers, too.
    command.insert("$readPreference", doc! { "mode": "primaryPreferred" });
    store.clone().run_raw(database, command, None).map_err(|error| of_source(store, error))
}

fn of_source(store: &SharedStore, error: TransferError) -> TransferError {
    match error {
        TransferError::Source { .. } | TransferError::Stopped => error,
        error => TransferError::Source { place: store.place().to_owned(), source: Box::new(error) },
    }
}

/// Everything that a command lists, over as many batches as it has.
fn all_of(store: &SharedStore, database: &str, command: Document) -> Result<Vec<Document>, TransferError> {
    let mut all = Vec::new();
    let mut reply = ask(store, database, command)?;
    loop {
        let cursor = reply.get_document("cursor").cloned().unwrap_or_default();
        let batch = cursor.get_array("firstBatch").or_else(|_| cursor.get_array("nextBatch"));
        all.extend(batch.into_iter().flatten().filter_map(|one| one.as_document().cloned()));
        let id = cursor.get_i64("id").unwrap_or(0);
        if id == 0 {
            return Ok(all);
        }
        let namespace = cursor.get_str("ns").unwrap_or_default();
        let collection = namespace.split_once('.').map_or(namespace, |(_, collection)| collection);
        reply = ask(store, database, doc! { "getMore": id, "collection": collection })?;
    }
}

impl StoredCollection {
    /// Counts its bytes; their sum is known where the source says it.
    pub(super) fn bytes(&self) -> InputBytes {
        let stats = ask(&self.store, &self.database, doc! { "collStats": &self.collection });
        let total = stats.ok().and_then(|stats| match stats.get("size") {
            Some(Bson::Int32(size)) => u64::try_from(*size).ok(),
            Some(Bson::Int64(size)) => u64::try_from(*size).ok(),
            Some(Bson::Double(size)) => Some(*size as u64),
            _ => None,
        });
        InputBytes::new(Arc::default(), total)
    }

    /// Reads its documents.
    pub(super) fn reader(&self, bytes: &InputBytes) -> CollectionReader {
        CollectionReader { collection: self.clone(), read: bytes.counter() }
    }
}

/// Reads the documents of a collection, a batch at a time.
pub(super) struct CollectionReader {
    collection: StoredCollection,
    read: Arc<AtomicU64>,
}

impl CollectionReader {
    /// Gives the documents of a reply to `take`.
    fn take_batch(
        &self,
        reply: &RawDocument,
        number: &mut u64,
        take: &mut dyn FnMut(Record) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        let cursor = reply.get_document("cursor")?;
        let batch = cursor.get_array("firstBatch").or_else(|_| cursor.get_array("nextBatch"));
        for value in batch? {
            let RawBsonRef::Document(document) = value? else { return Err(TransferError::Closed) };
            self.read.fetch_add(document.as_bytes().len() as u64, Ordering::Relaxed);
            let content = check(document, 0).map(|()| document.to_owned());
            take(Record { line: *number, content })?;
            *number += 1;
        }
        Ok(())
    }

    /// Gives the cursor back. It would time out by itself, so that an error here has no effect.
    fn kill(&self, cursor: i64) {
        if cursor != 0 {
            let StoredCollection { store, database, collection } = &self.collection;
            let _ = ask_raw(store, database, doc! { "killCursors": collection, "cursors": [cursor] });
        }
    }
}

impl RecordReader for CollectionReader {
    fn read_all(
        &mut self,
        take: &mut dyn FnMut(Record) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        let StoredCollection { store, database, collection } = self.collection.clone();
        let records_max = i64::try_from(RECORDS_MAX).unwrap_or(i64::MAX);
        let mut number = 1;
        let mut command = doc! { "find": &collection, "batchSize": records_max };
        loop {
            let reply = ask_raw(&store, &database, command)?;
            let answered = reply.get("ok").ok().flatten();
            let is_refused = !matches!(
                answered,
                Some(RawBsonRef::Double(1.0) | RawBsonRef::Int32(1) | RawBsonRef::Int64(1))
            );
            if is_refused {
                let refused = Document::try_from(&reply).map_err(TransferError::from).and_then(checked);
                return Err(of_source(&store, refused.err().unwrap_or(TransferError::Closed)));
            }
            let cursor =
                reply.get_document("cursor").ok().and_then(|cursor| cursor.get_i64("id").ok()).unwrap_or(0);
            self.take_batch(&reply, &mut number, take).inspect_err(|_| self.kill(cursor)).map_err(
                |error| match error {
                    TransferError::Bson(_) => of_source(&store, error),
                    error => error,
                },
            )?;
            if cursor == 0 {
                return Ok(());
            }
            command = doc! { "getMore": cursor, "collection": &collection, "batchSize": records_max };
        }
    }
}
