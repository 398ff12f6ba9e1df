//! The opening of a store: WiredTiger's recovery, the engine's own records, and what a crash has left over.

use std::path::Path;
use std::sync::Arc;

use pando_environment::Environment;
use pando_storage::{ErrorKind, StorageError, TreeId};

use crate::commit::{BEGIN_WRITING, COMMIT, SYNC};
use crate::failure::{corrupt, environment_failed, library_failed, refused};
use crate::layout::{
    FORMAT, FORMAT_KEY, NEXT_TREE_KEY, NUMBER_LIMIT_KEY, RECORDS_URI, TreeRecord, tree_of_file,
    tree_of_record_key, tree_of_uri,
};
use crate::library::{Connection, LibraryError, Session, c_text};
use crate::options::WiredTigerOptions;
use crate::store::RECORDS;
use crate::trees::{Table, Trees};

/// The numbers of trees: each is given out once.
pub(crate) struct TreeNumbers {
    next: u32,
}

impl TreeNumbers {
    /// The number of the next tree.
    pub(crate) fn next(&mut self) -> Result<TreeId, StorageError> {
        let next = self.next;
        self.next = next
            .checked_add(1)
            .ok_or_else(|| StorageError::new(ErrorKind::Busy, "all numbers for trees have been used"))?;
        Ok(TreeId::new(next))
    }

    /// The number that comes after this tree's.
    pub(crate) const fn after(&self, tree: TreeId) -> u32 {
        if self.next > tree.get() { self.next } else { tree.get().saturating_add(1) }
    }
}

/// An opened store, before its background work begins.
pub(crate) struct OpenedStore {
    pub(crate) connection: Arc<Connection>,
    pub(crate) trees: Trees,
    pub(crate) numbers: TreeNumbers,
    /// No commit had this number or a higher one.
    pub(crate) number_limit: u64,
}

/// The engine's records as they are stored.
#[derive(Default)]
struct Records {
    format: Option<u32>,
    next_tree: u32,
    number_limit: u64,
    trees: Vec<(TreeId, TreeRecord)>,
}

/// Opens the database in WiredTiger's folder, which exists.
pub(crate) fn open(
    environment: &Environment,
    folder: &Path,
    options: &WiredTigerOptions,
) -> Result<OpenedStore, StorageError> {
    let opened = Connection::open(folder, &c_text(&options.connection_config()));
    let connection = opened.map_err(|error| open_failed(folder, error))?;
    let failed = |error| library_failed("opening the store", error);
    let mut session = connection.open_session().map_err(failed)?;
    session.create(RECORDS_URI, c"key_format=u,value_format=u,log=(enabled=true)").map_err(failed)?;
    let records = read_records(&mut session)?;
    match records.format {
        None => write_format(&mut session).map_err(failed)?,
        Some(FORMAT) => {}
        Some(format) => {
            let message = format!(
                "the store has the format {format} of the engine `wiredtiger`, this program reads {FORMAT}"
            );
            return Err(refused(format!("{message}: open it with the program that wrote it")));
        }
    }
    let mut trees = Trees::default();
    let mut next = records.next_tree.max(1);
    for (id, record) in records.trees {
        next = next.max(id.get().saturating_add(1));
        trees.insert(Table::new(id, record));
    }
    next = next.max(drop_leftovers(&mut session, &trees)?);
    session.close_cursors();
    drop(session);
    remove_files(environment, folder, &trees)?;
    Ok(OpenedStore { connection, trees, numbers: TreeNumbers { next }, number_limit: records.number_limit })
}

/// The database cannot be opened: the cause in the library's words, and the cure.
fn open_failed(folder: &Path, error: LibraryError) -> StorageError {
    let text = error.to_string();
    if text.contains("cannot open shared object") {
        let message = format!(
            "WiredTiger's compressors are not installed ({text}): install Debian's package libwiredtiger0, or \
             libwiredtiger-dev"
        );
        return StorageError::with_source(ErrorKind::Io, message, error);
    }
    if text.contains("already being managed") {
        let message = format!("{} is open already, in this process or another: {text}", folder.display());
        return StorageError::with_source(ErrorKind::Busy, message, error);
    }
    library_failed(&format!("opening the database in {}", folder.display()), error)
}

fn read_records(session: &mut Session) -> Result<Records, StorageError> {
    let failed = |error| library_failed("reading the engine's records", error);
    let mut records = Records::default();
    let mut cursor = session.cursor(&RECORDS).map_err(failed)?;
    while cursor.step(pando_storage::Direction::Forward).map_err(failed)? {
        let (key, value) = (cursor.key().map_err(failed)?, cursor.value().map_err(failed)?);
        let make_no_sense =
            || corrupt("a record of the engine makes no sense: restore the store from a backup");
        let u32_of = |value: &[u8]| value.try_into().map(u32::from_be_bytes).map_err(|_| make_no_sense());
        match key {
            FORMAT_KEY => records.format = Some(u32_of(value)?),
            NEXT_TREE_KEY => records.next_tree = u32_of(value)?,
            NUMBER_LIMIT_KEY => {
                records.number_limit =
                    value.try_into().map(u64::from_be_bytes).map_err(|_| make_no_sense())?;
            }
            _ => {
                let tree = tree_of_record_key(key).zip(TreeRecord::decode(value));
                records.trees.push(tree.ok_or_else(make_no_sense)?);
            }
        }
    }
    Ok(records)
}

fn write_format(session: &mut Session) -> Result<(), LibraryError> {
    session.begin(BEGIN_WRITING)?;
    session.cursor(&RECORDS)?.insert(FORMAT_KEY, &FORMAT.to_be_bytes())?;
    session.commit(COMMIT)?;
    session.flush_log(SYNC)
}

/// Drops tables without a record: they were being created or dropped when the process ended. Refuses a record
/// without a table. Returns the number after the last one that was found.
fn drop_leftovers(session: &mut Session, trees: &Trees) -> Result<u32, StorageError> {
    let listed = session.with_names(c"metadata:", |names| {
        names.iter().filter_map(|name| tree_of_uri(name)).collect::<Vec<TreeId>>()
    });
    let found = listed.map_err(|error| library_failed("listing the tables", error))?;
    if let Some(missing) = trees.listed().find(|table| !found.contains(&table.id)) {
        let message = format!(
            "the table of {} ({}) is missing: restore the store from a backup",
            missing.id, missing.name
        );
        return Err(corrupt(message));
    }
    for id in &found {
        if trees.table(*id).is_err() {
            let dropped = session.drop_table(&crate::layout::table_uri(*id), c"force=true");
            dropped.map_err(|error| library_failed("dropping a table that was left over", error))?;
        }
    }
    Ok(found.iter().map(|id| id.get().saturating_add(1)).max().unwrap_or(0))
}

/// Removes files of tables that are gone: the process ended between the drop and the removal.
fn remove_files(environment: &Environment, folder: &Path, trees: &Trees) -> Result<(), StorageError> {
    let failed = |error| environment_failed("cannot remove a file that was left over", error);
    for name in environment.files().list(folder).map_err(failed)? {
        if tree_of_file(&name).is_some_and(|id| trees.table(id).is_err()) {
            environment.files().remove(&folder.join(&name)).map_err(failed)?;
        }
    }
    Ok(())
}
